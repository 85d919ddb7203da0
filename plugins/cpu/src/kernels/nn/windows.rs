//! The windows of images as the left factor of a product: rows are packed straight from the images,
//! without a matrix of patches.
//!
//! Row `p` is the window of output pixel `p`, counted over all images. Its factors are in the order
//! of the filter's rows, columns and channels. The channels of taps that are neighbours in the
//! image are one run of memory.

use super::frame::has_lines;
use crate::{
    arch::vectorised,
    kernels::linalg::gemm::{left::Left, lines::Lines},
    lane::Compute,
};
use std::ops::Range;
use tenon_sdk::{
    element::Number,
    geometry::{Conv2dGeometry, DataFormat, OutputPixel, WindowDim},
};

/// The windows of one group of channels of a convolution, in images with channels last.
#[derive(Debug, Clone, Copy)]
pub struct Windows<'a, T> {
    pub(super) images: &'a [T],
    pub(super) geometry: &'a Conv2dGeometry,
    pub(super) group: usize,
}

impl<'a, T> Windows<'a, T> {
    /// Returns the windows of images, for a group.
    ///
    /// Panics when sizes do not agree, or channels come first.
    pub fn new(images: &'a [T], geometry: &'a Conv2dGeometry, group: usize) -> Windows<'a, T> {
        let g = geometry;
        assert!(g.format == DataFormat::Nhwc && (group as i64) < g.groups);
        let pixels = (g.batch * g.height.input * g.width.input) as usize;
        assert_eq!(images.len(), pixels * g.in_channels as usize, "whole images");
        Windows { images, geometry, group }
    }

    /// Calls a function for each run of some factors of a window, with its length and its position
    /// in the images, or `None` for zeros.
    #[inline(always)]
    fn each_run(
        &self,
        at: OutputPixel,
        depths: &Range<usize>,
        mut run: impl FnMut(usize, Option<usize>),
    ) {
        let g = self.geometry;
        let (channels, all) = (g.filter_channels as usize, g.in_channels as usize);
        let row_len = g.width.kernel as usize * channels;
        let (rows, columns) = (g.height.taps(at.y), g.width.taps(at.x));
        // A row of taps over all channels is one run.
        let taps = if channels == all && g.width.dilation == 1 { columns.len() } else { 1 };
        let pixel_step = g.width.dilation as usize * all;
        let mut depth = depths.start;
        while depth < depths.end {
            let (ky, within) = (depth / row_len, depth % row_len);
            let end = depths.end.min((ky + 1) * row_len) - ky * row_len;
            let inside = columns.start * channels..columns.end * channels;
            if inside.is_empty() || !rows.contains(&ky) || within >= inside.end {
                run(end - within, None);
                depth += end - within;
            } else if within < inside.start {
                let count = end.min(inside.start) - within;
                run(count, None);
                depth += count;
            } else {
                let run_len = taps * channels;
                let (tap, offset) =
                    ((within - inside.start) / run_len, (within - inside.start) % run_len);
                let count = (run_len - offset).min(end - within);
                let row = at.image * g.height.input as usize + position(&g.height, at.y, ky);
                let first = row * g.width.input as usize + position(&g.width, at.x, columns.start);
                let from = first * all + self.group * channels + tap * pixel_step + offset;
                run(count, Some(from));
                depth += count;
            }
        }
    }
}

/// The position of a tap that is inside the image.
#[inline(always)]
fn position(window: &WindowDim, output: usize, tap: usize) -> usize {
    (window.start(output) + tap as i64 * window.dilation) as usize
}

impl<T: Compute> Left<T::Wide> for Windows<'_, T> {
    fn rows(&self) -> usize {
        let g = self.geometry;
        (g.batch * g.height.output * g.width.output) as usize
    }

    fn depth(&self) -> usize {
        let g = self.geometry;
        (g.height.kernel * g.width.kernel * g.filter_channels) as usize
    }

    fn in_place(&self) -> Option<(*const T::Wide, usize)> {
        None
    }

    fn lines(&self) -> Option<&dyn Lines<T::Wide>> {
        if has_lines(self.geometry) { Some(self) } else { None }
    }

    fn pack(&self, rows: Range<usize>, depths: Range<usize>, to: &mut [T::Wide], step: usize) {
        pack(self, rows, depths, to, step);
    }
}

