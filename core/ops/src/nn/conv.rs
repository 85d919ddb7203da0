//! Convolutions, and other ops that slide over an image.

use super::{
    COMPUTED_PADDING, DILATIONS, DILATIONS_3D, EXPLICIT, FORMAT, FORMAT_3D, PADDING, format, image,
    padding, sizes,
};
use crate::shape::input_of_rank;
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::Refusal};
use tenon_geometry::{
    Conv2dGeometry, Conv2dParams, Conv3dGeometry, DataFormat, Dilation2dGeometry, Dilation2dParams,
    GeometryError, check_windows,
};

/// Test cases of convolutions, whose signatures state only the number of dimensions.
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
    images = true,
    refuses = Refusal::Shapes,
    summary = "A two-dimensional convolution.",
    cases = CONVOLUTIONS,
    bench = &[
        "early; strides = [1, 1, 1, 1]; padding = 'SAME'; input: [1, 56, 56, 64]; filter: [3, 3, 64, 64]",
        "late; strides = [1, 1, 1, 1]; padding = 'SAME'; input: [1, 14, 14, 256]; filter: [3, 3, 256, 256]",
        "pointwise; strides = [1, 1, 1, 1]; padding = 'SAME'; input: [1, 28, 28, 256]; filter: [1, 1, 256, 512]",
    ],
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
    images = true,
    refuses = Refusal::Shapes,
    summary = "A two-dimensional convolution of each channel by itself.",
    cases = DEPTHWISE,
    bench = &[
        "early; strides = [1, 1, 1, 1]; padding = 'SAME'; input: [1, 56, 56, 128]; filter: [3, 3, 128, 1]",
    ],
);

register_op!(
    "Conv3D",
    inputs = &["input: T", "filter: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double}",
        "strides: list(int) >= 5",
        COMPUTED_PADDING,
        FORMAT_3D,
        DILATIONS_3D,
    ],
    shape = conv3d,
    summary = "A three-dimensional convolution.",
    cases = &[
        "same; strides = [1, 1, 1, 1, 1]; padding = 'SAME'; \
         dilations in {[1, 1, 1, 1, 1], [1, 2, 1, 2, 1]}; c in 1..9; input: [n, d, h, w, c]; \
         filter: [2, 3, 2, c, m]",
        "strided; strides = [1, 2, 1, 2, 1]; padding = 'SAME'; c in 1..9; input: [n, 2*d, h, 2*w, c]; \
         filter: [2, 3, 2, c, m]",
        "valid; strides = [1, 1, 1, 1, 1]; padding = 'VALID'; c in 1..9; input: [n, d+1, h+2, w+1, c]; \
         filter: [2, 3, 2, c, m]",
        "channels_first; data_format = 'NCDHW'; strides = [1, 1, 1, 1, 1]; padding = 'SAME'; \
         c in 1..9; input: [n, c, d, h, w]; filter: [2, 3, 2, c, m]",
    ],
);

register_op!(
    "Dilation2D",
    inputs = &["input: T", "filter: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: realnumbertype",
        "strides: list(int) >= 4",
        "rates: list(int) >= 4",
        COMPUTED_PADDING,
    ],
    shape = dilation2d,
    summary = "The greatest sum of pixel and filter element over each window.",
    cases = &[
        "same; strides in {[1, 1, 1, 1], [1, 2, 1, 1]}; rates in {[1, 1, 1, 1], [1, 2, 3, 1]}; \
         padding = 'SAME'; input: [n, h, w, c]; filter: [2, 3, c]",
        "valid; strides = [1, 1, 2, 1]; rates = [1, 1, 1, 1]; padding = 'VALID'; \
         input: [n, h+1, w+1, c]; filter: [2, 2, c]",
    ],
);

fn conv2d(c: &ShapeContext<'_>) -> ShapeResult {
    convolution(c, &Layout::of(c)?)
}

fn depthwise(c: &ShapeContext<'_>) -> ShapeResult {
    channel_by_channel(c, &Layout::of(c)?)
}

/// The shape function of `Conv2D` for an op without attributes for format and explicit paddings.
pub(crate) fn conv_nhwc(c: &ShapeContext<'_>) -> ShapeResult {
    convolution(c, &Layout::NHWC)
}

