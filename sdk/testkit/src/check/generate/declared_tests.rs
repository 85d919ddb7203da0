use super::super::{Budget, Generator};
use super::*;
use crate::check::{CheckCase, Subject, Tag};
use std::sync::Arc;
use tenon_framework::registry::KernelDef;
use tenon_runtime::{Runtime, RuntimeOptions};

/// Cases of an op with the shape function of another, for float and int32.
fn generated(spec: (&[&str], &[&str]), like: &str, cases: &[&str]) -> super::super::Generated {
    let none: [&str; 0] = [];
    let (runtime, _) = Runtime::new(RuntimeOptions::with_plugins(none)).unwrap();
    let registry = runtime.registry();
    let (inputs, attrs) = spec;
    let mut op = OpDef::from_spec("Own", inputs, &["y: T"], attrs).unwrap();
    op.shape = registry.op(like).unwrap().shape;
    op.set_cases(cases).unwrap();
    let some = &registry.kernels_of("Identity")[0];
    let kernel =
        KernelDef { op: "Own".to_owned(), constraints: Vec::new(), ..KernelDef::clone(some) };
    let typed = |(name, dtype): (&str, DType)| (name.to_owned(), AttrValue::Type(dtype));
    let types = [("T", DType::FLOAT), ("I", DType::INT32)].map(typed);
    let types = types.into_iter().filter(|(name, _)| op.attr(name).is_some()).collect();
    let subject = Subject { op: Arc::new(op), kernel: Arc::new(kernel), types };
    Generator::new(Budget::default(), None).generate(&subject)
}

fn cases(spec: (&[&str], &[&str]), like: &str, cases: &[&str]) -> Vec<CheckCase> {
    let generated = generated(spec, like, cases);
    assert_eq!((generated.refused, generated.uncovered), (Vec::new(), None));
    assert!(generated.cases.iter().all(|case| case.is(Tag::Declared)));
    generated.cases
}

fn integers_of(case: &CheckCase, input: usize) -> Vec<i64> {
    let tensors = case.tensors().unwrap();
    tensors[input].as_slice::<i32>().unwrap().iter().map(|&x| x.into()).collect()
}

const REDUCE: (&[&str], &[&str]) =
    (&["x: T", "axes: I"], &["T: {float, int32}", "I: {int32, int64}", "keep_dims: bool = false"]);

#[test]
fn sizes_attributes_and_indices_are_the_case_s() {
    let cases = cases(
        REDUCE,
        "Sum",
        &["some; keep_dims in {false, true}; n in 2..9; x: [n, 4, m]; axes: [2] distinct(0..3)"],
    );
    for case in &cases {
        let dims = &case.inputs[0].dims;
        assert!((2..9).contains(&dims[0]) && dims[1] == 4, "{}", case.name);
        let axes = integers_of(case, 1);
        assert!(axes.iter().all(|axis| (0..3).contains(axis)) && axes[0] != axes[1], "{axes:?}");
        assert!(case.inputs[1].constant, "the shape function looks at axes");
    }
    let keeps = |case: &&CheckCase| matches!(case.attrs["keep_dims"], AttrValue::Bool(true));
    assert!(cases.iter().any(|case| keeps(&case)) && cases.iter().any(|case| !keeps(&case)));
    for tag in [Tag::Empty, Tag::Large, Tag::Special] {
        assert!(cases.iter().any(|case| case.is(tag)), "{tag:?}");
    }
}

#[test]
fn elements_are_made_as_the_case_says() {
    let pair: (&[&str], &[&str]) = (&["x: T", "i: I"], &["T: {float}", "I: {int32}"]);
    let found = cases(
        pair,
        "Size",
        &[
            "rows; n in 1..6; x: [n] uniform(2, 3); i: [k] integers(0..n)",
            "order; x: [2] values(7, 0.5); i: [n] permutation",
        ],
    );
    let rows: Vec<_> = found.iter().filter(|case| case.name.starts_with("rows")).collect();
    let order: Vec<_> = found.iter().filter(|case| case.name.starts_with("order")).collect();
    assert!(!rows.is_empty() && !order.is_empty());
    for case in rows {
        let n = case.inputs[0].dims[0];
        assert!(integers_of(case, 1).iter().all(|i| (0..n).contains(i)), "{}", case.name);
        let tensors = case.tensors().unwrap();
        assert!(tensors[0].as_slice::<f32>().unwrap().iter().all(|x| (2.0..=3.0).contains(x)));
    }
    for case in order {
        assert_eq!(case.tensors().unwrap()[0].as_slice::<f32>().unwrap(), [7.0, 0.5]);
        let mut order = integers_of(case, 1);
        order.sort_unstable();
        assert!(order.iter().copied().eq(0..order.len() as i64));
    }
}

#[test]
fn what_a_case_leaves_out_is_chosen_as_without_it() {
    let two: (&[&str], &[&str]) = (&["x: T", "y: T"], &["T: {float}"]);
    let cases = cases(two, "Add", &["first; x: [3, n]"]);
    assert!(cases.iter().all(|case| case.inputs[0].dims[0] == 3));
    let differ = |case: &CheckCase| case.inputs[0].dims != case.inputs[1].dims;
    assert!(cases.iter().any(differ) && !cases.iter().all(differ));
}

#[test]
fn several_descriptions_say_how_many_values_there_are() {
    let many: (&[&str], &[&str]) =
        (&["values: N * T", "axis: I"], &["N: int >= 2", "T: {float}", "I: {int32}"]);
    let cases =
        cases(many, "ConcatV2", &["columns; values: [n, 2], [n, 0], [n, 3]; axis: [] values(1)"]);
    assert!(cases.iter().all(|case| case.inputs.len() == 4 && case.inputs[1].dims[1] == 0));
}

#[test]
fn a_case_that_the_shape_function_refuses_is_told() {
    let generated = generated(REDUCE, "Sum", &["wrong; x: [n]; axes: [1] values(1)"]);
    assert_eq!(
        generated.refused,
        [
            "case 'wrong' of op Own: reduction_indices must lie in [-1, 1), got 1: x is [1031], axes is [1]"
        ]
    );
    assert!(generated.cases.is_empty());
    let why = generated.uncovered.unwrap();
    assert!(why.contains("got 1"), "{why}");
}
