//! Depthwise convolutions: each lane of a vector is a channel with its own sums, so that nothing is
//! packed into panels; pixels and weights are read in place.
//!
//! ```text
//! for each few pixels of an output row
//!     look up the input pixel of each tap
//!     for each block of channels
//!         begin the sums; for each tap: load its weights, multiply the channels of each pixel; write
//! ```
//!
//! Weights are words, the filter's values minus their zero points, and channels are widened to
//! words as they are loaded: a product of two of them is exact in 32 bits. For a tap outside of the
//! image a pixel of zero points is read.

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

/// Number of pixels computed together, which share the loads of weights.
const PIXELS: usize = 4;
/// Most taps that are looked up together.
const MOST_TAPS: usize = 32;

/// A depthwise convolution. Channels are those of the output; `padded` is their number including
/// those that fill the last block.
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

/// Pixels of `padded` bytes each: a pixel's channels, and the bytes that follow them.
#[derive(Debug, Clone, Copy)]
struct Pixels<'a> {
    /// The pixels of the images.
    images: &'a [u8],
    /// The last bytes of the images, `padded` of them if there are that many, followed by as many
    /// zeros.
    end: &'a [u8],
    /// A pixel outside of the images.
    padding: &'a [u8],
}

/// The pixels under some taps, for each output pixel.
type Table<'a> = [[&'a [u8]; PIXELS]; MOST_TAPS];

/// Some adjacent pixels of an output row.
#[derive(Clone, Copy)]
struct Place {
    image: usize,
    y: usize,
    x: usize,
    count: usize,
}

impl<'a> Depthwise<'a> {
    /// The instruction set for which its blocks of channels are laid out.
    pub fn isa(&self) -> &'static Isa {
        self.isa
    }

    /// Number of parts that can be computed at the same time.
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

    /// Approximate duration of a part, in nanoseconds.
    pub fn unit_ns(&self) -> f64 {
        // Writing a value costs about as much as 8 products; a product takes about 4 times as long
        // as in a panel.
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

    /// Looks up the pixels of the taps from `first` on, as many as the table has.
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
/// - Nothing else computes any of these parts at the same time.
/// - The CPU has the instructions of `D`.
#[inline(always)]
pub unsafe fn run<D: Compiled>(d: &Depthwise<'_>, units: Range<usize>) {
    // SAFETY: the caller guarantees that nothing else computes these parts, and that the CPU has
    // the instructions of `D`.
    unsafe { if d.signed { parts::<D, true>(d, units) } else { parts::<D, false>(d, units) } }
}

/// Room for the sums of some pixels.
#[repr(align(64))]
struct Spare([i32; PIXELS * VECTORS * MOST_LANES]);

/// Computes the parts of one signedness.
///
/// # Safety
/// - The caller upholds what [`run`] requires.
#[inline(always)]
unsafe fn parts<D: Dot, const SIGNED: bool>(d: &Depthwise<'_>, units: Range<usize>) {
    let mut table: Table<'_> = [[&[]; PIXELS]; MOST_TAPS];
    let mut spare = Spare([0; _]);
    let spare = spare.0.as_mut_ptr();
    for unit in units {
        let at = d.place(unit);
        // SAFETY: the caller guarantees that nothing else computes these parts, and that the CPU
        // has the instructions of `D`; `spare` has room for the sums of `PIXELS` pixels.
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

/// Computes `P` pixels.
///
/// # Safety
/// - Nothing else computes these pixels at the same time.
/// - `spare` has room for the sums of `PIXELS` pixels.
/// - The CPU has the instructions of `D`.
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
        // SAFETY: there are as many initial values as a block has channels.
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
            // SAFETY: pixels are `padded` bytes, of which `width` from `first` on are read, and so
            // are the words of each tap; the caller guarantees that the CPU has the instructions.
            unsafe {
                multiply::<D, P, SIGNED>(&table[..count], first, words, d.padded, &mut sums);
            }
        }
        let bytes = width.min(d.channels - first) * value_bytes;
        // SAFETY: these pixels and channels are in the target, and nothing else writes them; there
        // is room for the sums of `PIXELS` rows.
        unsafe {
            let to = d.to.part(row, first * value_bytes, bytes);
            d.stage.write(first, &sums, &to, spare);
        }
    }
}

/// Adds the products of some taps to the sums of a block of channels.
///
/// # Safety
/// - Every pixel has a block from byte `first` on.
/// - The words of consecutive taps are `stride` apart, with a block for each tap.
/// - The CPU has the instructions.
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
            // SAFETY: the caller guarantees that every pixel has a block from byte `first` on, that
            // the words of each tap exist, and that the CPU has the instructions.
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
