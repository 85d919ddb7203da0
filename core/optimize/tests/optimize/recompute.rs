use crate::{
    bench::check,
    support::{floats, x},
};
use tenon_graph::{GraphBuilder, Output};

fn op(b: &mut GraphBuilder<'_>, op: &str, name: &str, inputs: &[Output]) -> Output {
    b.op(op).name(name).inputs(inputs.iter().copied()).build().unwrap().into()
}

fn weights(b: &mut GraphBuilder<'_>) -> Output {
    b.constant("w", floats(&[3, 3])).unwrap()
}

#[test]
fn a_gradient_reads_a_copy_that_waits_for_what_comes_in() {
    let expected = "w = Const()\nh = Relu(x)\nr = MatMul(h, w)\ngradients/g = Tanh(r)\n\
                    gradients/d = ReluGrad(gradients/g, h/again)\nh/again = Relu(x) ^gradients/g";
    check("recompute", expected, |b| {
        let (x, w) = (x(b), weights(b));
        let h = op(b, "Relu", "h", &[x]);
        let r = op(b, "MatMul", "r", &[h, w]);
        let g = op(b, "Tanh", "gradients/g", &[r]);
        vec![op(b, "ReluGrad", "gradients/d", &[g, h])]
    });
}

#[test]
fn what_a_copy_reads_is_copied_unless_it_lasts() {
    let expected = "w = Const()\na = Neg(x)\nh = Relu(a)\nr = MatMul(h, w)\ngradients_1/g = Tanh(r)\n\
                    gradients_1/d = ReluGrad(gradients_1/g, h/again)\na/again = Neg(x) ^gradients_1/g\n\
                    h/again = Relu(a/again) ^gradients_1/g";
    check("recompute", expected, |b| {
        let (x, w) = (x(b), weights(b));
        let a = op(b, "Neg", "a", &[x]);
        let h = op(b, "Relu", "h", &[a]);
        let r = op(b, "MatMul", "r", &[h, w]);
        let g = op(b, "Tanh", "gradients_1/g", &[r]);
        vec![op(b, "ReluGrad", "gradients_1/d", &[g, h])]
    });
}

#[test]
fn what_is_computed_from_a_product_stays() {
    let expected = "w = Const()\nu = MatMul(x, w)\nh = Relu(u)\nr = MatMul(h, w)\ngradients/g = Tanh(r)\n\
                    gradients/d = ReluGrad(gradients/g, h)";
    check("recompute", expected, |b| {
        let (x, w) = (x(b), weights(b));
        let u = op(b, "MatMul", "u", &[x, w]);
        let h = op(b, "Relu", "h", &[u]);
        let r = op(b, "MatMul", "r", &[h, w]);
        let g = op(b, "Tanh", "gradients/g", &[r]);
        vec![op(b, "ReluGrad", "gradients/d", &[g, h])]
    });
}

#[test]
fn names_that_only_begin_like_gradients_are_none() {
    let expected = "w = Const()\nh = Relu(x)\nr = MatMul(h, w)\ngradients_of/g = Tanh(r)\ngradients_of/d = ReluGrad(gradients_of/g, h)";
    check("recompute", expected, |b| {
        let (x, w) = (x(b), weights(b));
        let h = op(b, "Relu", "h", &[x]);
        let r = op(b, "MatMul", "r", &[h, w]);
        let g = op(b, "Tanh", "gradients_of/g", &[r]);
        vec![op(b, "ReluGrad", "gradients_of/d", &[g, h])]
    });
}
