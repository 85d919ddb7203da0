use crate::{
    bench::{Case, check, text},
    support::x,
};
use tenon_framework::{DType, PartialShape, Tensor, attr::AttrValue, element::Element};
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_optimize::built_in;

type B = GraphBuilder<'static>;

fn scalar<T: Element>(b: &mut B, value: T) -> Output {
    let name = format!("c{}", b.graph().len());
    b.constant(&name, Tensor::scalar(value).unwrap()).unwrap()
}

fn vector(b: &mut B, values: &[i32]) -> Output {
    let name = format!("c{}", b.graph().len());
    b.constant(&name, Tensor::from_slice(&[values.len() as i64], values).unwrap()).unwrap()
}

fn op(b: &mut B, op: &str, inputs: &[Output]) -> Output {
    b.op(op).inputs(inputs.iter().copied()).build().unwrap().into()
}

fn integers(b: &mut B) -> Output {
    b.placeholder("i", DType::INT32, PartialShape::new(&[4]).unwrap()).unwrap()
}

/// Checks the graph of `y`, a `Square` of the value that `make` returns, after the pass.
#[track_caller]
fn reads(expected: &str, make: impl FnOnce(&mut B) -> Output) {
    check("arithmetic", expected, |b| {
        let value = make(b);
        vec![b.op("Square").name("y").input(value).build().unwrap().into()]
    });
}

#[test]
fn a_neutral_operand_goes() {
    let float: &[(&str, f32, bool)] = &[
        ("Mul", 1.0, false),
        ("Mul", 1.0, true),
        ("RealDiv", 1.0, false),
        ("AddV2", -0.0, false),
        ("AddV2", -0.0, true),
        ("Sub", 0.0, false),
    ];
    for &(name, value, left) in float {
        reads("y = Square(x)", |b| {
            let (x, c) = (x(b), scalar(b, value));
            let inputs = if left { [c, x] } else { [x, c] };
            op(b, name, &inputs)
        });
    }
    let integer: &[(&str, i32)] =
        &[("AddV2", 0), ("Sub", 0), ("Mul", 1), ("FloorDiv", 1), ("BitwiseOr", 0)];
    for &(name, value) in integer {
        reads("y = Square(i)", |b| {
            let (i, c) = (integers(b), scalar(b, value));
            op(b, name, &[i, c])
        });
    }
}

#[test]
fn what_would_change_a_bit_stays() {
    let float: &[(&str, f32, bool)] = &[
        // -0 + 0 is 0.
        ("AddV2", 0.0, false),
        // -0 - -0 is 0.
        ("Sub", -0.0, false),
        ("Sub", 0.0, true),
        ("RealDiv", 1.0, true),
        // NaN, infinities.
        ("Mul", 0.0, false),
    ];
    for &(name, value, left) in float {
        let inputs = if left { "c1, x" } else { "x, c1" };
        let expected = format!("c1 = Const()\n{name} = {name}({inputs})\ny = Square({name})");
        reads(&expected, |b| {
            let (x, c) = (x(b), scalar(b, value));
            let inputs = if left { [c, x] } else { [x, c] };
            op(b, name, &inputs)
        });
    }
    reads("Sub = Sub(x, x)\ny = Square(Sub)", |b| {
        let x = x(b);
        op(b, "Sub", &[x, x])
    });
}

#[test]
fn an_operand_that_broadcasts_the_other_stays() {
    reads("Mul = Mul(x, ones)\nones = Const()\ny = Square(Mul)", |b| {
        let x = x(b);
        let ones = b.constant("ones", Tensor::from_slice(&[2, 1, 1], &[1f32; 2]).unwrap()).unwrap();
        op(b, "Mul", &[x, ones])
    });
    reads("y = Square(x)", |b| {
        let x = x(b);
        let ones = b.constant("ones", Tensor::from_slice(&[1, 1], &[1f32]).unwrap()).unwrap();
        op(b, "Mul", &[x, ones])
    });
}

