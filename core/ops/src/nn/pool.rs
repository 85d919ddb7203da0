//! Pooling.

use super::{
    COMPUTED_PADDING, EXPLICIT, FORMAT, FORMAT_3D, PADDING, format, image, padding, sizes,
};
use crate::shape::input_of_rank;
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::Refusal};
use tenon_geometry::{
    DataFormat, GeometryError, Pool2dGeometry, Pool2dParams, Pool3dGeometry, check_windows,
};

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
    images = true,
    refuses = Refusal::Shapes,
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
    bench = &[
        "halves; ksize = [1, 2, 2, 1]; strides = [1, 2, 2, 1]; padding = 'VALID'; input: [1, 112, 112, 64]",
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
    images = true,
    refuses = Refusal::Shapes,
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
    bench = &[
        "halves; ksize = [1, 2, 2, 1]; strides = [1, 2, 2, 1]; padding = 'VALID'; value: [1, 112, 112, 64]",
    ],
);

register_op!(
    "MaxPoolV2",
    inputs = &["input: T", "ksize: int32", "strides: int32"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
        COMPUTED_PADDING,
        "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    ],
    shape = max_pool_v2,
    summary = "`MaxPool` with windows and strides as inputs.",
    cases = &[
        "plain; padding in {'SAME', 'VALID'}; input: [n, h, w, c]; ksize: [4] values(1, 2, 3, 1); \
         strides: [4] values(1, 2, 1, 1)",
        "channels_first; padding in {'SAME', 'VALID'}; data_format = 'NCHW'; input: [n, c, h, w]; \
         ksize: [4] values(1, 1, 2, 2); strides: [4] values(1, 1, 1, 2)",
    ],
);

const WINDOWS_3D: &[&str] = &[
    "plain; ksize = [1, 2, 3, 2, 1]; strides in {[1, 1, 1, 1, 1], [1, 2, 1, 2, 1]}; \
     padding in {'SAME', 'VALID'}; input: [n, d, h, w, c]",
    "channels_first; data_format = 'NCDHW'; ksize = [1, 1, 2, 2, 2]; strides = [1, 1, 1, 2, 1]; \
     padding = 'SAME'; input: [n, c, d, h, w]",
];

register_op!(
    "MaxPool3D",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &[
        "ksize: list(int) >= 5",
        "strides: list(int) >= 5",
        COMPUTED_PADDING,
        FORMAT_3D,
        "T: {half, bfloat16, float}",
    ],
    shape = pool3d,
    summary = "The greatest element of each three-dimensional window.",
    cases = WINDOWS_3D,
);

register_op!(
    "AvgPool3D",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &[
        "ksize: list(int) >= 5",
        "strides: list(int) >= 5",
        COMPUTED_PADDING,
        FORMAT_3D,
        "T: {half, bfloat16, float, double}",
    ],
    shape = pool3d,
    summary = "The arithmetic mean of each three-dimensional window.",
    cases = WINDOWS_3D,
);

register_op!(
    "MaxPoolWithArgmax",
    inputs = &["input: T"],
    outputs = &["output: T", "argmax: Targmax"],
    attrs = &[
        "ksize: list(int) >= 4",
        "strides: list(int) >= 4",
        "Targmax: {int32, int64} = DT_INT64",
        COMPUTED_PADDING,
        "include_batch_in_index: bool = false",
        "T: realnumbertype",
    ],
    shape = max_pool_with_argmax,
    summary = "The greatest element of each window and its position in the image, or in the input with `include_batch_in_index`; the first of equal ones.",
    cases = &[
        "plain; n in 1..5; c in 1..9; h in 2..40; w in 3..40; ksize in {[1, 2, 3, 1], [1, 1, 1, 1]}; \
         strides in {[1, 2, 2, 1], [1, 1, 1, 1]}; padding in {'SAME', 'VALID'}; \
         include_batch_in_index in {false, true}; input: [n, h, w, c]",
    ],
);

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
    geometry: Pooling,
) -> ShapeResult {
    let input = input_of_rank(c, 0, what, 4)?;
    let (ksize, strides): (Vec<i64>, Vec<i64>) = (c.attr("ksize")?, c.attr("strides")?);
    let geometry = pool2d(c, input, [&ksize, &strides], &explicit_paddings, geometry)?;
    check_windows(&[geometry.height, geometry.width], padding(c)?)?;
    set_pooled(c, input, &geometry)
}

/// Computes the sizes of a pooling from its parameters.
pub(crate) type Pooling = fn(&Pool2dParams<'_>) -> Result<Pool2dGeometry, GeometryError>;

fn pool2d(
    c: &ShapeContext<'_>,
    input: ShapeHandle,
    [ksize, strides]: [&[i64]; 2],
    explicit_paddings: &[i64],
    geometry: Pooling,
) -> Result<Pool2dGeometry, KernelError> {
    Ok(geometry(&Pool2dParams {
        input: &sizes(c, input),
        ksize,
        strides,
        padding: padding(c)?,
        explicit_paddings,
        format: format(c)?,
    })?)
}

fn set_pooled(c: &ShapeContext<'_>, input: ShapeHandle, g: &Pool2dGeometry) -> ShapeResult {
    let channels = (g.depth_window == 1).then(|| c.dim(input, g.format.channel_dim(4)));
    c.set_output(0, image(c, &g.output_dims(), input, g.format, channels))
}

fn max_pool_v2(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "input", 4)?;
    let (ksize, strides) = (c.constant_integers(1), c.constant_integers(2));
    let (Some(ksize), Some(strides)) = (ksize, strides) else {
        return c.set_output(0, c.unknown_of_rank(4));
    };
    // The kernel checks for windows larger than the input, as in TensorFlow for this op.
    set_pooled(c, input, &pool2d(c, input, [&ksize, &strides], &[], Pool2dGeometry::max)?)
}

fn max_pool_with_argmax(c: &ShapeContext<'_>) -> ShapeResult {
    let output = pool_nhwc(c, Pool2dGeometry::average)?;
    c.set_output(0, output)?;
    c.set_output(1, output)
}

/// The output of a pooling with channels last and without explicit paddings.
pub(crate) fn pool_nhwc(
    c: &ShapeContext<'_>,
    geometry: Pooling,
) -> Result<ShapeHandle, KernelError> {
    let input = input_of_rank(c, 0, "input", 4)?;
    let (ksize, strides): (Vec<i64>, Vec<i64>) = (c.attr("ksize")?, c.attr("strides")?);
    let padding = padding(c)?;
    let geometry = geometry(&Pool2dParams {
        input: &sizes(c, input),
        ksize: &ksize,
        strides: &strides,
        padding,
        explicit_paddings: &[],
        format: DataFormat::Nhwc,
    })?;
    check_windows(&[geometry.height, geometry.width], padding)?;
    let channels = (geometry.depth_window == 1).then(|| c.dim(input, 3));
    Ok(image(c, &geometry.output_dims(), input, DataFormat::Nhwc, channels))
}

fn pool3d(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "input", 5)?;
    let (ksize, strides): (Vec<i64>, Vec<i64>) = (c.attr("ksize")?, c.attr("strides")?);
    let (format, padding) = (format(c)?, padding(c)?);
    let geometry = Pool3dGeometry::new(&Pool2dParams {
        input: &sizes(c, input),
        ksize: &ksize,
        strides: &strides,
        padding,
        explicit_paddings: &[],
        format,
    })?;
    check_windows(&geometry.windows, padding)?;
    let channels = Some(c.dim(input, format.channel_dim(5)));
    c.set_output(0, image(c, &geometry.output_dims(), input, format, channels))
}
