//! Depthwise convolutions of floats, channels last, in tiles: vectors of channels of neighbouring
//! outputs of a row.
//!
//! A tile's sums stay in registers over all taps. For a row of taps, `N` outputs load each of their
//! `(N - 1) * stride + taps` pixels once for all outputs that read it, and each weight once: 8
//! outputs with 3 taps at stride 1 need 13 loads for 24 products. An output's terms are added tap
//! by tap, wherever its tile begins.
//!
//! Tiles below each other are computed in turn, some channels at a time, so that the first-level
//! cache holds the rows of pixels that they share.

use crate::{
    arch::{Isa, Level, level, vectorised},
    kernels::linalg::gemm::ending::Finish,
    vector::Vector,
};
use std::ops::Range;
use tenon_sdk::geometry::{Conv2dGeometry, DataFormat, WindowDim};

/// The most outputs of a tile: their sums, the weights of 3 taps and a pixel are in 12 registers.
const OUTPUTS: usize = 8;
/// The most taps of a row of the window.
const TAPS: usize = 5;
/// The most channels of tiles below each other: 3 rows of 10 pixels with these channels, and 9
/// weights of each, are in 32 KiB.
const CHANNELS: usize = 192;

/// The pixels of a row that an output reads.
trait Window {
    /// The number of taps, which are neighbours.
    const TAPS: usize;
    /// The number of taps that may be in the padding, on either side.
    const OUTSIDE: usize = Self::TAPS / 2;
    /// Pixels from an output's first one to that of the next output.
    const STRIDE: usize;
    /// The number of pixels that `outputs` neighbouring outputs read.
    #[inline(always)]
    fn pixels(outputs: usize) -> usize {
        (outputs - 1) * Self::STRIDE + Self::TAPS
    }
}

struct Of<const TAPS: usize, const STRIDE: usize>;

impl<const TAPS: usize, const STRIDE: usize> Window for Of<TAPS, STRIDE> {
    const TAPS: usize = TAPS;
    const STRIDE: usize = STRIDE;
}

/// A convolution in tiles.
pub struct Tiles<'a> {
    g: &'a Conv2dGeometry,
    filter: &'a [f32],
    finish: Finish<'a, f32>,
    rows: fn(Level, &Tiles<'_>, &[f32], Range<usize>, &mut [f32]),
    /// The highest level of this CPU; a lower one in tests only.
    pub(super) level: Level,
}

impl<'a> Tiles<'a> {
    /// Returns the convolution if its windows are supported.
    pub fn new(
        g: &'a Conv2dGeometry,
        filter: &'a [f32],
        finish: Finish<'a, f32>,
    ) -> Option<Tiles<'a>> {
        let rows = match (g.width.kernel, g.width.stride) {
            (3, 1) => rows::<Of<3, 1>>,
            (3, 2) => rows::<Of<3, 2>>,
            (5, 1) => rows::<Of<5, 1>>,
            (5, 2) => rows::<Of<5, 2>>,
            _ => return None,
        };
        let is_plain = g.format == DataFormat::Nhwc
            && g.in_channels == g.out_channels
            && g.width.dilation == 1
            && outside(&g.width) <= g.width.kernel / 2;
        is_plain.then_some(Tiles { g, filter, finish, rows, level: level() })
    }

    /// Computes some rows of the output of an image.
    pub fn rows(&self, image: &[f32], rows: Range<usize>, output: &mut [f32]) {
        (self.rows)(self.level, self, image, rows, output);
    }
}

/// The most pixels beyond either end that an output reads.
fn outside(w: &WindowDim) -> i64 {
    let last = (w.output - 1) * w.stride - w.pad_before + w.kernel - 1;
    w.pad_before.max(last + 1 - w.input)
}

vectorised! {
    fn rows at level[W: Window](
        tiles: &Tiles<'_>, image: &[f32], rows: Range<usize>, output: &mut [f32],
    ) {
        let (g, lanes) = (tiles.g, I::Floats::LEN);
        let (channels, columns) = (g.in_channels as usize, g.width.output as usize);
        let line = g.width.input as usize * channels;
        assert_eq!(image.len(), g.height.input as usize * line);
        assert_eq!(tiles.filter.len(), g.height.kernel as usize * W::TAPS * channels);
        assert_eq!(output.len(), rows.len() * columns * channels);
        assert!(tiles.finish.covers(channels, 0), "something to finish each channel with");
        // Parts of about the same size.
        let (blocks, count) = (channels.div_ceil(CHANNELS), columns.div_ceil(OUTPUTS));
        let block = channels.div_ceil(lanes).div_ceil(blocks) * lanes;
        for from in (0..channels).step_by(block) {
            let some = from..channels.min(from + block);
            for (y, output) in rows.clone().zip(output.chunks_exact_mut(columns * channels)) {
                let mut x = 0;
                for tile in 0..count {
                    let width = (columns - x).div_ceil(count - tile);
                    let output = &mut output[x * channels..][..width * channels];
                    let tile = Tile::new::<W>(tiles, image, [y, x], output);
                    // SAFETY: the tile has `width` outputs; its pointers are inside, since image
                    // and filter have the sizes that the geometry gives.
                    unsafe { tile.outputs::<I, W>(width, some.clone()) };
                    x += width;
                }
            }
        }
    }
}