#[test]
fn zeros_of_integers_are_constants() {
    reads("Sub = Const()\ny = Square(Sub)", |b| {
        let i = integers(b);
        op(b, "Sub", &[i, i])
    });
    reads("Mul = Const()\ny = Square(Mul)", |b| {
        let (i, c) = (integers(b), scalar(b, 0i32));
        op(b, "Mul", &[i, c])
    });
}

#[test]
fn signs_cancel_and_move() {
    reads("y = Square(x)", |b| {
        let x = x(b);
        let n = op(b, "Neg", &[x]);
        op(b, "Neg", &[n])
    });
    reads("AddV2 = Sub(x, z)\ny = Square(AddV2)\nz = Relu(x)", |b| {
        let x = x(b);
        let z = b.op("Relu").name("z").input(x).build().unwrap().into();
        let n = op(b, "Neg", &[z]);
        op(b, "AddV2", &[x, n])
    });
    reads("Sub = AddV2(x, z)\ny = Square(Sub)\nz = Relu(x)", |b| {
        let x = x(b);
        let z = b.op("Relu").name("z").input(x).build().unwrap().into();
        let n = op(b, "Neg", &[z]);
        op(b, "Sub", &[x, n])
    });
    // -(x - z) is not z - x where both are equal: -0 and 0.
    reads("Neg = Neg(Sub)\nSub = Sub(x, z)\ny = Square(Neg)\nz = Relu(x)", |b| {
        let x = x(b);
        let z = b.op("Relu").name("z").input(x).build().unwrap().into();
        let d = op(b, "Sub", &[x, z]);
        op(b, "Neg", &[d])
    });
}

#[test]
fn what_is_done_twice_is_done_once() {
    reads("Relu = Relu(x)\ny = Square(Relu)", |b| {
        let x = x(b);
        let once = op(b, "Relu", &[x]);
        op(b, "Relu", &[once])
    });
    reads("y = Square(i)", |b| {
        let i = integers(b);
        op(b, "Maximum", &[i, i])
    });
}

#[test]
fn transpositions_join() {
    let twice = |b: &mut B, first: &[i32], second: &[i32]| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[2, 3, 4]).unwrap()).unwrap();
        let (p, q) = (vector(b, first), vector(b, second));
        let t = b.op("Transpose").name("t").input(x).input(p).build().unwrap();
        b.op("Transpose").name("u").input(t).input(q).build().unwrap().into()
    };
    reads("y = Square(x)", |b| twice(b, &[2, 0, 1], &[1, 2, 0]));
    reads("u = Transpose(x, u/simpler)\nu/simpler = Const()\ny = Square(u)", |b| {
        twice(b, &[2, 0, 1], &[2, 0, 1])
    });
    reads("c1 = Const()\nt = Transpose(x, c1)\ny = Square(t)", |b| {
        twice(b, &[2, 0, 1], &[0, 1, 2])
    });
}

#[test]
fn reshapes_join() {
    let x =
        |b: &mut B| b.placeholder("x", DType::FLOAT, PartialShape::new(&[2, 6]).unwrap()).unwrap();
    reads("c3 = Const()\ny = Square(r)\nr = Reshape(x, c3)", |b| {
        let x = x(b);
        let s = vector(b, &[3, 4]);
        let first = b.op("Reshape").name("q").input(x).input(s).build().unwrap();
        let s = vector(b, &[4, 3]);
        b.op("Reshape").name("r").input(first).input(s).build().unwrap().into()
    });
    reads("y = Square(x)", |b| {
        let x = x(b);
        let s = vector(b, &[2, -1]);
        op(b, "Reshape", &[x, s])
    });
    reads("y = Square(x)", |b| {
        let x = x(b);
        let zero = scalar(b, 0i32);
        let wide = op(b, "ExpandDims", &[x, zero]);
        let node = b.op("Squeeze").input(wide).attr("squeeze_dims", vec![0i64]);
        node.build().unwrap().into()
    });
}

