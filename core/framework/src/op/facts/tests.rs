use super::*;
use tenon_abi::{
    ExtFacts, ExtHeader, GradientRule as Gradients, OpRole as Roles, Refusal as Refusals, ShapeFn,
    Source, Str, Strs, Symmetry as Symmetries, ValueRule as Values, ext_tags, layout::EXT_FACTS,
};

/// Nothing stated, as the boundary has it.
const NOTHING: Facts = OpFacts::NONE.to_abi();

fn op(inputs: &[&str], outputs: &[&str], attrs: &[&str]) -> OpDef {
    OpDef::from_spec("Own", inputs, outputs, attrs).unwrap()
}

fn refused(op: &OpDef, facts: OpFacts) -> String {
    let error = op.clone().set_facts(facts).unwrap_err();
    assert_eq!(error.code(), tenon_abi::Code::INVALID_ARGUMENT);
    error.to_string()
}

/// Hands an op `Own` from `x: T` to `y: T` over with a link of these facts.
fn handed_over(facts: Facts, hash: Option<u64>) -> Result<OpDef, OpError> {
    let (inputs, outputs) = ([Str::new("x: T")], [Str::new("y: T")]);
    let attrs = [Str::new("T: type")];
    let mut header = ExtHeader::new(ext_tags::FACTS, 1, &EXT_FACTS);
    header.layout_hash = hash.unwrap_or(header.layout_hash);
    let link = ExtFacts { header, facts };
    let raw = tenon_abi::OpDef {
        struct_size: size_of::<tenon_abi::OpDef>() as u32,
        flags: 0,
        name: Str::new("Own"),
        inputs: Strs::new(&inputs),
        outputs: Strs::new(&outputs),
        attrs: Strs::new(&attrs),
        summary: Str::EMPTY,
        description: Str::EMPTY,
        shape: ShapeFn { run: None },
        source: Source { krate: Str::new("zoo"), file: Str::new("z.rs"), line: 7 },
        ext: (&raw const link).cast(),
    };
    // SAFETY: a whole struct whose texts and link live.
    unsafe { OpDef::from_abi(&raw) }
}

#[test]
fn facts_cross_the_boundary_as_they_are() {
    let facts = OpFacts {
        checks: true,
        elementwise: true,
        passed: Some(Passed { input: 0, output: 0, reshaped: false }),
        value: ValueRule::Cast,
        refusal: Refusal::Shapes,
        deciding: 1,
        gradient: GradientRule::None,
        ..OpFacts::NONE
    };
    assert_eq!(handed_over(facts.to_abi(), None).unwrap().facts(), &facts);
    let reshaped = Some(Passed { input: 0, output: 0, reshaped: true });
    let facts = OpFacts { passed: reshaped, refusal: Refusal::Axes, ..OpFacts::NONE };
    assert_eq!(handed_over(facts.to_abi(), None).unwrap().facts(), &facts);
    assert_eq!(handed_over(NOTHING, None).unwrap().facts(), &OpFacts::NONE);
}

#[test]
fn what_this_host_does_not_know_is_refused() {
    let said = |facts: Facts| handed_over(facts, None).unwrap_err().to_string();
    assert_eq!(
        said(Facts { flags: 0x80, ..NOTHING }),
        "op 'Own': fact flags: expected bits of 0x7f, found 0x80"
    );
    let both = fact_flags::PASSES_INPUT | fact_flags::RESHAPES_INPUT;
    assert_eq!(
        said(Facts { flags: both, ..NOTHING }),
        "op 'Own': fact flags: expected PASSES_INPUT or RESHAPES_INPUT, found both"
    );
    assert_eq!(
        said(Facts { role: Roles(14), ..NOTHING }),
        "op 'Own': fact role: expected a number from 0 to 13, found 14"
    );
    assert_eq!(
        said(Facts { value: Values(9), ..NOTHING }),
        "op 'Own': fact value: expected a number from 0 to 8, found 9"
    );
    assert_eq!(
        said(Facts { refusal: Refusals(7), ..NOTHING }),
        "op 'Own': fact refusal: expected a number from 0 to 6, found 7"
    );
    assert_eq!(
        said(Facts { symmetry: Symmetries(3), ..NOTHING }),
        "op 'Own': fact symmetry: expected a number from 0 to 2, found 3"
    );
    assert_eq!(
        said(Facts { gradient: Gradients(2), ..NOTHING }),
        "op 'Own': fact gradient: expected a number from 0 to 1, found 2"
    );
    let passed = Facts { flags: fact_flags::PASSES_INPUT, passed_input: 3, ..NOTHING };
    assert_eq!(
        said(passed),
        "op 'Own': fact passed: expected positions within 1 input and 1 output arguments, \
         found input 3, output 0"
    );
    let hash = handed_over(NOTHING, Some(1)).unwrap_err().to_string();
    assert!(hash.contains("link 'facts' of version 1 has layout 0x1"), "{hash}");
}

