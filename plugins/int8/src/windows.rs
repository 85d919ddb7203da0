//! Windows of images as the rows of a left matrix: the panels of a convolution are packed straight from the image,
//! patch by patch, and no matrix of patches is ever written.
//!
//! Row `p` is the window of output pixel `p`, counted over all images; its factors are those of the filter's rows and
//! columns, and of each the channels. The channels of taps that are neighbours in the image are one run of memory.

use crate::{accumulate::Dot, pack::LINE, vector::Vector};
use tenon_sdk::geometry::{Conv2dGeometry, DataFormat, WindowDim};

/// The windows of a convolution without groups over images with channels last.
#[derive(Debug, Clone, Copy)]
pub struct Windows<'a> {
    images: &'a [u8],
    /// A pixel outside of an image.
    padding: &'a [u8],
    geometry: Conv2dGeometry,
    depth: usize,
    flip: u8,
}

/// An output pixel.
#[derive(Debug, Clone, Copy)]
struct Pixel {
    image: usize,
    y: usize,
    x: usize,
}

impl<'a> Windows<'a> {
    /// Of images; `padding` is what a pixel outside of them holds, and may be empty where no window reaches there. Every
    /// byte is turned over by `flip`.
    ///
    /// Panics when sizes do not agree, or the geometry has groups or channels first.
    pub fn new(
        images: &'a [u8],
        padding: &'a [u8],
        geometry: Conv2dGeometry,
        flip: u8,
    ) -> Windows<'a> {
        let g = &geometry;
        assert!(g.format == DataFormat::Nhwc && g.groups == 1 && g.is_known());
        let pixels = product([g.batch, g.height.input, g.width.input]);
        let depth = depth(g);
        assert_eq!(pixels.map(|n| n * g.in_channels as usize), Some(images.len()));
        let inside = [g.height, g.width].iter().all(|w| w.pad_before == 0 && w.pad_after == 0);
        assert!(padding.len() == g.in_channels as usize || inside, "a pixel of padding");
        Windows { images, padding, geometry, depth, flip }
    }

    /// Output pixels.
    pub fn lines(&self) -> usize {
        let g = &self.geometry;
        product([g.batch, g.height.output, g.width.output]).unwrap_or(0)
    }

    /// Factors of a window.
    pub fn depth(&self) -> usize {
        self.depth
    }

    #[inline(always)]
    fn pixel(&self, number: usize) -> Pixel {
        let (rows, columns) = (self.geometry.height.output, self.geometry.width.output);
        let (row, x) = (number / columns as usize, number % columns as usize);
        Pixel { image: row / rows as usize, y: row % rows as usize, x }
    }

    #[inline(always)]
    fn after(&self, Pixel { image, y, x }: Pixel) -> Pixel {
        let g = &self.geometry;
        if x + 1 < g.width.output as usize {
            Pixel { image, y, x: x + 1 }
        } else if y + 1 < g.height.output as usize {
            Pixel { image, y: y + 1, x: 0 }
        } else {
            Pixel { image: image + 1, y: 0, x: 0 }
        }
    }

    /// Where the pixel that a tap meets begins, in an image and of all images.
    #[inline(always)]
    fn first(&self, at: Pixel, [ky, kx]: [usize; 2]) -> usize {
        let g = &self.geometry;
        let position = |window: &WindowDim, output: usize, tap: usize| {
            (window.start(output) + tap as i64 * window.dilation) as usize
        };
        let y = at.image * g.height.input as usize + position(&g.height, at.y, ky);
        (y * g.width.input as usize + position(&g.width, at.x, kx)) * g.in_channels as usize
    }

    /// Packs the factors of a window, run after run. Not by a closure: that would not be compiled for the instruction set.
    #[inline(always)]
    fn pack_runs<D: Dot, const N: usize>(&self, at: Pixel, row: &mut Row<'_, D, N>) {
        let g = &self.geometry;
        let (rows, columns) = (taps(&g.height, at.y), taps(&g.width, at.x));
        let (channels, all) = (g.in_channels as usize, g.width.kernel as usize);
        // Taps that are neighbours in the image are one run.
        let neighbours = if g.width.dilation == 1 { columns.len().max(1) } else { 1 };
        for ky in 0..g.height.kernel as usize {
            let columns = if rows.contains(&ky) { columns.clone() } else { 0..0 };
            for _ in 0..columns.start {
                row.extend(self.padding);
            }
            for kx in columns.clone().step_by(neighbours) {
                let first = self.first(at, [ky, kx]);
                row.extend(&self.images[first..][..neighbours * channels]);
            }
            for _ in columns.end..all {
                row.extend(self.padding);
            }
        }
    }

    /// Where the runs of a window all of whose taps are inside begin, how long they are and how far apart; `None` for
    /// other windows, for those that do not fit in [`MOST_GATHERED`], and for those whose runs are whole lines.
    #[inline(always)]
    fn short_runs(&self, at: Pixel) -> Option<[usize; 3]> {
        let g = &self.geometry;
        let channels = g.in_channels as usize;
        let run = g.width.kernel as usize * channels;
        let is_inside = taps(&g.height, at.y).len() == g.height.kernel as usize
            && taps(&g.width, at.x).len() == g.width.kernel as usize;
        if !is_inside || g.width.dilation != 1 || self.depth > MOST_GATHERED || run % LINE == 0 {
            return None;
        }
        let first = self.first(at, [0, 0]);
        let step = g.height.dilation as usize * g.width.input as usize * channels;
        // The last run may be read to the end of its last line.
        let end = first + (g.height.kernel as usize - 1) * step + run.next_multiple_of(LINE);
        (end <= self.images.len()).then_some([first, run, step])
    }
}

