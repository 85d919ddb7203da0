//! Neural networks: activations, convolutions, pooling, normalisation.

use crate::shape::{dims_of, input_of_rank, input_of_rank_at_least, unchanged, with_identity};
use tenon_framework::{
    KernelError,
    author::{Dim, ShapeContext, ShapeHandle, ShapeResult},
    geometry::{
        ChannelSplit, Conv2dGeometry, Conv2dParams, DataFormat, GeometryError, Padding,
        Pool2dGeometry, Pool2dParams,
    },
    register_op,
};

const FORMAT: &str = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
const PADDING: &str = "padding: {'SAME', 'VALID', 'EXPLICIT'}";
const EXPLICIT: &str = "explicit_paddings: list(int) = []";
const DILATIONS: &str = "dilations: list(int) = [1, 1, 1, 1]";

/// Convolutions, which signatures say nothing of but four dimensions.
const CONVOLUTIONS: &[&str] = &[
    "plain; strides in {[1, 1, 1, 1], [1, 2, 2, 1], [1, 3, 2, 1]}; padding in {'SAME', 'VALID'}; \
     use_cudnn_on_gpu in {true, false}; input: [n, h, w, c]; filter: [3, 2, c, m]",
    "pointwise; strides = [1, 1, 1, 1]; padding = 'VALID'; input: [n, h, w, c]; filter: [1, 1, c, m]",
    "wide; strides = [1, 1, 2, 1]; padding = 'SAME'; input: [2, h, w, 3]; filter: [k, 5, 3, 4]",
    "dilated; strides = [1, 1, 1, 1]; padding in {'SAME', 'VALID'}; \
     dilations in {[1, 2, 2, 1], [1, 1, 3, 1]}; input: [n, h, w, c]; filter: [2, 3, c, m]",
    "channels_first; data_format = 'NCHW'; strides in {[1, 1, 1, 1], [1, 1, 2, 3]}; \
     padding in {'SAME', 'VALID'}; dilations in {[1, 1, 1, 1], [1, 1, 2, 1]}; \
     input: [n, c, h, w]; filter: [3, 2, c, m]",
    "explicit; padding = 'EXPLICIT'; \
     explicit_paddings in {[0, 0, 1, 2, 0, 3, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0]}; \
     strides in {[1, 1, 1, 1], [1, 2, 1, 1]}; input: [n, h, w, c]; filter: [2, 3, c, m]",
    "explicit_channels_first; padding = 'EXPLICIT'; data_format = 'NCHW'; \
     explicit_paddings = [0, 0, 0, 0, 1, 2, 0, 3]; strides = [1, 1, 1, 2]; \
     input: [n, c, h, w]; filter: [2, 3, c, m]",
];

const DEPTHWISE: &[&str] = &[
    "plain; strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; padding in {'SAME', 'VALID'}; \
     input: [n, h, w, c]; filter: [3, 2, c, m]",
    "single; strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; padding in {'SAME', 'VALID'}; \
     input: [n, h, w, c]; filter: [3, 3, c, 1]",
    "dilated; strides = [1, 1, 1, 1]; padding in {'SAME', 'VALID'}; dilations = [1, 2, 2, 1]; \
     input: [n, h, w, c]; filter: [2, 3, c, m]",
    "channels_first; data_format = 'NCHW'; strides in {[1, 1, 1, 1], [1, 1, 2, 2]}; \
     padding in {'SAME', 'VALID'}; input: [n, c, h, w]; filter: [3, 2, c, m]",
    "explicit; padding = 'EXPLICIT'; explicit_paddings = [0, 0, 1, 2, 0, 3, 0, 0]; \
     strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; input: [n, h, w, c]; filter: [2, 3, c, m]",
];

register_op!(
    "Relu",
    inputs = &["features: T"],
    outputs = &["activations: T"],
    attrs = &["T: {realnumbertype, qint8}"],
    shape = unchanged,
    summary = "The greater of 0 and each element.",
);

register_op!(
    "Relu6",
    inputs = &["features: T"],
    outputs = &["activations: T"],
    attrs = &["T: realnumbertype"],
    shape = unchanged,
    summary = "Each element clamped to 0 and 6.",
);

