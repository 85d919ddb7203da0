//! Ops that no pass knows by name; passes use the facts that their registrations declare.

use crate::{
    bench::{Case, check, text},
    support::{floats, x},
};
use tenon_framework::{DType, PartialShape, Tensor};
use tenon_graph::{GraphBuilder, Output};
use tenon_optimize::built_in;

type B = GraphBuilder<'static>;

fn op(b: &mut B, name: &str, op: &str, inputs: &[Output]) -> Output {
    b.op(op).name(name).inputs(inputs.iter().copied()).build().unwrap().into()
}

fn fed(b: &mut B, name: &str, dtype: DType, dims: &[i64]) -> Output {
    b.placeholder(name, dtype, PartialShape::new(dims).unwrap()).unwrap()
}

#[test]
fn the_input_that_is_passed_on_is_read_instead() {
    check("identity", "y = Relu(x)", |b| {
        let (x, limit) = (x(b), b.constant("limit", floats(&[3])).unwrap());
        let passed = op(b, "passed", "OwnSecond", &[limit, x]);
        vec![op(b, "y", "Relu", &[passed])]
    });
}

#[test]
fn a_node_that_may_fail_runs_though_it_is_passed_by() {
    check("identity", "limit = Const()\npassed = OwnUnsure(limit, x)\ny = Relu(x)", |b| {
        let (x, limit) = (x(b), b.constant("limit", floats(&[3])).unwrap());
        let passed = op(b, "passed", "OwnUnsure", &[limit, x]);
        vec![op(b, "y", "Relu", &[passed])]
    });
}

#[test]
fn a_value_that_is_dead_with_another_input_is_not_passed_by() {
    let expected = "passed = OwnSecond(s:1, x)\ns = Switch(x, p)\ny = Relu(passed)";
    check("identity", expected, |b| {
        let (x, p) = (x(b), fed(b, "p", DType::BOOL, &[]));
        let s = Output::new(op(b, "s", "Switch", &[x, p]).node, 1);
        let passed = op(b, "passed", "OwnSecond", &[s, x]);
        vec![op(b, "y", "Relu", &[passed])]
    });
}

#[test]
fn a_shape_is_known_by_the_stated_rule() {
    check("constant_folding", "y = Const()", |b| {
        let x = fed(b, "x", DType::FLOAT, &[2, 3]);
        vec![op(b, "y", "OwnShape", &[x])]
    });
    check("constant_folding", "y = OwnShape(x)", |b| {
        let x = fed(b, "x", DType::FLOAT, &[-1, 3]);
        vec![op(b, "y", "OwnShape", &[x])]
    });
}

#[test]
fn what_checks_is_neither_folded_nor_merged() {
    let expected = "a = OwnCheck(c)\nb = OwnCheck(c)\nc = Const()\ny = AddV2(a, b)";
    check("common_subexpressions", expected, |b| {
        let c = b.constant("c", floats(&[3])).unwrap();
        let (a, other) = (op(b, "a", "OwnCheck", &[c]), op(b, "b", "OwnCheck", &[c]));
        vec![op(b, "y", "AddV2", &[a, other])]
    });
}

#[test]
fn a_symmetric_op_is_merged_in_either_order_and_another_is_not() {
    let both = |own: &'static str| {
        move |b: &mut B| {
            let (x, c) = (fed(b, "x", DType::FLOAT, &[3]), b.constant("c", floats(&[3])).unwrap());
            let (a, other) = (op(b, "a", own, &[x, c]), op(b, "b", own, &[c, x]));
            vec![op(b, "y", "AddV2", &[a, other])]
        }
    };
    let one = "a = OwnSum(x, c)\nc = Const()\ny = AddV2(a, a)";
    check("common_subexpressions", one, both("OwnSum"));
    let two = "a = OwnSecond(x, c)\nb = OwnSecond(c, x)\nc = Const()\ny = AddV2(a, b)";
    check("common_subexpressions", two, both("OwnSecond"));
}

#[test]
fn images_are_computed_in_the_format_of_the_device_and_transpositions_sink() {
    let case = Case::new(|b| {
        let x = fed(b, "x", DType::FLOAT, &[1, 4, 8, 8]);
        let pooled = b.op("OwnImage").name("own").input(x).attr("data_format", "NCHW");
        let pooled = pooled.build().unwrap().into();
        let two = b.constant("two", Tensor::scalar(2f32).unwrap()).unwrap();
        let scaled = op(b, "scaled", "OwnScale", &[pooled, two]);
        vec![op(b, "y", "Relu", &[scaled])]
    });
    let all = built_in();
    let passes: Vec<_> = all.iter().map(|p| &**p).filter(|p| p.name() == "layout").collect();
    let done = case.with_format(&passes, Some("NHWC"));
    assert_eq!(done.report.failures().count(), 0, "{:?}", done.report);
    let all = text(&done);
    let is_there = |line: &str| assert!(all.lines().any(|found| found.starts_with(line)), "{all}");
    is_there("own/in_format = OwnImage(");
    is_there("scaled/in_format = OwnScale(own/in_format, two)");
    is_there("scaled = Transpose(scaled/in_format, ");
}