/// Values of a window that are gathered before they are packed.
const MOST_GATHERED: usize = 1024;

/// The taps of an output that lie inside; all of them, without a division, for most outputs.
#[inline(always)]
fn taps(window: &WindowDim, output: usize) -> std::ops::Range<usize> {
    let start = window.start(output);
    let last = (window.kernel - 1).saturating_mul(window.dilation).saturating_add(start);
    if start >= 0 && last < window.input { 0..window.kernel as usize } else { window.taps(output) }
}

/// Factors of a window. Where they do not fit in a number, the filter has no memory and nothing is computed.
pub fn depth(g: &Conv2dGeometry) -> usize {
    [g.height.kernel, g.width.kernel, g.filter_channels]
        .iter()
        .fold(1, |all: usize, &size| all.saturating_mul(size as usize))
}

/// A product of sizes; where one of them is 0, whatever the others are.
fn product<const N: usize>(sizes: [i64; N]) -> Option<usize> {
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes.iter().try_fold(1usize, |all, &size| all.checked_mul(usize::try_from(size).ok()?))
}

/// As `crate::pack::pack_left`: packs the windows from `first` on, as many as there are `sums`, into a panel.
#[inline(always)]
pub fn pack<D: Dot>(windows: &Windows<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]) {
    let rows = sums.len();
    let mut pixel = windows.pixel(first);
    for (row, sum) in sums.iter_mut().enumerate() {
        *sum = if D::WORDS {
            pack_window::<D, { LINE / 2 }>(windows, pixel, panel, [row, rows])
        } else {
            pack_window::<D, LINE>(windows, pixel, panel, [row, rows])
        };
        pixel = windows.after(pixel);
    }
}

#[inline(always)]
fn pack_window<D: Dot, const N: usize>(
    windows: &Windows<'_>,
    pixel: Pixel,
    panel: &mut [u8],
    [at, rows]: [usize; 2],
) -> i32 {
    let mut row = Row::<D, N> {
        lines: panel.as_chunks_mut::<LINE>().0,
        at,
        step: rows,
        flip: windows.flip,
        // SAFETY: the caller runs instructions of the set.
        sums: unsafe { D::Sums::splat(0) },
        rest: [0; N],
        filled: 0,
    };
    match windows.short_runs(pixel) {
        Some(runs) => row.gather(windows.images, windows.depth, runs),
        None => windows.pack_runs(pixel, &mut row),
    }
    row.finish()
}

/// A row of a panel as it is packed, `N` values a line: as many as a line of the set holds.
struct Row<'p, D: Dot, const N: usize> {
    lines: &'p mut [[u8; LINE]],
    /// The line that comes next, and how far the one after it is.
    at: usize,
    step: usize,
    flip: u8,
    sums: D::Sums,
    /// The first values of the next line.
    rest: [u8; N],
    filled: usize,
}

impl<D: Dot, const N: usize> Row<'_, D, N> {
    /// Whole lines go from the image to the panel; what is left of a run waits for the next one.
    #[inline(always)]
    fn extend(&mut self, mut run: &[u8]) {
        if self.filled > 0 {
            let (now, later) = run.split_at(run.len().min(N - self.filled));
            self.rest[self.filled..][..now.len()].copy_from_slice(now);
            self.filled += now.len();
            if self.filled < N {
                return;
            }
            let whole = self.rest;
            self.push(&whole);
            run = later;
        }
        let (whole, rest) = run.as_chunks::<N>();
        for values in whole {
            self.push(values);
        }
        self.rest[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    /// Runs of `run` values, `step` apart from `first` on, which together are `depth`: side by side, by whole lines of
    /// which the next run takes back what is too much, and from there to the panel.
    #[inline(always)]
    fn gather(&mut self, images: &[u8], depth: usize, [first, run, step]: [usize; 3]) {
        let mut values = [0; MOST_GATHERED + LINE];
        for (number, to) in (0..depth).step_by(run).enumerate() {
            let from = &images[first + number * step..][..run.next_multiple_of(LINE)];
            let lines = from.as_chunks::<LINE>().0;
            for (line, from) in lines.iter().enumerate() {
                values[to + line * LINE..][..LINE].copy_from_slice(from);
            }
        }
        self.extend(&values[..depth]);
    }

    #[inline(always)]
    fn push(&mut self, values: &[u8; N]) {
        let line = &mut self.lines[self.at];
        // SAFETY: the caller runs instructions of the set; the line is room for one, and its values are there.
        self.sums =
            unsafe { D::pack_line(values.as_ptr(), self.flip, line.as_mut_ptr(), self.sums) };
        self.at += self.step;
    }

    #[inline(always)]
    fn finish(mut self) -> i32 {
        if self.filled > 0 {
            // What is turned over to 0.
            self.rest[self.filled..].fill(self.flip);
            let last = self.rest;
            self.push(&last);
        }
        // SAFETY: the caller runs instructions of the set.
        unsafe { self.sums.total() }
    }
}
