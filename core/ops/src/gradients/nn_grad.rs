//! Gradients of ops that are gradients themselves.

use super::{
    Made, Outcome,
    nn::{CONV, CONV_3D, POOL},
};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::abi::GraphValue;

// Activations, linear by pieces: their slopes do not depend on what they are taken at.
register_gradient!("ReluGrad", |c| linear(c, c.binary("ReluGrad", c.gradient(0)?, c.input(1))?));
register_gradient!("Relu6Grad", |c| linear(c, c.binary("Relu6Grad", c.gradient(0)?, c.input(1))?));
register_gradient!("LeakyReluGrad", |c| {
    let node = c.op("LeakyReluGrad").input(c.gradient(0)?).input(c.input(1));
    linear(c, node.copy(&["alpha"]).done()?)
});
register_gradient!("EluGrad", |c| exponential(c, "EluGrad"));
register_gradient!("SeluGrad", |c| exponential(c, "SeluGrad"));

fn linear(c: &GradientContext<'_>, by_gradient: GraphValue) -> Outcome {
    c.set(0, by_gradient)?;
    c.set(1, c.zeros_like(c.input(1))?)
}

fn exponential(c: &GradientContext<'_>, op: &str) -> Outcome {
    let (g, inner, y) = (c.gradient(0)?, c.input(0), c.input(1));
    c.set(0, c.binary(op, g, y)?)?;
    let below = c.binary("Less", y, c.scalar(y, 0.0)?)?;
    c.set(1, c.select(below, c.mul(g, inner)?, c.zeros_like(y)?)?)
}

// Functions of the output `a` of a function and of a gradient `b`.
register_gradient!("SigmoidGrad", |c| {
    let (g, a, b) = operands(c)?;
    let gb = c.mul(g, b)?;
    c.set(0, c.sub(gb, c.mul(c.scale(gb, 2.0)?, a)?)?)?;
    c.set(1, c.binary("SigmoidGrad", a, g)?)
});
register_gradient!("TanhGrad", |c| {
    let (g, a, b) = operands(c)?;
    c.set(0, c.mul(c.mul(c.scale(g, -2.0)?, b)?, a)?)?;
    c.set(1, c.binary("TanhGrad", a, g)?)
});
register_gradient!("SqrtGrad", |c| {
    let ratio = c.div(c.gradient(0)?, c.input(0))?;
    c.set(0, c.mul(c.neg(c.conj(ratio)?)?, c.output(0))?)?;
    c.set(1, c.scale(ratio, 0.5)?)
});
register_gradient!("RsqrtGrad", |c| {
    let (g, a) = (c.gradient(0)?, c.conj(c.input(0))?);
    let outer = c.mul(c.scale(c.conj(g)?, -1.5)?, c.input(1))?;
    c.set(0, c.mul(outer, c.unary("Square", a)?)?)?;
    c.set(1, c.binary("RsqrtGrad", a, g)?)
});
register_gradient!("ReciprocalGrad", reciprocal);
register_gradient!("InvGrad", reciprocal);
register_gradient!("SoftplusGrad", |c| {
    let (g, inner, x) = (c.gradient(0)?, c.input(0), c.input(1));
    c.set(0, c.binary("SoftplusGrad", g, x)?)?;
    let sum = c.add(c.unary("Exp", c.neg(x)?)?, c.scalar(x, 2.0)?)?;
    let sum = c.add(sum, c.unary("Exp", x)?)?;
    c.set(1, c.div(c.mul(g, inner)?, sum)?)
});

/// The gradient, and both inputs conjugated.
fn operands(
    c: &GradientContext<'_>,
) -> Result<(GraphValue, GraphValue, GraphValue), tenon_framework::KernelError> {
    Ok((c.gradient(0)?, c.conj(c.input(0))?, c.conj(c.input(1))?))
}

fn reciprocal(c: &GradientContext<'_>) -> Outcome {
    let (g, a) = (c.gradient(0)?, c.conj(c.input(0))?);
    c.set(0, c.mul(c.mul(c.scale(c.conj(g)?, -2.0)?, c.input(1))?, a)?)?;
    c.set(1, c.binary("ReciprocalGrad", a, g)?)
}

// Biases.
register_gradient!("BiasAddGrad", |c| {
    let (g, x) = (c.gradient(0)?, c.input(0));
    let shape = c.shape_of(x)?;
    if c.attr::<&str>("data_format")? != "NCHW" {
        return c.set(0, c.binary("BroadcastTo", g, shape)?);
    }
    c.set(0, c.binary("BroadcastTo", before_space(c, g, x)?, shape)?)
});