/// A tile: neighbouring outputs of a row.
struct Tile<'a> {
    /// The pixel of the first output's first tap, which may be outside the image, and the distance
    /// from a row of taps to the next.
    image: *const f32,
    line: usize,
    /// The first weight of the first row of taps.
    filter: *const f32,
    output: *mut f32,
    /// The number of rows of taps inside the image, and a bit for each pixel of a row that is
    /// inside.
    rows: usize,
    inside: u32,
    channels: usize,
    finish: Finish<'a, f32>,
}

impl<'a> Tile<'a> {
    /// Returns the tile of the outputs from row and column `at` on.
    #[inline(always)]
    fn new<W: Window>(
        tiles: &Tiles<'a>,
        image: &[f32],
        at: [usize; 2],
        output: &mut [f32],
    ) -> Tile<'a> {
        let (g, channels) = (tiles.g, tiles.g.in_channels as usize);
        let (taps, dilation) = (g.height.taps(at[0]), g.height.dilation as usize);
        let top = (g.height.start(at[0]) as usize).wrapping_add(taps.start.wrapping_mul(dilation));
        let left = g.width.start(at[1]);
        let pixel = top.wrapping_mul(g.width.input as usize).wrapping_add(left as usize);
        let below = |end: i64| (1u32 << end.clamp(0, 31)) - 1;
        Tile {
            image: image.as_ptr().wrapping_add(pixel.wrapping_mul(channels)),
            line: dilation.wrapping_mul(g.width.input as usize * channels),
            filter: tiles.filter.as_ptr().wrapping_add(taps.start * W::TAPS * channels),
            output: output.as_mut_ptr(),
            rows: taps.len(),
            inside: below(g.width.input - left) & !below(-left),
            channels,
            finish: tiles.finish,
        }
    }

    /// Computes some channels of `outputs` outputs.
    ///
    /// # Safety
    /// - The tile has `outputs` outputs with these channels.
    /// - The tile's pointers are valid for what it reads and writes, and nothing else uses the
    ///   outputs.
    /// - The CPU has the instructions of `I`.
    #[inline(always)]
    unsafe fn outputs<I: Isa, W: Window>(&self, outputs: usize, channels: Range<usize>) {
        // SAFETY: the caller guarantees that the tile has `outputs` outputs, and that what it
        // points to is there; the loop that calls this is compiled for the instructions of `I`.
        unsafe {
            match outputs {
                1 => self.vectors::<I, W, 1>(channels),
                2 => self.vectors::<I, W, 2>(channels),
                3 => self.vectors::<I, W, 3>(channels),
                4 => self.vectors::<I, W, 4>(channels),
                5 => self.vectors::<I, W, 5>(channels),
                6 => self.vectors::<I, W, 6>(channels),
                7 => self.vectors::<I, W, 7>(channels),
                _ => self.vectors::<I, W, OUTPUTS>(channels),
            }
        }
    }

    /// Computes some channels of `N` outputs. The last vector overlaps the one before where it
    /// would not be full.
    ///
    /// # Safety
    /// As [`Tile::outputs`], with `N` outputs.
    #[inline(always)]
    unsafe fn vectors<I: Isa, W: Window, const N: usize>(&self, channels: Range<usize>) {
        let lanes = I::Floats::LEN;
        // SAFETY: the caller guarantees that the tile has `N` outputs, and that what it points to
        // is there; the loop that calls this is compiled for the instructions of `I`; the vectors
        // are inside.
        unsafe {
            if self.channels < lanes {
                return self.vector::<I, W, N, false>(0, self.channels);
            }
            for channel in channels.step_by(lanes) {
                self.vector::<I, W, N, true>(channel.min(self.channels - lanes), lanes);
            }
        }
    }

    /// Computes a vector of `count` channels from `channel` on, of `N` outputs.
    ///
    /// # Safety
    /// As [`Tile::outputs`], with `N` outputs, and:
    /// - The `count` channels exist.
    /// - `FULL` is set only if `count` is the length of a vector.
    #[inline(always)]
    unsafe fn vector<I: Isa, W: Window, const N: usize, const FULL: bool>(
        &self,
        channel: usize,
        count: usize,
    ) {
        // SAFETY: the caller guarantees that the CPU has the instructions of `I`.
        let zero = unsafe { I::Floats::zero() };
        let mut sums = [zero; N];
        let mut image = self.image.wrapping_add(channel);
        let mut filter = self.filter.wrapping_add(channel);
        for _ in 0..self.rows {
            let mut weights = [zero; TAPS];
            for (tap, weight) in weights.iter_mut().enumerate().take(W::TAPS) {
                // SAFETY: the caller guarantees that each tap has weights of these channels, and
                // that the CPU has the instructions of `I`.
                *weight =
                    unsafe { load::<_, FULL>(filter.wrapping_add(tap * self.channels), count) };
            }
            // Written out: the compiler would keep so long a loop, with the sums in memory.
            macro_rules! pixels {
                ($($at:literal)*) => {$(
                    let ends = $at < W::OUTSIDE || $at + W::OUTSIDE >= W::pixels(N);
                    if $at < W::pixels(N) && (!ends || self.inside >> $at & 1 == 1) {
                        // SAFETY: the caller guarantees that the pixels of this row are there with
                        // these channels, and that the CPU has the instructions; a pixel that is
                        // not at an end is inside.
                        let x = unsafe { load::<_, FULL>(image.wrapping_add($at * self.channels), count) };
                        add::<I, W, N>(x, $at, &weights, &mut sums);
                    }
                )*};
            }
            pixels!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18);
            image = image.wrapping_add(self.line);
            filter = filter.wrapping_add(W::TAPS * self.channels);
        }
        // SAFETY: the caller guarantees that the tile has these outputs and channels, and that the
        // CPU has the instructions of `I`.
        unsafe { self.finish::<I, N, FULL>(sums, channel, count) };
    }

    /// Finishes the sums and stores them.
    ///
    /// # Safety
    /// As [`Tile::vector`].
    #[inline(always)]
    unsafe fn finish<I: Isa, const N: usize, const FULL: bool>(
        &self,
        mut sums: [I::Floats; N],
        channel: usize,
        count: usize,
    ) {
        macro_rules! of {
            ($values:expr) => {
                // SAFETY: there is a value for each channel.
                unsafe { load::<I::Floats, FULL>($values.as_ptr().add(channel), count) }
            };
        }
        if let Some(bias) = self.finish.bias {
            let bias = of!(bias);
            for sum in &mut sums {
                *sum = sum.plus(bias);
            }
        }
        if let Some([means, factors, offsets]) = self.finish.affine {
            let (mean, factor, offset) = (of!(means), of!(factors), of!(offsets));
            for sum in &mut sums {
                *sum = sum.minus(mean).times(factor).plus(offset);
            }
        }
        if let Some(high) = self.finish.high {
            for sum in &mut sums {
                *sum = sum.clamped(high);
            }
        }
        for (n, sum) in sums.iter().enumerate() {
            let to = self.output.wrapping_add(n * self.channels + channel);
            // SAFETY: the caller guarantees that these channels of each output may be written;
            // `sum` shows that the CPU has the instructions.
            unsafe {
                if FULL {
                    sum.store(to);
                } else {
                    sum.store_part(to, count);
                }
            }
        }
    }
}

/// Adds the products of pixel `at` of a tile's row.
#[inline(always)]
fn add<I: Isa, W: Window, const N: usize>(
    x: I::Floats,
    at: usize,
    weights: &[I::Floats; TAPS],
    sums: &mut [I::Floats; N],
) {
    for (tap, &weight) in weights.iter().enumerate().take(W::TAPS) {
        // Wraps to beyond the outputs where fewer pixels are before this one than taps.
        let output = at.wrapping_sub(tap) / W::STRIDE;
        if output < N && output * W::STRIDE + tap == at {
            sums[output] = x.each_times_plus(weight, sums[output]);
        }
    }
}

/// Loads `count` floats, or a whole vector if `FULL`; other lanes are 0.
///
/// # Safety
/// - `count` floats may be read; with `FULL`, as many as a vector has.
/// - The CPU has the instructions of `V`.
#[inline(always)]
unsafe fn load<V: Vector, const FULL: bool>(from: *const f32, count: usize) -> V {
    // SAFETY: the caller guarantees that the floats are there; it runs where the CPU has the
    // instructions of `V`.
    unsafe { if FULL { V::load(from) } else { V::load_part(from, count) } }
}
