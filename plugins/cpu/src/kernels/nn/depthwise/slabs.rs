//! Depthwise convolutions, channels last, of images that the loops cannot read in place: those with
//! several outputs for each channel, and those of 16-bit floats.
//!
//! For some rows of the output, the lines that they read are written to a slab in the type of
//! computation, with each channel as often as it has outputs. The slab is an image with one output
//! for each channel. It stays in the second-level cache.

use super::Rows;
use crate::{
    arch::vectorised,
    kernels::{
        linalg::{matmul::convert_down, product::Factor},
        nn::conv::{After, Ending},
    },
    lane::Compute,
    panels::{Panels, as_itself, as_wide},
    split::{Parts, for_units},
};
use std::ops::Range;
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    geometry::{Conv2dGeometry, WindowDim},
};

/// The bytes of a slab.
const BYTES: usize = 256 << 10;
/// The least number of output rows of a slab, which share the lines that they read.
const LEAST_ROWS: usize = 4;

/// Whether a convolution needs slabs.
pub fn are_needed<T: Compute>(g: &Conv2dGeometry) -> bool {
    g.in_channels != g.out_channels || as_itself::<T>(&[]).is_none()
}

/// The lines that some rows of the output read; one that they need not read if all are padding.
fn lines(h: &WindowDim, rows: &Range<usize>) -> Range<usize> {
    let last = h.input - 1;
    let first = h.start(rows.start).clamp(0, last);
    let extent = (h.kernel - 1).saturating_mul(h.dilation);
    let end = h.start(rows.end - 1).saturating_add(extent).clamp(first, last);
    first as usize..end as usize + 1
}

/// The convolution of a slab with these lines.
fn slab_of(g: &Conv2dGeometry, rows: &Range<usize>, lines: &Range<usize>) -> Conv2dGeometry {
    let height = WindowDim {
        input: lines.len() as i64,
        output: rows.len() as i64,
        pad_before: (lines.start as i64).saturating_sub(g.height.start(rows.start)),
        ..g.height
    };
    let channels = g.out_channels;
    Conv2dGeometry { batch: 1, in_channels: channels, groups: channels, height, ..*g }
}

/// A convolution in slabs.
pub(super) struct Slabs<'a, T: Compute> {
    pub g: &'a Conv2dGeometry,
    pub x: &'a [T],
    pub filter: &'a [T::Wide],
    pub after: Option<&'a After<'a, T>>,
    /// The number of output rows of a slab.
    pub rows: usize,
}

impl<T: Compute<Wide: Factor>> Slabs<'_, T> {
    /// The number of slabs of an image.
    pub fn count(&self) -> usize {
        (self.g.height.output as usize).div_ceil(self.rows)
    }

    /// The number of elements of a row of the output, and of a line of a slab.
    pub fn row_len(&self) -> [usize; 2] {
        [self.g.width.output, self.g.width.input].map(|w| (w * self.g.out_channels) as usize)
    }

    /// The output rows of slab `at`.
    pub fn rows_of(&self, at: usize) -> Range<usize> {
        at * self.rows..(self.g.height.output as usize).min((at + 1) * self.rows)
    }

    /// The largest number of lines of a slab.
    pub fn most_lines(&self) -> usize {
        (0..self.count())
            .map(|at| lines(&self.g.height, &self.rows_of(at)).len())
            .max()
            .unwrap_or(0)
    }

    /// Computes a slab of an image into its rows of the output; `slab` and `wide` are memory for
    /// the slab and, where the output has another type, for the results.
    pub fn compute(
        &self,
        image: usize,
        at: usize,
        y: &mut [T],
        slab: &mut [T::Wide],
        wide: &mut [T::Wide],
    ) {
        let (g, rows) = (self.g, self.rows_of(at));
        let lines = lines(&g.height, &rows);
        let line = (g.width.input * g.in_channels) as usize;
        let first = image * g.height.input as usize;
        let from = &self.x[(first + lines.start) * line..(first + lines.end) * line];
        let slab = &mut slab[..lines.len() * self.row_len()[1]];
        repeat(from, (g.out_channels / g.in_channels) as usize, slab);
        let slab_geometry = slab_of(g, &rows, &lines);
        let all = Rows::new(&slab_geometry, slab, self.filter, Ending::NONE);
        match as_wide(y) {
            Some(y) => all.compute(0..rows.len(), y),
            None => {
                let wide = &mut wide[..y.len()];
                all.compute(0..rows.len(), wide);
                convert_down(wide, y);
            }
        }
        if let Some(after) = self.after {
            let row = image * g.height.output as usize + rows.start;
            after(row * self.row_len()[0], y);
        }
    }
}

