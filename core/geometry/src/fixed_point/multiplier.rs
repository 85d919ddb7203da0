//! Multiplication of a 32-bit sum by a real number.

use super::{FixedPointError, Scale};

/// `a * b / 2^31`, rounded to nearest, with ties upwards: gemmlowp's
/// `SaturatingRoundingDoublingHighMul`. It saturates if both are -2^31, the only product that is
/// too large.
///
/// gemmlowp writes it as a truncating division, after adding `2^30`, or `1 - 2^30` to a negative
/// product; both give the floor of `(a * b + 2^30) / 2^31`.
#[inline(always)]
pub const fn saturating_rounding_doubling_high_mul(a: i32, b: i32) -> i32 {
    if a == i32::MIN && b == i32::MIN {
        return i32::MAX;
    }
    ((a as i64 * b as i64 + (1 << 30)) >> 31) as i32
}

/// `x / 2^exponent`, rounded to nearest, with ties away from zero: gemmlowp's
/// `RoundingDivideByPOT`, for exponents from 0 to 31.
#[inline(always)]
pub const fn rounding_divide_by_pot(x: i32, exponent: u32) -> i32 {
    debug_assert!(exponent <= 31);
    let mask = ((1u32 << exponent) - 1) as i32;
    let threshold = (mask >> 1) + (x < 0) as i32;
    (x >> exponent) + ((x & mask) > threshold) as i32
}

/// `x * 2^exponent`, saturated, for exponents from 0 to 31: gemmlowp's `SaturatingRoundingMultiplyByPOT`.
#[inline(always)]
pub const fn saturating_shift_left(x: i32, exponent: u32) -> i32 {
    debug_assert!(exponent <= 31);
    let (low, high) = (i32::MIN >> exponent, i32::MAX >> exponent);
    if x < low {
        i32::MIN
    } else if x > high {
        i32::MAX
    } else {
        x << exponent
    }
}

/// `f32(x) * scale`, rounded once to the nearest integer, with ties to even, and clamped to
/// `[low, high]`. The sum as `f32` is itself rounded if it has more than 24 bits.
///
/// The product of two `f32` is exact in `f64`, so only one rounding remains. A kernel with fused
/// multiply-add gets the same result by adding `1.5 * 2^23`.
#[inline(always)]
pub fn multiply_by_float(x: i32, scale: f32, [low, high]: [i32; 2]) -> i32 {
    let product = f64::from(x as f32) * f64::from(scale);
    product.round_ties_even().clamp(f64::from(low), f64::from(high)) as i32
}

/// A positive real number as `mantissa * 2^(exponent - 31)`, with a mantissa of 31 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiplier {
    mantissa: i32,
    exponent: i32,
}

impl Multiplier {
    /// The multiplier nearest to a scale, with ties upwards.
    ///
    /// # Errors
    /// The scale is outside `[2^-32, 2^30)`, the range of shifts of 32-bit numbers.
    pub fn new(scale: Scale) -> Result<Multiplier, FixedPointError> {
        let Scale { what, value } = scale;
        let outside = || FixedPointError::Multiplier { what, found: value };
        // Only normal doubles remain: values below 2^-32 or above 2^30 are refused.
        if !(2f64.powi(-32)..2f64.powi(30)).contains(&value) {
            return Err(outside());
        }
        let mut exponent = (value.to_bits() >> 52) as i32 - 1022;
        let mut mantissa = (value * 2f64.powi(31 - exponent)).round() as i64;
        if mantissa == 1 << 31 {
            (mantissa, exponent) = (1 << 30, exponent + 1);
        }
        let fits = exponent <= 30;
        if fits { Ok(Multiplier { mantissa: mantissa as i32, exponent }) } else { Err(outside()) }
    }

    /// The mantissa, in `[2^30, 2^31)`.
    pub const fn mantissa(self) -> i32 {
        self.mantissa
    }

    /// The exponent, in `[-31, 30]`.
    pub const fn exponent(self) -> i32 {
        self.exponent
    }

    /// The exponent as a left shift before the multiplication and a right shift after it; at least
    /// one of them is 0.
    pub const fn shifts(self) -> [u32; 2] {
        if self.exponent > 0 {
            [self.exponent as u32, 0]
        } else {
            [0, self.exponent.unsigned_abs()]
        }
    }

    /// `x` times this number: shifted left first if the exponent is positive, otherwise shifted
    /// right at the end.
    #[inline(always)]
    pub const fn apply(self, x: i32) -> i32 {
        let [left, right] = self.shifts();
        let product =
            saturating_rounding_doubling_high_mul(saturating_shift_left(x, left), self.mantissa);
        rounding_divide_by_pot(product, right)
    }
}
