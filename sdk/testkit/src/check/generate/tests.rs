use super::*;
use crate::check::fill::Random;
use std::sync::Arc;
use tenon_framework::registry::{KernelDef, Registry, TypeConstraint};
use tenon_runtime::{Runtime, RuntimeOptions};

fn registry() -> Arc<Registry> {
    let none: [&str; 0] = [];
    let (runtime, _) = Runtime::new(RuntimeOptions::with_plugins(none)).unwrap();
    runtime.registry()
}

/// A subject of a standard op with a kernel that takes these types; nothing calls the kernel.
fn subject(registry: &Registry, op: &str, types: &[(&str, DType)]) -> Subject {
    let some = &registry.kernels_of("Identity")[0];
    let constraint = |&(attr, dtype): &(&str, DType)| TypeConstraint {
        attr: attr.to_owned(),
        types: vec![dtype],
    };
    let constraints = types.iter().map(constraint).collect();
    let kernel = KernelDef { op: op.to_owned(), constraints, ..KernelDef::clone(some) };
    let op = Arc::clone(registry.op(op).unwrap());
    let given = |(name, dtype): &(&str, DType)| ((*name).to_owned(), AttrValue::Type(*dtype));
    Subject { op, kernel: Arc::new(kernel), types: types.iter().map(given).collect() }
}

fn cases(op: &str, types: &[(&str, DType)]) -> Vec<CheckCase> {
    let generated = generate(&subject(&registry(), op, types), &Budget::default());
    assert_eq!(generated.uncovered, None, "{op}");
    generated.cases
}

fn with(cases: &[CheckCase], tag: Tag) -> Vec<&str> {
    cases.iter().filter(|case| case.is(tag)).map(|case| case.name.as_str()).collect()
}

const FLOAT: (&str, DType) = ("T", DType::FLOAT);

#[test]
fn an_op_of_two_inputs_has_every_tag() {
    let cases = cases("Add", &[FLOAT]);
    assert!(cases.len() <= 24);
    for tag in
        [Tag::Empty, Tag::Scalar, Tag::One, Tag::Prime, Tag::Large, Tag::Broadcast, Tag::Special]
    {
        assert!(!with(&cases, tag).is_empty(), "{tag:?}: {:?}", names(&cases));
    }
}

fn names(cases: &[CheckCase]) -> Vec<&str> {
    cases.iter().map(|case| case.name.as_str()).collect()
}

#[test]
fn matrices_that_multiply_are_found_in_every_transposition() {
    let cases = cases("MatMul", &[FLOAT]);
    for attr in ["transpose_a", "transpose_b"] {
        for value in [true, false] {
            let there =
                |case: &CheckCase| matches!(case.attrs[attr], AttrValue::Bool(b) if b == value);
            assert!(cases.iter().any(there), "{attr}={value}: {:?}", names(&cases));
        }
    }
    let long = |case: &CheckCase| case.inputs[0].dims.iter().any(|&size| size > 1000);
    assert!(cases.iter().any(long), "a sum of more than a thousand terms: {:?}", names(&cases));
}

#[test]
fn axes_permutations_and_sizes_are_constants_that_the_shape_function_accepts() {
    let axes = cases("Sum", &[FLOAT, ("Tidx", DType::INT32)]);
    assert!(axes.iter().all(|case| case.inputs[1].constant), "{:?}", names(&axes));
    assert!(axes.iter().any(|case| case.inputs[1].dims.is_empty()));
    let orders = cases("Transpose", &[FLOAT, ("Tperm", DType::INT64)]);
    let rank = |case: &CheckCase| case.inputs[0].dims.len();
    assert!((0..=4).all(|r| orders.iter().any(|case| rank(case) == r)), "{:?}", names(&orders));
    let shapes = cases("Reshape", &[FLOAT, ("Tshape", DType::INT32)]);
    assert!(shapes.iter().any(|case| case.name.contains("-1")), "{:?}", names(&shapes));
}

