use crate::{
    bench::{Case, check, text},
    support::{floats, registry, x},
};
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::{AttrList, AttrValue},
    fusion::FusionDef,
};
use tenon_graph::{GraphBuilder, Output};
use tenon_optimize::{Optimized, built_in};

pub type B = GraphBuilder<'static>;

pub fn remapped(case: &Case) -> Optimized {
    let all = built_in();
    let pass = all.iter().find(|pass| pass.name() == "remapping").unwrap();
    let done = case.optimized(&[&**pass]);
    assert_eq!(done.report.failures().count(), 0, "{:?}", done.report);
    done
}

fn texts(done: &Optimized, node: &str, attr: &str) -> Vec<String> {
    let node = done.graph.node(done.graph.find(node).unwrap());
    match node.attrs.get(attr) {
        Some(AttrValue::List(AttrList::String(texts))) => {
            texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
        }
        other => panic!("{attr}: {other:?}"),
    }
}

pub fn number(done: &Optimized, node: &str, attr: &str) -> f32 {
    let node = done.graph.node(done.graph.find(node).unwrap());
    match node.attrs.get(attr) {
        Some(AttrValue::Float(number)) => *number,
        other => panic!("{attr}: {other:?}"),
    }
}

pub fn op(b: &mut B, name: &str, op: &str, inputs: &[Output]) -> Output {
    b.op(op).name(name).inputs(inputs.iter().copied()).build().unwrap().into()
}

pub fn weights(b: &mut B, name: &str, dims: &[i64]) -> Output {
    b.constant(name, floats(dims)).unwrap()
}

pub fn scalar(b: &mut B, name: &str, value: f32) -> Output {
    b.constant(name, Tensor::scalar(value).unwrap()).unwrap()
}

#[test]
fn a_product_takes_its_bias_residual_and_activation() {
    let case = Case::new(|b| {
        let x = x(b);
        let (w, bias) = (weights(b, "w", &[3, 3]), weights(b, "bias", &[3]));
        let product = op(b, "product", "MatMul", &[x, w]);
        let sum = op(b, "sum", "BiasAdd", &[product, bias]);
        let added = op(b, "added", "AddV2", &[x, sum]);
        vec![op(b, "y", "Relu", &[added])]
    });
    let done = remapped(&case);
    assert_eq!(text(&done), "bias = Const()\nw = Const()\ny = _FusedMatMul(x, w, bias, x)");
    assert_eq!(texts(&done, "y", "fused_ops"), ["BiasAdd", "Add", "Relu"]);
}

#[test]
fn a_vector_that_is_added_is_a_bias_and_a_matrix_is_none() {
    check("remapping", "bias = Const()\nw = Const()\ny = _FusedMatMul(x, w, bias)", |b| {
        let x = x(b);
        let (w, bias) = (weights(b, "w", &[3, 4]), weights(b, "bias", &[4]));
        let product = op(b, "product", "MatMul", &[x, w]);
        vec![op(b, "y", "AddV2", &[bias, product])]
    });
    let expected = "bias = Const()\nproduct = MatMul(x, w)\nw = Const()\ny = AddV2(product, bias)";
    check("remapping", expected, |b| {
        let x = x(b);
        let (w, bias) = (weights(b, "w", &[3, 4]), weights(b, "bias", &[1, 4]));
        let product = op(b, "product", "MatMul", &[x, w]);
        vec![op(b, "y", "AddV2", &[product, bias])]
    });
}

#[test]
fn what_others_read_is_not_fused() {
    let make = |b: &mut B, fetched: bool, read: bool| {
        let x = x(b);
        let (w, bias) = (weights(b, "w", &[3, 3]), weights(b, "bias", &[3]));
        let product = op(b, "product", "MatMul", &[x, w]);
        let y = op(b, "y", "BiasAdd", &[product, bias]);
        let mut fetches = vec![y];
        if fetched {
            fetches.push(product);
        }
        if read {
            fetches.push(op(b, "z", "Neg", &[product]));
        }
        fetches
    };
    for (fetched, read) in [(true, false), (false, true)] {
        let case = Case::new(|b| make(b, fetched, read));
        let after = text(&remapped(&case));
        assert!(after.contains("y = BiasAdd(product, bias)"), "{after}");
    }
    let mut case = Case::new(|b| make(b, false, false));
    case.targets = vec!["product"];
    assert!(text(&remapped(&case)).contains("y = BiasAdd(product, bias)"));
}

#[test]
fn a_convolution_is_normalised_and_added_to() {
    let case = Case::new(|b| {
        let shape = PartialShape::new(&[-1, 8, 8, 3]).unwrap();
        let x = b.placeholder("x", DType::FLOAT, shape).unwrap();
        let w = weights(b, "w", &[3, 3, 3, 3]);
        let vectors = ["s", "o", "m", "v"].map(|name| weights(b, name, &[3]));
        let conv = b.op("Conv2D").name("conv").input(x).input(w).attr("padding", "SAME");
        let conv = conv.attr("strides", vec![1i64, 1, 1, 1]).build().unwrap();
        let norm = b.op("FusedBatchNormV3").name("norm").input(conv).inputs(vectors);
        let norm = norm.attr("is_training", false).attr("epsilon", 0.5f32).build().unwrap();
        let sum = op(b, "sum", "AddV2", &[norm.into(), x]);
        vec![op(b, "y", "Relu6", &[sum])]
    });
    let done = remapped(&case);
    assert!(text(&done).contains("y = _FusedConv2D(x, w, s, o, m, v, x)"), "{}", text(&done));
    assert_eq!(texts(&done, "y", "fused_ops"), ["FusedBatchNorm", "Add", "Relu6"]);
    assert_eq!(number(&done, "y", "epsilon"), 0.5);
}

