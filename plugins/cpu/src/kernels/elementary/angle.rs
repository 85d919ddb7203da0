//! Sine, cosine and tangent of floats, in double: by loops that vectorise for angles up to
//! [`LARGEST`], one by one beyond.
//!
//! An angle minus the nearest multiple of a right angle is at most 45 degrees. There sine and
//! cosine are polynomials, and the multiple modulo four says which of them is the result, and its
//! sign. The relative error is below 3e-10, a hundredth of a float's rounding error. Multiples are
//! taken off by two parts of a right angle, and of large angles by the bits of 2/pi that matter, as
//! M. Payne and R. Hanek do it (Radian reduction for trigonometric functions, 1983).

use super::{double::ROUND, polynomial};
use crate::arch::{Baseline, Isa};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// The largest angle that the loops reduce.
pub const LARGEST: f32 = 1e6;

/// A multiple of a right angle, modulo four, and what an angle is beyond it, in radians.
type Reduced = (u64, f64);

/// Reduces an angle within [`LARGEST`]; what is beyond is NaN for an infinite angle.
#[inline(always)]
fn reduced(x: f64) -> Reduced {
    // A right angle in two parts; the first has 33 bits, so that its multiples are exact.
    const HIGH: f64 = 1.570_796_326_734_125_6;
    const LOW: f64 = 6.077_100_506_506_192e-11;
    let shifted = x * FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    (shifted.to_bits() & 3, (x - n * HIGH) - n * LOW)
}

/// Reduces an angle beyond [`LARGEST`].
fn reduced_large(x: f32) -> Reduced {
    // 32 zeros, then 2/pi after the binary point.
    const BITS: [u32; 8] = [
        0,
        0xa2f9_836e,
        0x4e44_1529,
        0xfc27_57d1,
        0xf534_ddc0,
        0xdb62_9599,
        0x3c43_9041,
        0xfe51_63ab,
    ];
    let bits = x.to_bits() & 0x7fff_ffff;
    if bits >= f32::INFINITY.to_bits() {
        return (0, f64::NAN);
    }
    let mantissa = u128::from(bits & 0x007f_ffff | 0x0080_0000);
    // The angle is the mantissa times 2^(exponent - 150). Bits of 2/pi before this one add
    // multiples of four to the product.
    let first = (bits >> 23) as usize - 120;
    let words = BITS[first / 32..][..4].iter().fold(0, |all, &word| all << 32 | u128::from(word));
    let window = (words << (first % 32)) >> 32;
    // Right angles modulo four: the two highest bits are before the point.
    let turns = (mantissa * window) << 32;
    let quarter = turns.wrapping_add(1 << 125) >> 126;
    let beyond = (turns.wrapping_sub(quarter << 126) >> 64) as i64;
    let r = beyond as f64 * (FRAC_PI_2 / (1u64 << 62) as f64);
    let quarter = quarter as u64;
    if x < 0.0 { (quarter.wrapping_neg() & 3, -r) } else { (quarter, r) }
}

/// Sine and cosine up to 45 degrees: `sin(r) / r` and `cos(r)` are polynomials of `r^2`, with errors
/// 5e-15 and 5e-17.
#[inline(always)]
fn sine_and_cosine<I: Isa>(r: f64) -> (f64, f64) {
    let z = r * r;
    let s = polynomial!(
        I,
        z,
        [
            -2.475_361_969_356_745_7e-08,
            2.755_523_089_421_3e-06,
            -0.000_198_412_631_006_823_4,
            0.008_333_333_323_495_075,
            -0.166_666_666_666_141_4,
            0.999_999_999_999_995_4,
        ]
    );
    let c = polynomial!(
        I,
        z,
        [
            2.062_800_492_229_483_6e-09,
            -2.755_519_212_355_855e-07,
            2.480_157_827_376_557_5e-05,
            -0.001_388_888_886_921_251_3,
            0.041_666_666_666_462_41,
            -0.499_999_999_999_992_06,
            1.0,
        ]
    );
    (s * r, c)
}

