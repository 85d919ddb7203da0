//! The output stage: the initial values of sums, and their conversion to results.
//!
//! Sums begin as the terms of zero points and bias ([`Terms`]), so that only multiplication,
//! clamping, an offset and a cast are left ([`Stage`]). Both work on vectors in registers; the
//! stages are those of `tenon_sdk::fixed_point`, bit for bit.

use crate::{
    accumulate::Sums,
    product::Right,
    vector::{VECTORS, Vector},
};
use std::{marker::PhantomData, ops::Range, ptr, slice};
use tenon_sdk::fixed_point::{
    QuantizedRange, rounding_divide_by_pot, saturating_rounding_doubling_high_mul,
    saturating_shift_left,
};

/// The initial sum of row `i` and column `j`: `columns[j] + slopes[j] * (sum of row i)`.
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
    /// One for each column.
    Each(&'a [i32]),
}

impl Terms<'_> {
    /// Whether there are terms for `columns` columns.
    pub fn covers(&self, columns: usize) -> bool {
        let slopes = match self.slopes {
            Slopes::One(_) => columns,
            Slopes::Each(slopes) => slopes.len(),
        };
        self.columns.len() >= columns && slopes >= columns
    }

    /// The term of a row that all columns share: its sum, times the slope if that is the same for
    /// all.
    pub fn of_row(&self, sum: i32) -> i32 {
        match self.slopes {
            Slopes::One(slope) => slope.wrapping_mul(sum),
            Slopes::Each(_) => sum,
        }
    }

    /// The initial sums of a tile of rows with these terms, in the columns from `first` on.
    ///
    /// # Safety
    /// - The CPU has the vector's instructions.
    #[inline(always)]
    pub unsafe fn begin<V: Vector, const R: usize>(
        &self,
        first: usize,
        rows: &[i32],
    ) -> Sums<V, R> {
        let rows = rows.first_chunk::<R>().expect("a term for each row");
        // SAFETY: the caller guarantees that the CPU has the vector's instructions; `parameters`
        // checks that it reads within the slices.
        unsafe {
            let columns = parameters::<V, _, _>(self.columns, first, |from| V::load(from));
            let mut sums = [columns; R];
            match self.slopes {
                Slopes::One(0) => {}
                Slopes::One(_) => each(&mut sums, |sum, row, _| sum.plus(V::splat(rows[row]))),
                Slopes::Each(slopes) => {
                    let slopes = parameters::<V, _, _>(slopes, first, |from| V::load(from));
                    each(&mut sums, |sum, row, at| sum.plus(slopes[at].times(V::splat(rows[row]))));
                }
            }
            sums
        }
    }
}

/// Replaces each vector of a tile by a function of it, its row and its position among the columns.
#[inline(always)]
fn each<V: Copy, const R: usize>(sums: &mut Sums<V, R>, f: impl Fn(V, usize, usize) -> V) {
    for (row, sums) in sums.iter_mut().enumerate() {
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = f(*sum, row, at);
        }
    }
}

/// A vector of parameters for each vector of a tile's columns, which begin at `first`.
///
/// # Safety
/// - The CPU has the vector's instructions.
/// - `vector` reads at most `LANES` values.
#[inline(always)]
unsafe fn parameters<V: Vector, T, P>(
    values: &[T],
    first: usize,
    vector: impl Fn(*const T) -> P,
) -> [P; VECTORS] {
    // Written out: a closure for `map` would not be compiled for the instruction set.
    let values = &values[first..][..VECTORS * V::LANES];
    [vector(values.as_ptr()), vector(values[V::LANES..].as_ptr())]
}

/// Writes the initial sums of the columns, without the slopes. Zero points are those of the packed
/// values; `bias` has one for each column or none. Arithmetic is modulo 2^32.
///
/// Panics if the numbers of values do not match.
pub fn column_terms(
    right: Right<'_>,
    left_zero: i32,
    slopes: Slopes<'_>,
    bias: &[i32],
    to: &mut [i32],
) {
    let columns = right.columns();
    assert!(bias.is_empty() || bias.len() == columns, "a bias for each column");
    let depth = right.depth() as i32;
    for (at, (to, &sum)) in to.iter_mut().zip(right.sums()).enumerate() {
        let slope = match slopes {
            Slopes::One(slope) => slope,
            Slopes::Each(slopes) => slopes[at],
        };
        let centre = depth.wrapping_mul(slope).wrapping_add(sum);
        let bias = bias.get(at).copied().unwrap_or(0);
        *to = bias.wrapping_sub(left_zero.wrapping_mul(centre));
    }
}

