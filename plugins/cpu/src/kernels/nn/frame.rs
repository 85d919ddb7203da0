//! The windows of images as lines: rows of images within a frame of zeros, in which no tap lies outside.
//!
//! A row of output pixels is a line. Rows of images are counted over all images, each with those of its frame, and are
//! as long as the windows of a row of output pixels reach; of a group's channels alone.

use super::windows::{Windows, copy};
use crate::{
    arch::vectorised,
    kernels::linalg::gemm::lines::{Layout, Lines},
    lane::Compute,
};
use std::ops::Range;
use tenon_sdk::{
    element::Number,
    geometry::{Conv2dGeometry, WindowDim},
};

/// Whether windows lie in a frame as tiles read them: a row of taps is neighbours, and no row or column is between
/// windows.
pub fn has_lines(g: &Conv2dGeometry) -> bool {
    let meet = |window: &WindowDim| window.kernel >= window.stride;
    g.width.dilation == 1 && meet(&g.height) && meet(&g.width)
}

/// Inputs, with those of the frame, that so many neighbouring windows reach.
fn reach(window: &WindowDim, windows: usize) -> usize {
    let taps = (window.kernel - 1) * window.dilation + 1;
    windows.saturating_sub(1) * window.stride as usize + taps as usize
}

impl<T> Windows<'_, T> {
    /// Rows of an image in its frame.
    #[inline(always)]
    fn image_rows(&self) -> usize {
        reach(&self.geometry.height, self.geometry.height.output as usize)
    }

    /// Numbers of a row of an image in its frame.
    #[inline(always)]
    fn row_len(&self) -> usize {
        let g = self.geometry;
        reach(&g.width, g.width.output as usize) * g.filter_channels as usize
    }

    /// The first row of an image that the windows of a line reach.
    #[inline(always)]
    fn row_of(&self, line: usize) -> usize {
        let window = &self.geometry.height;
        let lines = window.output as usize;
        line / lines * self.image_rows() + line % lines * window.stride as usize
    }
}

impl<T: Compute> Lines<T::Wide> for Windows<'_, T> {
    fn layout(&self) -> Layout {
        let g = self.geometry;
        let channels = g.filter_channels as usize;
        Layout {
            rows: g.width.output as usize,
            row_step: g.width.stride as usize * channels,
            piece: g.width.kernel as usize * channels,
            piece_step: g.height.dilation as usize * self.row_len(),
        }
    }

    fn len(&self, lines: usize) -> usize {
        let window = &self.geometry.height;
        let of_image = window.output as usize;
        let images = (lines.saturating_sub(1)).div_ceil(of_image.max(1));
        let between = self.image_rows() - of_image * window.stride as usize;
        (reach(window, lines) + images * between) * self.row_len()
    }

    fn pack(&self, lines: Range<usize>, to: &mut [T::Wide]) {
        let first = self.row_of(lines.start);
        let last = self.row_of(lines.end - 1) + reach(&self.geometry.height, 1);
        pack(self, first..last, to);
    }

    fn line_at(&self, first: usize, line: usize) -> usize {
        (self.row_of(line) - self.row_of(first)) * self.row_len()
    }
}

vectorised! {
    /// Rows of images in their frames.
    fn pack[T: Compute](windows: &Windows<'_, T>, rows: Range<usize>, to: &mut [T::Wide]) {
        let g = windows.geometry;
        let (channels, all) = (g.filter_channels as usize, g.in_channels as usize);
        let (height, width) = (g.height.input as usize, g.width.input as usize);
        let (image_rows, row_len) = (windows.image_rows(), windows.row_len());
        let before = (g.width.pad_before as usize * channels).min(row_len);
        let inside = (width * channels).min(row_len - before);
        for (row, to) in rows.zip(to.chunks_exact_mut(row_len)) {
            let y = (row % image_rows).checked_sub(g.height.pad_before as usize);
            let Some(y) = y.filter(|&y| y < height) else {
                to.fill(T::Wide::ZERO);
                continue;
            };
            let (start, to) = to.split_at_mut(before);
            let (to, end) = to.split_at_mut(inside);
            start.fill(T::Wide::ZERO);
            end.fill(T::Wide::ZERO);
            let from = (row / image_rows * height + y) * width * all + windows.group * channels;
            if channels == all {
                copy(&windows.images[from..][..inside], to);
                continue;
            }
            for (pixel, to) in to.chunks_exact_mut(channels).enumerate() {
                copy(&windows.images[from + pixel * all..][..channels], to);
            }
        }
    }
}
