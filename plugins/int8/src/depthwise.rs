//! Depthwise convolutions: every lane of a vector is a channel with sums of its own, so that there are no panels; pixels
//! and weights are read where they stand.
//!
//! ```text
//! for each few pixels of an output row
//!     look up the input pixel of each tap
//!     for each block of channels
//!         begin the sums; for each tap: load its weights, multiply the channels of each pixel; write
//! ```
//!
//! Weights are words, the filter's values less their zero points, and channels are widened to words as they are
//! loaded: a product of two of them is exact in 32 bits. A tap outside of the image reads a pixel of zero points.

mod call;
#[cfg(test)]
mod tests;
mod weights;

pub use call::{Images, compute};
pub use weights::{Filter, KeptWeights, Weights};

use crate::{
    accumulate::{Compiled, Dot, Sums},
    isa::Isa,
    output::Stage,
    product::Target,
    vector::{MOST_LANES, VECTORS, Vector},
};
use std::ops::Range;
use tenon_sdk::geometry::Conv2dGeometry;

/// Pixels that are computed at a time, which share the loads of weights.
const PIXELS: usize = 4;
/// Taps that are looked up at a time.
const MOST_TAPS: usize = 32;

/// A depthwise convolution. Channels are those of the output; `padded` is their number with those that fill the last
/// block.
#[derive(Debug)]
pub struct Depthwise<'a> {
    isa: &'static Isa,
    geometry: Conv2dGeometry,
    channels: usize,
    padded: usize,
    signed: bool,
    pixels: Pixels<'a>,
    weights: Weights<'a>,
    stage: Stage<'a>,
    to: Target<'a>,
}

/// Pixels of `padded` bytes each: a pixel's channels, and whatever follows them.
#[derive(Debug, Clone, Copy)]
struct Pixels<'a> {
    /// Those of the images.
    images: &'a [u8],
    /// The last bytes of the images, as many as `padded` where there are so many, and as many zeros behind them.
    end: &'a [u8],
    /// One outside of the images.
    padding: &'a [u8],
}

/// The pixels of some taps, for each output pixel.
type Table<'a> = [[&'a [u8]; PIXELS]; MOST_TAPS];

/// Some neighbours of an output row.
#[derive(Clone, Copy)]
struct Place {
    image: usize,
    y: usize,
    x: usize,
    count: usize,
}

