//! Shapes that are usual for well-known ops: small, middle, large; layers of networks that everybody knows.

use super::Wish;
use crate::wanted::{Shapes, value};

/// Ops, shapes, attributes, values.
struct Usual {
    ops: &'static [&'static str],
    shapes: &'static [&'static str],
    attrs: &'static [(&'static str, &'static str)],
    values: &'static [&'static str],
}

const PLAIN: Usual = Usual { ops: &[], shapes: &[], attrs: &[], values: &[] };

const STRIDE_1: &[(&str, &str)] = &[("strides", "[1,1,1,1]"), ("padding", "SAME")];
const POOL: &[(&str, &str)] =
    &[("ksize", "[1,2,2,1]"), ("strides", "[1,2,2,1]"), ("padding", "VALID")];

const TABLE: &[Usual] = &[
    Usual {
        ops: &[
            "Add",
            "AddV2",
            "Sub",
            "Mul",
            "RealDiv",
            "Maximum",
            "Minimum",
            "SquaredDifference",
            "Neg",
            "Square",
            "Sqrt",
            "Rsqrt",
            "Exp",
            "Log",
            "Tanh",
            "Sigmoid",
            "Relu",
            "Relu6",
            "AddN",
        ],
        shapes: &["1000", "100000", "4000000"],
        ..PLAIN
    },
    Usual {
        ops: &["MatMul"],
        shapes: &[
            "a=64x64,b=64x64",
            "a=256x256,b=256x256",
            "a=512x512,b=512x512",
            "a=8x1024,b=1024x1024",
        ],
        ..PLAIN
    },
    Usual { ops: &["BatchMatMulV2"], shapes: &["x=12x128x64,y=12x64x128"], ..PLAIN },
    Usual {
        ops: &["BiasAdd"],
        shapes: &["value=128x768,bias=768", "value=1x56x56x256,bias=256"],
        ..PLAIN
    },
    Usual {
        ops: &["Conv2D"],
        shapes: &[
            "input=1x56x56x64,filter=3x3x64x64",
            "input=1x14x14x256,filter=3x3x256x256",
            "input=1x28x28x256,filter=1x1x256x512",
        ],
        attrs: STRIDE_1,
        ..PLAIN
    },
    Usual {
        ops: &["DepthwiseConv2dNative"],
        shapes: &["input=1x56x56x128,filter=3x3x128x1"],
        attrs: STRIDE_1,
        ..PLAIN
    },
    Usual { ops: &["MaxPool", "AvgPool"], shapes: &["1x112x112x64"], attrs: POOL, ..PLAIN },
    Usual { ops: &["Softmax", "LogSoftmax"], shapes: &["64x10", "128x1000", "1536x128"], ..PLAIN },
    Usual {
        ops: &["Sum", "Mean", "Max", "Min", "Prod"],
        shapes: &["input=64x64", "input=1024x1024"],
        values: &["reduction_indices=[1]"],
        ..PLAIN
    },
    Usual {
        ops: &["ArgMax", "ArgMin"],
        shapes: &["input=128x1000"],
        values: &["dimension=1"],
        ..PLAIN
    },
    Usual {
        ops: &["Transpose"],
        shapes: &["x=64x64", "x=1024x1024"],
        values: &["perm=[1,0]"],
        ..PLAIN
    },
];

/// The wishes that stand for an op's usual calls; none where the op is not known, or the user gives some of it
/// differently.
pub fn wishes(op: &str, wish: &Wish) -> Vec<Wish> {
    let usual = TABLE.iter().filter(|usual| usual.ops.contains(&op));
    usual.filter_map(|usual| with(usual, wish)).collect()
}

/// What the user gives comes first.
fn with(usual: &Usual, wish: &Wish) -> Option<Wish> {
    let mut all = wish.clone();
    all.shapes =
        usual.shapes.iter().map(|text| Shapes::parse(text)).collect::<Result<_, _>>().ok()?;
    for (name, text) in usual.attrs {
        if !all.attrs.iter().any(|(known, _)| known == name) {
            all.attrs.push(((*name).to_owned(), (*text).to_owned()));
        }
    }
    for text in usual.values {
        let (name, values, scalar) = value(text).ok()?;
        if !all.values.iter().any(|(known, ..)| *known == name) {
            all.values.push((name, values, scalar));
        }
    }
    Some(all)
}