/// The conversion of sums. Scales and multipliers are those of the columns of all padded panels.
#[derive(Debug, Clone, Copy)]
pub enum Stage<'a> {
    /// Sums are clamped and stay integers.
    Sums([i32; 2]),
    /// Sums are multiplied and clamped as `f32`.
    Real(&'a [f32], [f32; 2]),
    /// Sums are multiplied by a float and become values of this width.
    Float(Scales<'a>, QuantizedRange, Width),
    /// Sums are multiplied in fixed point and become values of this width.
    Fixed(Multipliers<'a>, QuantizedRange, Width),
}

/// The factors of sums.
#[derive(Debug, Clone, Copy)]
pub struct Scales<'a> {
    /// One for each column.
    pub each: &'a [f32],
    /// Whether each is small: a 32-bit sum times it never reaches -`ROUNDER`.
    pub are_small: bool,
}

impl<'a> Scales<'a> {
    /// The factors of the columns.
    pub fn new(each: &'a [f32]) -> Scales<'a> {
        const MOST: f32 = 1.0 / 256.0;
        const { assert!(MOST * ((1u32 << 31) as f32) < ROUNDER) };
        Scales { each, are_small: each.iter().all(|&scale| scale <= MOST) }
    }
}

/// Width of a quantised value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// One.
    Byte,
    /// Two.
    Word,
}

/// [`Multiplier`](tenon_sdk::fixed_point::Multiplier)s, split into their parts.
#[derive(Debug, Clone, Copy)]
pub struct Multipliers<'a> {
    /// The mantissas, in `[2^30, 2^31)`.
    pub mantissas: &'a [i32],
    /// The exponents, in `[-31, 30]`.
    pub exponents: &'a [i32],
}

impl Stage<'_> {
    /// Whether there are scales for `columns` columns.
    pub fn covers(&self, columns: usize) -> bool {
        match self {
            Stage::Sums(_) => true,
            Stage::Real(scales, _) => scales.len() >= columns,
            Stage::Float(scales, ..) => scales.each.len() >= columns,
            Stage::Fixed(by, ..) => by.mantissas.len().min(by.exponents.len()) >= columns,
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

    /// Writes the sums of a tile, whose columns begin at `first`.
    ///
    /// # Safety
    /// - The CPU has the vector's instructions.
    /// - `to` has `R` rows, and `spare` room for the sums.
    #[inline(always)]
    pub unsafe fn write<V: Vector, const R: usize>(
        &self,
        first: usize,
        sums: &Sums<V, R>,
        to: &Part<'_>,
        spare: *mut i32,
    ) {
        let bytes = VECTORS * V::LANES * self.value_bytes();
        // SAFETY: the caller guarantees the instructions, `R` rows at `to`, and room in `spare` for
        // whole rows of the sums; what is copied from it was written before.
        unsafe {
            let all = Part::new(spare.cast(), bytes, bytes);
            let whole = to.bytes == bytes;
            let rows = if whole { to } else { &all };
            match *self {
                Stage::Sums(bounds) => write_sums(sums, bounds, rows),
                Stage::Real(scales, bounds) => {
                    let scales = parameters::<V, _, _>(scales, first, |from| V::load_floats(from));
                    write_reals(sums, scales, bounds, rows);
                }
                Stage::Float(Scales { each, are_small }, range, width) => {
                    let scales = parameters::<V, _, _>(each, first, |from| V::load_floats(from));
                    let steps = match are_small {
                        true => by_float::<V, R, true>(sums, scales, range),
                        false => by_float::<V, R, false>(sums, scales, range),
                    };
                    write_values(&steps, range, width, rows);
                }
                Stage::Fixed(by, range, width) => {
                    let steps = in_fixed_point(sums, by, first, range, spare);
                    write_values(&steps, range, width, rows);
                }
            }
            if !whole {
                (0..R).for_each(|row| copy(all.row(row), to.row(row), to.bytes));
            }
        }
    }
}

/// The destination of a tile's results: some bytes of each of its rows.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    first: *mut u8,
    bytes: usize,
    row_bytes: usize,
    life: PhantomData<&'a mut [u8]>,
}

impl Part<'_> {
    /// `bytes` bytes of each row; rows are `row_bytes` apart.
    ///
    /// # Safety
    /// - The bytes of the rows that are written are valid for writes.
    /// - For `'a` nothing else reads or writes them.
    pub unsafe fn new(first: *mut u8, bytes: usize, row_bytes: usize) -> Self {
        Part { first, bytes, row_bytes, life: PhantomData }
    }

    #[inline(always)]
    fn row(&self, row: usize) -> *mut u8 {
        self.first.wrapping_add(row * self.row_bytes)
    }
}

