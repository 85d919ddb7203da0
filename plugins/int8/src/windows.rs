//! Windows of images as the rows of a left matrix: the panels of a convolution are packed directly
//! from the image, patch by patch, without a matrix of patches.
//!
//! Row `p` is the window of output pixel `p`, counted over all images; its factors are the filter's
//! rows, columns and channels, in this order. The channels of taps that are adjacent in the image
//! are one run of memory.

use crate::{
    accumulate::{Dot, MOST_ROWS},
    pack::LINE,
    vector::Vector,
};
use tenon_sdk::geometry::{Conv2dGeometry, DataFormat, OutputPixel, WindowDim};

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

impl<'a> Windows<'a> {
    /// Windows of images; `padding` is a pixel for positions outside of them, and may be empty if
    /// no window reaches there. Every byte is XORed with `flip`.
    ///
    /// Panics if sizes do not match, or if the geometry has groups or channels first.
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

    /// Number of output pixels.
    pub fn lines(&self) -> usize {
        let g = &self.geometry;
        product([g.batch, g.height.output, g.width.output]).unwrap_or(0)
    }

    /// Number of factors of a window.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Index of the pixel under a tap, over all images.
    #[inline(always)]
    fn first(&self, at: OutputPixel, [ky, kx]: [usize; 2]) -> usize {
        let g = &self.geometry;
        let position = |window: &WindowDim, output: usize, tap: usize| {
            (window.start(output) + tap as i64 * window.dilation) as usize
        };
        let y = at.image * g.height.input as usize + position(&g.height, at.y, ky);
        (y * g.width.input as usize + position(&g.width, at.x, kx)) * g.in_channels as usize
    }

    /// Passes the factors of a window, run after run. `to` is not a closure, which would not be
    /// compiled for the instruction set.
    #[inline(always)]
    fn runs(&self, at: OutputPixel, to: &mut impl Extend) {
        let g = &self.geometry;
        let (rows, columns) = (g.height.taps(at.y), g.width.taps(at.x));
        let (channels, all) = (g.in_channels as usize, g.width.kernel as usize);
        // Taps that are adjacent in the image are one run.
        let neighbours = if g.width.dilation == 1 { columns.len().max(1) } else { 1 };
        for ky in 0..g.height.kernel as usize {
            let columns = if rows.contains(&ky) { columns.clone() } else { 0..0 };
            for _ in 0..columns.start {
                to.extend(self.padding);
            }
            for kx in columns.clone().step_by(neighbours) {
                let first = self.first(at, [ky, kx]);
                to.extend(&self.images[first..][..neighbours * channels]);
            }
            for _ in columns.end..all {
                to.extend(self.padding);
            }
        }
    }

    /// Number of values in a run of a window whose taps are all inside.
    #[inline(always)]
    fn run(&self) -> usize {
        self.geometry.width.kernel as usize * self.geometry.in_channels as usize
    }

    /// Whether windows are gathered before they are packed: when they are small, and their runs are
    /// not whole lines.
    #[inline(always)]
    fn gathers(&self) -> bool {
        let is_short = self.depth <= MOST_GATHERED && !self.run().is_multiple_of(LINE);
        is_short && self.geometry.width.dilation == 1
    }

    /// Collects the factors of a window. For a window whose taps are all inside, runs are copied in
    /// whole lines: the next run overwrites the excess.
    #[inline(always)]
    fn gather(&self, at: OutputPixel, to: &mut Gathered) {
        let g = &self.geometry;
        let [height, width] = [&g.height, &g.width].map(|window| window.kernel as usize);
        let is_inside = g.height.taps(at.y).len() == height && g.width.taps(at.x).len() == width;
        let step = g.height.dilation as usize * g.width.input as usize * g.in_channels as usize;
        let read = self.run().next_multiple_of(LINE);
        let first = if is_inside { self.first(at, [0, 0]) } else { self.images.len() };
        if first + (height - 1) * step + read > self.images.len() {
            let mut values = Values { to, filled: 0 };
            return self.runs(at, &mut values);
        }
        for (ky, to_first) in (0..self.depth).step_by(self.run()).enumerate() {
            let from = self.images[first + ky * step..][..read].as_chunks::<LINE>().0;
            for (from, to) in from.iter().zip(to[to_first..].as_chunks_mut::<LINE>().0) {
                *to = *from;
            }
        }
    }
}

/// Most values of a window that is gathered.
const MOST_GATHERED: usize = 320;
/// A window, with room for the excess of its last run.
type Gathered = [u8; MOST_GATHERED + LINE];

/// Receives the runs of a window.
trait Extend {
    /// Appends a run.
    fn extend(&mut self, run: &[u8]);
}

/// Collects runs side by side.
struct Values<'v> {
    to: &'v mut Gathered,
    filled: usize,
}

