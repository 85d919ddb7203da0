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
    #[inline(always)]
    pub fn begin(&self, first: usize, row_sums: &[i32], sums: &mut [i32]) {
        let width = sums.len() / row_sums.len().max(1);
        for at in (0..width).step_by(CHUNK) {
            let columns = chunk(self.columns, first + at);
            match self.slopes {
                Slopes::One(slope) => {
                    begin_chunk(columns, row_sums, sums, at, |row| [slope.wrapping_mul(row); _]);
                }
                Slopes::Each(slopes) => {
                    let slopes = chunk(slopes, first + at);
                    begin_chunk(columns, row_sums, sums, at, |row| {
                        slopes.map(|slope| slope.wrapping_mul(row))
                    });
                }
            }
        }
    }
}

/// Sums that are computed at a time: a vector of them, or two. A tile's columns are a multiple.
const CHUNK: usize = 16;

#[inline(always)]
fn chunk<T: Copy>(values: &[T], at: usize) -> [T; CHUNK] {
    *values[at..].first_chunk().expect("panels are padded")
}

/// The rows of one chunk of columns. A chunk is computed as a value and then stored, so that the compiler makes a
/// vector of it, whatever else may overlap.
#[inline(always)]
fn begin_chunk(
    columns: [i32; CHUNK],
    row_sums: &[i32],
    sums: &mut [i32],
    at: usize,
    term: impl Fn(i32) -> [i32; CHUNK],
) {
    let width = sums.len() / row_sums.len();
    for (sums, &row_sum) in sums.chunks_exact_mut(width).zip(row_sums) {
        let mut begin = columns;
        for (begin, term) in begin.iter_mut().zip(term(row_sum)) {
            *begin = begin.wrapping_add(term);
        }
        if let Some(to) = sums[at..].first_chunk_mut() {
            *to = begin;
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
                to.each(sums, &by[first..], |sum, by| (fixed(sum, by, range) as u16).to_le_bytes());
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

impl<'a> Part<'a> {
    /// `bytes` of each of `rows` rows, which begin `row_bytes` apart.
    ///
    /// # Safety
    /// They are writable, and for `'a` nobody else reads or writes them.
    pub unsafe fn new(first: *mut u8, rows: usize, bytes: usize, row_bytes: usize) -> Part<'a> {
        Part { first, rows, bytes, row_bytes, life: PhantomData }
    }

    /// Bytes of a row.
    #[inline(always)]
    fn row(&mut self, row: usize) -> &mut [u8] {
        assert!(row < self.rows);
        // SAFETY: the promise of `new`.
        unsafe { slice::from_raw_parts_mut(self.first.add(row * self.row_bytes), self.bytes) }
    }

    /// Writes a function of each sum and its column's parameter. Sums stand row after row.
    #[inline(always)]
    fn each<P: Copy, const N: usize>(
        &mut self,
        sums: &[i32],
        parameters: &[P],
        f: impl Fn(i32, P) -> [u8; N],
    ) {
        let (columns, width) = (self.bytes / N, sums.len() / self.rows);
        let whole = columns - columns % CHUNK;
        for at in (0..whole).step_by(CHUNK) {
            let parameters = chunk(parameters, at);
            for row in 0..self.rows {
                let sums = chunk(sums, row * width + at);
                let mut values = [[0; N]; CHUNK];
                for at in 0..CHUNK {
                    values[at] = f(sums[at], parameters[at]);
                }
                let to = self.row(row).as_chunks_mut::<N>().0;
                if let Some(to) = to[at..].first_chunk_mut() {
                    *to = values;
                }
            }
        }
        for row in 0..self.rows {
            let to = self.row(row).as_chunks_mut::<N>().0;
            for at in whole..columns {
                to[at] = f(sums[row * width + at], parameters[at]);
            }
        }
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
