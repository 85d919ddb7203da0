//! Nodes whose outputs nothing reads by their elements, and that may fail or be dead: no pass may
//! remove these effects.

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

fn fed(b: &mut B, name: &str, dtype: DType, dims: Option<&[i64]>) -> Output {
    let shape = dims.map_or(PartialShape::UNKNOWN, |dims| PartialShape::new(dims).unwrap());
    b.placeholder(name, dtype, shape).unwrap()
}

fn ints(b: &mut B, name: &str, dims: &[i64], values: &[i32]) -> Output {
    b.constant(name, Tensor::from_slice(dims, values).unwrap()).unwrap()
}

/// Integers divided by others, which may be 0.
fn quotient(b: &mut B) -> Output {
    let [i, j] = ["i", "j"].map(|name| fed(b, name, DType::INT32, Some(&[4])));
    op(b, "n", "FloorDiv", &[i, j])
}

#[test]
fn what_may_fail_runs_though_only_its_shape_is_read() {
    check("constant_folding", "n = FloorDiv(i, j)\ny = Const()", |b| {
        let n = quotient(b);
        vec![op(b, "y", "Shape", &[n])]
    });
    check("constant_folding", "y = Const()", |b| {
        let i = fed(b, "i", DType::INT32, Some(&[4]));
        let (two, three) = (ints(b, "two", &[], &[2]), ints(b, "three", &[4], &[3; 4]));
        let n = op(b, "n", "FloorDiv", &[i, two]);
        let sum = op(b, "sum", "AddV2", &[n, three]);
        vec![op(b, "y", "Shape", &[sum])]
    });
}

#[test]
fn what_may_fail_runs_though_its_values_cancel() {
    check("arithmetic", "n = FloorDiv(i, j)\ny = Const()", |b| {
        let n = quotient(b);
        vec![op(b, "y", "Sub", &[n, n])]
    });
    check("arithmetic", "n = FloorDiv(i, j)\nz = Neg(i)", |b| {
        let n = quotient(b);
        let i = b.graph().node(n.node).inputs[0];
        let all = b.constant("all", Tensor::scalar(true).unwrap()).unwrap();
        let chosen = op(b, "chosen", "SelectV2", &[all, i, n]);
        vec![op(b, "z", "Neg", &[chosen])]
    });
}

#[test]
fn what_may_fail_is_computed_once_where_two_are_the_same() {
    check("common_subexpressions", "n = FloorDiv(i, j)\ny = AddV2(n, n)", |b| {
        let n = quotient(b);
        let inputs = b.graph().node(n.node).inputs.clone();
        let again = op(b, "again", "FloorDiv", &inputs);
        vec![op(b, "y", "AddV2", &[n, again])]
    });
}

#[test]
fn a_choice_whose_operands_may_not_broadcast_is_made() {
    let expected = "all = Const()\nchosen = SelectV2(all, a, x)\ny = Neg(chosen)";
    check("arithmetic", expected, |b| {
        let a = fed(b, "a", DType::FLOAT, Some(&[3]));
        let x = fed(b, "x", DType::FLOAT, Some(&[-1]));
        let all = b.constant("all", Tensor::scalar(true).unwrap()).unwrap();
        let chosen = op(b, "chosen", "SelectV2", &[all, a, x]);
        vec![op(b, "y", "Neg", &[chosen])]
    });
    // The product has four elements, or fails.
    let expected = "none = Const()\ny = Mul(i, none)";
    check("arithmetic", expected, |b| {
        let i = fed(b, "i", DType::INT32, Some(&[-1]));
        let none = ints(b, "none", &[4], &[0; 4]);
        vec![op(b, "y", "Mul", &[i, none])]
    });
}

#[test]
fn what_leaves_one_rank_as_it_is_fails_at_another() {
    let unknown = |b: &mut B| fed(b, "x", DType::FLOAT, None);
    check("arithmetic", "m = Const()\ny = Tile(x, m)", |b| {
        let (x, m) = (unknown(b), ints(b, "m", &[2], &[1, 1]));
        vec![op(b, "y", "Tile", &[x, m])]
    });
    check("arithmetic", "m = Const()\ny = Pad(x, m)", |b| {
        let (x, m) = (unknown(b), ints(b, "m", &[1, 2], &[0, 0]));
        vec![op(b, "y", "Pad", &[x, m])]
    });
    check("arithmetic", "m = Const()\ny = Transpose(x, m)", |b| {
        let (x, m) = (unknown(b), ints(b, "m", &[2], &[0, 1]));
        vec![op(b, "y", "Transpose", &[x, m])]
    });
    let expected = "m = Const()\nonce = Transpose(x, m)\ny = Transpose(once, m)";
    check("arithmetic", expected, |b| {
        let (x, m) = (unknown(b), ints(b, "m", &[2], &[1, 0]));
        let once = op(b, "once", "Transpose", &[x, m]);
        vec![op(b, "y", "Transpose", &[once, m])]
    });
    check("arithmetic", "y = Identity(x)", |b| {
        let (x, m) = (x(b), ints(b, "m", &[2], &[1, 0]));
        let once = op(b, "once", "Transpose", &[x, m]);
        vec![op(b, "y", "Transpose", &[once, m])]
    });
}

