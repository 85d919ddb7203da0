//! The windows of images as lines: rows of images inside a frame of zeros, so that every tap is
//! inside.
//!
//! A row of output pixels is a line. Rows of images are counted over all images, with those of the
//! frames. They have the channels of one group, and are as long as the windows of a row of output
//! pixels reach.

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

/// Whether the windows in a frame have the layout that tiles read: the taps of a row are
/// neighbours, and windows leave no row or column of pixels between them.
pub fn has_lines(g: &Conv2dGeometry) -> bool {
    let meet = |window: &WindowDim| window.kernel >= window.stride;
    g.filter_channels > 0 && g.width.dilation == 1 && meet(&g.height) && meet(&g.width)
}

/// The number of inputs, with those of the frame, that `windows` neighbouring windows reach.
fn reach(window: &WindowDim, windows: usize) -> usize {
    let taps = (window.kernel - 1).saturating_mul(window.dilation).saturating_add(1);
    windows.saturating_sub(1).saturating_mul(window.stride as usize).saturating_add(taps as usize)
}

impl<T> Windows<'_, T> {
    /// The number of rows of an image in its frame.
    #[inline(always)]
    fn image_rows(&self) -> usize {
        reach(&self.geometry.height, self.geometry.height.output as usize)
    }

    /// The number of elements of a row of an image in its frame.
    #[inline(always)]
    fn row_len(&self) -> usize {
        let g = self.geometry;
        reach(&g.width, g.width.output as usize).saturating_mul(g.filter_channels as usize)
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
            piece_step: self.row_len().saturating_mul(g.height.dilation as usize),
        }
    }

    fn len_of(&self, lines: usize) -> usize {
        let window = &self.geometry.height;
        let of_image = window.output as usize;
        let images = lines.saturating_sub(1).div_ceil(of_image.max(1));
        let between = self.image_rows().saturating_sub(of_image * window.stride as usize);
        let rows = reach(window, lines).saturating_add(images.saturating_mul(between));
        rows.saturating_mul(self.row_len())
    }

    fn pack_lines(&self, lines: Range<usize>, to: &mut [T::Wide]) {
        let first = self.row_of(lines.start);
        let last = self.row_of(lines.end - 1) + reach(&self.geometry.height, 1);
        pack(self, first..last, to);
    }

    fn line_at(&self, first: usize, line: usize) -> usize {
        (self.row_of(line) - self.row_of(first)) * self.row_len()
    }
}

