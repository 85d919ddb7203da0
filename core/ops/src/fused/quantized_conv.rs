//! Convolutions of quantised images, converted to the scale of the output, like the products of
//! [`super::quantized`] with a window as depth.

use super::{
    conv::{self, DILATIONS, EXPLICIT, PADDING},
    quantized::{Parameters, with_parameters},
};
use tenon_author::{ShapeContext, ShapeResult, register_op};

const PARAMETERS: Parameters =
    ["input_scale", "input_zero_point", "filter_scale", "filter_zero_point"];

const INPUTS: &[&str] = &[
    "input: Ta",
    "filter: Tb",
    "input_scale: float",
    "input_zero_point: int32",
    "filter_scale: float",
    "filter_zero_point: int32",
    "out_scale: float",
    "out_zero_point: int32",
    "bias: num_bias * int32",
];
const ATTRS: &[&str] = &[
    "Ta: {quint8, qint8}",
    "Tb: {quint8, qint8}",
    "Tout: {quint8, qint8, qint16, qint32, float}",
    "num_bias: int >= 0",
    "strides: list(int)",
    PADDING,
    EXPLICIT,
    "data_format: {'NHWC'} = 'NHWC'",
    DILATIONS,
    "requantize: {'FLOAT', 'FIXED_POINT'} = 'FLOAT'",
    "activation: {'NONE', 'RELU', 'RELU6', 'CLAMP'} = 'NONE'",
    "clamp_min: float = 0.0",
    "clamp_max: float = 6.0",
];

register_op!(
    "_QuantizedFusedConv2D",
    inputs = INPUTS,
    outputs = &["output: Tout"],
    attrs = ATTRS,
    shape = quantized_conv2d,
    summary = "Conv2D of input_scale * (input - input_zero_point) and filter_scale * (filter - filter_zero_point) plus \
               bias, quantised as output / out_scale + out_zero_point. Padding stands for 0, which is \
               input_zero_point. Scales and zero points are scalars; those of the filter may be vectors of one value \
               per output channel, as the bias is. Sums, types of the output, requantize and activation are those of \
               _QuantizedFusedMatMul.",
    cases = &[
        "plain; num_bias = 0; strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; padding in {'SAME', 'VALID'}; \
         requantize in {'FLOAT', 'FIXED_POINT'}; h in 3..9; w in 2..9; c in 1..20; m in 1..20; input: [n, h, w, c]; \
         filter: [3, 2, c, m]; input_scale: [] uniform(0.01, 0.02); input_zero_point: [] uniform(0, 127); \
         filter_scale: [] uniform(0.01, 0.02); filter_zero_point: [] uniform(0, 127); \
         out_scale: [] uniform(0.25, 0.5); out_zero_point: [] uniform(0, 127)",
        "channels; strides = [1, 1, 1, 1]; padding = 'EXPLICIT'; explicit_paddings = [0, 0, 1, 2, 0, 1, 0, 0]; \
         dilations in {[1, 1, 1, 1], [1, 2, 1, 1]}; requantize in {'FLOAT', 'FIXED_POINT'}; \
         activation in {'NONE', 'RELU'}; h in 3..9; w in 3..9; c in 1..20; m in 1..20; input: [n, h, w, c]; \
         filter: [2, 3, c, m]; input_scale: [] uniform(0.01, 0.02); input_zero_point: [] uniform(0, 127); \
         filter_scale: [m] uniform(0.01, 0.02); filter_zero_point: [m] uniform(0, 127); \
         out_scale: [] uniform(0.25, 0.5); out_zero_point: [] uniform(0, 127); bias: [m] uniform(-9999, 9999)",
        "pointwise; strides = [1, 1, 1, 1]; padding = 'VALID'; h in 1..9; w in 1..9; c in 1..70; m in 1..40; \
         input: [n, h, w, c]; filter: [1, 1, c, m]; input_scale: [] uniform(0.01, 0.02); \
         input_zero_point: [] uniform(0, 127); filter_scale: [m] uniform(0.01, 0.02); \
         filter_zero_point: [] uniform(0, 127); out_scale: [] uniform(0.25, 0.5); \
         out_zero_point: [] uniform(0, 127); bias: [m] uniform(-9999, 9999)",
    ],
);

register_op!(
    "_QuantizedFusedDepthwiseConv2dNative",
    inputs = INPUTS,
    outputs = &["output: Tout"],
    attrs = ATTRS,
    shape = quantized_depthwise,
    summary = "DepthwiseConv2dNative of input_scale * (input - input_zero_point) and filter_scale * (filter - \
               filter_zero_point) plus bias, quantised as output / out_scale + out_zero_point. All else is as in \
               _QuantizedFusedConv2D; the output has as many channels as the input times the filter's multiplier.",
    cases = &[
        "plain; num_bias = 0; strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; padding in {'SAME', 'VALID'}; \
         requantize in {'FLOAT', 'FIXED_POINT'}; h in 3..9; w in 3..9; c in 1..70; input: [n, h, w, c]; \
         filter: [3, 3, c, 1]; input_scale: [] uniform(0.01, 0.02); input_zero_point: [] uniform(0, 127); \
         filter_scale: [] uniform(0.01, 0.02); filter_zero_point: [] uniform(0, 127); \
         out_scale: [] uniform(0.25, 0.5); out_zero_point: [] uniform(0, 127)",
        "channels; strides = [1, 1, 1, 1]; padding = 'EXPLICIT'; explicit_paddings = [0, 0, 1, 2, 0, 1, 0, 0]; \
         dilations in {[1, 1, 1, 1], [1, 2, 1, 1]}; requantize in {'FLOAT', 'FIXED_POINT'}; \
         activation in {'NONE', 'RELU'}; h in 3..9; w in 3..9; c in 1..20; input: [n, h, w, c]; \
         filter: [2, 3, c, 2]; input_scale: [] uniform(0.01, 0.02); input_zero_point: [] uniform(0, 127); \
         filter_scale: [2*c] uniform(0.01, 0.02); filter_zero_point: [2*c] uniform(0, 127); \
         out_scale: [] uniform(0.25, 0.5); out_zero_point: [] uniform(0, 127); bias: [2*c] uniform(-9999, 9999)",
    ],
);

fn quantized_conv2d(c: &ShapeContext<'_>) -> ShapeResult {
    let (output, channel) = conv::convolution(c)?;
    c.set_output(0, with_parameters(c, output, channel, PARAMETERS)?)
}

fn quantized_depthwise(c: &ShapeContext<'_>) -> ShapeResult {
    let (output, channel) = conv::depthwise(c)?;
    c.set_output(0, with_parameters(c, output, channel, PARAMETERS)?)
}