#[test]
fn equal_budgets_give_equal_cases_whatever_was_asked_before() {
    let registry = registry();
    let ops =
        [("Add", vec![FLOAT]), ("Sum", vec![FLOAT, ("Tidx", DType::INT64)]), ("Relu", vec![FLOAT])];
    let subjects: Vec<Subject> =
        ops.iter().map(|(op, types)| subject(&registry, op, types)).collect();
    let all = |order: &[usize], seed: u64| {
        let generator = Generator::new(Budget { seed, ..Budget::default() }, None);
        let mut all: Vec<String> = order
            .iter()
            .map(|&at| format!("{:?}", generator.generate(&subjects[at]).cases))
            .collect();
        all.sort();
        all
    };
    assert_eq!(all(&[0, 1, 2], 1), all(&[2, 0, 1], 1));
    assert_ne!(all(&[0, 1, 2], 1), all(&[0, 1, 2], 2), "the seed changes values");
}

#[test]
fn types_of_one_kind_get_the_same_cases_and_values_of_their_own() {
    let registry = registry();
    let generator = Generator::new(Budget::default(), None);
    let of = |dtype| generator.generate(&subject(&registry, "Mul", &[("T", dtype)])).cases;
    assert_eq!(names(&of(DType::FLOAT)), names(&of(DType::DOUBLE)));
    assert_ne!(names(&of(DType::FLOAT)), names(&of(DType::INT8)));
    assert!(
        of(DType::UINT8).iter().all(|case| case.inputs.iter().all(|i| i.dtype == DType::UINT8))
    );
}

#[test]
fn the_inputs_of_every_case_can_be_made() {
    for (op, types) in [
        ("Add", vec![("T", DType::STRING)]),
        ("MatMul", vec![("T", DType::COMPLEX64)]),
        ("Pack", vec![("T", DType::QINT8)]),
        ("Relu", vec![("T", DType::BFLOAT16)]),
        ("Shape", vec![("T", DType::BOOL), ("out_type", DType::INT32)]),
    ] {
        for case in cases(op, &types) {
            let tensors = case.tensors().unwrap();
            assert_eq!(tensors.len(), case.inputs.len());
            for (tensor, input) in tensors.iter().zip(&case.inputs) {
                assert_eq!((tensor.dtype(), tensor.shape().dims()), (input.dtype, &input.dims[..]));
            }
        }
    }
}

#[test]
fn a_full_budget_has_shapes_that_a_sample_has_not() {
    let subject = subject(&registry(), "Relu", &[FLOAT]);
    let budget = Budget { cases_per_subject: 300, full: true, ..Budget::default() };
    let (sample, full) = (cases("Relu", &[FLOAT]), generate(&subject, &budget).cases);
    assert!(full.len() > 100 && sample.len() <= 24, "{} {}", full.len(), sample.len());
    let ranks: std::collections::BTreeSet<usize> =
        full.iter().map(|case| case.inputs[0].dims.len()).collect();
    assert!(ranks.contains(&8) && ranks.contains(&0), "{ranks:?}");
}

#[test]
fn names_are_words_of_their_own() {
    let cases = cases("Conv2D", &[FLOAT]);
    let mut names = names(&cases);
    assert!(names.iter().all(|name| !name.contains(|c: char| " '\"$\\(){}[]*?<>|&;`".contains(c))));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
}

#[test]
fn an_op_that_nothing_is_accepted_for_says_what_was_tried() {
    let registry = registry();
    let mut subject = subject(&registry, "Relu", &[FLOAT]);
    let mut op = OpDef::from_spec("Picky", &["x: T"], &["y: T"], &["T: type"]).unwrap();
    op.shape = registry.op("Const").unwrap().shape;
    subject.op = Arc::new(op);
    let why = generate(&subject, &Budget::default()).uncovered.unwrap();
    assert!(
        why.starts_with("op Picky: the shape function refused ") && why.contains("value"),
        "{why}"
    );
    let handles = OpDef::from_spec("Take", &["handle: resource"], &["y: T"], &["T: type"]).unwrap();
    subject.op = Arc::new(handles);
    let why = generate(&subject, &Budget::default()).uncovered.unwrap();
    assert_eq!(why, "op Take: input 0 is resource, of which only kernels make elements");
}

#[test]
fn the_generator_of_a_word_is_not_that_of_another() {
    let scope = Scope(Budget::default());
    let word = |text| Random::new(scope.seed_of(&[text])).word();
    assert_ne!(word("a"), word("b"));
}
