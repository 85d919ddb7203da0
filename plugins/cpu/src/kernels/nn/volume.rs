//! Code shared by convolutions over three dimensions and the gradients of all convolutions: images
//! with channels last in the type of computation, and the pixels that a window reads. Two
//! dimensions are three with a single plane.

use crate::{
    kernels::linalg::{
        matmul::{convert_down, convert_up},
        product::Factor,
    },
    lane::Compute,
    panels::uninitialised,
};
use std::{any::TypeId, ops::Range};
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    element::Number,
    geometry::{ChannelSplit, Conv2dGeometry, Conv3dGeometry, DataFormat, WindowDim},
};

/// The number of elements of a block of patches: about the size of the second-level cache.
const BLOCK: usize = 1 << 18;

fn computes_in_itself<T: Compute>() -> bool {
    TypeId::of::<T>() == TypeId::of::<T::Wide>()
}

/// An input in the type of computation, like that of a filter; copied only if it has another type.
pub fn wide<'a, T: Compute<Wide: Factor>>(
    c: &ComputeContext<'a>,
    input: usize,
) -> Result<&'a [T::Wide], KernelError> {
    if computes_in_itself::<T>() {
        return Ok(c.input::<T::Wide>(input)?.data);
    }
    let x = c.input::<T>(input)?.data;
    let copy = uninitialised::<T::Wide>(c, x.len())?;
    convert_up(x, copy);
    Ok(copy)
}

/// An input of images, channels last, in the type of computation.
pub fn images<'a, T: Compute<Wide: Factor>>(
    c: &ComputeContext<'a>,
    input: usize,
    format: DataFormat,
) -> Result<&'a [T::Wide], KernelError> {
    if format == DataFormat::Nhwc {
        return wide::<T>(c, input);
    }
    let x = c.input::<T>(input)?;
    let ChannelSplit { channels, inner, .. } = ChannelSplit::new(x.dims, format)?;
    let copy = uninitialised::<T::Wide>(c, x.data.len())?;
    for (at, value) in copy.iter_mut().enumerate() {
        let (pixel, channel) = (at / channels, at % channels);
        *value = x.data[(pixel / inner * channels + channel) * inner + pixel % inner].up();
    }
    Ok(copy)
}

/// An output of images that is computed with channels last in the type of computation.
pub struct Images<'a, T: Compute> {
    /// The images, with any contents at first.
    pub values: &'a mut [T::Wide],
    /// The output to copy the images to, if they are not in it already.
    copied: Option<(&'a mut [T], ChannelSplit)>,
}

impl<'a, T: Compute<Wide: Factor>> Images<'a, T> {
    /// Allocates output 0.
    pub fn new(
        c: &ComputeContext<'a>,
        dims: &[i64],
        format: DataFormat,
    ) -> Result<Images<'a, T>, KernelError> {
        let split = ChannelSplit::new(dims, format)?;
        let direct = computes_in_itself::<T>() && format == DataFormat::Nhwc;
        let (values, copied) = if direct {
            (c.output::<T::Wide>(0, dims)?.data, None)
        } else {
            let output = c.output::<T>(0, dims)?.data;
            (uninitialised::<T::Wide>(c, output.len())?, Some((output, split)))
        };
        Ok(Images { values, copied })
    }

    /// Completes an output of zeros.
    pub fn zeros(self) {
        self.values.fill(T::Wide::ZERO);
        self.finish();
    }

    /// Copies the images to the output, if they are not there already.
    pub fn finish(self) {
        let Some((output, split)) = self.copied else { return };
        let ChannelSplit { channels, inner, .. } = split;
        if inner == 1 {
            return convert_down::<T>(self.values, output);
        }
        for (at, value) in output.iter_mut().enumerate() {
            let (plane, pixel) = (at / inner, at % inner);
            let (image, channel) = (plane / channels, plane % channels);
            *value = T::down(self.values[(image * inner + pixel) * channels + channel]);
        }
    }
}

/// The convolution over rows and columns that a convolution over planes is, if each output plane
/// reads the input plane of the same number and no other. Planes are then images.
pub fn planar(g: &Conv3dGeometry) -> Option<Conv2dGeometry> {
    let [planes, height, width] = g.windows;
    let is_one = |w: WindowDim| w.kernel == 1 && w.stride == 1 && w.input == w.output;
    (is_one(planes) && planes.pad_before == 0).then(|| Conv2dGeometry {
        format: DataFormat::Nhwc,
        batch: g.batch * planes.output,
        in_channels: g.in_channels,
        out_channels: g.out_channels,
        groups: g.groups,
        filter_channels: g.filter_channels,
        height,
        width,
    })
}

/// Sizes of one convolution as products.
pub struct Sizes {
    /// The number of pixels of an output image.
    pub pixels: usize,
    /// The number of pixels of an input image.
    pub input_pixels: usize,
    /// The number of taps of the filter.
    pub taps: usize,
    /// The number of input channels of all groups.
    pub channels: usize,
    /// The number of input channels of one group.
    pub group_channels: usize,
    /// The number of output channels of all groups.
    pub outputs: usize,
    /// The number of output channels of one group.
    pub group_outputs: usize,
    /// The number of groups.
    pub groups: usize,
    /// The number of images.
    pub batch: usize,
}