/// The shape function of `DepthwiseConv2dNative` for an op without attributes for format and
/// explicit paddings.
pub(crate) fn depthwise_nhwc(c: &ShapeContext<'_>) -> ShapeResult {
    channel_by_channel(c, &Layout::NHWC)
}

/// The attributes that some convolutions do not have.
struct Layout {
    format: DataFormat,
    explicit_paddings: Vec<i64>,
}

impl Layout {
    const NHWC: Layout = Layout { format: DataFormat::Nhwc, explicit_paddings: Vec::new() };

    fn of(c: &ShapeContext<'_>) -> Result<Layout, KernelError> {
        Ok(Layout { format: format(c)?, explicit_paddings: c.attr("explicit_paddings")? })
    }
}

fn convolution(c: &ShapeContext<'_>, layout: &Layout) -> ShapeResult {
    let (input, filter) = (input_of_rank(c, 0, "input", 4)?, input_of_rank(c, 1, "filter", 4)?);
    let channels = c.dim(filter, 3);
    convolved(c, [input, filter], layout, Conv2dGeometry::new, Some(channels))
}

fn channel_by_channel(c: &ShapeContext<'_>, layout: &Layout) -> ShapeResult {
    let (input, filter) = (input_of_rank(c, 0, "input", 4)?, input_of_rank(c, 1, "filter", 4)?);
    let same = c.value(c.dim(filter, 3)) == Some(1);
    let channels = same.then_some(c.dim(input, layout.format.channel_dim(4)));
    convolved(c, [input, filter], layout, Conv2dGeometry::depthwise, channels)
}

fn convolved(
    c: &ShapeContext<'_>,
    [input, filter]: [ShapeHandle; 2],
    Layout { format, explicit_paddings }: &Layout,
    geometry: fn(&Conv2dParams<'_>) -> Result<Conv2dGeometry, GeometryError>,
    channels: Option<Dim>,
) -> ShapeResult {
    let (strides, dilations): (Vec<i64>, Vec<i64>) = (c.attr("strides")?, c.attr("dilations")?);
    let padding = padding(c)?;
    let geometry = geometry(&Conv2dParams {
        input: &sizes(c, input),
        filter: &sizes(c, filter),
        strides: &strides,
        dilations: &dilations,
        padding,
        explicit_paddings,
        format: *format,
    })?;
    check_windows(&[geometry.height, geometry.width], padding)?;
    c.set_output(0, image(c, &geometry.output_dims(), input, *format, channels))
}

fn conv3d(c: &ShapeContext<'_>) -> ShapeResult {
    let (input, filter) = (input_of_rank(c, 0, "input", 5)?, input_of_rank(c, 1, "filter", 5)?);
    let (strides, dilations): (Vec<i64>, Vec<i64>) = (c.attr("strides")?, c.attr("dilations")?);
    let (format, padding) = (format(c)?, padding(c)?);
    let geometry = Conv3dGeometry::forward(&Conv2dParams {
        input: &sizes(c, input),
        filter: &sizes(c, filter),
        strides: &strides,
        dilations: &dilations,
        padding,
        explicit_paddings: &[],
        format,
    })?;
    check_windows(&geometry.windows, padding)?;
    let channels = Some(c.dim(filter, 4));
    c.set_output(0, image(c, &geometry.output_dims(), input, format, channels))
}

fn dilation2d(c: &ShapeContext<'_>) -> ShapeResult {
    let (input, filter) = (input_of_rank(c, 0, "input", 4)?, input_of_rank(c, 1, "filter", 3)?);
    let (strides, rates): (Vec<i64>, Vec<i64>) = (c.attr("strides")?, c.attr("rates")?);
    let geometry = Dilation2dGeometry::new(&Dilation2dParams {
        input: &sizes(c, input),
        filter: &sizes(c, filter),
        strides: &strides,
        rates: &rates,
        padding: padding(c)?,
    })?;
    let channels = c.merge_dim(c.dim(input, 3), c.dim(filter, 2))?;
    c.set_output(0, image(c, &geometry.output_dims(), input, DataFormat::Nhwc, Some(channels)))
}