impl<'a> Depthwise<'a> {
    /// The instruction set whose blocks of channels it has.
    pub fn isa(&self) -> &'static Isa {
        self.isa
    }

    /// Parts that can be computed at the same time.
    pub fn units(&self) -> usize {
        let g = &self.geometry;
        (g.batch * g.height.output) as usize * self.row_units()
    }

    fn row_units(&self) -> usize {
        (self.geometry.width.output as usize).div_ceil(PIXELS)
    }

    fn taps(&self) -> usize {
        (self.geometry.height.kernel * self.geometry.width.kernel) as usize
    }

    /// About how long a part takes, in nanoseconds.
    pub fn unit_ns(&self) -> f64 {
        // Writing a value costs about as much as 8 products; a product takes some 4 times as long as in a panel.
        (PIXELS * self.padded) as f64 * (self.taps() as f64 + 8.0) * 4.0 / self.isa.rate
    }

    fn place(&self, unit: usize) -> Place {
        let g = &self.geometry;
        let (row, x) = (unit / self.row_units(), unit % self.row_units() * PIXELS);
        let rows = g.height.output as usize;
        let count = (g.width.output as usize - x).min(PIXELS);
        Place { image: row / rows, y: row % rows, x, count }
    }

    /// The pixel that begins at this byte.
    #[inline(always)]
    fn pixel(&self, first: usize) -> &'a [u8] {
        let Pixels { images, end, .. } = self.pixels;
        match images.get(first..first + self.padded) {
            Some(pixel) => pixel,
            None => &end[first + self.padded.min(images.len()) - images.len()..][..self.padded],
        }
    }

    /// The pixels of the taps from `first` on, as many as the table has.
    #[inline(always)]
    fn look_up(&self, at: Place, first: usize, table: &mut [[&'a [u8]; PIXELS]]) {
        let g = &self.geometry;
        let columns = g.width.kernel as usize;
        let (mut ky, mut kx) = (first / columns, first % columns);
        for pixels in table {
            let y = g.height.input_at(at.y, ky);
            let line = y.map(|y| (at.image * g.height.input as usize + y) * g.width.input as usize);
            for (number, pixel) in pixels.iter_mut().enumerate().take(at.count) {
                *pixel = match (line, g.width.input_at(at.x + number, kx)) {
                    (Some(line), Some(x)) => self.pixel((line + x) * self.channels),
                    _ => self.pixels.padding,
                };
            }
            kx += 1;
            if kx == columns {
                (ky, kx) = (ky + 1, 0);
            }
        }
    }
}

/// Computes some parts.
///
/// # Safety
/// Nobody else computes any of them at the same time; the CPU has the instructions of `D`.
#[inline(always)]
pub unsafe fn run<D: Compiled>(d: &Depthwise<'_>, units: Range<usize>) {
    // SAFETY: the caller knows that nobody else computes these parts, and that the CPU has the instructions of `D`.
    unsafe { if d.signed { parts::<D, true>(d, units) } else { parts::<D, false>(d, units) } }
}

/// Room for the sums of some pixels.
#[repr(align(64))]
struct Spare([i32; PIXELS * VECTORS * MOST_LANES]);

#[inline(always)]
unsafe fn parts<D: Dot, const SIGNED: bool>(d: &Depthwise<'_>, units: Range<usize>) {
    let mut table: Table<'_> = [[&[]; PIXELS]; MOST_TAPS];
    let mut spare = Spare([0; _]);
    let spare = spare.0.as_mut_ptr();
    for unit in units {
        let at = d.place(unit);
        // SAFETY: the caller knows that nobody else computes these parts, and that the CPU has the instructions of `D`;
        // `spare` has room for the sums of `PIXELS` pixels.
        unsafe {
            match at.count {
                1 => part::<D, 1, SIGNED>(d, at, &mut table, spare),
                2 => part::<D, 2, SIGNED>(d, at, &mut table, spare),
                3 => part::<D, 3, SIGNED>(d, at, &mut table, spare),
                _ => part::<D, PIXELS, SIGNED>(d, at, &mut table, spare),
            }
        }
    }
}

/// `P` pixels.
#[inline(always)]
unsafe fn part<'a, D: Dot, const P: usize, const SIGNED: bool>(
    d: &Depthwise<'a>,
    at: Place,
    table: &mut Table<'a>,
    spare: *mut i32,
) {
    let (taps, width) = (d.taps(), VECTORS * D::Sums::LANES);
    let value_bytes = d.stage.value_bytes();
    let row = (at.image * d.geometry.height.output as usize + at.y)
        * d.geometry.width.output as usize
        + at.x;
    let mut found = usize::MAX;
    for first in (0..d.channels).step_by(width) {
        let begin = &d.weights.begin[first..][..width];
        // SAFETY: there is a block of them.
        let mut sums: Sums<D::Sums, P> = unsafe {
            let begin = begin.as_ptr();
            [[D::Sums::load(begin), D::Sums::load(begin.add(D::Sums::LANES))]; P]
        };
        for tap in (0..taps).step_by(MOST_TAPS) {
            let count = (taps - tap).min(MOST_TAPS);
            if found != tap {
                d.look_up(at, tap, &mut table[..count]);
                found = tap;
            }
            let words = &d.weights.words[tap * d.padded + first..];
            // SAFETY: pixels are `padded` bytes, of which `width` from `first` on are read, and so are the words of each
            // tap; the caller has the CPU's instructions.
            unsafe {
                multiply::<D, P, SIGNED>(&table[..count], first, words, d.padded, &mut sums);
            }
        }
        let bytes = width.min(d.channels - first) * value_bytes;
        // SAFETY: these pixels and channels lie in the target, and nobody else writes them; there is room for the sums of
        // `PIXELS` rows.
        unsafe {
            let to = d.to.part(row, first * value_bytes, bytes);
            d.stage.write(first, &sums, &to, spare);
        }
    }
}

/// Adds the products of some taps to the sums of a block of channels.
///
/// # Safety
/// Every pixel has a block from byte `first` on; the words of taps begin `stride` apart; the CPU has the instructions.
#[inline(always)]
unsafe fn multiply<D: Dot, const P: usize, const SIGNED: bool>(
    taps: &[[&[u8]; PIXELS]],
    first: usize,
    words: &[i32],
    stride: usize,
    sums: &mut Sums<D::Sums, P>,
) {
    for (tap, pixels) in taps.iter().enumerate() {
        for vector in 0..VECTORS {
            let lane = vector * D::Sums::LANES;
            // SAFETY: the caller knows that every pixel has a block from byte `first` on, that the words of each tap
            // are there, and that the CPU has the instructions.
            unsafe {
                let words = D::right(words.as_ptr().add(tap * stride + lane).cast());
                for (sums, pixel) in sums.iter_mut().zip(pixels) {
                    let bytes = pixel.as_ptr().add(first + lane);
                    sums[vector] = D::multiply::<SIGNED>(sums[vector], bytes, words);
                }
            }
        }
    }
}
