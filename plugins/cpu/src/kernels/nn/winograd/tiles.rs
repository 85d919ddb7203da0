//! The transformations in two dimensions, one tile at a time, by vectors of channels.

use super::transforms::{Evaluate, MOST_OUTPUTS, MOST_POINTS, Transform};
use crate::{
    arch::{Isa, vectorised},
    vector::Vector,
};

/// The most points of a transformation in two dimensions.
const MOST: usize = MOST_POINTS * MOST_POINTS;
/// The most floats of a vector.
const MOST_LANES: usize = 16;
/// The position of a pixel in the padding; greater than that of any image's pixel.
pub const OUTSIDE: usize = usize::MAX / 2;

/// The positions at which the pixels of a tile begin in an image, row by row; [`OUTSIDE`] in the
/// padding.
pub type Pixels = [usize; MOST];

/// A tile's vectors of channels in matrices `[tile, channel]`, one for each point. Nothing else
/// uses that memory, as the caller of [`Vectors::new`] guarantees.
#[derive(Clone, Copy)]
pub struct Vectors {
    first: *mut f32,
    stride: usize,
    channels: usize,
}

impl Vectors {
    /// Vectors of `channels` channels, from the tile's first element on, with `stride` elements
    /// from a point to the next.
    ///
    /// # Safety
    /// - The vectors may be read and written at each point of a transformation for as long as the
    ///   value is used.
    /// - Nothing else uses them in that time.
    pub unsafe fn new(first: *mut f32, stride: usize, channels: usize) -> Vectors {
        Vectors { first, stride, channels }
    }
}

/// The output memory of a tile. Nothing else uses it, as the caller of [`Outputs::new`] guarantees.
#[derive(Clone, Copy)]
pub struct Outputs {
    first: *mut f32,
    strides: [usize; 2],
    sizes: [usize; 2],
}

impl Outputs {
    /// Outputs of `sizes` rows and columns of pixels, from the first channel of the first pixel on,
    /// with `strides` elements from a row and from a pixel to the next.
    ///
    /// # Safety
    /// - Each pixel may be written, with as many channels as the transformed vectors have, for as
    ///   long as the value is used.
    /// - Nothing else uses the pixels in that time.
    pub unsafe fn new(first: *mut f32, strides: [usize; 2], sizes: [usize; 2]) -> Outputs {
        Outputs { first, strides, sizes }
    }
}

/// Evaluates an expression for each point into an array. It is not a closure, which would be
/// compiled for the baseline.
macro_rules! each_point {
    ($point:ident => $value:expr) => {
        [
            each_point!(@at $point, 0, $value),
            each_point!(@at $point, 1, $value),
            each_point!(@at $point, 2, $value),
            each_point!(@at $point, 3, $value),
            each_point!(@at $point, 4, $value),
            each_point!(@at $point, 5, $value),
        ]
    };
    (@at $point:ident, $at:literal, $value:expr) => {{
        let $point = $at;
        $value
    }};
}

/// Loads the first `count` floats, and zeros beyond them.
///
/// # Safety
/// - `count` floats may be read.
/// - `FULL` is set only if `count` is the length of a vector.
/// - The CPU has the vector's instructions.
#[inline(always)]
unsafe fn load<V: Vector, const FULL: bool>(from: *const f32, count: usize) -> V {
    // SAFETY: the caller guarantees that the floats are there, and that the CPU has the
    // instructions; `some` has room for every vector.
    unsafe {
        if FULL {
            return V::load(from);
        }
        let mut some = [0.0; MOST_LANES];
        std::ptr::copy_nonoverlapping(from, some.as_mut_ptr(), count);
        V::load(some.as_ptr())
    }
}

/// # Safety
/// As [`load`], with floats to write.
#[inline(always)]
unsafe fn store<V: Vector, const FULL: bool>(vector: V, to: *mut f32, count: usize) {
    // SAFETY: the caller guarantees that the floats may be written; `vector` shows that the CPU has
    // the instructions; `some` has room for every vector.
    unsafe {
        if FULL {
            return vector.store(to);
        }
        let mut some = [0.0; MOST_LANES];
        vector.store(some.as_mut_ptr());
        std::ptr::copy_nonoverlapping(some.as_ptr(), to, count);
    }
}

vectorised! {
    /// Transforms the pixels of a tile, for example its inputs: `B^T d B` of each channel.
    pub fn read_tile[T: Evaluate](image: &[f32], pixels: &Pixels, to: Vectors) {
        let mut channel = 0;
        while channel + I::Floats::LEN <= to.channels {
            // SAFETY: the channels are in memory, as the maker of the vectors guarantees.
            unsafe { read_vector::<I, T, true>(image, pixels, to, channel, I::Floats::LEN) };
            channel += I::Floats::LEN;
        }
        if channel < to.channels {
            // SAFETY: the channels are in memory, as the maker of the vectors guarantees.
            unsafe { read_vector::<I, T, false>(image, pixels, to, channel, to.channels - channel) };
        }
    }
}

