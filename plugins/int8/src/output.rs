//! Output: what is done to a row of sums on its way to memory.
//!
//! The stages are those of `tenon_sdk::fixed_point`, compiled for each instruction set by the loops here. Sums begin
//! as the terms of zero points and bias ([`Terms`]), so that what is left is to multiply, clamp, move and cast.

use crate::{accumulate::Dot, product::Right};
use std::{marker::PhantomData, slice};
use tenon_sdk::fixed_point::{Multiplier, QuantizedRange, multiply_by_float};

/// What sums begin as: of row `i` and column `j`, `columns[j] + slopes[j] * (sum of row i)`.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// `bias[j] - left_zero * (sum of column j) + depth * left_zero * right_zero[j]`.
    pub columns: &'a [i32],
    /// `-right_zero[j]`.
    pub slopes: Slopes<'a>,
}

/// The right zero points, negated.
#[derive(Debug, Clone, Copy)]
pub enum Slopes<'a> {
    /// The same for all columns.
    One(i32),
    /// Of each column.
    Each(&'a [i32]),
}

impl Terms<'_> {
    /// Whether there are terms for so many columns.
    pub fn covers(&self, columns: usize) -> bool {
        let slopes = match self.slopes {
            Slopes::One(_) => columns,
            Slopes::Each(slopes) => slopes.len(),
        };
        self.columns.len() >= columns && slopes >= columns
    }

    /// The beginning of a tile's sums: of as many rows as there are `row_sums`, in the columns from `first` on.
    ///
    /// The slices that are written are arguments of their own here and in [`Stage::write`], and loops have no fixed
    /// length: so the compiler knows that nothing overlaps, and vectorises.
    #[inline(always)]
    pub fn begin(&self, first: usize, row_sums: &[i32], sums: &mut [i32]) {
        let width = sums.len() / row_sums.len().max(1);
        let columns = &self.columns[first..][..width];
        for (sums, &row_sum) in sums.chunks_exact_mut(width).zip(row_sums) {
            match self.slopes {
                Slopes::One(slope) => {
                    let term = slope.wrapping_mul(row_sum);
                    for (sum, &column) in sums.iter_mut().zip(columns) {
                        *sum = column.wrapping_add(term);
                    }
                }
                Slopes::Each(slopes) => {
                    let slopes = &slopes[first..][..width];
                    for ((sum, &column), &slope) in sums.iter_mut().zip(columns).zip(slopes) {
                        *sum = column.wrapping_add(slope.wrapping_mul(row_sum));
                    }
                }
            }
        }
    }
}

/// Writes what the sums of each column begin with, apart from the slopes: zero points are those of the packed values,
/// `right_zeros` one for all columns or one for each, `bias` one for each or none. Arithmetic is modulo 2^32.
///
/// Panics when there are other numbers of them.
pub fn column_terms(
    right: Right<'_>,
    left_zero: i32,
    right_zeros: &[i32],
    bias: &[i32],
    to: &mut [i32],
) {
    let columns = right.columns();
    assert!(matches!(right_zeros.len(), n if n == 1 || n == columns), "zero points of columns");
    assert!(bias.is_empty() || bias.len() == columns, "a bias for each column");
    let depth = right.depth() as i32;
    for (at, (to, &sum)) in to.iter_mut().zip(right.sums()).enumerate() {
        let zero = *right_zeros.get(at).unwrap_or(&right_zeros[0]);
        let centre = depth.wrapping_mul(zero).wrapping_sub(sum);
        let bias = bias.get(at).copied().unwrap_or(0);
        *to = bias.wrapping_add(left_zero.wrapping_mul(centre));
    }
}

/// What becomes of sums. Scales and multipliers are those of the columns, one for each of the padded panels.
#[derive(Debug, Clone, Copy)]
pub enum Stage<'a> {
    /// They are clamped and stay what they are.
    Sums([i32; 2]),
    /// They are multiplied and clamped as `f32`.
    Real(&'a [f32], [f32; 2]),
    /// They are multiplied by a float and become values of so many bytes.
    Float(&'a [f32], QuantizedRange, Width),
    /// They are multiplied in fixed point and become values of so many bytes.
    Fixed(&'a [Multiplier], QuantizedRange, Width),
}

/// Bytes of a quantised value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// One.
    Byte,
    /// Two.
    Word,
}

impl Stage<'_> {
    /// Whether there are scales for so many columns.
    pub fn covers(&self, columns: usize) -> bool {
        match self {
            Stage::Sums(_) => true,
            Stage::Real(scales, _) | Stage::Float(scales, ..) => scales.len() >= columns,
            Stage::Fixed(by, ..) => by.len() >= columns,
        }
    }

    /// Bytes of a value.
    pub fn value_bytes(&self) -> usize {
        match self {
            Stage::Sums(_) | Stage::Real(..) => 4,
            Stage::Float(_, _, Width::Word) | Stage::Fixed(_, _, Width::Word) => 2,
            Stage::Float(_, _, Width::Byte) | Stage::Fixed(_, _, Width::Byte) => 1,
        }
    }

    /// Writes the sums of a tile, whose columns are those from `first` on.
    #[inline(always)]
    pub fn write<V: Dot>(&self, first: usize, sums: &[i32], to: &mut Part<'_>) {
        match *self {
            Stage::Sums([low, high]) => {
                // There is no parameter: any slice that is long enough will do.
                to.each(sums, sums, |sum, _| sum.clamp(low, high).to_le_bytes());
            }
            Stage::Real(scales, bounds) => {
                to.each(sums, &scales[first..], |sum, scale| {
                    real(sum, scale, bounds).to_le_bytes()
                });
            }
            Stage::Float(scales, range, Width::Byte) => {
                let by = FloatScale::new(range);
                to.each(sums, &scales[first..], |sum, scale| [by.apply::<V>(sum, scale) as u8]);
            }
            Stage::Float(scales, range, Width::Word) => {
                let by = FloatScale::new(range);
                to.each(sums, &scales[first..], |sum, scale| {
                    (by.apply::<V>(sum, scale) as u16).to_le_bytes()
                });
            }
            Stage::Fixed(by, range, Width::Byte) => {
                to.each(sums, &by[first..], |sum, by| [fixed(sum, by, range) as u8]);
            }
            Stage::Fixed(by, range, Width::Word) => {
                to.each(sums, &by[first..], |sum, by| {
                    (fixed(sum, by, range) as u16).to_le_bytes()
                });
            }
        }
    }
}