/// Copies a few bytes: for a row of the last panel, a call of `memcpy` would take as long as the
/// row.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    /// Copies the first and the last `N` of up to `2 * N` bytes.
    #[inline(always)]
    unsafe fn ends<const N: usize>(from: *const u8, to: *mut u8, bytes: usize) {
        for at in [0, bytes - N] {
            // SAFETY: the caller guarantees at least `N` bytes.
            unsafe {
                to.add(at)
                    .cast::<[u8; N]>()
                    .write_unaligned(from.add(at).cast::<[u8; N]>().read_unaligned())
            };
        }
    }
    // SAFETY: the caller guarantees that `bytes` bytes are readable at `from` and writable at `to`,
    // without overlap; every part is within them.
    unsafe {
        match bytes {
            0 => {}
            1 => ends::<1>(from, to, bytes),
            2..4 => ends::<2>(from, to, bytes),
            4..8 => ends::<4>(from, to, bytes),
            8..16 => ends::<8>(from, to, bytes),
            16..=32 => ends::<16>(from, to, bytes),
            _ => ptr::copy_nonoverlapping(from, to, bytes),
        }
    }
}

#[inline(always)]
unsafe fn write_sums<V: Vector, const R: usize>(
    sums: &Sums<V, R>,
    bounds: [i32; 2],
    to: &Part<'_>,
) {
    let mut sums = *sums;
    // SAFETY: the caller guarantees that the CPU has the vector's instructions, and that `to` has
    // `R` rows of whole vectors.
    unsafe {
        if bounds != [i32::MIN, i32::MAX] {
            let (low, high) = (V::splat(bounds[0]), V::splat(bounds[1]));
            each(&mut sums, |sum, _, _| sum.at_least(low).at_most(high));
        }
        for (row, sums) in sums.iter().enumerate() {
            for (at, sum) in sums.iter().enumerate() {
                sum.store(to.row(row).cast::<i32>().add(at * V::LANES));
            }
        }
    }
}

#[inline(always)]
unsafe fn write_reals<V: Vector, const R: usize>(
    sums: &Sums<V, R>,
    scales: [V::Floats; VECTORS],
    bounds: [f32; 2],
    to: &Part<'_>,
) {
    // SAFETY: the caller guarantees that the CPU has the vector's instructions, and that `to` has
    // `R` rows of whole vectors.
    unsafe {
        let (low, high) = (V::splat_float(bounds[0]), V::splat_float(bounds[1]));
        for (row, sums) in sums.iter().enumerate() {
            for (at, (sum, &scale)) in sums.iter().zip(&scales).enumerate() {
                let x = V::times_float(sum.to_floats(), scale);
                let x = V::at_most_float(V::at_least_float(x, low), high);
                V::store_floats(x, to.row(row).cast::<f32>().add(at * V::LANES));
            }
        }
    }
}

/// A float whose neighbours differ by 1: adding a number to it rounds that to nearest, ties to
/// even, in the low bits of the sum. Its own low 22 bits are 0.
const ROUNDER: f32 = 12_582_912.0;

/// `multiply_by_float`, minus the lowest step: negative for results below it. One fused
/// multiply-add rounds the exact product once.
///
/// Positive floats are ordered like their bits, so that the lowest step can be subtracted from the
/// bits. With `SMALL` scales the rounded float is always positive; others need a bound, or results
/// far below the lowest step would wrap around.
#[inline(always)]
unsafe fn by_float<V: Vector, const R: usize, const SMALL: bool>(
    sums: &Sums<V, R>,
    scales: [V::Floats; VECTORS],
    range: QuantizedRange,
) -> Sums<V, R> {
    let [low, _] = range.steps();
    let mut values = *sums;
    // SAFETY: the caller guarantees the vector's instructions; these functions use no memory.
    unsafe {
        let rounder = V::splat_float(ROUNDER);
        // Exact: steps of 16 bits are far below 2^22.
        let lowest = V::splat_float(ROUNDER + low as f32);
        let base = V::splat((ROUNDER.to_bits().cast_signed() + low).wrapping_neg());
        each(&mut values, |sum, _, at| {
            let x = V::mul_add(sum.to_floats(), scales[at], rounder);
            let x = if SMALL { x } else { V::at_least_float(x, lowest) };
            V::from_bits(x).plus(base)
        });
    }
    values
}