/// A value of each channel with an axis of size 1 for each dimension of `x` after its channels.
fn before_space(c: &GradientContext<'_>, value: GraphValue, x: GraphValue) -> Made {
    if let Some(rank) = c.rank(x).filter(|&rank| rank >= 2) {
        let mut shape = vec![1; rank - 1];
        shape[0] = -1;
        return c.reshape(value, c.ints(&shape)?);
    }
    let added = c.sub(c.rank_of(x)?, c.int(2)?)?;
    let ones = c.binary("Fill", c.reshape(added, c.ints(&[1])?)?, c.int(1)?)?;
    let node = c.op("ConcatV2").input(c.ints(&[-1])?).input(ones).input(c.int(0)?);
    c.reshape(value, node.done()?)
}

/// The three ops of a convolution: forward, by the images, and by the filter.
type Three = [&'static str; 3];

const PLANAR: Three = ["Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"];
const DEPTHWISE: Three = [
    "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropInput",
    "DepthwiseConv2dNativeBackpropFilter",
];
const VOLUME: Three = ["Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"];

register_gradient!("Conv2DBackpropInput", |c| by_images(c, PLANAR, CONV));
register_gradient!("Conv2DBackpropFilter", |c| by_filter(c, PLANAR, CONV));
register_gradient!("DepthwiseConv2dNativeBackpropInput", |c| by_images(c, DEPTHWISE, CONV));
register_gradient!("DepthwiseConv2dNativeBackpropFilter", |c| by_filter(c, DEPTHWISE, CONV));
register_gradient!("Conv3DBackpropInputV2", |c| by_images(c, VOLUME, CONV_3D));
register_gradient!("Conv3DBackpropFilterV2", |c| by_filter(c, VOLUME, CONV_3D));

/// Of the gradient by the images, whose inputs are their sizes, the filter, and the gradient.
fn by_images(c: &GradientContext<'_>, [forward, _, filter_op]: Three, attrs: &[&str]) -> Outcome {
    let (g, filter) = (c.gradient(0)?, c.input(1));
    if c.wants(1) {
        let node = c.op(filter_op).input(g).input(c.shape_of(filter)?).input(c.input(2));
        c.set(1, node.copy(attrs).done()?)?;
    }
    if c.wants(2) {
        c.set(2, c.op(forward).input(g).input(filter).copy(attrs).done()?)?;
    }
    Ok(())
}

/// Of the gradient by the filter, whose inputs are the images, the filter's sizes, and the gradient.
fn by_filter(c: &GradientContext<'_>, [forward, images_op, _]: Three, attrs: &[&str]) -> Outcome {
    let (g, images) = (c.gradient(0)?, c.input(0));
    if c.wants(0) {
        let node = c.op(images_op).input(c.shape_of(images)?).input(g).input(c.input(2));
        c.set(0, node.copy(attrs).done()?)?;
    }
    if c.wants(2) {
        c.set(2, c.op(forward).input(images).input(g).copy(attrs).done()?)?;
    }
    Ok(())
}

// Poolings.
register_gradient!("AvgPoolGrad", |c| average(c, "AvgPool"));
register_gradient!("AvgPool3DGrad", |c| average(c, "AvgPool3D"));
register_gradient!("MaxPoolGrad", |c| {
    let padding: &str = c.attr("padding")?;
    if padding == "EXPLICIT" {
        return Err(tenon_framework::KernelError::unimplemented(
            "the gradient of MaxPoolGrad with padding EXPLICIT is not defined: expected SAME or VALID",
        ));
    }
    maximum(c, "MaxPoolGradGrad", POOL)
});
register_gradient!("MaxPoolGradGrad", |c| maximum(c, "MaxPoolGrad", POOL));
register_gradient!("MaxPoolGradV2", |c| maximum(
    c,
    "MaxPoolGradGradV2",
    &["padding", "data_format"]
));
register_gradient!("MaxPoolGradGradV2", |c| maximum(
    c,
    "MaxPoolGradV2",
    &["padding", "data_format"]
));
register_gradient!("MaxPool3DGrad", |c| maximum(c, "MaxPool3DGradGrad", POOL));
register_gradient!("MaxPool3DGradGrad", |c| maximum(c, "MaxPool3DGrad", POOL));

fn average(c: &GradientContext<'_>, op: &str) -> Outcome {
    c.set(1, c.op(op).input(c.gradient(0)?).copy(POOL).done()?)
}

/// The places of the maxima depend on the first two inputs by steps only.
fn maximum(c: &GradientContext<'_>, op: &str, attrs: &[&str]) -> Outcome {
    for index in 0..2 {
        c.set(index, c.zeros_like(c.input(index))?)?;
    }
    let node = c.op(op).input(c.input(0)).input(c.input(1)).input(c.gradient(0)?);
    let node = node.inputs((3..c.input_count()).map(|index| c.input(index)));
    c.set(2, node.copy(attrs).done()?)
}
