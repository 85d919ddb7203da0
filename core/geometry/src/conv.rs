//! Convolutions: `Conv2D` and `DepthwiseConv2dNative` here, `Conv3D` in [`crate::Conv3dGeometry`].
//!
//! `Conv2D`'s filter is (rows, columns, channels per group, outputs); the input's channels are a multiple of
//! the filter's, and their quotient is the number of groups. Output `f` belongs to group
//! `f / (outputs / groups)` and reads that group's input channels.
//!
//! A depthwise filter is (rows, columns, channels, multiplier). Its memory is that of a filter (rows, columns,
//! 1, channels * multiplier) with as many groups as channels, which is how the geometry describes it.

use crate::error::{GeometryError, Result};
use crate::format::{DataFormat, Padding};
use crate::size::validate_partial_dims;
use crate::window::{
    WindowDim, check_explicit_paddings, check_len, check_one, dim_padding, windows,
};

/// Shapes and attributes of a convolution over two or three dimensions.
#[derive(Debug, Clone, Copy)]
pub struct Conv2dParams<'a> {
    /// Dimensions of the input, in the order of the format; -1 is unknown.
    pub input: &'a [i64],
    /// Dimensions of the filter; -1 is unknown.
    pub filter: &'a [i64],
    /// Attribute `strides`, in the order of the format.
    pub strides: &'a [i64],
    /// Attribute `dilations`, in the order of the format.
    pub dilations: &'a [i64],
    /// Attribute `padding`.
    pub padding: Padding,
    /// Attribute `explicit_paddings`: pairs in the order of the format; empty unless explicit.
    pub explicit_paddings: &'a [i64],
    /// Attribute `data_format`.
    pub format: DataFormat,
}

/// Sizes of a convolution; -1 is unknown, which [`Conv2dGeometry::is_known`] excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv2dGeometry {
    /// Order of the dimensions of input and output.
    pub format: DataFormat,
    /// Images.
    pub batch: i64,
    /// Channels of the input.
    pub in_channels: i64,
    /// Channels of the output.
    pub out_channels: i64,
    /// Groups that `in_channels` and `out_channels` split into; the channels of a depthwise convolution.
    pub groups: i64,
    /// Input channels per group; 1 for a depthwise convolution.
    pub filter_channels: i64,
    /// Rows.
    pub height: WindowDim,
    /// Columns.
    pub width: WindowDim,
}

/// A pixel of the output of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputPixel {
    /// The image.
    pub image: usize,
    /// The row.
    pub y: usize,
    /// The column.
    pub x: usize,
}

impl Conv2dGeometry {
    /// The output pixel with this number, counted row by row over all images.
    #[inline(always)]
    pub fn output_pixel(&self, number: usize) -> OutputPixel {
        let (rows, columns) = (self.height.output as usize, self.width.output as usize);
        let (row, x) = (number / columns, number % columns);
        OutputPixel { image: row / rows, y: row % rows, x }
    }

    /// The output pixel of the next number.
    #[inline(always)]
    pub fn pixel_after(&self, OutputPixel { image, y, x }: OutputPixel) -> OutputPixel {
        if x + 1 < self.width.output as usize {
            OutputPixel { image, y, x: x + 1 }
        } else if y + 1 < self.height.output as usize {
            OutputPixel { image, y: y + 1, x: 0 }
        } else {
            OutputPixel { image: image + 1, y: 0, x: 0 }
        }
    }

    /// Geometry of `Conv2D`.
    ///
    /// Fails in the same cases as TensorFlow: ranks other than 4, strides or dilations over batch
    /// or depth, paddings that do not fit the attribute, channels that do not divide, or a window
    /// that does not fit.
    pub fn new(params: &Conv2dParams<'_>) -> Result<Conv2dGeometry> {
        let sizes = Sizes::new(params)?;
        let (filter_channels, out_channels) = (params.filter[2], params.filter[3]);
        let groups = groups(sizes.channels, filter_channels, out_channels)?;
        sizes.geometry(params.format, out_channels, groups, filter_channels)
    }

    /// Geometry of `DepthwiseConv2dNative`. It fails like [`Conv2dGeometry::new`], and if the
    /// filter's channels differ from the input's. The number of channels and the multiplier may be
    /// 0.
    pub fn depthwise(params: &Conv2dParams<'_>) -> Result<Conv2dGeometry> {
        // TensorFlow reports such strides as invalid here, and as unimplemented for `Conv2D`.
        let strides = [
            (0, "strides over the batch"),
            (params.format.channel_dim(4), "strides over the depth"),
        ];
        for (dim, what) in strides {
            if let Some(&found) = params.strides.get(dim).filter(|&&stride| stride != 1) {
                return Err(GeometryError::SizeMismatch { what, expected: 1, found });
            }
        }
        let mut sizes = Sizes::new(params)?;
        let (filter_channels, multiplier) = (params.filter[2], params.filter[3]);
        let what = "the depth of input and filter";
        if filter_channels >= 0 && sizes.channels >= 0 && filter_channels != sizes.channels {
            return Err(GeometryError::SizeMismatch {
                what,
                expected: sizes.channels,
                found: filter_channels,
            });
        }
        sizes.channels = sizes.channels.max(filter_channels);
        let out_channels = if sizes.channels >= 0 && multiplier >= 0 {
            sizes
                .channels
                .checked_mul(multiplier)
                .ok_or_else(|| GeometryError::TooLarge { dims: params.filter.to_vec() })?
        } else {
            -1
        };
        sizes.geometry(params.format, out_channels, sizes.channels, 1)
    }

