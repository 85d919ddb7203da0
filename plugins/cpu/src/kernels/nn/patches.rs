//! A convolution as products of a matrix of patches, a block of pixels at a time. It is used with
//! channels first, where the product is the transposed one, and for integers, for which
//! `linalg::gemm` has no tiles.

use super::{
    conv::After,
    im2col::{im2col, patch_len},
};
use crate::{
    kernels::linalg::{
        matmul::{convert_down, convert_up},
        product::{Factor, Multiply, Operand, Target, cost_ns, product},
    },
    lane::Compute,
    panels::{Panels, as_wide, uninitialised},
    split::{Parts, for_rows, for_units},
};
use std::{any::TypeId, ops::Range};
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    geometry::{Conv2dGeometry, DataFormat},
};

/// The number of elements of a block of patches: about the size of the second-level cache.
const BLOCK: usize = 1 << 18;
/// The least number of pixels in a block; with fewer, the filter would be packed too often.
const LEAST_PIXELS: usize = 256;

/// Computes the convolution of inputs 0 and 1, and applies `after` to the results.
///
/// # Errors
/// No memory; or the call was cancelled.
pub fn convolve<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    y: &mut [T],
    after: Option<&After<'_, T>>,
) -> Result<(), KernelError> {
    if is_pointwise(g)
        && let Some(wide) = as_wide(y)
    {
        pointwise(c, g, c.input::<T::Wide>(0)?.data, c.input::<T::Wide>(1)?.data, wide)?;
        return match after {
            Some(after) => pass_behind(c, g, y, after),
            None => Ok(()),
        };
    }
    let filter = wide_filter::<T>(c, c.input::<T>(1)?.data)?;
    by_patches(c, g, c.input::<T>(0)?.data, filter, y, after)
}

/// Sizes of one convolution as products.
pub struct Sizes {
    /// The number of pixels of an output image.
    pub pixels: usize,
    /// The number of elements of a patch.
    pub patch: usize,
    /// The number of output channels of all groups.
    pub outputs: usize,
    /// The number of output channels of one group.
    pub group_outputs: usize,
    /// The number of groups of channels.
    pub groups: usize,
    /// The number of elements of an input image.
    image: usize,
}

impl Sizes {
    /// Returns the sizes of a convolution.
    pub fn new(g: &Conv2dGeometry) -> Sizes {
        Sizes {
            pixels: (g.height.output * g.width.output) as usize,
            patch: patch_len(g),
            outputs: g.out_channels as usize,
            group_outputs: g.group_outputs() as usize,
            groups: g.groups as usize,
            image: (g.height.input * g.width.input * g.in_channels) as usize,
        }
    }

    /// The columns of the filter for a group.
    pub fn filter<'a, T>(&self, filter: &'a [T], group: usize) -> Operand<'a, T> {
        Operand {
            data: &filter[group * self.group_outputs..],
            rows: self.patch,
            cols: self.group_outputs,
            strides: [self.outputs, 1],
        }
    }

    /// Returns pixels `first..first + count` of a group's outputs, as `[pixels, outputs]` whatever
    /// the format.
    ///
    /// # Safety
    /// - `image` is the first element of an output image. With channels last, pixels may run on
    ///   into the images that follow.
    /// - Nothing else uses these outputs for as long as the target is used.
    unsafe fn target<T>(&self, format: DataFormat, image: *mut T, at: [usize; 3]) -> Target<T> {
        let [group, first, count] = at;
        let strides = match format {
            DataFormat::Nhwc => [self.outputs, 1],
            DataFormat::Nchw => [1, self.pixels],
        };
        let offset = first * strides[0] + group * self.group_outputs * strides[1];
        // SAFETY: the caller guarantees that these outputs of the image are there, and that nobody
        // else uses them.
        unsafe { Target::new(image.wrapping_add(offset), count, self.group_outputs, strides) }
    }

    /// The ranges of neighbours among the outputs of some pixels of an image.
    fn pieces(
        &self,
        format: DataFormat,
        image: usize,
        first: usize,
        count: usize,
        mut each: impl FnMut(Range<usize>),
    ) {
        let start = image * self.outputs * self.pixels;
        match format {
            DataFormat::Nhwc => {
                each(start + first * self.outputs..start + (first + count) * self.outputs);
            }
            DataFormat::Nchw => (0..self.outputs).for_each(|output| {
                let start = start + output * self.pixels + first;
                each(start..start + count);
            }),
        }
    }

    /// A block of patches as `[pixels, patch]`.
    fn patches<'a, T>(&self, format: DataFormat, data: &'a [T], count: usize) -> Operand<'a, T> {
        match format {
            DataFormat::Nhwc => Operand::dense(data, count, self.patch),
            DataFormat::Nchw => Operand::dense(data, self.patch, count).transposed(),
        }
    }
}