vectorised! {
    /// Packs rows of images in their frames.
    fn pack[T: Compute](windows: &Windows<'_, T>, rows: Range<usize>, to: &mut [T::Wide]) {
        let g = windows.geometry;
        let (channels, all) = (g.filter_channels as usize, g.in_channels as usize);
        let (height, width) = (g.height.input as usize, g.width.input as usize);
        let (image_rows, row_len) = (windows.image_rows(), windows.row_len());
        // With negative padding, the first rows and columns are outside.
        let pads = [&g.height, &g.width].map(|window| window.pad_before.max(0) as usize);
        let skipped = [&g.height, &g.width]
            .map(|window| (-window.pad_before).clamp(0, window.input) as usize);
        let before = pads[1].saturating_mul(channels).min(row_len);
        let inside = ((width - skipped[1]) * channels).min(row_len - before);
        assert!(to.len() / row_len >= rows.len(), "memory for the rows");
        for (row, to) in rows.zip(to.chunks_exact_mut(row_len)) {
            let y = (row % image_rows + skipped[0]).checked_sub(pads[0]);
            let Some(y) = y.filter(|&y| y < height) else {
                to.fill(T::Wide::ZERO);
                continue;
            };
            let (start, to) = to.split_at_mut(before);
            let (to, end) = to.split_at_mut(inside);
            start.fill(T::Wide::ZERO);
            end.fill(T::Wide::ZERO);
            let from = ((row / image_rows * height + y) * width + skipped[1]) * all
                + windows.group * channels;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernels::linalg::{
            gemm::{
                blocks::Product, ending::Ending, isa::Tiled, left::Left, lines::lines_of,
                right::PackedRight,
            },
            product::{Factor, Operand, Target},
        },
        testing::{assert_close, values},
    };
    use half::{bf16, f16};
    use tenon_reference::{Accumulate, nn::conv2d};
    use tenon_sdk::geometry::{Conv2dParams, DataFormat, Padding};

    /// Input, filter, strides (rows, columns), dilation of rows, padding.
    type Case = ([i64; 4], [i64; 4], [i64; 2], i64, Padding);

    /// Cases with channels in one group and in two, rows and columns of pixels that no window
    /// reaches, windows inside the frame alone, and blocks of the depth that end within a row of
    /// taps.
    const CASES: [Case; 8] = [
        ([2, 5, 9, 3], [3, 3, 3, 5], [1, 1], 1, Padding::Same),
        ([3, 8, 17, 4], [3, 2, 2, 6], [2, 1], 1, Padding::Same),
        ([1, 7, 21, 2], [3, 5, 2, 50], [1, 2], 2, Padding::Same),
        ([2, 6, 12, 1], [2, 3, 1, 3], [2, 2], 1, Padding::Valid),
        ([2, 1, 4, 6], [7, 7, 3, 4], [1, 1], 1, Padding::Same),
        ([1, 3, 10, 150], [3, 3, 150, 20], [1, 1], 1, Padding::Same),
        ([2, 4, 11, 2], [1, 4, 2, 17], [1, 3], 1, Padding::Same),
        ([1, 20, 7, 5], [3, 1, 5, 33], [1, 1], 4, Padding::Valid),
    ];

    fn geometry((input, filter, [rows, columns], dilation, padding): &Case) -> Conv2dGeometry {
        Conv2dGeometry::new(&Conv2dParams {
            input,
            filter,
            strides: &[1, *rows, *columns, 1],
            dilations: &[1, *dilation, 1, 1],
            padding: *padding,
            explicit_paddings: &[],
            format: DataFormat::Nhwc,
        })
        .expect("a convolution")
    }

    fn count(dims: &[i64]) -> usize {
        dims.iter().product::<i64>() as usize
    }

    /// Checks that every factor of every row of some lines is where the layout puts it.
    fn check_lines<T: Compute>(windows: &Windows<'_, T>, lines: Range<usize>) {
        let layout = windows.layout();
        let mut found = vec![T::Wide::ONE; windows.len_of(lines.len())];
        windows.pack_lines(lines.clone(), &mut found);
        for (line, x) in lines.clone().flat_map(|line| (0..layout.rows).map(move |x| (line, x))) {
            let first = windows.line_at(lines.start, line) + x * layout.row_step;
            for k in 0..windows.depth() {
                let found = found[first + layout.from(k).0];
                let expected = windows.factor(line * layout.rows + x, k);
                assert_eq!(found, expected, "pixel {x} of line {line} of {lines:?}, factor {k}");
            }
        }
    }

    #[test]
    fn factors_are_where_the_layout_says() {
        for case in &CASES {
            let g = geometry(case);
            assert!(has_lines(&g));
            let images = values::<f16>(count(&case.0), 1);
            for group in 0..g.groups as usize {
                let windows = Windows::new(&images, &g, group);
                let lines = windows.rows() / windows.layout().rows;
                for first in 0..lines {
                    check_lines(&windows, first..first + 1);
                    check_lines(&windows, first..lines.min(first + 7));
                }
            }
        }
    }

    /// The products of the windows of one group, in parts that are cut anywhere.
    fn products<T: Compute<Wide: Factor + Tiled>>(
        g: &Conv2dGeometry,
        (images, filter): (&[T], &[T]),
        expected: &[T],
        relative: f64,
    ) {
        let windows = Windows::new(images, g, 0);
        let left: &dyn Left<T::Wide> = &windows;
        let (rows, depth, columns) = (left.rows(), left.depth(), g.out_channels as usize);
        for isa in T::Wide::ALL.iter().copied().filter(|isa| isa.is_supported()) {
            let matrix = Operand::dense(filter, depth, columns);
            let right = PackedRight::new(isa, &matrix).expect("it is small");
            let run = |parts: usize| {
                let mut found = vec![T::Wide::ONE; rows * columns];
                // SAFETY: the target is the whole vector.
                let to = unsafe { Target::new(found.as_mut_ptr(), rows, columns, [columns, 1]) };
                let product = Product::new(left, right.view(), &to, Ending::NONE);
                let strips = product.strips();
                for part in (0..parts).rev() {
                    let strips = part * strips / parts..(part + 1) * strips / parts;
                    // SAFETY: the parts are computed one after the other.
                    unsafe { product.run(strips, 0..product.panels()) };
                }
                found
            };
            let whole = run(1);
            assert!((2..6).all(|parts| run(parts) == whole), "{}: {g:?} in parts", isa.name);
            let found: Vec<T> = whole.into_iter().map(T::down).collect();
            assert_close(&found, expected, 300.0 * relative, relative);
        }
    }

    fn check_products<T: Compute<Wide: Factor + Tiled> + Accumulate>(relative: f64) {
        for case in CASES.iter().filter(|(input, filter, ..)| input[3] == filter[2]) {
            let g = geometry(case);
            let (x, f) = (values::<T>(count(&case.0), 1), values::<T>(count(&case.1), 2));
            let mut expected = vec![T::ZERO; count(&g.output_dims())];
            conv2d(&g, &x, &f, &mut expected);
            products(&g, (&x, &f), &expected, relative);
        }
    }

    #[test]
    fn products_of_lines_are_those_of_the_reference() {
        check_products::<f32>(1e-5);
        check_products::<f64>(1e-13);
        check_products::<f16>(2e-3);
        check_products::<bf16>(1.6e-2);
    }

    /// Windows with another layout, or that fill less than half a tile, are packed.
    #[test]
    fn other_windows_have_no_lines() {
        let of = |case: Case| {
            let (g, images) = (geometry(&case), values::<f32>(count(&case.0), 1));
            let windows = Windows::new(&images, &g, 0);
            lines_of(&windows as &dyn Left<f32>, f32::ALL[0]).is_some()
        };
        assert!(of(([1, 9, 9, 2], [3, 3, 2, 4], [1, 1], 1, Padding::Same)));
        assert!(!of(([1, 9, 9, 2], [1, 1, 2, 4], [2, 2], 1, Padding::Same)), "pixels between");
        assert!(!of(([1, 9, 1, 2], [3, 3, 2, 4], [1, 1], 1, Padding::Same)), "one pixel a row");
        let long = ([1, 3, 9, 30_000], [3, 3, 30_000, 1], [1, 1], 1, Padding::Same);
        assert!(!of(long), "no two rows in the cache");
    }
}