#[test]
fn a_vector_along_the_width_is_no_bias() {
    check(
        "remapping",
        "bias = Const()\nconv = Conv2D(x, w)\nw = Const()\ny = AddV2(conv, bias)",
        |b| {
            let shape = PartialShape::new(&[1, 4, 8, 4]).unwrap();
            let x = b.placeholder("x", DType::FLOAT, shape).unwrap();
            let (w, bias) = (weights(b, "w", &[1, 1, 4, 4]), weights(b, "bias", &[4]));
            let conv = b.op("Conv2D").name("conv").input(x).input(w).attr("padding", "SAME");
            let conv = conv
                .attr("strides", vec![1i64, 1, 1, 1])
                .attr("data_format", "NCHW")
                .build()
                .unwrap();
            vec![op(b, "y", "AddV2", &[conv.into(), bias])]
        },
    );
}

/// `(x - mean) * rsqrt(variance + epsilon) * scale + offset`, in the form of two products.
fn moments(b: &mut B, x: Output, axis: i32) -> Output {
    let axes = b.constant("axes", Tensor::from_slice(&[1], &[axis]).unwrap()).unwrap();
    let (scale, offset) = (weights(b, "scale", &[64]), weights(b, "offset", &[64]));
    let eps = scalar(b, "eps", 0.25);
    let mean = b.op("Mean").name("mean").input(x).input(axes).attr("keep_dims", true);
    let mean = mean.build().unwrap().into();
    let squares = op(b, "squares", "SquaredDifference", &[x, mean]);
    let variance = b.op("Mean").name("variance").input(squares).input(axes).attr("keep_dims", true);
    let variance = variance.build().unwrap().into();
    let safe = op(b, "safe", "AddV2", &[variance, eps]);
    let root = op(b, "root", "Rsqrt", &[safe]);
    let inverse = op(b, "inverse", "Mul", &[root, scale]);
    let scaled = op(b, "scaled", "Mul", &[x, inverse]);
    let shift = op(b, "shift", "Mul", &[mean, inverse]);
    let rest = op(b, "rest", "Sub", &[offset, shift]);
    op(b, "y", "AddV2", &[scaled, rest])
}

#[test]
fn layer_normalisation_is_found_over_the_last_axis_only() {
    let made = |axis| {
        Case::new(|b| {
            let shape = PartialShape::new(&[-1, 64, 64]).unwrap();
            let x = b.placeholder("x", DType::FLOAT, shape).unwrap();
            vec![moments(b, x, axis)]
        })
    };
    for axis in [-1, 2] {
        let done = remapped(&made(axis));
        assert_eq!(
            text(&done),
            "offset = Const()\nscale = Const()\ny = _FusedLayerNorm(x, scale, offset)"
        );
        assert_eq!(number(&done, "y", "epsilon"), 0.25);
    }
    assert!(text(&remapped(&made(1))).contains("y = AddV2(scaled, rest)"));
}

#[test]
fn an_activation_of_a_product_in_the_form_of_gelu_is_taken_in() {
    let case = Case::new(|b| {
        let x = x(b);
        let (w, bias) = (weights(b, "w", &[3, 3]), weights(b, "bias", &[3]));
        let product = op(b, "product", "MatMul", &[x, w]);
        let sum = op(b, "sum", "BiasAdd", &[product, bias]);
        let (half, one) = (scalar(b, "half", 0.5), scalar(b, "one", 1.0));
        let root = scalar(b, "root", std::f32::consts::FRAC_1_SQRT_2);
        let inner = op(b, "inner", "Mul", &[sum, root]);
        let erf = op(b, "erf", "Erf", &[inner]);
        let plus = op(b, "plus", "AddV2", &[erf, one]);
        let halved = op(b, "halved", "Mul", &[half, sum]);
        vec![op(b, "y", "Mul", &[halved, plus])]
    });
    let done = remapped(&case);
    assert_eq!(text(&done), "bias = Const()\nw = Const()\ny = _FusedMatMul(x, w, bias)");
    assert_eq!(texts(&done, "y", "fused_ops"), ["BiasAdd", "GeluExact"]);
}

#[test]
fn every_fusion_makes_an_op_that_is_there() {
    let fusions: Vec<&FusionDef> = registry().fusions().map(|fusion| &**fusion).collect();
    assert!(fusions.len() > 30, "{}", fusions.len());
    for fusion in &fusions {
        let op = registry().op(&fusion.result.op);
        let op = op.unwrap_or_else(|| panic!("{}: {}", fusion.name, fusion.result.op));
        for (attr, _) in &fusion.result.attrs {
            assert!(op.attr(attr).is_some(), "{}: {attr}", fusion.name);
        }
        let same = fusions.iter().filter(|other| other.name == fusion.name);
        assert_eq!(same.count(), 1, "{}", fusion.name);
    }
}