/// Computes a convolution, none of whose sizes is 0.
///
/// # Errors
/// Out of memory; the call was cancelled.
pub fn compute<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    x: &[T],
    filter: &[T::Wide],
    y: &mut [T],
    after: Option<&After<'_, T>>,
) -> Result<(), KernelError> {
    let line = (g.width.input * g.out_channels) as usize * size_of::<T::Wide>();
    let extent = ((g.height.kernel - 1).saturating_mul(g.height.dilation)) as usize + 1;
    let rows = (BYTES / line).saturating_sub(extent) / g.height.stride as usize + 1;
    let rows = rows.max(LEAST_ROWS).min(g.height.output as usize);
    let slabs = Slabs { g, x, filter, after, rows };
    let (count, [row, line]) = (slabs.count(), slabs.row_len());
    let units = g.batch as usize * count;
    let wide = if as_itself::<T>(&[]).is_some() { 0 } else { rows * row };
    let memory = Panels::<T::Wide>::new(c, units, slabs.most_lines() * line + wide)?;
    let window = (g.height.kernel * g.width.kernel) as f64;
    let cost = (rows * row) as f64 * (0.05 * window + 0.5);
    let (y, height) = (Parts::new(y), g.height.output as usize);
    for_units(c, units, cost, |range| {
        let mut memory = memory.take();
        let (wide, slab) = memory.split_at_mut(wide);
        for unit in range {
            let (image, at) = (unit / count, unit % count);
            let rows = slabs.rows_of(at);
            let first = image * height * row;
            // SAFETY: each unit has rows of its own.
            let y = unsafe { y.part(first + rows.start * row..first + rows.end * row) };
            slabs.compute(image, at, y, slab, wide);
        }
    })
}

vectorised! {
    /// Writes every element `times` times, in the type of computation.
    pub fn repeat[T: Compute](x: &[T], times: usize, to: &mut [T::Wide]) {
        assert_eq!(to.len(), x.len() * times, "as many elements");
        match times {
            1 => to.iter_mut().zip(x).for_each(|(to, x)| *to = x.up()),
            2 => repeat_by::<T, 2>(x, to),
            3 => repeat_by::<T, 3>(x, to),
            4 => repeat_by::<T, 4>(x, to),
            8 => repeat_by::<T, 8>(x, to),
            _ => x.iter().zip(to.chunks_exact_mut(times)).for_each(|(x, to)| to.fill(x.up())),
        }
    }
}

vectorised! {
    /// Adds each `times` neighbouring elements, in order.
    pub fn add_repeated[W: Compute](x: &[W], times: usize, to: &mut [W]) {
        assert_eq!(x.len(), to.len() * times, "as many elements");
        match times {
            2 => add_by::<W, 2>(x, to),
            3 => add_by::<W, 3>(x, to),
            4 => add_by::<W, 4>(x, to),
            8 => add_by::<W, 8>(x, to),
            _ => to.iter_mut().zip(x.chunks_exact(times)).for_each(|(to, x)| *to = sum(x)),
        }
    }
}

#[inline(always)]
fn repeat_by<T: Compute, const N: usize>(x: &[T], to: &mut [T::Wide]) {
    to.as_chunks_mut::<N>().0.iter_mut().zip(x).for_each(|(to, x)| *to = [x.up(); N]);
}

#[inline(always)]
fn add_by<W: Compute, const N: usize>(x: &[W], to: &mut [W]) {
    to.iter_mut().zip(x.as_chunks::<N>().0).for_each(|(to, x)| *to = sum(x));
}

#[inline(always)]
fn sum<W: Compute>(x: &[W]) -> W {
    x.iter().fold(W::ZERO, |sum, &x| sum.add(x))
}