#[test]
fn a_fact_fits_the_signature_or_is_refused() {
    let unary = op(&["x: T"], &["y: T"], &["T: type"]);
    let two = op(&["x: T", "y: float"], &["z: T"], &["T: type"]);
    let none = OpFacts::NONE;
    let cases: [(&OpDef, OpFacts, &str); 14] = [
        (&unary, OpFacts { images: true, ..none }, "images: expected an attribute 'data_format'"),
        (&unary, OpFacts { placeholder: true, ..none }, "placeholder: expected 0 input and 1"),
        (&unary, OpFacts { declares_shape: true, ..none }, "'shape' of type shape, found none"),
        (&unary, OpFacts { role: OpRole::Order, ..none }, "role: expected 0 input and 0 output"),
        (&unary, OpFacts { role: OpRole::LoopCond, ..none }, "role: expected input 0 of type bool"),
        (&unary, OpFacts { role: OpRole::Enter, ..none }, "an attribute 'frame_name' of type"),
        (&unary, OpFacts { value: ValueRule::Constant, ..none }, "value: expected 0 input and 1"),
        (&unary, OpFacts { value: ValueRule::StridedSlice, ..none }, "value: expected 4 input"),
        (&unary, OpFacts { refusal: Refusal::Integers, ..none }, "expected an elementwise op"),
        (&unary, OpFacts { deciding: 1, ..none }, "found 0x1 beside Anything of 1 inputs"),
        (
            &unary,
            OpFacts { refusal: Refusal::Shapes, deciding: 2, ..none },
            "found 0x2 beside Shapes of 1 inputs",
        ),
        (&two, OpFacts { symmetry: Symmetry::Bits, ..none }, "symmetry: expected two inputs of"),
        (
            &two,
            OpFacts { passed: Some(Passed { input: 1, output: 0, reshaped: false }), ..none },
            "passed: expected arguments of one type, found input 'y' and output 'z'",
        ),
        (
            &op(&[], &["y: float"], &[]),
            OpFacts { elementwise: true, ..none },
            "elementwise: expected an input and an output, found 0 input and 1 output arguments",
        ),
    ];
    for (op, facts, expected) in cases {
        let error = refused(op, facts);
        assert!(error.contains(expected), "{error}\nexpected: {expected}");
        assert!(error.starts_with("op 'Own': fact "), "{error}");
    }
}

#[test]
fn a_list_is_passed_on_value_by_value() {
    let mut op = op(&["limit: float", "x: T"], &["y: T", "size: int32"], &["T: list(type)"]);
    let passed = Some(Passed { input: 1, output: 0, reshaped: false });
    op.set_facts(OpFacts { passed, ..OpFacts::NONE }).unwrap();
    let types = vec![tenon_abi::DType::FLOAT, tenon_abi::DType::INT8];
    let list = crate::attr::AttrValue::List(crate::attr::AttrList::Type(types));
    let attrs = [("T".to_owned(), list)].into_iter().collect();
    let signature = Signature::resolve(&op, &attrs).unwrap();
    let facts = op.facts();
    assert_eq!(facts.passed_on(&signature).collect::<Vec<_>>(), [(1, 0), (2, 1)]);
    let to = |output| facts.passed_to(&signature, output);
    assert_eq!([to(0), to(1), to(2), to(9)], [Some(1), Some(2), None, None]);
}

#[test]
fn facts_that_contradict_are_a_difference_and_none_are_not() {
    let plain = op(&["x: T"], &["y: T"], &["T: type"]);
    let (mut own, mut other) = (plain.clone(), plain.clone());
    own.set_facts(OpFacts { elementwise: true, ..OpFacts::NONE }).unwrap();
    other.set_facts(OpFacts { checks: true, ..OpFacts::NONE }).unwrap();
    assert_eq!(own.difference(&other).as_deref(), Some("the facts"));
    assert_eq!(own.difference(&plain), None);
    assert_eq!(plain.difference(&own), None);
}
