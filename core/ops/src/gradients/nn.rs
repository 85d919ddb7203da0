//! Gradients of activations, biases, convolutions, poolings and losses.

use super::{Outcome, nn_norm::normalised};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{DType, abi::GraphValue};

// Activations: most gradients need the output only.
register_gradient!("Relu", |c| by_output(c, "ReluGrad"));
register_gradient!("Relu6", |c| by_output(c, "Relu6Grad"));
register_gradient!("Elu", |c| by_output(c, "EluGrad"));
register_gradient!("Selu", |c| by_output(c, "SeluGrad"));
register_gradient!("LeakyRelu", |c| {
    let node = c.op("LeakyReluGrad").input(c.gradient(0)?).input(c.input(0));
    c.set(0, node.copy(&["alpha"]).done()?)
});
register_gradient!("Softplus", |c| {
    c.set(0, c.mul(c.gradient(0)?, c.unary("Sigmoid", c.input(0))?)?)
});
register_gradient!("Softsign", |c| {
    c.set(0, c.binary("SoftsignGrad", c.gradient(0)?, c.input(0))?)
});

fn by_output(c: &GradientContext<'_>, op: &str) -> Outcome {
    c.set(0, c.binary(op, c.gradient(0)?, c.output(0))?)
}

// Biases.
register_gradient!("BiasAdd", |c| {
    let g = c.gradient(0)?;
    c.set(0, g)?;
    match c.wants(1) {
        true => c.set(1, c.op("BiasAddGrad").input(g).copy(&["data_format"]).done()?),
        false => Ok(()),
    }
});
register_gradient!("BiasAddV1", |c| {
    let g = c.gradient(0)?;
    c.set(0, g)?;
    if c.wants(1) { c.set(1, c.unary("BiasAddGrad", g)?) } else { Ok(()) }
});

/// The attributes of a convolution over rows and columns.
pub(super) const CONV: &[&str] =
    &["strides", "padding", "explicit_paddings", "data_format", "dilations"];
/// Those of a convolution over three dimensions.
pub(super) const CONV_3D: &[&str] = &["strides", "padding", "data_format", "dilations"];
/// The attributes of a pooling.
pub(super) const POOL: &[&str] = &["ksize", "strides", "padding", "data_format"];

// Convolutions: by the images, and by the filter.
register_gradient!("Conv2D", |c| convolution(
    c,
    ["Conv2DBackpropInput", "Conv2DBackpropFilter"],
    CONV
));
register_gradient!("DepthwiseConv2dNative", |c| {
    let names = ["DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"];
    convolution(c, names, CONV)
});
register_gradient!("Conv3D", |c| {
    convolution(c, ["Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"], CONV_3D)
});
register_gradient!("Dilation2D", |c| {
    let (g, x, filter) = (c.gradient(0)?, c.input(0), c.input(1));
    for (index, op) in
        ["Dilation2DBackpropInput", "Dilation2DBackpropFilter"].into_iter().enumerate()
    {
        if c.wants(index) {
            let node = c.op(op).input(x).input(filter).input(g);
            c.set(index, node.copy(&["strides", "rates", "padding"]).done()?)?;
        }
    }
    Ok(())
});

fn convolution(
    c: &GradientContext<'_>,
    [by_images, by_filter]: [&str; 2],
    attrs: &[&str],
) -> Outcome {
    let (g, x, filter) = (c.gradient(0)?, c.input(0), c.input(1));
    if c.wants(0) {
        let node = c.op(by_images).input(c.shape_of(x)?).input(filter).input(g);
        c.set(0, node.copy(attrs).done()?)?;
    }
    if c.wants(1) {
        let node = c.op(by_filter).input(x).input(c.shape_of(filter)?).input(g);
        c.set(1, node.copy(attrs).done()?)?;
    }
    Ok(())
}

// Poolings.
register_gradient!("AvgPool", |c| average(c, "AvgPoolGrad"));
register_gradient!("AvgPool3D", |c| average(c, "AvgPool3DGrad"));
register_gradient!("MaxPool", |c| {
    let node = maximum(c, "MaxPoolGrad")?.copy(POOL).copy(&["explicit_paddings"]);
    c.set(0, node.done()?)
});
register_gradient!("MaxPool3D", |c| c.set(0, maximum(c, "MaxPool3DGrad")?.copy(POOL).done()?));
register_gradient!("MaxPoolV2", |c| {
    let node = maximum(c, "MaxPoolGradV2")?.input(c.input(1)).input(c.input(2));
    c.set(0, node.copy(&["padding", "data_format"]).done()?)
});
register_gradient!("MaxPoolWithArgmax", |c| {
    let places = c.cast(c.output(1), DType::INT64)?;
    let node = c.op("MaxPoolGradWithArgmax").input(c.input(0)).input(c.gradient(0)?).input(places);
    c.set(0, node.copy(&["ksize", "strides", "padding", "include_batch_in_index"]).done()?)
});
register_gradient!("LRN", |c| {
    let node = c.op("LRNGrad").input(c.gradient(0)?).input(c.input(0)).input(c.output(0));
    c.set(0, node.copy(&["depth_radius", "bias", "alpha", "beta"]).done()?)
});

