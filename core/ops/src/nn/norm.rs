//! Ops per channel: bias addition and normalisation.

use super::{FORMAT, format};
use crate::shape::{dims_of, input_of_rank, input_of_rank_at_least};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::Refusal};
use tenon_geometry::{ChannelSplit, DataFormat};

register_op!(
    "BiasAdd",
    inputs = &["value: T", "bias: T"],
    outputs = &["output: T"],
    attrs = &["T: numbertype", FORMAT],
    shape = bias_add,
    images = true,
    refuses = Refusal::Shapes,
    summary = "Adds a vector to the channels.",
    bench =
        &["rows; value: [128, 768]; bias: [768]", "images; value: [1, 56, 56, 256]; bias: [256]",],
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
    images = true,
    refuses = Refusal::Shapes,
    summary = "Normalises each channel by its mean and variance, then scales and shifts it.",
    // A scale that overflows with the deviation gives an infinity, or a finite number if the
    // factors are ordered differently.
    cases = &[
        "training; epsilon in {0.0001, 0.01}; x: [n, h, w, c]; scale: [c] uniform(-4, 4); offset: [c]; mean: [0]; \
         variance: [0]",
        "averaging; exponential_avg_factor = 0.5; x: [n, h, w, c]; scale: [c] uniform(-4, 4); offset: [c]; \
         mean: [c]; variance: [c] uniform(0.25, 4)",
        // A variance beyond the type times 0 is NaN, or 0 if it is computed in a wider type.
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
    bench = &[
        "inference; is_training = false; x: [1, 56, 56, 256]; scale: [256]; offset: [256]; mean: [256]; variance: [256] uniform(0.25, 4)",
    ],
);

register_op!(
    "BiasAddV1",
    inputs = &["value: T", "bias: T"],
    outputs = &["output: T"],
    attrs = &["T: numbertype"],
    shape = bias_add_v1,
    summary = "Adds a vector to the last dimension.",
    cases = &["rows; value: [n, c]; bias: [c]", "images; value: [n, h, w, c]; bias: [c]",],
);

register_op!(
    "FusedBatchNorm",
    inputs = &["x: T", "scale: T", "offset: T", "mean: T", "variance: T"],
    outputs =
        &["y: T", "batch_mean: T", "batch_variance: T", "reserve_space_1: T", "reserve_space_2: T"],
    attrs = &[
        "T: {float}",
        "epsilon: float = 9.999999747378752e-05",
        "exponential_avg_factor: float = 1.0",
        FORMAT,
        "is_training: bool = true",
    ],
    shape = batch_norm,
    summary = "`FusedBatchNormV3` without its last output.",
    cases = &[
        "training; x: [n, h, w, c]; scale: [c] uniform(-4, 4); offset: [c]; mean: [0]; variance: [0]",
        "averaging; exponential_avg_factor = 0.5; x: [n, h, w, c]; scale: [c] uniform(-4, 4); \
         offset: [c]; mean: [c]; variance: [c] uniform(0.25, 4)",
        "inference; is_training = false; data_format = 'NCHW'; x: [n, c, h, w]; \
         scale: [c] uniform(-4, 4); offset: [c]; mean: [c]; variance: [c] uniform(0.25, 4)",
    ],
);

register_op!(
    "FusedBatchNormV2",
    inputs = &["x: T", "scale: U", "offset: U", "mean: U", "variance: U"],
    outputs =
        &["y: T", "batch_mean: U", "batch_variance: U", "reserve_space_1: U", "reserve_space_2: U"],
    attrs = &[
        "T: {half, bfloat16, float}",
        "U: {float}",
        "epsilon: float = 9.999999747378752e-05",
        "exponential_avg_factor: float = 1.0",
        FORMAT,
        "is_training: bool = true",
    ],
    shape = batch_norm,
    summary = "`FusedBatchNormV3` without its last output.",
    cases = &[
        "training; x: [n, h, w, c]; scale: [c] uniform(-4, 4); offset: [c]; mean: [0]; variance: [0]",
        "averaging; exponential_avg_factor = 0.5; x: [n, h, w, c]; scale: [c] uniform(-4, 4); \
         offset: [c]; mean: [c]; variance: [c] uniform(0.25, 4)",
        "inference; is_training = false; data_format = 'NCHW'; x: [n, c, h, w]; \
         scale: [c] uniform(-4, 4); offset: [c]; mean: [c]; variance: [c] uniform(0.25, 4)",
    ],
);

register_op!(
    "LRN",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &[
        "depth_radius: int = 5",
        "bias: float = 1.0",
        "alpha: float = 1.0",
        "beta: float = 0.5",
        "T: {half, bfloat16, float} = DT_FLOAT",
    ],
    shape = lrn,
    summary = "Divides each element by a power of the sum of squares over neighbouring channels.",
    cases = &["plain; depth_radius in {0, 2}; bias in {1.0, 2.0}; input: [n, h, w, c]",],
);

fn bias_add(c: &ShapeContext<'_>) -> ShapeResult {
    biased(c, "value", format(c)?)
}

/// Checks a value of at least two dimensions, and a vector with one value per channel.
pub(crate) fn biased(c: &ShapeContext<'_>, what: &'static str, format: DataFormat) -> ShapeResult {
    let value = input_of_rank_at_least(c, 0, what, 2)?;
    let bias = input_of_rank(c, 1, "bias", 1)?;
    if c.rank(value).is_none() {
        return c.set_output(0, c.unknown());
    }
    c.set_output(0, with_channels(c, value, format, &[(bias, "bias")])?)
}

/// The shape, refined by the lengths of vectors with one value per channel.
pub(crate) fn with_channels(
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
            // The other sizes do not matter here and may be unknown.
            let mut sizes = vec![1; dims.len()];
            sizes[channel] = expected;
            ChannelSplit::with_vector(&sizes, format, what, &[found])?;
        }
        dims[channel] = c.merge_dim(dims[channel], length)?;
    }
    Ok(c.make_shape(&dims))
}

fn batch_norm(c: &ShapeContext<'_>) -> ShapeResult {
    let name: &str = c.attr("data_format")?;
    let x = input_of_rank(c, 0, "x", if name.contains('D') { 5 } else { 4 })?;
    let format = DataFormat::parse(name)?;
    let training: bool = c.attr("is_training")?;
    let factor: f32 = c.attr("exponential_avg_factor")?;
    // In training without a moving average, mean and variance are empty.
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
    match c.output_count() {
        6 => c.set_output(5, c.unknown()),
        _ => Ok(()),
    }
}

fn bias_add_v1(c: &ShapeContext<'_>) -> ShapeResult {
    biased(c, "value", DataFormat::Nhwc)
}

fn lrn(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, input_of_rank(c, 0, "input", 4)?)
}