register_op!(
    "BiasAdd",
    inputs = &["value: T", "bias: T"],
    outputs = &["output: T"],
    attrs = &["T: numbertype", FORMAT],
    shape = bias_add,
    summary = "Adds a vector to the channels.",
);

register_op!(
    "Conv2D",
    inputs = &["input: T", "filter: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double, int32}",
        "strides: list(int)",
        "use_cudnn_on_gpu: bool = true",
        PADDING,
        EXPLICIT,
        FORMAT,
        DILATIONS,
    ],
    shape = conv2d,
    summary = "A two-dimensional convolution.",
    cases = CONVOLUTIONS,
);

register_op!(
    "DepthwiseConv2dNative",
    inputs = &["input: T", "filter: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double}",
        "strides: list(int)",
        PADDING,
        EXPLICIT,
        FORMAT,
        DILATIONS,
    ],
    shape = depthwise,
    summary = "A two-dimensional convolution of each channel by itself.",
    cases = DEPTHWISE,
);

register_op!(
    "MaxPool",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
        "ksize: list(int) >= 4",
        "strides: list(int) >= 4",
        PADDING,
        EXPLICIT,
        "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    ],
    shape = max_pool,
    summary = "The greatest element of each window.",
    cases = &[
        "plain; ksize in {[1, 2, 2, 1], [1, 3, 2, 1], [1, 1, 1, 1]}; \
         strides in {[1, 1, 1, 1], [1, 2, 2, 1], [1, 2, 3, 1]}; padding in {'SAME', 'VALID'}; \
         input: [n, h, w, c]",
        "channels_first; data_format = 'NCHW'; ksize in {[1, 1, 2, 2], [1, 1, 3, 2]}; \
         strides in {[1, 1, 1, 1], [1, 1, 2, 3]}; padding in {'SAME', 'VALID'}; \
         input: [n, c, h, w]",
        "explicit; padding = 'EXPLICIT'; explicit_paddings = [0, 0, 1, 0, 0, 1, 0, 0]; \
         ksize = [1, 3, 2, 1]; strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; input: [n, h, w, c]",
        "depth; ksize = [1, 1, 1, 2]; strides = [1, 1, 1, 2]; padding = 'VALID'; \
         input: [n, h, w, 6]",
    ],
);

register_op!(
    "AvgPool",
    inputs = &["value: T"],
    outputs = &["output: T"],
    attrs = &[
        "ksize: list(int) >= 4",
        "strides: list(int) >= 4",
        "padding: {'SAME', 'VALID'}",
        FORMAT,
        "T: {half, bfloat16, float, double}",
    ],
    shape = avg_pool,
    summary = "The arithmetic mean of each window.",
    cases = &[
        "plain; ksize in {[1, 2, 2, 1], [1, 3, 2, 1], [1, 1, 1, 1]}; \
         strides in {[1, 1, 1, 1], [1, 2, 2, 1], [1, 2, 3, 1]}; padding in {'SAME', 'VALID'}; \
         value: [n, h, w, c]",
        "channels_first; data_format = 'NCHW'; ksize in {[1, 1, 2, 2], [1, 1, 3, 2]}; \
         strides in {[1, 1, 1, 1], [1, 1, 2, 3]}; padding in {'SAME', 'VALID'}; \
         value: [n, c, h, w]",
        "deep; k in {31, 67}; ksize = [1, 31, 31, 1]; strides = [1, 31, 31, 1]; padding = 'VALID'; \
         value: [1, k, k, c]",
    ],
);