    /// Dimensions of the output; -1 is unknown.
    pub fn output_dims(&self) -> [i64; 4] {
        self.format.order(self.batch, self.height.output, self.width.output, self.out_channels)
    }

    /// Whether every size is known, as kernels need.
    pub fn is_known(&self) -> bool {
        self.batch >= 0
            && self.in_channels >= 0
            && self.out_channels >= 0
            && [self.height, self.width].iter().all(|w| w.output >= 0 && w.pad_before >= 0)
    }

    /// Outputs per group; 0 when there are no groups.
    pub fn group_outputs(&self) -> i64 {
        self.out_channels.checked_div(self.groups).unwrap_or(0)
    }
}

/// Groups that the channels of input and output split into, -1 where that is unknown.
pub(crate) fn groups(channels: i64, filter_channels: i64, out_channels: i64) -> Result<i64> {
    positive("the input depth of the filter", filter_channels)?;
    let mut groups = -1;
    if channels >= 0 && filter_channels > 0 {
        divides(
            "the depth of the input",
            channels,
            "the input depth of the filter",
            filter_channels,
        )?;
        groups = channels / filter_channels;
        positive("the number of groups", groups)?;
    }
    if out_channels > 0 && groups > 0 {
        divides("the output depth of the filter", out_channels, "the number of groups", groups)?;
    }
    Ok(groups)
}

/// What convolutions over `N` dimensions check in the same way.
pub(crate) struct Sizes<const N: usize> {
    pub(crate) batch: i64,
    pub(crate) channels: i64,
    pub(crate) windows: [WindowDim; N],
}

impl<const N: usize> Sizes<N> {
    pub(crate) fn new(params: &Conv2dParams<'_>) -> Result<Sizes<N>> {
        rank("the input of a convolution", N + 2, params.input)?;
        rank("the filter of a convolution", N + 2, params.filter)?;
        validate_partial_dims(params.input)?;
        validate_partial_dims(params.filter)?;
        let format = params.format;
        let channel = format.channel_dim(N + 2);
        for (what, list) in [("strides", params.strides), ("dilations", params.dilations)] {
            check_len(what, N + 2, list)?;
            check_one(what, "batch", list[0])?;
            check_one(what, "depth", list[channel])?;
        }
        check_explicit_paddings(params.padding, params.explicit_paddings, channel)?;
        let windows = windows(|i, name| {
            let dim = format.spatial_dim(i);
            let padding = dim_padding(params.padding, params.explicit_paddings, dim);
            let (stride, dilation) = (params.strides[dim], params.dilations[dim]);
            WindowDim::new(name, params.input[dim], params.filter[i], stride, dilation, padding)
        })?;
        Ok(Sizes { batch: params.input[0], channels: params.input[channel], windows })
    }
}

impl Sizes<2> {
    fn geometry(
        &self,
        format: DataFormat,
        out_channels: i64,
        groups: i64,
        filter_channels: i64,
    ) -> Result<Conv2dGeometry> {
        let geometry = Conv2dGeometry {
            format,
            batch: self.batch,
            in_channels: self.channels,
            out_channels,
            groups,
            filter_channels,
            height: self.windows[0],
            width: self.windows[1],
        };
        validate_partial_dims(&geometry.output_dims())?;
        Ok(geometry)
    }
}

fn rank(what: &'static str, expected: usize, dims: &[i64]) -> Result<()> {
    if dims.len() == expected {
        Ok(())
    } else {
        Err(GeometryError::Rank { what, expected, found: dims.len() })
    }
}

/// Checks that a number is at least 1, or unknown.
pub(crate) fn positive(what: &'static str, found: i64) -> Result<()> {
    if found == 0 { Err(GeometryError::TooSmall { what, least: 1, found }) } else { Ok(()) }
}

fn divides(what: &'static str, value: i64, divisor_name: &'static str, divisor: i64) -> Result<()> {
    if value % divisor == 0 {
        Ok(())
    } else {
        Err(GeometryError::NotDivisible { what, value, divisor_name, divisor })
    }
}

#[cfg(test)]
#[path = "conv_tests.rs"]
mod tests;
