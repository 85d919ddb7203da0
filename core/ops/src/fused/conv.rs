//! Convolutions with the ops that follow them.

use super::epilogue;
use crate::shape::{input_of_rank, with_identity};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::{
    Conv2dGeometry, Conv2dParams, DataFormat, GeometryError, Padding, check_windows,
};

const FORMAT: &str = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
pub(super) const PADDING: &str = "padding: {'SAME', 'VALID', 'EXPLICIT'}";
pub(super) const EXPLICIT: &str = "explicit_paddings: list(int) = []";
pub(super) const DILATIONS: &str = "dilations: list(int) = [1, 1, 1, 1]";

register_op!(
    "_FusedConv2D",
    inputs = &["input: T", "filter: T", "args: num_args * T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double}",
        "num_args: int >= 0",
        "strides: list(int)",
        "use_cudnn_on_gpu: bool = true",
        PADDING,
        EXPLICIT,
        FORMAT,
        DILATIONS,
        "fused_ops: list(string) = []",
        "epsilon: float = 0.0001",
        "leakyrelu_alpha: float = 0.2",
    ],
    shape = fused_conv2d,
    summary = "Conv2D of input and filter, then the steps of fused_ops in order, each with its inputs among args: \
               BiasAdd or FusedBatchNorm (vectors of one value per channel, epsilon), Add (a tensor of the output's \
               shape), activations.",
    cases = &[
        "bias; strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; padding in {'SAME', 'VALID'}; \
         fused_ops in {['BiasAdd'], ['BiasAdd', 'Relu'], ['BiasAdd', 'Relu6'], ['BiasAdd', 'Elu']}; \
         input: [n, h, w, c]; filter: [3, 2, c, m]; args: [m]",
        "pointwise; strides = [1, 1, 1, 1]; padding = 'VALID'; fused_ops = ['BiasAdd', 'LeakyRelu']; \
         input: [n, h, w, c]; filter: [1, 1, c, m]; args: [m]",
        "residual; strides = [1, 1, 1, 1]; padding = 'SAME'; fused_ops = ['BiasAdd', 'Add', 'Relu']; \
         input: [n, h, w, c]; filter: [3, 3, c, m]; args: [m], [n, h, w, m]",
        "normalised; strides = [1, 1, 1, 1]; padding = 'SAME'; epsilon in {0.0001, 0.01}; \
         fused_ops in {['FusedBatchNorm'], ['FusedBatchNorm', 'Relu']}; input: [n, h, w, c]; filter: [3, 3, c, m]; \
         args: [m] uniform(-4, 4), [m], [m], [m] uniform(0.25, 4)",
        "channels_first; data_format = 'NCHW'; strides = [1, 1, 1, 1]; padding = 'SAME'; \
         fused_ops = ['BiasAdd', 'Relu']; input: [n, c, h, w]; filter: [3, 2, c, m]; args: [m]",
    ],
);

register_op!(
    "_FusedDepthwiseConv2dNative",
    inputs = &["input: T", "filter: T", "args: num_args * T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double}",
        "num_args: int >= 0",
        "strides: list(int)",
        PADDING,
        EXPLICIT,
        FORMAT,
        DILATIONS,
        "fused_ops: list(string) = []",
        "epsilon: float = 0.0001",
        "leakyrelu_alpha: float = 0.2",
    ],
    shape = fused_depthwise,
    summary = "DepthwiseConv2dNative of input and filter, then the steps of fused_ops in order, each with its inputs \
               among args: BiasAdd or FusedBatchNorm (vectors of one value per channel, epsilon), Add (a tensor of \
               the output's shape), activations.",
    cases = &[
        "bias; strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; padding in {'SAME', 'VALID'}; \
         fused_ops in {['BiasAdd'], ['BiasAdd', 'Relu'], ['BiasAdd', 'Relu6']}; \
         input: [n, h, w, c]; filter: [3, 3, c, 1]; args: [c]",
        "normalised; strides = [1, 1, 1, 1]; padding = 'SAME'; epsilon in {0.0001, 0.01}; \
         fused_ops = ['FusedBatchNorm', 'Relu6']; input: [n, h, w, c]; filter: [3, 3, c, 1]; \
         args: [c] uniform(-4, 4), [c], [c], [c] uniform(0.25, 4)",
    ],
);

fn fused_conv2d(c: &ShapeContext<'_>) -> ShapeResult {
    let (output, channel) = convolution(c)?;
    c.set_output(0, epilogue::after(c, output, 2, channel)?)
}

fn fused_depthwise(c: &ShapeContext<'_>) -> ShapeResult {
    let (output, channel) = depthwise(c)?;
    c.set_output(0, epilogue::after(c, output, 2, channel)?)
}

/// The output of the convolution of the first two inputs, and the position of its channels.
pub(super) fn convolution(c: &ShapeContext<'_>) -> Result<(ShapeHandle, usize), KernelError> {
    let (input, filter) = (input_of_rank(c, 0, "input", 4)?, input_of_rank(c, 1, "filter", 4)?);
    let channels = c.dim(filter, 3);
    output(c, [input, filter], Conv2dGeometry::new, Some(channels))
}

/// Like [`convolution`], for a depthwise convolution.
pub(super) fn depthwise(c: &ShapeContext<'_>) -> Result<(ShapeHandle, usize), KernelError> {
    let (input, filter) = (input_of_rank(c, 0, "input", 4)?, input_of_rank(c, 1, "filter", 4)?);
    let format = DataFormat::parse(c.attr("data_format")?)?;
    let same = c.value(c.dim(filter, 3)) == Some(1);
    let channels = same.then_some(c.dim(input, format.channel_dim(4)));
    output(c, [input, filter], Conv2dGeometry::depthwise, channels)
}

fn output(
    c: &ShapeContext<'_>,
    [input, filter]: [ShapeHandle; 2],
    geometry: fn(&Conv2dParams<'_>) -> Result<Conv2dGeometry, GeometryError>,
    channels: Option<Dim>,
) -> Result<(ShapeHandle, usize), KernelError> {
    let (strides, dilations): (Vec<i64>, Vec<i64>) = (c.attr("strides")?, c.attr("dilations")?);
    let explicit_paddings: Vec<i64> = c.attr("explicit_paddings")?;
    let format = DataFormat::parse(c.attr("data_format")?)?;
    let padding = Padding::parse(c.attr("padding")?)?;
    let sizes = |shape| c.dims(shape).unwrap_or_default();
    let geometry = geometry(&Conv2dParams {
        input: &sizes(input),
        filter: &sizes(filter),
        strides: &strides,
        dilations: &dilations,
        padding,
        explicit_paddings: &explicit_paddings,
        format,
    })?;
    check_windows(&[geometry.height, geometry.width], padding)?;
    let channel = format.channel_dim(4);
    let output = with_identity(c, &geometry.output_dims(), |at| match at {
        0 => Some(c.dim(input, 0)),
        at if at == channel => channels,
        _ => None,
    });
    Ok((output, channel))
}