register_op!(
    "Softmax",
    inputs = &["logits: T"],
    outputs = &["softmax: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = softmax,
    summary = "The exponentials along the last dimension, divided by their sum.",
);

register_op!(
    "FusedBatchNormV3",
    inputs = &["x: T", "scale: U", "offset: U", "mean: U", "variance: U"],
    outputs = &[
        "y: T",
        "batch_mean: U",
        "batch_variance: U",
        "reserve_space_1: U",
        "reserve_space_2: U",
        "reserve_space_3: U",
    ],
    attrs = &[
        "T: {half, bfloat16, float}",
        "U: {bfloat16, float}",
        "epsilon: float = 0.0001",
        "exponential_avg_factor: float = 1.0",
        "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'",
        "is_training: bool = true",
    ],
    shape = batch_norm,
    summary = "Normalises each channel by its mean and variance, then scales and shifts it.",
    // A scale that overflows with the deviation is an infinity, or none where another order of factors is taken.
    cases = &[
        "training; epsilon in {0.0001, 0.01}; x: [n, h, w, c]; scale: [c] uniform(-4, 4); offset: [c]; mean: [0]; \
         variance: [0]",
        "averaging; exponential_avg_factor = 0.5; x: [n, h, w, c]; scale: [c] uniform(-4, 4); offset: [c]; \
         mean: [c]; variance: [c] uniform(0.25, 4)",
        // Of a variance beyond the type, 0 times it is NaN, or 0 where it is computed in a wider one.
        "kept; exponential_avg_factor = 0.0; x: [n, h, w, c] uniform(-2, 2); scale: [c] uniform(-4, 4); offset: [c]; \
         mean: [c]; variance: [c] uniform(0.25, 4)",
        "channels_first; data_format = 'NCHW'; x: [n, c, h, w]; scale: [c] uniform(-4, 4); offset: [c]; mean: [0]; \
         variance: [0]",
        "inference; is_training = false; epsilon in {0.0001, 0.01}; x: [n, h, w, c]; scale: [c] uniform(-4, 4); \
         offset: [c]; mean: [c]; variance: [c] uniform(0.25, 4)",
        "inference_channels_first; is_training = false; data_format = 'NCHW'; x: [n, c, h, w]; \
         scale: [c] uniform(-4, 4); offset: [c]; mean: [c]; variance: [c] uniform(0.25, 4)",
        "volumes; is_training in {true, false}; exponential_avg_factor = 0.5; data_format = 'NDHWC'; \
         x: [n, 2, h, w, c]; scale: [c] uniform(-4, 4); offset: [c]; mean: [c]; variance: [c] uniform(0.25, 4)",
        "volumes_channels_first; is_training in {true, false}; exponential_avg_factor = 0.5; \
         data_format = 'NCDHW'; x: [n, c, 3, h, w]; scale: [c] uniform(-4, 4); offset: [c]; mean: [c]; \
         variance: [c] uniform(0.25, 4)",
    ],
);

fn format(c: &ShapeContext<'_>) -> Result<DataFormat, KernelError> {
    Ok(DataFormat::parse(c.attr("data_format")?)?)
}

fn padding(c: &ShapeContext<'_>) -> Result<Padding, KernelError> {
    Ok(Padding::parse(c.attr("padding")?)?)
}

fn sizes(c: &ShapeContext<'_>, shape: ShapeHandle) -> Vec<i64> {
    c.dims(shape).unwrap_or_default()
}

fn bias_add(c: &ShapeContext<'_>) -> ShapeResult {
    let format = format(c)?;
    let least = if format == DataFormat::Nchw { 3 } else { 2 };
    let value = input_of_rank_at_least(c, 0, "value", least)?;
    let bias = input_of_rank(c, 1, "bias", 1)?;
    if c.rank(value).is_none() {
        return c.set_output(0, c.unknown());
    }
    c.set_output(0, with_channels(c, value, format, &[(bias, "bias")])?)
}

/// The shape with what is known of its channels from vectors of one value per channel.
fn with_channels(
    c: &ShapeContext<'_>,
    shape: ShapeHandle,
    format: DataFormat,
    vectors: &[(ShapeHandle, &'static str)],
) -> Result<ShapeHandle, KernelError> {
    let mut dims = dims_of(c, shape);
    let channel = format.channel_dim(dims.len());
    for &(vector, what) in vectors {
        let length = c.dim(vector, 0);
        if let (Some(expected), Some(found)) = (c.value(dims[channel]), c.value(length)) {
            // The other sizes do not matter here, and may be unknown.
            let mut sizes = vec![1; dims.len()];
            sizes[channel] = expected;
            ChannelSplit::with_vector(&sizes, format, what, &[found])?;
        }
        dims[channel] = c.merge_dim(dims[channel], length)?;
    }
    Ok(c.make_shape(&dims))
}

fn conv2d(c: &ShapeContext<'_>) -> ShapeResult {
    let (input, filter) = (input_of_rank(c, 0, "input", 4)?, input_of_rank(c, 1, "filter", 4)?);
    let channels = c.dim(filter, 3);
    convolution(c, [input, filter], Conv2dGeometry::new, Some(channels))
}

fn depthwise(c: &ShapeContext<'_>) -> ShapeResult {
    let (input, filter) = (input_of_rank(c, 0, "input", 4)?, input_of_rank(c, 1, "filter", 4)?);
    let same = c.value(c.dim(filter, 3)) == Some(1);
    let channels = same.then_some(c.dim(input, format(c)?.channel_dim(4)));
    convolution(c, [input, filter], Conv2dGeometry::depthwise, channels)
}

fn convolution(
    c: &ShapeContext<'_>,
    [input, filter]: [ShapeHandle; 2],
    geometry: fn(&Conv2dParams<'_>) -> Result<Conv2dGeometry, GeometryError>,
    channels: Option<Dim>,
) -> ShapeResult {
    let (strides, dilations): (Vec<i64>, Vec<i64>) = (c.attr("strides")?, c.attr("dilations")?);
    let explicit_paddings: Vec<i64> = c.attr("explicit_paddings")?;
    let format = format(c)?;
    let geometry = geometry(&Conv2dParams {
        input: &sizes(c, input),
        filter: &sizes(c, filter),
        strides: &strides,
        dilations: &dilations,
        padding: padding(c)?,
        explicit_paddings: &explicit_paddings,
        format,
    })?;
    c.set_output(0, image(c, &geometry.output_dims(), input, format, channels))
}

/// A shape of these sizes whose batch is the input's.
fn image(
    c: &ShapeContext<'_>,
    sizes: &[i64],
    input: ShapeHandle,
    format: DataFormat,
    channels: Option<Dim>,
) -> ShapeHandle {
    let channel = format.channel_dim(4);
    with_identity(c, sizes, |at| match at {
        0 => Some(c.dim(input, 0)),
        at if at == channel => channels,
        _ => None,
    })
}

fn max_pool(c: &ShapeContext<'_>) -> ShapeResult {
    pool(c, "input", c.attr("explicit_paddings")?, Pool2dGeometry::max)
}

fn avg_pool(c: &ShapeContext<'_>) -> ShapeResult {
    pool(c, "value", Vec::new(), Pool2dGeometry::average)
}

fn pool(
    c: &ShapeContext<'_>,
    what: &'static str,
    explicit_paddings: Vec<i64>,
    geometry: fn(&Pool2dParams<'_>) -> Result<Pool2dGeometry, GeometryError>,
) -> ShapeResult {
    let input = input_of_rank(c, 0, what, 4)?;
    let (ksize, strides): (Vec<i64>, Vec<i64>) = (c.attr("ksize")?, c.attr("strides")?);
    let format = format(c)?;
    let geometry = geometry(&Pool2dParams {
        input: &sizes(c, input),
        ksize: &ksize,
        strides: &strides,
        padding: padding(c)?,
        explicit_paddings: &explicit_paddings,
        format,
    })?;
    let channels = (geometry.depth_window == 1).then(|| c.dim(input, format.channel_dim(4)));
    c.set_output(0, image(c, &geometry.output_dims(), input, format, channels))
}

fn softmax(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, input_of_rank_at_least(c, 0, "logits", 1)?)
}

fn batch_norm(c: &ShapeContext<'_>) -> ShapeResult {
    let name: &str = c.attr("data_format")?;
    let x = input_of_rank(c, 0, "x", if name.contains('D') { 5 } else { 4 })?;
    let format = DataFormat::parse(name)?;
    let training: bool = c.attr("is_training")?;
    let factor: f32 = c.attr("exponential_avg_factor")?;
    // In training without a moving average, mean and variance come empty.
    let used = if training && factor == 1.0 { 3 } else { 5 };
    let mut vectors = Vec::new();
    for (at, what) in [(1, "scale"), (2, "offset"), (3, "mean"), (4, "variance")] {
        let vector = input_of_rank(c, at, what, 1)?;
        if at < used {
            vectors.push((vector, what));
        }
    }
    let y = with_channels(c, x, format, &vectors)?;
    let rank = c.rank(y).unwrap_or(0);
    let channels = c.make_shape(&[c.dim(y, format.channel_dim(rank))]);
    c.set_output(0, y)?;
    (1..5).try_for_each(|output| c.set_output(output, channels))?;
    c.set_output(5, c.unknown())
}

#[cfg(test)]
#[path = "nn_tests.rs"]
mod tests;