#[inline(always)]
fn sine<I: Isa>((quarter, r): Reduced) -> f64 {
    let (sine, cosine) = sine_and_cosine::<I>(r);
    let y = if quarter & 1 == 0 { sine } else { cosine };
    if quarter & 2 == 0 { y } else { -y }
}

#[inline(always)]
fn cosine<I: Isa>((quarter, r): Reduced) -> f64 {
    let (sine, cosine) = sine_and_cosine::<I>(r);
    let y = if quarter & 1 == 0 { cosine } else { sine };
    if (quarter + 1) & 2 == 0 { y } else { -y }
}

#[inline(always)]
fn tangent<I: Isa>((quarter, r): Reduced) -> f64 {
    let (sine, cosine) = sine_and_cosine::<I>(r);
    let (above, below) = if quarter & 1 == 0 { (sine, cosine) } else { (-cosine, sine) };
    above / below
}

/// The sine of an angle within [`LARGEST`]; NaN of an infinite angle.
#[inline(always)]
pub fn sin<I: Isa>(x: f64) -> f64 {
    // The reduction loses the sign of 0.
    if x == 0.0 { x } else { sine::<I>(reduced(x)) }
}

/// The cosine of an angle within [`LARGEST`]; NaN of an infinite angle.
#[inline(always)]
pub fn cos<I: Isa>(x: f64) -> f64 {
    cosine::<I>(reduced(x))
}

/// The tangent of an angle within [`LARGEST`]; NaN of an infinite angle.
#[inline(always)]
pub fn tan<I: Isa>(x: f64) -> f64 {
    if x == 0.0 { x } else { tangent::<I>(reduced(x)) }
}

/// The sine of an angle beyond [`LARGEST`].
pub fn sin_large(x: f32) -> f32 {
    sine::<Baseline>(reduced_large(x)) as f32
}

/// The cosine of an angle beyond [`LARGEST`].
pub fn cos_large(x: f32) -> f32 {
    cosine::<Baseline>(reduced_large(x)) as f32
}

/// The tangent of an angle beyond [`LARGEST`].
pub fn tan_large(x: f32) -> f32 {
    tangent::<Baseline>(reduced_large(x)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Avx2;

    #[track_caller]
    fn assert_near(x: f64, found: f64, expected: f64, tolerance: f64) {
        let error = (found - expected).abs();
        assert!(error <= tolerance * expected.abs(), "{x}: {found} {expected}");
    }

    #[test]
    fn errors_within_the_largest_angle_are_those_stated() {
        within::<Baseline>();
        within::<Avx2>();
    }

    fn within<I: Isa>() {
        for i in -50_000..50_000 {
            for x in [f64::from(i as f32 * 4e-4), f64::from(i as f32 * 20.0)] {
                assert_near(x, sin::<I>(x), x.sin(), 1e-10);
                assert_near(x, cos::<I>(x), x.cos(), 1e-10);
                assert_near(x, tan::<I>(x), x.tan(), 1e-10);
            }
        }
        assert!(sin::<I>(-0.0).is_sign_negative() && tan::<I>(-0.0).is_sign_negative());
        for x in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert!(sin::<I>(x).is_nan() && cos::<I>(x).is_nan() && tan::<I>(x).is_nan());
        }
    }

    #[test]
    fn large_angles_are_reduced_by_all_the_bits_that_matter() {
        let first = LARGEST.to_bits();
        let steps = (first..f32::MAX.to_bits()).step_by(9_973);
        // The float that comes nearest to a multiple of a right angle.
        let nearest = 16_367_173.0 * 2f32.powi(72);
        for x in steps.map(f32::from_bits).chain([nearest, LARGEST, f32::MAX]) {
            for x in [x, -x] {
                let (quarter, r) = reduced_large(x);
                let (quarter, r, x) = (quarter, r, f64::from(x));
                assert_near(x, sine::<Baseline>((quarter, r)), x.sin(), 3e-10);
                assert_near(x, cosine::<Baseline>((quarter, r)), x.cos(), 3e-10);
                assert_near(x, tangent::<Baseline>((quarter, r)), x.tan(), 6e-10);
            }
        }
        for x in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            assert!(sin_large(x).is_nan() && cos_large(x).is_nan() && tan_large(x).is_nan());
        }
    }
}
