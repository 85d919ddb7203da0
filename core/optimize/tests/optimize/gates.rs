use crate::{
    bench::{Case, check, text},
    support::{floats, x},
};
use tenon_framework::{DType, PartialShape};
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_optimize::{Pass, built_in};

type B = GraphBuilder<'static>;

fn op(b: &mut B, op: &str, name: &str, inputs: &[Output]) -> Output {
    b.op(op).name(name).inputs(inputs.iter().copied()).build().unwrap().into()
}

fn handle(b: &mut B, name: &str, dims: &[i64]) -> Output {
    let shape = PartialShape::new(dims).unwrap();
    let node = b.op("VarHandleOp").name(name).attr("dtype", DType::FLOAT).attr("shape", shape);
    node.build().unwrap().into()
}

fn read(b: &mut B, name: &str, handle: Output) -> Output {
    let node = b.op("ReadVariableOp").name(name).input(handle).attr("dtype", DType::FLOAT);
    node.build().unwrap().into()
}

/// Each value behind a node that waits for all.
fn gated<const N: usize>(b: &mut B, values: [Output; N]) -> [Output; N] {
    let gate = b.op("NoOp").name("gate");
    let gate = values.iter().fold(gate, |gate, value| gate.control(value.node)).build().unwrap();
    let mut at = 0;
    values.map(|value| {
        at += 1;
        let node = b.op("Identity").name(&format!("i{at}")).input(value).control(gate);
        node.build().unwrap().into()
    })
}

fn update(b: &mut B, handle: Output, gradient: Output) -> NodeId {
    let rate = b.constant("rate", tenon_framework::Tensor::scalar(0.5f32).unwrap()).unwrap();
    let node = b.op("ResourceApplyGradientDescent").name("update").input(handle).input(rate);
    node.input(gradient).build().unwrap()
}

/// `h = x v`, `y = relu'(y v^T)` and the gradient of `v`, behind a gate; `other` is a further
/// effect that leads to the gradient of `v` alone.
fn network(b: &mut B, other: bool) -> Vec<Output> {
    let x = x(b);
    let v = handle(b, "v", &[3, 3]);
    let value = read(b, "value", v);
    let h = op(b, "MatMul", "h", &[x, value]);
    let left = if other {
        let w = handle(b, "w", &[3, 3]);
        let value = read(b, "w/value", w);
        op(b, "MatMul", "left", &[h, value])
    } else {
        h
    };
    let by_input = b.op("MatMul").name("by_input").input(h).input(value);
    let by_input = by_input.attr("transpose_b", true).build().unwrap().into();
    let by_value = b.op("MatMul").name("by_value").input(left).input(h);
    let by_value = by_value.attr("transpose_a", true).build().unwrap().into();
    let [by_input, by_value] = gated(b, [by_input, by_value]);
    let update = update(b, v, by_value);
    let y = op(b, "ReluGrad", "y", &[by_input, h]);
    vec![b.op("Identity").name("z").input(y).control(update).build().unwrap().into()]
}

/// The network after control edges and fusions.
fn after(other: bool) -> Vec<String> {
    let all = built_in();
    let wanted = |pass: &&dyn Pass| ["control_edges", "remapping"].contains(&pass.name());
    let passes: Vec<&dyn Pass> = all.iter().map(|pass| &**pass).filter(wanted).collect();
    let done = Case::new(|b| network(b, other)).optimized(&passes);
    assert_eq!(done.report.failures().count(), 0, "{:?}", done.report);
    text(&done).lines().map(str::to_owned).collect()
}

fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    lines.sort();
    lines
}

#[test]
fn a_gate_between_gradients_of_the_same_effects_is_opened_and_its_gradients_are_fused() {
    let expected = "h = MatMul(x, value)\nrate = Const()\nv = VarHandleOp()\nvalue = ReadVariableOp(v)\n\
                    update = _FusedMatMulDescent(v, rate, h, h) ^y\ny = _FusedMatMul(h, value, h)\n\
                    z = Identity(y) ^update";
    assert_eq!(after(false), lines(expected));
}

#[test]
fn a_gate_that_orders_an_effect_stays_shut() {
    // The read of `w` leads to the gradient of `v` alone: the gradient of the input waits for it,
    // but the other one waits for no effect that does not lead to it anyway.
    let expected = "by_input = MatMul(h, value)\ngate = NoOp() ^by_input ^update\nh = MatMul(x, value)\n\
                    i1 = Identity(by_input) ^gate\nleft = MatMul(h, w/value)\nrate = Const()\n\
                    update = _FusedMatMulDescent(v, rate, left, h) ^by_input\nv = VarHandleOp()\n\
                    value = ReadVariableOp(v)\nw = VarHandleOp()\nw/value = ReadVariableOp(w)\n\
                    y = ReluGrad(i1, h)\nz = Identity(y) ^update";
    assert_eq!(after(true), lines(expected));
}

#[test]
fn a_node_that_waits_for_a_part_of_a_pattern_waits_for_its_last_node() {
    let expected = "w = Const()\ny = _FusedMatMul(x, w)\nz = Neg(x) ^y";
    check("remapping", expected, |b| {
        let x = x(b);
        let w = b.constant("w", floats(&[3, 3])).unwrap();
        let product = op(b, "MatMul", "product", &[x, w]);
        let y = op(b, "Relu", "y", &[product]);
        let z = b.op("Neg").name("z").input(x).control(product.node).build().unwrap();
        vec![y, z.into()]
    });
}

#[test]
fn a_pattern_whose_end_depends_on_what_waits_for_its_part_is_left() {
    let expected =
        "product = MatMul(x, w)\nw = Const()\ny = AddV2(product, z)\nz = Neg(x) ^product";
    check("remapping", expected, |b| {
        let x = x(b);
        let w = b.constant("w", floats(&[3, 3])).unwrap();
        let product = op(b, "MatMul", "product", &[x, w]);
        let z = b.op("Neg").name("z").input(x).control(product.node).build().unwrap();
        vec![op(b, "AddV2", "y", &[product, z.into()])]
    });
}