#[test]
fn casts_join_where_nothing_is_lost() {
    let cast = |b: &mut B, name: &str, x: Output, to: DType| -> Output {
        b.op("Cast").name(name).input(x).attr("DstT", to).build().unwrap().into()
    };
    reads("y = Square(x)", |b| {
        let x = x(b);
        let wide = cast(b, "wide", x, DType::DOUBLE);
        cast(b, "back", wide, DType::FLOAT)
    });
    reads("back = Cast(narrow)\nnarrow = Cast(x)\ny = Square(back)", |b| {
        let x = x(b);
        let narrow = cast(b, "narrow", x, DType::HALF);
        cast(b, "back", narrow, DType::FLOAT)
    });
    reads("far = Cast(i)\ny = Square(far)", |b| {
        let i = integers(b);
        let wide = cast(b, "wide", i, DType::INT64);
        cast(b, "far", wide, DType::FLOAT)
    });
    reads("y = Square(x)", |b| {
        let x = x(b);
        cast(b, "same", x, DType::FLOAT)
    });
}

#[test]
fn what_waits_for_an_effect_goes_on_waiting() {
    reads("Mul = Identity(x) ^v\nv = TestVariable()\ny = Square(Mul)", |b| {
        let x = x(b);
        let v = b.op("TestVariable").name("v").attr("dtype", DType::FLOAT).build().unwrap();
        let one = scalar(b, 1f32);
        b.op("Mul").name("Mul").input(x).input(one).control(v).build().unwrap().into()
    });
}

fn matrices(b: &mut B, name: &str, dims: &[i64]) -> Output {
    b.placeholder(name, DType::FLOAT, PartialShape::new(dims).unwrap()).unwrap()
}

fn transposed(b: &mut B, value: Output, perm: &[i32]) -> Output {
    let perm = vector(b, perm);
    op(b, "Transpose", &[value, perm])
}

/// The node `y` after these inputs were multiplied, with the flags of its product.
fn product_of(make: impl FnOnce(&mut B) -> Output) -> (String, [bool; 2]) {
    let case = Case::new(|b| {
        let value = make(b);
        vec![b.op("Square").name("y").input(value).build().unwrap().into()]
    });
    let all = built_in();
    let pass = all.iter().find(|pass| pass.name() == "arithmetic").unwrap();
    let done = case.optimized(&[&**pass]);
    let is_product = |id: &NodeId| done.graph.node(*id).op.name.ends_with("MatMulV2");
    let product = done.sub.order.iter().copied().find(is_product).unwrap();
    let attrs = &done.graph.node(product).attrs;
    let flag = |name: &str| matches!(attrs.get(name), Some(AttrValue::Bool(true)));
    (text(&done), ["adj_x", "adj_y"].map(flag))
}

#[test]
fn a_product_reads_a_transposed_operand_as_it_is() {
    let (text, flags) = product_of(|b| {
        let (p, q) = (matrices(b, "p", &[2, 5, 3]), matrices(b, "q", &[2, 4, 3]));
        let q = transposed(b, q, &[0, 2, 1]);
        op(b, "BatchMatMulV2", &[p, q])
    });
    assert!(text.contains("= BatchMatMulV2(p, q)") && !text.contains("Transpose"), "{text}");
    assert_eq!(flags, [false, true]);
    // Heads stay in their place.
    let (text, flags) = product_of(|b| {
        let (p, q) = (matrices(b, "p", &[2, 6, 5, 3]), matrices(b, "q", &[2, 4, 6, 3]));
        let q = transposed(b, q, &[0, 2, 3, 1]);
        op(b, "BatchMatMulV2", &[p, q])
    });
    assert!(text.contains("= Transpose(q, ") && text.contains("= BatchMatMulV2(p, "), "{text}");
    assert_eq!(flags, [false, true]);
}

