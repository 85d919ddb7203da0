//! The gradient of a depthwise convolution by its filter, with one output for each channel.
//!
//! For some channels side by side, and some neighbouring taps of a row, the sums over a few rows of
//! output pixels stay in registers. Rows are in parts, which are added in order; their number
//! depends on the convolution alone, so that results are the same for any number of threads.

use crate::{
    arch::{Isa, vectorised},
    kernels::{linalg::product::Factor, nn::depthwise::readers},
    lane::Compute,
    panels::uninitialised,
    split::{Parts, for_units},
};
use std::ops::Range;
use tenon_sdk::{KernelError, author::ComputeContext, geometry::Conv2dGeometry};

/// The numbers of channels that are summed side by side, as many as there are.
const MANY: usize = 32;
const SOME: usize = 8;
/// The number of neighbouring taps that are summed at a time, where there are as many.
const TAPS: usize = 3;
/// The number of rows of output pixels that are summed for all taps in turn: with their inputs they
/// are in the second-level cache.
const LINES: usize = 8;
/// The least number of output pixels of a part, and the most parts.
const PART_PIXELS: usize = 1024;
const MOST_PARTS: usize = 16;

/// A convolution, channels last.
struct Sums<'a, W> {
    g: &'a Conv2dGeometry,
    x: &'a [W],
    dy: &'a [W],
    channels: usize,
}

/// Computes the gradient by the filter from inputs and gradients of outputs, none empty.
///
/// # Errors
/// Out of memory; the call was cancelled.
pub fn by_lines<W: Factor>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    [x, dy]: [&[W]; 2],
    filter: &mut [W],
) -> Result<(), KernelError> {
    let (len, channels) = (filter.len(), g.in_channels as usize);
    let (lines, pixels) = ((g.batch * g.height.output) as usize, g.width.output as usize);
    let parts = (lines * pixels / PART_PIXELS).clamp(1, MOST_PARTS.min(lines));
    // Slices of channels for more threads than there are parts.
    let (blocks, wanted) = (channels.div_ceil(MANY), (4 * c.parallelism()).div_ceil(parts));
    let width = blocks.div_ceil(wanted.min(blocks)) * MANY;
    let slices = channels.div_ceil(width);
    let slice = |at: usize| at * width..channels.min((at + 1) * width);
    let taps = len / channels;
    let all = uninitialised::<W>(c, parts * len)?;
    let (sums, to) = (Sums { g, x, dy, channels }, Parts::new(&mut *all));
    let cost = 0.1 * (lines * pixels * len) as f64 / (parts * slices) as f64;
    for_units(c, parts * slices, cost, |range| {
        for unit in range {
            let (part, some) = (unit / slices, slice(unit % slices));
            let lines = part * lines / parts..(part + 1) * lines / parts;
            let first = part * len;
            // SAFETY: parts and slices do not overlap, and each belongs to one range.
            let to = unsafe { to.part(first + some.start * taps..first + some.end * taps) };
            sum(&sums, lines, some, to);
        }
    })?;
    let all = &*all;
    for (tap, filter) in filter.chunks_exact_mut(channels).enumerate() {
        for some in (0..slices).map(slice) {
            let filter = &mut filter[some.clone()];
            filter.fill(W::ZERO);
            for part in all.chunks_exact(len) {
                let part = &part[some.start * taps + tap * some.len()..];
                filter.iter_mut().zip(part).for_each(|(sum, &more)| *sum = sum.add(more));
            }
        }
    }
    Ok(())
}

vectorised! {
    /// Sums some channels over some rows of output pixels into `to`, `[taps, channels]`.
    fn sum[W: Compute](sums: &Sums<'_, W>, lines: Range<usize>, channels: Range<usize>, to: &mut [W]) {
        to.fill(W::ZERO);
        let width = channels.len();
        let of_many = width - width % MANY;
        let of_some = width - width % SOME;
        for first in lines.clone().step_by(LINES) {
            let lines = first..lines.end.min(first + LINES);
            for at in (0..of_many).step_by(MANY) {
                sums.channels::<I, MANY>(lines.clone(), channels.start + at, &mut to[at..], width);
            }
            for at in (of_many..of_some).step_by(SOME) {
                sums.channels::<I, SOME>(lines.clone(), channels.start + at, &mut to[at..], width);
            }
            for at in of_some..width {
                sums.channels::<I, 1>(lines.clone(), channels.start + at, &mut to[at..], width);
            }
        }
    }
}

