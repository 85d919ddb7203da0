//! Shape functions in C++, with the helpers that Rust has.

use tenon_framework::{
    Code, KernelError, PartialShape, Tensor,
    infer::{SymbolicShape, Symbols, ValueInfo},
    op::{Refusal, Symmetry},
};
use tenon_tests::{bench::Bench, zoo::cpp_zoo};

/// Shapes of inputs, of which the unknown dimensions are all different.
#[derive(Default)]
struct Inputs {
    symbols: Symbols,
    values: Vec<ValueInfo>,
}

impl Inputs {
    fn of(mut self, dims: &[i64]) -> Inputs {
        let shape = PartialShape::new(dims).unwrap();
        self.values.push(ValueInfo::of_shape(&shape, &mut self.symbols));
        self
    }

    fn unknown(mut self) -> Inputs {
        self.values.push(ValueInfo { shape: SymbolicShape::UNKNOWN, ..ValueInfo::default() });
        self
    }

    fn constant(mut self, value: Tensor) -> Inputs {
        self.values.push(ValueInfo::of_constant(value));
        self
    }

    fn infer(mut self, bench: &Bench, op: &str) -> Result<Vec<String>, KernelError> {
        let values: Vec<&ValueInfo> = self.values.iter().collect();
        let outputs = bench.node(op).infer(&values, &mut self.symbols)?;
        Ok(outputs.iter().map(|output| output.shape.partial().to_string()).collect())
    }
}

#[test]
fn shapes_are_merged_and_made_of_dimensions_and_attributes() {
    let bench = Bench::with([cpp_zoo()]);
    let inferred =
        Inputs::default().of(&[2, -1]).of(&[-1, 3]).infer(&bench, "ZooCppShapes").unwrap();
    assert_eq!(inferred, ["[2,3]", "[3]", "[5,6,2,3]", "[9,3]"]);
    let inferred = Inputs::default().unknown().of(&[4, 5]).infer(&bench, "ZooCppShapes").unwrap();
    assert_eq!(inferred, ["[4,5]", "[5]", "[5,6,4,5]", "[9,5]"]);
    let refused =
        Inputs::default().of(&[2, 7]).of(&[2, 3]).infer(&bench, "ZooCppShapes").unwrap_err();
    assert_eq!(refused.code, Code::INVALID_ARGUMENT);
    let refused = Inputs::default().of(&[2]).of(&[2]).infer(&bench, "ZooCppShapes").unwrap_err();
    assert!(!refused.message.is_empty(), "a rank that is refused is said: {refused}");
}

#[test]
fn shapes_broadcast_as_far_as_they_are_known() {
    let bench = Bench::with([cpp_zoo()]);
    let of = |a: &[i64], b: &[i64]| {
        Inputs::default().of(a).of(b).infer(&bench, "ZooCppBroadcast").map(|mut all| all.remove(0))
    };
    assert_eq!(of(&[4, 1, 3], &[5, 1]).unwrap(), "[4,5,3]");
    assert_eq!(of(&[-1, 3], &[7, 1]).unwrap(), "[7,3]");
    assert_eq!(of(&[-1], &[-1]).unwrap(), "[?]");
    assert_eq!(of(&[], &[0, 2]).unwrap(), "[0,2]");
    let unknown = Inputs::default().unknown().of(&[2]).infer(&bench, "ZooCppBroadcast").unwrap();
    assert_eq!(unknown, ["<unknown>"]);
    let error = of(&[2, 3], &[4]).unwrap_err();
    assert!(error.message.contains("sizes 3 and 4 do not broadcast"), "{error}");
    let registry = bench.plugins.registry();
    let facts = registry.op("ZooCppBroadcast").unwrap().facts();
    assert!(facts.elementwise && facts.passed.is_none());
    assert_eq!((facts.refusal, facts.symmetry), (Refusal::Shapes, Symmetry::Values));
}

#[test]
fn constants_are_read_as_shapes_and_as_integers() {
    let bench = Bench::with([cpp_zoo()]);
    let sizes = Tensor::from_slice(&[2], &[6i32, 7]).unwrap();
    let inferred = Inputs::default().constant(sizes).of(&[3]).infer(&bench, "ZooCppSized").unwrap();
    assert_eq!(inferred, ["[6,7]", "<unknown>", "[2,?]", "[?,?,?]"]);
    let inferred = Inputs::default().of(&[2]).unknown().infer(&bench, "ZooCppSized").unwrap();
    assert_eq!(inferred, ["[?,?]", "<unknown>", "[]", "[?]"]);
    let error = Inputs::default().of(&[2]).of(&[]).infer(&bench, "ZooCppSized").unwrap_err();
    assert!(error.message.contains("expected a rank of at least 1, found 0"), "{error}");
}
