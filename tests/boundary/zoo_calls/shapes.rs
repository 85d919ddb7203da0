//! Shape functions of loaded plugins.

use std::cell::RefCell;
use tenon_framework::{
    Code, KernelError, PartialShape, Tensor,
    infer::{SymbolicShape, Symbols, ValueInfo},
};
use tenon_tests::{
    bench::{Bench, Node, elements, floats, scalar},
    zoo::Language,
};

thread_local! {
    /// Where the unknown dimensions of a test come from: no two of them are the same.
    static SYMBOLS: RefCell<Symbols> = RefCell::default();
}

fn of(dims: &[i64]) -> ValueInfo {
    let shape = PartialShape::new(dims).unwrap();
    SYMBOLS.with_borrow_mut(|symbols| ValueInfo::of_shape(&shape, symbols))
}

fn infer(node: &Node<'_>, inputs: &[&ValueInfo]) -> Result<Vec<ValueInfo>, KernelError> {
    SYMBOLS.with_borrow_mut(|symbols| node.infer(inputs, symbols))
}

fn unknown() -> ValueInfo {
    ValueInfo { shape: SymbolicShape::UNKNOWN, ..ValueInfo::default() }
}

fn constant(tensor: Tensor) -> ValueInfo {
    ValueInfo::of_constant(tensor)
}

/// The shape of the first output, as a text.
fn first(inferred: Result<Vec<ValueInfo>, KernelError>) -> String {
    inferred.unwrap()[0].shape.partial().to_string()
}

#[test]
fn shapes_merge() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("ShapeMerge"));
        assert_eq!(first(infer(&node, &[&of(&[2, -1]), &of(&[-1, 3])])), "[2,3]", "{language:?}");
        assert_eq!(first(infer(&node, &[&unknown(), &of(&[4])])), "[4]");
        assert_eq!(first(infer(&node, &[&unknown(), &unknown()])), "<unknown>");
        let error = infer(&node, &[&of(&[2]), &of(&[3])]).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT, "{error}");
        assert!(!error.message.is_empty());
        let outputs = node.call(&[floats(&[1.0]), floats(&[2.0])]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [3.0], "{language:?}");
    }
}

#[test]
fn shapes_of_matrices() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("ShapeMatrix"));
        assert_eq!(first(infer(&node, &[&of(&[2, 3]), &of(&[-1, 5])])), "[2,5]", "{language:?}");
        assert_eq!(first(infer(&node, &[&unknown(), &of(&[7, 5])])), "[?,5]");
        for wrong in [[&of(&[2, 3]), &of(&[4, 5])], [&of(&[2]), &of(&[2, 2])]] {
            assert_eq!(infer(&node, &wrong).unwrap_err().code, Code::INVALID_ARGUMENT);
        }
        let a = Tensor::from_slice(&[2, 2], &[1f32, 2.0, 3.0, 4.0]).unwrap();
        let b = Tensor::from_slice(&[2, 1], &[10f32, 100.0]).unwrap();
        let outputs = node.call(&[a.clone(), b]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [210.0, 430.0], "{language:?}");
        assert_eq!(outputs[0].shape().dims(), [2, 1]);
        let error = node.call(&[a, floats(&[1.0])]).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT, "{language:?}: {error}");
    }
}

/// An unknown dimension that passes through keeps its identity.
#[test]
fn unknown_dimensions_have_identity() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let a = of(&[-1, 3]);
        let node = bench.node(&language.op("ShapeMatrix"));
        let outputs = infer(&node, &[&a, &of(&[3, 4])]).unwrap();
        let (from, to) = (a.shape.dims().unwrap()[0], outputs[0].shape.dims().unwrap()[0]);
        assert_eq!(from, to, "{language:?}");
    }
}

#[test]
fn shape_from_a_constant() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("ShapeFill"));
        let dims = Tensor::from_slice(&[2], &[2i32, 3]).unwrap();
        let known = infer(&node, &[&constant(dims.clone()), &of(&[])]);
        assert_eq!(first(known), "[2,3]", "{language:?}");
        assert_eq!(first(infer(&node, &[&of(&[2]), &of(&[])])), "[?,?]", "as long as its vector");
        let outputs = node.call(&[dims, scalar(1.5f32)]).unwrap();
        assert_eq!(outputs[0].shape().dims(), [2, 3]);
        assert_eq!(elements::<f32>(&outputs[0]), [1.5; 6], "{language:?}");
        let negative = Tensor::from_slice(&[1], &[-5i32]).unwrap();
        let error = node.call(&[negative, scalar(1f32)]).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT, "{language:?}: {error}");
    }
}

#[test]
fn shape_from_a_value() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("ShapeRepeat"));
        let n = scalar(3i32);
        assert_eq!(first(infer(&node, &[&of(&[2, -1]), &constant(n.clone())])), "[3,2,?]");
        assert_eq!(first(infer(&node, &[&of(&[2]), &of(&[])])), "[?,2]", "{language:?}");
        assert_eq!(first(infer(&node, &[&unknown(), &constant(n.clone())])), "<unknown>");
        let error = infer(&node, &[&of(&[2]), &constant(scalar(-1i32))]).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT);
        assert!(error.message.contains("n: expected at least 0"), "{error}");
        let outputs = node.call(&[floats(&[1.0, 2.0]), n]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [1.0, 2.0, 1.0, 2.0, 1.0, 2.0], "{language:?}");
    }
}

#[test]
fn shapes_behind_handles() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let shape = PartialShape::new(&[4, -1]).unwrap();
        let variable = bench.node(&language.op("Variable")).attr("shape", shape);
        let made = infer(&variable, &[]).unwrap();
        assert_eq!(made[0].shape.partial().to_string(), "[]", "a handle is a scalar");
        if super::ISOLATED {
            assert!(
                made[0].handle.is_empty(),
                "nothing is known of what no other process can have"
            );
            continue;
        }
        let [part] = &made[0].handle[..] else { panic!("one part: {:?}", made[0].handle) };
        assert_eq!(part.dtype, tenon_abi::DType::FLOAT);
        let read = bench.node(&language.op("VariableRead"));
        assert_eq!(first(infer(&read, &[&made[0]])), "[4,?]", "{language:?}");
        assert_eq!(first(infer(&read, &[&of(&[])])), "<unknown>", "of another handle");
    }
}