/// Whether output pixel `i` reads input pixel `i` and no other.
pub fn is_pointwise(g: &Conv2dGeometry) -> bool {
    [&g.height, &g.width]
        .iter()
        .all(|w| w.kernel == 1 && w.stride == 1 && w.pad_before == 0 && w.pad_after == 0)
}

/// A 1x1 convolution in its own type of computation: products of the image itself.
fn pointwise<T: Factor>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    x: &[T],
    filter: &[T],
    y: &mut [T],
) -> Result<(), KernelError> {
    let s = Sizes::new(g);
    let channels = g.in_channels as usize;
    let (images, pixels) = match g.format {
        // Images follow each other without a gap.
        DataFormat::Nhwc => (1, s.pixels * g.batch as usize),
        DataFormat::Nchw => (g.batch as usize, s.pixels),
    };
    let first = y.as_mut_ptr();
    for image in 0..images {
        for group in 0..s.groups {
            let (strides, skipped) = match g.format {
                DataFormat::Nhwc => ([channels, 1], group * s.patch),
                DataFormat::Nchw => ([1, s.pixels], group * s.patch * s.pixels),
            };
            let data = &x[image * s.image + skipped..];
            let a = Operand { data, rows: pixels, cols: s.patch, strides };
            let output = first.wrapping_add(image * s.outputs * s.pixels);
            // SAFETY: the target is the part of the output of this image and group.
            let target = unsafe { s.target(g.format, output, [group, 0, pixels]) };
            T::parallel(c, a, s.filter(filter, group), target, [false; 2])?;
        }
    }
    Ok(())
}

/// Computes any convolution, over blocks of patches.
fn by_patches<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    x: &[T],
    filter: &[T::Wide],
    y: &mut [T],
    after: Option<&After<'_, T>>,
) -> Result<(), KernelError> {
    let s = Sizes::new(g);
    let block = (BLOCK / s.patch.max(1)).max(LEAST_PIXELS).min(s.pixels);
    let blocks = s.pixels.div_ceil(block);
    let units = g.batch as usize * blocks;
    let narrow = TypeId::of::<T>() != TypeId::of::<T::Wide>();
    let results = if narrow { block * s.group_outputs } else { 0 };
    let panels = Panels::<T::Wide>::new(c, units, block * s.patch + results)?;
    let y = Parts::new(y);
    let cost =
        cost_ns::<T::Wide>(block, s.outputs, s.patch) + 0.3 * (block * s.patch * s.groups) as f64;
    for_units(c, units, cost, |range| {
        let mut panel = panels.take();
        for unit in range {
            let (image, first) = (unit / blocks, unit % blocks * block);
            let count = block.min(s.pixels - first);
            for group in 0..s.groups {
                let (patches, results) = panel.split_at_mut(block * s.patch);
                let patches = &mut patches[..count * s.patch];
                let input = &x[image * s.image..][..s.image];
                im2col(g, group, first..first + count, input, patches);
                let a = s.patches(g.format, patches, count);
                let output = y.as_mut_ptr().wrapping_add(image * s.outputs * s.pixels);
                // SAFETY: each unit and group has pixels and channels of its own in the output.
                let target = unsafe { s.target(g.format, output, [group, first, count]) };
                multiply::<T>(a, s.filter(filter, group), target, results);
            }
            if let Some(after) = after {
                s.pieces(g.format, image, first, count, |at| {
                    // SAFETY: these are the pixels of this unit.
                    after(at.start, unsafe { y.part(at) });
                });
            }
        }
    })
}