/// # Safety
/// - The `count` channels from `channel` on exist.
/// - `FULL` is set only if `count` is the length of a vector.
/// - The CPU has the instructions of `I`.
#[inline(always)]
unsafe fn read_vector<I: Isa, T: Evaluate, const FULL: bool>(
    image: &[f32],
    pixels: &Pixels,
    to: Vectors,
    channel: usize,
    count: usize,
) {
    let rows = each_point!(i => {
        let pixels = &pixels[(i * T::LEN).min(MOST - MOST_POINTS)..];
        let d = each_point!(j => {
            let at = pixels[j] + channel;
            match image.get(at..at + count) {
                // SAFETY: the floats are in the slice; a full vector has `count` floats.
                Some(x) if i < T::LEN && j < T::LEN => unsafe {
                    load::<I::Floats, FULL>(x.as_ptr(), count)
                },
                // SAFETY: the caller guarantees that the CPU has the instructions.
                _ => unsafe { I::Floats::zero() },
            }
        });
        T::at_points(d)
    });
    #[expect(clippy::needless_range_loop, reason = "a column of all rows")]
    for j in 0..T::LEN {
        let v = T::at_points(each_point!(i => rows[i][j]));
        for (i, v) in v.iter().enumerate().take(T::LEN) {
            let at = (i * T::LEN + j) * to.stride + channel;
            // SAFETY: the caller guarantees that the `count` channels exist; they may be written at
            // each point, as the maker of `to` guarantees.
            unsafe { store::<I::Floats, FULL>(*v, to.first.add(at), count) };
        }
    }
}

vectorised! {
    /// Transforms the products of a tile: `A^T m A` of each output channel. Returns whether all
    /// outputs are finite.
    pub fn write_tile[T: Transform](from: Vectors, to: Outputs) -> bool {
        // SAFETY: the loop runs where the CPU has the instructions that it is compiled for.
        let mut zeros: I::Floats = unsafe { Vector::zero() };
        let mut channel = 0;
        while channel + I::Floats::LEN <= from.channels {
            // SAFETY: the channels are in memory, as the maker of the vectors guarantees.
            let zero =
                unsafe { write_vector::<I, T, true>(from, to, channel, I::Floats::LEN) };
            zeros = zeros.plus(zero);
            channel += I::Floats::LEN;
        }
        if channel < from.channels {
            let count = from.channels - channel;
            // SAFETY: the channels are in memory, as the maker of the vectors guarantees.
            zeros = zeros.plus(unsafe { write_vector::<I, T, false>(from, to, channel, count) });
        }
        let mut all = [0.0; MOST_LANES];
        // SAFETY: there is room for every vector.
        unsafe { zeros.store(all.as_mut_ptr()) };
        all.iter().all(|zero| *zero == 0.0)
    }
}

/// Transforms the products of a vector of channels. Returns zeros where all outputs are finite: 0
/// times any other number is NaN.
///
/// # Safety
/// As [`read_vector`].
#[inline(always)]
unsafe fn write_vector<I: Isa, T: Transform, const FULL: bool>(
    from: Vectors,
    to: Outputs,
    channel: usize,
    count: usize,
) -> I::Floats {
    let rows = each_point!(i => {
        let m = each_point!(j => {
            if i < T::POINTS && j < T::POINTS {
                let at = (i * T::POINTS + j) * from.stride + channel;
                // SAFETY: the caller guarantees that the `count` channels exist, and that the CPU
                // has the instructions; they may be read at each point, as the maker of `from`
                // guarantees.
                unsafe { load::<I::Floats, FULL>(from.first.add(at), count) }
            } else {
                // SAFETY: the caller guarantees that the CPU has the instructions.
                unsafe { I::Floats::zero() }
            }
        });
        T::outputs(m)
    });
    // SAFETY: the caller guarantees that the CPU has the instructions.
    let mut zeros = unsafe { I::Floats::zero() };
    #[expect(clippy::needless_range_loop, reason = "a column of all rows")]
    for j in 0..T::OUTPUTS.min(to.sizes[1]) {
        let y: [I::Floats; MOST_OUTPUTS] = T::outputs(each_point!(i => rows[i][j]));
        for (i, y) in y.iter().enumerate().take(T::OUTPUTS.min(to.sizes[0])) {
            zeros = y.times_plus(0.0, zeros);
            let at = i * to.strides[0] + j * to.strides[1] + channel;
            // SAFETY: the caller guarantees that the `count` channels exist; they may be written in
            // each output, as the maker of `to` guarantees.
            unsafe { store::<I::Floats, FULL>(*y, to.first.add(at), count) };
        }
    }
    zeros
}