/// Where the results of a tile go: some bytes of each of its rows.
#[derive(Debug)]
pub struct Part<'a> {
    first: *mut u8,
    rows: usize,
    bytes: usize,
    row_bytes: usize,
    life: PhantomData<&'a mut [u8]>,
}

/// Sums that are computed at a time: a vector of them, or two.
const CHUNK: usize = 16;

impl<'a> Part<'a> {
    /// `bytes` of each of `rows` rows, which begin `row_bytes` apart.
    ///
    /// # Safety
    /// They are writable, and for `'a` nobody else reads or writes them.
    pub unsafe fn new(first: *mut u8, rows: usize, bytes: usize, row_bytes: usize) -> Part<'a> {
        Part { first, rows, bytes, row_bytes, life: PhantomData }
    }

    /// Writes a function of each sum and its column's parameter. Sums stand row after row.
    #[inline(always)]
    fn each<P: Copy, const N: usize>(
        &mut self,
        sums: &[i32],
        parameters: &[P],
        f: impl Fn(i32, P) -> [u8; N],
    ) {
        let columns = self.bytes / N;
        let parameters = &parameters[..columns];
        for (row, sums) in sums.chunks_exact(sums.len() / self.rows).enumerate() {
            let first = self.first.wrapping_add(row * self.row_bytes);
            // SAFETY: the promise of `new`.
            let to = unsafe { slice::from_raw_parts_mut(first, self.bytes) };
            write_row(&sums[..columns], parameters, to.as_chunks_mut::<N>().0, &f);
        }
    }
}

/// Whole chunks are read before they are written, so that the compiler makes vectors of them.
#[inline(always)]
fn write_row<P: Copy, const N: usize>(
    sums: &[i32],
    parameters: &[P],
    to: &mut [[u8; N]],
    f: &impl Fn(i32, P) -> [u8; N],
) {
    let (sums, sums_rest) = sums.as_chunks::<CHUNK>();
    let (parameters, parameters_rest) = parameters.as_chunks::<CHUNK>();
    let (to, to_rest) = to.as_chunks_mut::<CHUNK>();
    for ((to, sums), parameters) in to.iter_mut().zip(sums).zip(parameters) {
        let (sums, parameters) = (*sums, *parameters);
        let mut values = [[0; N]; CHUNK];
        for at in 0..CHUNK {
            values[at] = f(sums[at], parameters[at]);
        }
        *to = values;
    }
    for ((to, &sum), &parameter) in to_rest.iter_mut().zip(sums_rest).zip(parameters_rest) {
        *to = f(sum, parameter);
    }
}

#[inline(always)]
fn real(sum: i32, scale: f32, [low, high]: [f32; 2]) -> f32 {
    let x = sum as f32 * scale;
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

#[inline(always)]
fn fixed(sum: i32, by: Multiplier, range: QuantizedRange) -> i32 {
    let [low, high] = range.steps();
    by.apply(sum).clamp(low, high) + range.zero_point
}

/// `multiply_by_float`, by one fused multiply-add where there is that instruction.
#[derive(Clone, Copy)]
struct FloatScale {
    steps: [i32; 2],
    /// The steps on top of [`FloatScale::ROUNDER`].
    bounds: [f32; 2],
    zero_point: i32,
}

impl FloatScale {
    /// A float whose neighbours are 1 apart: what is added to it is rounded to nearest, ties to even, and
    /// stands in the low bits of the sum. Its own low 22 bits are 0.
    const ROUNDER: f32 = 12_582_912.0;

    #[inline(always)]
    fn new(range: QuantizedRange) -> FloatScale {
        let steps = range.steps();
        // Exact: steps of 16 bits are far below 2^22.
        let bounds = steps.map(|step| FloatScale::ROUNDER + step as f32);
        FloatScale { steps, bounds, zero_point: range.zero_point }
    }

    /// In the low 16 bits, the value.
    #[inline(always)]
    fn apply<V: Dot>(self, sum: i32, scale: f32) -> i32 {
        if !V::FMA {
            return multiply_by_float(sum, scale, self.steps) + self.zero_point;
        }
        let x = (sum as f32).mul_add(scale, FloatScale::ROUNDER);
        let [low, high] = self.bounds;
        let x = if x < low { low } else { x };
        let x = if x > high { high } else { x };
        (x.to_bits().cast_signed()).wrapping_add(self.zero_point)
    }
}