vectorised! {
    fn pack[T: Compute](
        windows: &Windows<'_, T>,
        rows: Range<usize>,
        depths: Range<usize>,
        to: &mut [T::Wide],
        step: usize,
    ) {
        let mut pixel = windows.geometry.output_pixel(rows.start);
        for to in to.chunks_mut(step).take(rows.len()) {
            let mut to = to;
            windows.each_run(pixel, &depths, |count, from| {
                let (now, later) = std::mem::take(&mut to).split_at_mut(count);
                match from {
                    Some(from) => copy(&windows.images[from..][..count], now),
                    None => now.fill(T::Wide::ZERO),
                }
                to = later;
            });
            pixel = windows.geometry.pixel_after(pixel);
        }
    }
}

/// Copies a few elements at a time and without a call, because runs are short.
#[inline(always)]
pub(super) fn copy<T: Compute>(from: &[T], to: &mut [T::Wide]) {
    const PIECE: usize = 16;
    let (pieces, rest) = from.as_chunks::<PIECE>();
    let (to_pieces, to_rest) = to.as_chunks_mut::<PIECE>();
    for (to, from) in to_pieces.iter_mut().zip(pieces) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.up();
        }
    }
    for (to, from) in to_rest.iter_mut().zip(rest) {
        *to = from.up();
    }
}

#[cfg(test)]
impl<T: Compute> Windows<'_, T> {
    /// A factor of a row, by the formula.
    pub(super) fn factor(&self, row: usize, k: usize) -> T::Wide {
        let g = self.geometry;
        let (channels, columns) = (g.filter_channels as usize, g.width.kernel as usize);
        let (tap, channel) = (k / channels, k % channels);
        let OutputPixel { image, y, x } = self.geometry.output_pixel(row);
        let at = g.height.input_at(y, tap / columns).zip(g.width.input_at(x, tap % columns));
        at.map_or(T::Wide::ZERO, |(iy, ix)| {
            let pixel = (image * g.height.input as usize + iy) * g.width.input as usize + ix;
            self.images[pixel * g.in_channels as usize + self.group * channels + channel].up()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::values;
    use half::f16;
    use tenon_sdk::geometry::{Conv2dParams, Padding};

    /// Checks every window of both groups, in parts of the depth that begin anywhere.
    fn check<T: Compute>(dilation: i64, stride: i64, groups: i64) {
        let params = Conv2dParams {
            input: &[2, 7, 6, 4],
            filter: &[3, 2, 4 / groups, 6],
            strides: &[1, stride, 1, 1],
            dilations: &[1, 1, dilation, 1],
            padding: Padding::Same,
            explicit_paddings: &[],
            format: DataFormat::Nhwc,
        };
        let g = Conv2dGeometry::new(&params).expect("a convolution");
        let images = values::<T>(2 * 7 * 6 * 4, 1);
        for group in 0..groups as usize {
            let windows = Windows::new(&images, &g, group);
            let (rows, depth) = (windows.rows(), windows.depth());
            for depths in [0..depth, 0..5, 5..depth - 1, 3..4] {
                let mut found = vec![T::Wide::ONE; rows * 40];
                windows.pack(0..rows, depths.clone(), &mut found, 40);
                for (row, found) in found.chunks_exact(40).enumerate() {
                    for (k, &found) in depths.clone().zip(found) {
                        let expected = windows.factor(row, k);
                        assert_eq!(found, expected, "row {row}, factor {k} of {depths:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn windows_are_those_of_the_formula() {
        check::<f32>(1, 1, 1);
        check::<f32>(2, 2, 1);
        check::<f64>(1, 2, 2);
        check::<f16>(2, 1, 2);
    }
}