/// Computes a product into an output of the same type, or rounds it into one of 16-bit floats by
/// way of `results`.
fn multiply<T: Compute<Wide: Factor>>(
    a: Operand<'_, T::Wide>,
    b: Operand<'_, T::Wide>,
    target: Target<T>,
    results: &mut [T::Wide],
) {
    let Target { data, rows, cols, strides } = target;
    if TypeId::of::<T>() == TypeId::of::<T::Wide>() {
        // SAFETY: the types are the same one, and the target is the one given.
        return product(a, b, unsafe { Target::new(data.cast(), rows, cols, strides) });
    }
    // Rows of results run along the output's dense dimension.
    let (len, line_stride, wide_strides) = match strides {
        [row, 1] => (cols, row, [cols, 1]),
        [_, col] => (rows, col, [1, rows]),
    };
    let results = &mut results[..rows * cols];
    // SAFETY: the target is the whole of `results`.
    product(a, b, unsafe { Target::new(results.as_mut_ptr(), rows, cols, wide_strides) });
    for (line, results) in results.chunks_exact(len).enumerate() {
        // SAFETY: this is a row or column of the given target.
        let output = unsafe { std::slice::from_raw_parts_mut(data.add(line * line_stride), len) };
        convert_down::<T>(results, output);
    }
}

/// Applies `after` to a product that is not split by blocks of pixels.
fn pass_behind<T: Compute>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    y: &mut [T],
    after: &After<'_, T>,
) -> Result<(), KernelError> {
    let row = match g.format {
        DataFormat::Nhwc => g.out_channels,
        DataFormat::Nchw => g.height.output * g.width.output,
    } as usize;
    for_rows(c, y, row, 0.5 * row as f64, |first, y| after(first * row, y))
}

/// The filter in the type of computation: unchanged, or converted.
fn wide_filter<'a, T: Compute>(
    c: &ComputeContext<'a>,
    filter: &'a [T],
) -> Result<&'a [T::Wide], KernelError> {
    if TypeId::of::<T>() == TypeId::of::<T::Wide>() {
        return Ok(c.input::<T::Wide>(1)?.data);
    }
    let wide = uninitialised::<T::Wide>(c, filter.len())?;
    convert_up(filter, wide);
    Ok(wide)
}

/// Computes the convolution by two blocks of pixels per image, without a call.
#[cfg(test)]
pub fn alone<T: Compute<Wide: Factor>>(g: &Conv2dGeometry, x: &[T], filter: &[T], y: &mut [T]) {
    let s = Sizes::new(g);
    let filter: Vec<T::Wide> = filter.iter().map(|x| x.up()).collect();
    let half = s.pixels / 2;
    for (image, y) in y.chunks_exact_mut(s.pixels * s.outputs).enumerate() {
        for (first, count) in [(0, half), (half, s.pixels - half)] {
            for group in 0..s.groups {
                let mut patches = vec![T::Wide::default(); count * s.patch];
                let mut results = vec![T::Wide::default(); count * s.group_outputs];
                let input = &x[image * s.image..][..s.image];
                im2col(g, group, first..first + count, input, &mut patches);
                let a = s.patches(g.format, &patches, count);
                // SAFETY: the target is inside this image's output.
                let target = unsafe { s.target(g.format, y.as_mut_ptr(), [group, first, count]) };
                multiply::<T>(a, s.filter(&filter, group), target, &mut results);
            }
        }
    }
}