#[test]
fn a_reshape_that_may_not_fit_runs_though_the_next_one_undoes_it() {
    check("arithmetic", "folded = Reshape(x, m)\nm = Const()\ny = Neg(x)", |b| {
        let (x, m) = (x(b), ints(b, "m", &[2], &[-1, 6]));
        let shape = op(b, "shape", "Shape", &[x]);
        let folded = op(b, "folded", "Reshape", &[x, m]);
        let unfolded = op(b, "unfolded", "Reshape", &[folded, shape]);
        vec![op(b, "y", "Neg", &[unfolded])]
    });
    check("arithmetic", "y = Neg(x)", |b| {
        let (x, m) = (x(b), ints(b, "m", &[1], &[-1]));
        let shape = op(b, "shape", "Shape", &[x]);
        let flat = op(b, "flat", "Reshape", &[x, m]);
        let unfolded = op(b, "unfolded", "Reshape", &[flat, shape]);
        vec![op(b, "y", "Neg", &[unfolded])]
    });
}

#[test]
fn a_value_beside_one_that_may_be_dead_is_dead_with_it() {
    let expected = "a = Neg(x)\nboth = IdentityN(a, s:1)\ns = Switch(x, p)\ny = Relu(both)";
    check("identity", expected, |b| {
        let (x, p) = (x(b), fed(b, "p", DType::BOOL, Some(&[])));
        let a = op(b, "a", "Neg", &[x]);
        let s = op(b, "s", "Switch", &[x, p]);
        let both = op(b, "both", "IdentityN", &[a, Output::new(s.node, 1)]);
        vec![op(b, "y", "Relu", &[both])]
    });
    // The values computed from the other input wait for it.
    let expected = "a = Neg(s:1)\ns = Switch(x, p)\ny = Relu(a)";
    check("identity", expected, |b| {
        let (x, p) = (x(b), fed(b, "p", DType::BOOL, Some(&[])));
        let s = Output::new(op(b, "s", "Switch", &[x, p]).node, 1);
        let a = op(b, "a", "Neg", &[s]);
        let both = op(b, "both", "IdentityN", &[a, s]);
        vec![op(b, "y", "Relu", &[both])]
    });
}

#[test]
fn a_value_beside_one_that_fails_is_passed_by_and_the_other_fails() {
    check("identity", "n = FloorDiv(i, j)\ny = Relu(x)", |b| {
        let (x, n) = (x(b), quotient(b));
        let both = op(b, "both", "IdentityN", &[x, n]);
        vec![op(b, "y", "Relu", &[both])]
    });
    let expected = "both = IdentityN(x, e)\ne = EnsureShape(x)\ny = Relu(both)";
    check("identity", expected, |b| {
        let x = x(b);
        let shape = PartialShape::new(&[2, 3]).unwrap();
        let e = b.op("EnsureShape").name("e").input(x).attr("shape", shape).build().unwrap();
        let both = op(b, "both", "IdentityN", &[x, e.into()]);
        vec![op(b, "y", "Relu", &[both])]
    });
}

#[test]
fn what_was_fused_is_not_run_for_its_errors_too() {
    let case = Case::new(|b| {
        // The inner dimension is not known to fit.
        let x = fed(b, "x", DType::FLOAT, Some(&[-1, -1]));
        let w = b.constant("w", floats(&[3, 4])).unwrap();
        let product = op(b, "product", "MatMul", &[x, w]);
        vec![op(b, "y", "Relu", &[product])]
    });
    let all = built_in();
    let passes: Vec<_> = all.iter().map(|pass| &**pass).collect();
    assert_eq!(text(&case.optimized(&passes)), "w = Const()\ny = _FusedMatMul(x, w)");
}
