use crate::bench::check;
use tenon_framework::{DType, PartialShape};
use tenon_graph::{GraphBuilder, Output};

type B = GraphBuilder<'static>;

/// A pooling of `y = relu(x)`, and the gradient of `y` from `dy`, of windows of this size.
fn pooled(b: &mut B, side: i64, padding: &str) -> [Output; 2] {
    let image = |b: &mut B, name: &str, side: i64| {
        b.placeholder(name, DType::FLOAT, PartialShape::new(&[2, side, side, 3]).unwrap()).unwrap()
    };
    let (x, dy) = (image(b, "x", 8), image(b, "dy", 4));
    let y = Output::from(b.op("Relu").name("y").input(x).build().unwrap());
    let window = |side: i64| vec![1, side, side, 1];
    let pool = b.op("MaxPool").name("p").input(y).attr("ksize", window(2));
    let pool = pool.attr("strides", window(2)).attr("padding", "SAME").build().unwrap();
    let back = b.op("MaxPoolGrad").name("back").input(y).input(pool).input(dy);
    let back = back.attr("ksize", window(side)).attr("strides", window(2));
    let back = match padding {
        "EXPLICIT" => back.attr("padding", padding).attr("explicit_paddings", vec![0i64; 8]),
        _ => back.attr("padding", padding),
    };
    [y, back.build().unwrap().into()]
}

fn slope(b: &mut B, dy: Output, y: Output) -> Output {
    b.op("ReluGrad").name("g").input(dy).input(y).build().unwrap().into()
}

fn sum(b: &mut B, dy: Output) -> Output {
    b.op("BiasAddGrad").name("s").input(dy).build().unwrap().into()
}

#[test]
fn an_activation_s_gradient_and_a_sum_are_of_what_a_maximum_spreads() {
    let expected = "g = MaxPoolGrad(y, p, g/operand)\ng/operand = ReluGrad(dy, p)\np = MaxPool(y)\n\
                    s = BiasAddGrad(g/operand)\ny = Relu(x)";
    check("arithmetic", expected, |b| {
        let [y, back] = pooled(b, 2, "SAME");
        let g = slope(b, back, y);
        vec![g, sum(b, g)]
    });
}

#[test]
fn a_gradient_of_other_windows_is_left() {
    let expected =
        "back = MaxPoolGrad(y, p, dy)\ng = ReluGrad(back, y)\np = MaxPool(y)\ny = Relu(x)";
    check("arithmetic", expected, |b| {
        let [y, back] = pooled(b, 3, "SAME");
        vec![slope(b, back, y)]
    });
}

#[test]
fn a_gradient_by_another_tensor_or_with_other_readers_is_left() {
    let expected =
        "back = MaxPoolGrad(y, p, dy)\ng = ReluGrad(back, x)\np = MaxPool(y)\ny = Relu(x)";
    check("arithmetic", expected, |b| {
        let [y, back] = pooled(b, 2, "SAME");
        let x = b.graph().node(y.node).inputs[0];
        vec![slope(b, back, x)]
    });
    let expected = "back = MaxPoolGrad(y, p, dy)\ng = ReluGrad(back, y)\nn = Neg(back)\np = MaxPool(y)\ny = Relu(x)";
    check("arithmetic", expected, |b| {
        let [y, back] = pooled(b, 2, "SAME");
        let other = b.op("Neg").name("n").input(back).build().unwrap();
        vec![slope(b, back, y), other.into()]
    });
}

#[test]
fn a_sum_over_windows_that_may_be_empty_is_left() {
    let expected =
        "back = MaxPoolGrad(y, p, dy)\np = MaxPool(y)\ns = BiasAddGrad(back)\ny = Relu(x)";
    check("arithmetic", expected, |b| {
        let [_, back] = pooled(b, 2, "EXPLICIT");
        vec![sum(b, back)]
    });
}