impl Extend for Values<'_> {
    #[inline(always)]
    fn extend(&mut self, run: &[u8]) {
        self.to[self.filled..][..run.len()].copy_from_slice(run);
        self.filled += run.len();
    }
}

/// Number of factors of a window. If it overflows, the filter has no memory and nothing is
/// computed.
pub fn depth(g: &Conv2dGeometry) -> usize {
    [g.height.kernel, g.width.kernel, g.filter_channels]
        .iter()
        .fold(1, |all: usize, &size| all.saturating_mul(size as usize))
}

/// The product of sizes; 0 if one of them is 0, even if the others overflow.
fn product<const N: usize>(sizes: [i64; N]) -> Option<usize> {
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes.iter().try_fold(1usize, |all, &size| all.checked_mul(usize::try_from(size).ok()?))
}

/// Like `crate::pack::pack_left`: packs `sums.len()` windows from `first` on into a panel.
#[inline(always)]
pub fn pack<D: Dot>(windows: &Windows<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]) {
    let (rows, flip) = (sums.len(), windows.flip);
    let mut pixel = windows.geometry.output_pixel(first);
    if windows.gathers() {
        // All of them before the first one is read: loads that combine several recent stores would
        // stall.
        let mut gathered = [[0; MOST_GATHERED + LINE]; MOST_ROWS];
        for gathered in &mut gathered[..rows] {
            windows.gather(pixel, gathered);
            pixel = windows.geometry.pixel_after(pixel);
        }
        for (row, (sum, gathered)) in sums.iter_mut().zip(&mut gathered).enumerate() {
            let to = [row, rows];
            *sum = if D::WORDS {
                pack_gathered::<D, { LINE / 2 }>(gathered, windows.depth, flip, panel, to)
            } else {
                pack_gathered::<D, LINE>(gathered, windows.depth, flip, panel, to)
            };
        }
        return;
    }
    for (row, sum) in sums.iter_mut().enumerate() {
        *sum = if D::WORDS {
            pack_window::<D, { LINE / 2 }>(windows, pixel, panel, [row, rows])
        } else {
            pack_window::<D, LINE>(windows, pixel, panel, [row, rows])
        };
        pixel = windows.geometry.pixel_after(pixel);
    }
}

#[inline(always)]
fn pack_gathered<D: Dot, const N: usize>(
    gathered: &mut Gathered,
    depth: usize,
    flip: u8,
    panel: &mut [u8],
    at: [usize; 2],
) -> i32 {
    let end = depth.next_multiple_of(N);
    // `flip` becomes 0.
    gathered[depth..end].fill(flip);
    let mut row = Row::<D, N>::new(panel, at, flip);
    for values in gathered[..end].as_chunks::<N>().0 {
        row.push(values);
    }
    row.finish()
}

#[inline(always)]
fn pack_window<D: Dot, const N: usize>(
    windows: &Windows<'_>,
    pixel: OutputPixel,
    panel: &mut [u8],
    at: [usize; 2],
) -> i32 {
    let mut row = Row::<D, N>::new(panel, at, windows.flip);
    windows.runs(pixel, &mut row);
    row.finish()
}

/// A row of a panel during packing, `N` values a line: as many as a line of the set holds.
struct Row<'p, D: Dot, const N: usize> {
    lines: &'p mut [[u8; LINE]],
    /// Index of the next line, and the distance to the one after it.
    at: usize,
    step: usize,
    flip: u8,
    sums: D::Sums,
    /// The first values of the next line.
    rest: [u8; N],
    filled: usize,
}

impl<D: Dot, const N: usize> Extend for Row<'_, D, N> {
    /// Copies whole lines from the image to the panel; the rest of a run waits for the next one.
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
}

impl<'p, D: Dot, const N: usize> Row<'p, D, N> {
    /// Row `at` of a panel of `step` rows.
    #[inline(always)]
    fn new(panel: &'p mut [u8], [at, step]: [usize; 2], flip: u8) -> Self {
        // SAFETY: the caller runs instructions of the set, so that the CPU has them.
        let sums = unsafe { D::Sums::splat(0) };
        Row {
            lines: panel.as_chunks_mut::<LINE>().0,
            at,
            step,
            flip,
            sums,
            rest: [0; N],
            filled: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, values: &[u8; N]) {
        let line = &mut self.lines[self.at];
        // SAFETY: the caller runs instructions of the set, so that the CPU has them; there is room
        // for the line, and its values exist.
        self.sums =
            unsafe { D::pack_line(values.as_ptr(), self.flip, line.as_mut_ptr(), self.sums) };
        self.at += self.step;
    }

    #[inline(always)]
    fn finish(mut self) -> i32 {
        if self.filled > 0 {
            // `flip` becomes 0.
            self.rest[self.filled..].fill(self.flip);
            let last = self.rest;
            self.push(&last);
        }
        // SAFETY: the caller runs instructions of the set, so that the CPU has them.
        unsafe { self.sums.total() }
    }
}