impl Sizes {
    /// Returns the sizes of a convolution whose shapes are known.
    pub fn new(g: &Conv3dGeometry) -> Sizes {
        let over = |size: fn(&tenon_sdk::geometry::WindowDim) -> i64| {
            g.windows.iter().map(|window| size(window) as usize).product()
        };
        Sizes {
            pixels: over(|window| window.output),
            input_pixels: over(|window| window.input),
            taps: over(|window| window.kernel),
            channels: g.in_channels as usize,
            group_channels: g.filter_channels as usize,
            outputs: g.out_channels as usize,
            group_outputs: g.out_channels.checked_div(g.groups).unwrap_or(0) as usize,
            groups: g.groups as usize,
            batch: g.batch as usize,
        }
    }

    /// The number of elements of a patch.
    pub fn patch(&self) -> usize {
        self.taps * self.group_channels
    }

    /// Iterates over the blocks: the image, and the range of its pixels.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let block = (BLOCK / self.patch().max(1)).clamp(64, self.pixels.max(64));
        let pixels = self.pixels;
        (0..self.batch).flat_map(move |image| {
            (0..pixels).step_by(block).map(move |first| (image, first..(first + block).min(pixels)))
        })
    }

    /// The number of elements of the largest block of patches.
    pub fn block_len(&self) -> usize {
        (BLOCK / self.patch().max(1)).clamp(64, self.pixels.max(64)).min(self.pixels) * self.patch()
    }
}

/// Calls `f` for each tap of these output pixels with the position of the pixel among them, the
/// tap, and the input pixel that it reads unless that is padding.
pub fn for_taps(
    g: &Conv3dGeometry,
    pixels: Range<usize>,
    mut f: impl FnMut(usize, usize, Option<usize>),
) {
    let [_, rows, columns] = g.windows.map(|window| window.output as usize);
    let [_, height, width] = g.windows.map(|window| window.input as usize);
    let [planes, lines, taps] = g.windows.map(|window| window.kernel as usize);
    for (number, pixel) in pixels.enumerate() {
        let (z, y, x) = (pixel / columns / rows, pixel / columns % rows, pixel % columns);
        for (kz, ky) in (0..planes).flat_map(|kz| (0..lines).map(move |ky| (kz, ky))) {
            let line = match (g.windows[0].input_at(z, kz), g.windows[1].input_at(y, ky)) {
                (Some(z), Some(y)) => Some((z * height + y) * width),
                _ => None,
            };
            for kx in 0..taps {
                let input = line.zip(g.windows[2].input_at(x, kx)).map(|(line, x)| line + x);
                f(number, (kz * lines + ky) * taps + kx, input);
            }
        }
    }
}

/// Writes the patches of these output pixels of an image, `[pixels, taps, channels of the group]`.
pub fn gather<W: Number>(
    g: &Conv3dGeometry,
    group: usize,
    pixels: Range<usize>,
    image: &[W],
    patches: &mut [W],
) {
    let s = Sizes::new(g);
    for_taps(g, pixels, |number, tap, input| {
        let patch = &mut patches[(number * s.taps + tap) * s.group_channels..][..s.group_channels];
        match input {
            Some(pixel) => {
                let first = pixel * s.channels + group * s.group_channels;
                patch.copy_from_slice(&image[first..first + s.group_channels]);
            }
            None => patch.fill(W::ZERO),
        }
    });
}

/// Adds patches to the pixels of an image that [`gather`] takes them from.
pub fn scatter<W: Number>(
    g: &Conv3dGeometry,
    group: usize,
    pixels: Range<usize>,
    patches: &[W],
    image: &mut [W],
) {
    let s = Sizes::new(g);
    for_taps(g, pixels, |number, tap, input| {
        let Some(pixel) = input else { return };
        let patch = &patches[(number * s.taps + tap) * s.group_channels..][..s.group_channels];
        let first = pixel * s.channels + group * s.group_channels;
        for (value, &part) in image[first..first + s.group_channels].iter_mut().zip(patch) {
            *value = value.add(part);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::values;
    use tenon_sdk::geometry::{Conv2dParams, Padding};

    #[test]
    fn scattering_is_the_transpose_of_gathering() {
        let g = Conv3dGeometry::new(&Conv2dParams {
            input: &[1, 3, 4, 5, 4],
            filter: &[2, 3, 2, 2, 6],
            strides: &[1, 1, 2, 1, 1],
            dilations: &[1, 2, 1, 1, 1],
            padding: Padding::Same,
            explicit_paddings: &[],
            format: DataFormat::Nhwc,
        })
        .unwrap();
        let s = Sizes::new(&g);
        assert_eq!((s.groups, s.patch()), (2, 24));
        let (x, w) = (values::<f64>(60 * 4, 1), values::<f64>(s.pixels * s.patch(), 2));
        for group in 0..2 {
            let (mut patches, mut image) = (vec![0.0; w.len()], vec![0.0; x.len()]);
            gather(&g, group, 0..s.pixels, &x, &mut patches);
            scatter(&g, group, 0..s.pixels, &w, &mut image);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let (left, right) = (dot(&patches, &w), dot(&x, &image));
            assert!((left - right).abs() < 1e-9 && left != 0.0, "{left} {right}");
        }
    }
}