fn average(c: &GradientContext<'_>, op: &str) -> Outcome {
    let node = c.op(op).input(c.shape_of(c.input(0))?).input(c.gradient(0)?);
    c.set(0, node.copy(POOL).done()?)
}

fn maximum<'c, 'a>(
    c: &'c GradientContext<'a>,
    op: &str,
) -> Result<tenon_author::NodeMaker<'c, 'a>, tenon_framework::KernelError> {
    Ok(c.op(op).input(c.input(0)).input(c.output(0)).input(c.gradient(0)?))
}

// Normalisation.
register_gradient!("FusedBatchNorm", |c| normalised(c, "FusedBatchNormGrad", None));
register_gradient!("FusedBatchNormV2", |c| {
    let empty = c.op("Fill").input(c.ints(&[0])?).input(c.number(DType::FLOAT, 0.0)?).done()?;
    normalised(c, "FusedBatchNormGradV3", Some(empty))
});
register_gradient!("FusedBatchNormV3", |c| {
    normalised(c, "FusedBatchNormGradV3", Some(c.output(5)))
});

// Softmax and losses.
register_gradient!("Softmax", |c| {
    let (g, y) = (c.gradient(0)?, c.output(0));
    let mean = c.sum(c.mul(g, y)?, c.int(-1)?, true)?;
    c.set(0, c.mul(c.sub(g, mean)?, y)?)
});
register_gradient!("LogSoftmax", |c| {
    let (g, probabilities) = (c.gradient(0)?, c.unary("Exp", c.output(0))?);
    let sum = c.sum(g, c.int(-1)?, true)?;
    c.set(0, c.sub(g, c.mul(sum, probabilities)?)?)
});
register_gradient!("L2Loss", |c| c.set(0, c.mul(c.input(0), c.gradient(0)?)?));
register_gradient!("SparseSoftmaxCrossEntropyWithLogits", |c| {
    let loss = c.binary("ExpandDims", c.gradient(0)?, c.int(-1)?)?;
    by_logits(c, loss, c.input(0))
});
register_gradient!("SoftmaxCrossEntropyWithLogits", |c| {
    let (logits, labels) = (c.input(0), c.input(1));
    let loss = c.binary("ExpandDims", c.gradient(0)?, c.int(-1)?)?;
    if c.wants(0) {
        by_logits(c, loss, labels)?;
    }
    if c.wants(1) {
        let log = c.neg(c.unary("LogSoftmax", logits)?)?;
        c.set(1, c.reduce_to(c.mul(loss, log)?, labels, logits)?)?;
    }
    Ok(())
});

/// Sets the gradient of the logits, which broadcast with `other`. The second output is the gradient
/// of the loss; its own gradient counts only where it is used.
fn by_logits(c: &GradientContext<'_>, loss: GraphValue, other: GraphValue) -> Outcome {
    let logits = c.input(0);
    let mut gradient = c.mul(loss, c.output(1))?;
    if c.has_gradient(1) {
        let (second, softmax) = (c.gradient(1)?, c.unary("Softmax", logits)?);
        let mean = c.sum(c.mul(second, softmax)?, c.int(-1)?, true)?;
        gradient = c.add(gradient, c.mul(c.sub(second, mean)?, softmax)?)?;
    }
    match c.same_shape(gradient, logits) {
        true => c.set(0, gradient),
        false => c.set(0, c.reduce_to(gradient, logits, other)?),
    }
}

// Pooling of drawn windows.
register_gradient!("FractionalMaxPool", |c| {
    let node = c.op("FractionalMaxPoolGrad").input(c.input(0)).input(c.output(0));
    let node = node.input(c.gradient(0)?).input(c.output(1)).input(c.output(2));
    c.set(0, node.copy(&["overlapping"]).done()?)
});
register_gradient!("FractionalAvgPool", |c| {
    let shape = super::shape_as(c, c.input(0), DType::INT64)?;
    let node = c.op("FractionalAvgPoolGrad").input(shape).input(c.gradient(0)?);
    let node = node.input(c.output(1)).input(c.output(2));
    c.set(0, node.copy(&["overlapping"]).done()?)
});