#[test]
fn a_transposed_product_is_that_of_the_transposed_operands() {
    let (text, flags) = product_of(|b| {
        let (p, q) = (matrices(b, "p", &[2, 5, 3]), matrices(b, "q", &[2, 4, 3]));
        let product = b.op("BatchMatMulV2").input(p).input(q).attr("adj_y", true).build().unwrap();
        transposed(b, product.into(), &[0, 2, 1])
    });
    assert!(text.contains("BatchMatMulV2(q, p)"), "{text}");
    assert_eq!(flags, [false, true]);
    // Not if the product itself is read, nor if other dimensions are permuted.
    for (perm, read) in [([0, 2, 1], true), ([1, 0, 2], false)] {
        let (text, _) = product_of(|b| {
            let (p, q) = (matrices(b, "p", &[2, 5, 4]), matrices(b, "q", &[2, 4, 5]));
            let product = op(b, "BatchMatMulV2", &[p, q]);
            let turned = transposed(b, product, &perm);
            if read { op(b, "BatchMatMulV2", &[turned, product]) } else { turned }
        });
        assert!(text.contains("BatchMatMulV2(p, q)"), "{text}");
    }
}

/// The gradient of an operand with the sizes `own` in an op with another one: a tensor of the shape of
/// `x`, summed where the operand was broadcast.
fn unspread(b: &mut B, own: Output, other: Output) -> Output {
    let x = b.graph().find("x").unwrap();
    let gradient = op(b, "Relu", &[x.into()]);
    let axes = op(b, "BroadcastGradientArgs", &[own, other]);
    op(b, "Sum", &[gradient, axes])
}

/// `x` with rows of 3, in an unknown number.
fn rows(b: &mut B) -> Output {
    b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 3]).unwrap()).unwrap()
}

#[test]
fn a_gradient_is_not_summed_for_an_operand_that_was_not_broadcast() {
    // Operands of one shape.
    reads("Relu = Relu(x)\ny = Square(Relu)", |b| {
        let x = rows(b);
        let other = op(b, "Neg", &[x]);
        let (own, other) = (op(b, "Shape", &[x]), op(b, "Shape", &[other]));
        unspread(b, own, other)
    });
    // A vector that is added to each row. The number of rows may be 1, so that the sum stays unless its
    // result gets the shape of `x` again.
    reads("Relu = Relu(x)\ny = Square(Relu)", |b| {
        let x = rows(b);
        let (own, other) = (op(b, "Shape", &[x]), vector(b, &[3]));
        let sum = unspread(b, own, other);
        op(b, "Reshape", &[sum, own])
    });
    reads(
        "BroadcastGradientArgs = BroadcastGradientArgs(Shape, c2)\nRelu = Relu(x)\nShape = Shape(x)\n\
         Sum = Sum(Relu, BroadcastGradientArgs)\nc2 = Const()\ny = Square(Sum)",
        |b| {
            let x = rows(b);
            let (own, other) = (op(b, "Shape", &[x]), vector(b, &[3]));
            unspread(b, own, other)
        },
    );
}

#[test]
fn a_gradient_is_summed_for_an_operand_that_may_have_been_broadcast() {
    // The other operand may have more rows, since `x` may have one.
    reads(
        "BroadcastGradientArgs = BroadcastGradientArgs(Shape, Shape_1)\nRelu = Relu(x)\n\
         Reshape = Reshape(Sum, Shape)\nShape = Shape(x)\nShape_1 = Shape(z)\n\
         Sum = Sum(Relu, BroadcastGradientArgs)\ny = Square(Reshape)",
        |b| {
            let x = rows(b);
            let z = b.placeholder("z", DType::FLOAT, PartialShape::new(&[-1, 3]).unwrap()).unwrap();
            let (own, other) = (op(b, "Shape", &[x]), op(b, "Shape", &[z]));
            let sum = unspread(b, own, other);
            op(b, "Reshape", &[sum, own])
        },
    );
}