impl<W: Compute> Sums<'_, W> {
    /// Adds to the sums of `L` channels for all taps, which are `width` apart in `to`.
    #[inline(always)]
    fn channels<I: Isa, const L: usize>(
        &self,
        lines: Range<usize>,
        channel: usize,
        to: &mut [W],
        width: usize,
    ) {
        let taps = self.g.width.kernel as usize;
        for ky in 0..self.g.height.kernel as usize {
            let mut kx = 0;
            while kx < taps {
                let to = &mut to[(ky * taps + kx) * width..];
                if kx + TAPS <= taps {
                    self.taps::<I, L, TAPS>(lines.clone(), channel, [ky, kx], to, width);
                    kx += TAPS;
                } else {
                    self.taps::<I, L, 1>(lines.clone(), channel, [ky, kx], to, width);
                    kx += 1;
                }
            }
        }
    }

    /// Adds to the sums of `L` channels for `N` taps of a row.
    #[inline(always)]
    fn taps<I: Isa, const L: usize, const N: usize>(
        &self,
        lines: Range<usize>,
        channel: usize,
        [ky, kx]: [usize; 2],
        to: &mut [W],
        width: usize,
    ) {
        let g = self.g;
        let ranges: [Range<usize>; N] = std::array::from_fn(|n| readers(g, kx + n).0);
        // The outputs for which all taps are inside the image.
        let start = ranges.iter().map(|range| range.start).max().unwrap_or(0);
        let end = ranges.iter().map(|range| range.end).min().unwrap_or(0).max(start);
        let rows = g.height.output as usize;
        let (from, into) =
            (g.width.input as usize * self.channels, g.width.output as usize * self.channels);
        let mut sums = [[W::ZERO; L]; N];
        for line in lines {
            let Some(y) = g.height.input_at(line % rows, ky) else { continue };
            let x = &self.x[(line / rows * g.height.input as usize + y) * from..][..from];
            let dy = &self.dy[line * into..][..into];
            self.inside::<I, L, N>([x, dy], start..end, channel, kx, &mut sums);
            for (n, range) in ranges.iter().enumerate() {
                for output in
                    (range.start..start.min(range.end)).chain(end.max(range.start)..range.end)
                {
                    let Some(input) = g.width.input_at(output, kx + n) else { continue };
                    let x = &x[input * self.channels + channel..][..L];
                    let dy = &dy[output * self.channels + channel..][..L];
                    for ((sum, x), &dy) in sums[n].iter_mut().zip(x).zip(dy) {
                        *sum = x.mul_add::<I>(dy, *sum);
                    }
                }
            }
        }
        for (n, sums) in sums.iter().enumerate() {
            for (to, &sum) in to[n * width..][..L].iter_mut().zip(sums) {
                *to = to.add(sum);
            }
        }
    }

    /// Adds the products of a row of outputs for which all of `N` taps are inside the image.
    #[inline(always)]
    fn inside<I: Isa, const L: usize, const N: usize>(
        &self,
        [x, dy]: [&[W]; 2],
        outputs: Range<usize>,
        channel: usize,
        kx: usize,
        sums: &mut [[W; L]; N],
    ) {
        let (count, channels, w) = (outputs.len(), self.channels, &self.g.width);
        let Some(first) = w.input_at(outputs.start, kx).filter(|_| count > 0) else { return };
        // They wrap around only where there is a single output, or a single tap.
        let [step, tap] = [w.stride, w.dilation].map(|x| (x as usize).wrapping_mul(channels));
        let x = &x[first * channels + channel..];
        let dy = &dy[outputs.start * channels + channel..];
        let last = (count - 1) * step + if N > 1 { (N - 1) * tap } else { 0 };
        assert!(last + L <= x.len() && (count - 1) * channels + L <= dy.len(), "all are inside");
        // SAFETY: the last elements of both slices that are read have been checked.
        let at = |from: &[W], at: usize| unsafe { *from.as_ptr().add(at).cast::<[W; L]>() };
        let mut local = *sums;
        for output in 0..count {
            let dy = at(dy, output * channels);
            for (n, sums) in local.iter_mut().enumerate() {
                let x = at(x, output * step + n * tap);
                for ((sum, x), dy) in sums.iter_mut().zip(x).zip(dy) {
                    *sum = x.mul_add::<I>(dy, *sum);
                }
            }
        }
        *sums = local;
    }
}