/// `Multiplier::apply`, minus the lowest step: negative for results below it.
///
/// Vectors compute it for multipliers below a quarter, as scales of quantised values are. With `y`
/// the high product, whose magnitude is below 2^31, and `e` the shift to the right, at least 2,
/// rounding ties away from zero is
///
/// `floor((y + 2^(e-1) - [y < 0]) / 2^e) = floor((floor((y - [y < 0]) / 2^(e-1)) + 1) / 2)`
///
/// and on the right no sum exceeds 32 bits, although twice the lowest step is subtracted before the
/// last halving.
#[inline(always)]
unsafe fn in_fixed_point<V: Vector, const R: usize>(
    sums: &Sums<V, R>,
    by: Multipliers<'_>,
    first: usize,
    range: QuantizedRange,
    spare: *mut i32,
) -> Sums<V, R> {
    let columns = first..first + VECTORS * V::LANES;
    let mut values = *sums;
    // SAFETY: the caller guarantees that the CPU has the vector's instructions, and that `spare`
    // has room for the sums; they are stored before they are read.
    unsafe {
        if by.exponents[columns.clone()].iter().any(|&exponent| exponent > -2) {
            let at = |row: usize, at: usize| spare.add((row * VECTORS + at) * V::LANES);
            each(&mut values, |sum, row, vector| {
                sum.store(at(row, vector));
                sum
            });
            let lanes = slice::from_raw_parts_mut(spare, R * columns.len());
            lane_by_lane(lanes, by, columns, range);
            each(&mut values, |_, row, vector| V::load(at(row, vector)));
            return values;
        }
        let mantissas = parameters::<V, _, _>(by.mantissas, first, |from| V::mantissas(from));
        let ones = V::splat(-1);
        // `-exponent - 1`
        let shifts =
            parameters::<V, _, _>(by.exponents, first, |from| V::load(from).times(ones).plus(ones));
        let [low, _] = range.steps();
        let (sign, half, one) = (V::splat(31), V::splat(1 - 2 * low), V::splat(1));
        // Written out: a closure of this length may stay a function, which is not compiled for the
        // instruction set.
        for sums in &mut values {
            for (sum, (&mantissa, &shift)) in sums.iter_mut().zip(mantissas.iter().zip(&shifts)) {
                let y = sum.high_mul(mantissa);
                let floor = y.plus(y.shift_right(sign)).shift_right(shift);
                *sum = floor.plus(half).shift_right(one);
            }
        }
    }
    values
}

/// The definition, for any multiplier: `Multiplier::apply`.
#[inline(never)]
fn lane_by_lane(
    values: &mut [i32],
    by: Multipliers<'_>,
    columns: Range<usize>,
    range: QuantizedRange,
) {
    let [low, high] = range.steps();
    let parts = by.mantissas[columns.clone()].iter().zip(&by.exponents[columns.clone()]);
    for row in values.chunks_exact_mut(columns.len()) {
        for (value, (&mantissa, &exponent)) in row.iter_mut().zip(parts.clone()) {
            let x = saturating_shift_left(*value, exponent.max(0).cast_unsigned());
            let x = saturating_rounding_doubling_high_mul(x, mantissa);
            let x = rounding_divide_by_pot(x, exponent.min(0).unsigned_abs());
            *value = x.clamp(low, high) - low;
        }
    }
}

/// Writes steps above the lowest as values.
#[inline(always)]
unsafe fn write_values<V: Vector, const R: usize>(
    steps: &Sums<V, R>,
    range: QuantizedRange,
    width: Width,
    to: &Part<'_>,
) {
    let most = range.high - range.low;
    // SAFETY: the caller guarantees that the CPU has the vector's instructions, and that `to` has
    // `R` rows of whole vectors.
    unsafe {
        match width {
            Width::Byte if [range.low, range.high] == [0, 255] => {
                write_bytes::<V, R, false>(steps, range, to);
            }
            Width::Byte => write_bytes::<V, R, true>(steps, range, to),
            Width::Word => {
                for (row, &steps) in steps.iter().enumerate() {
                    V::narrow_words(steps, most as u16, range.low as u16, to.row(row));
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn write_bytes<V: Vector, const R: usize, const BOUNDED: bool>(
    steps: &Sums<V, R>,
    range: QuantizedRange,
    to: &Part<'_>,
) {
    let most = range.high - range.low;
    for pair in 0..R.div_ceil(2) {
        // The last row may be paired with itself.
        let (a, b) = (2 * pair, (2 * pair + 1).min(R - 1));
        let rows = [to.row(a), to.row(b)];
        // SAFETY: the caller guarantees that the CPU has the vector's instructions, and that each
        // of the `R` rows has room for whole vectors; both rows are below `R`.
        unsafe {
            V::narrow::<BOUNDED>([steps[a], steps[b]], most as u8, range.low as u8, rows);
        }
    }
}
