//! Elementary functions of double, in the same form as those of float.
//!
//! `exp` and `ln` are those of FreeBSD's msun (`e_exp.c`, `e_log.c`), `tanh` is that of the Cephes
//! library (S. Moshier, double precision). Largest error: `exp` and `ln` 1 ulp, `tanh` and
//! `sigmoid` 3.

use super::{Elementary, fused, polynomial};
use crate::arch::Isa;

/// ln 2 in two parts: products of the first with small integers are exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Adding this rounds to an integer, in the lowest bits of the sum.
pub(super) const ROUND: f64 = 6_755_399_441_055_744.0;

/// 2 to the power of the integer that [`ROUND`] rounded.
#[inline(always)]
fn power_of_two(rounded: f64) -> f64 {
    f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52)
}

#[inline(always)]
pub(super) fn exp<I: Isa>(x: f64) -> f64 {
    let x = if x < -746.0 { -746.0 } else { x };
    let x = if x > 710.0 { 710.0 } else { x };
    let n = fused::<I, _>(x, std::f64::consts::LOG2_E, ROUND) - ROUND;
    let (high, low) = (fused::<I, _>(n, -LN2_HIGH, x), n * LN2_LOW);
    let r = high - low;
    let z = r * r;
    let p = polynomial!(
        I,
        z,
        [
            4.138_136_797_057_238_5e-8,
            -1.653_390_220_546_525e-6,
            6.613_756_321_437_934e-5,
            -2.777_777_777_701_559_3e-3,
            1.666_666_666_666_660_2e-1,
        ]
    );
    let c = fused::<I, _>(-z, p, r);
    let y = 1.0 + (r * c / (2.0 - c) - low + high);
    // In two steps: the power alone may overflow when the result does not.
    let half = n * 0.5 + ROUND;
    let rest = (n - (half - ROUND)) + ROUND;
    y * power_of_two(half) * power_of_two(rest)
}

#[inline(always)]
pub(super) fn ln<I: Isa>(x: f64) -> f64 {
    let tiny = x < f64::MIN_POSITIVE;
    // Multiplied by 2^54.
    let scaled = if tiny { x * 18_014_398_509_481_984.0 } else { x };
    let bits = scaled.to_bits();
    let m = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3fe0_0000_0000_0000);
    let low = m < std::f64::consts::FRAC_1_SQRT_2;
    let exponent = (bits >> 52) as i32 - 1022 - if tiny { 54 } else { 0 } - if low { 1 } else { 0 };
    let e = f64::from(exponent);
    let f = if low { m + m - 1.0 } else { m - 1.0 };
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = polynomial!(
        I,
        w,
        [1.531_383_769_920_937_3e-1, 2.222_219_843_214_978_4e-1, 3.999_999_999_940_942e-1, 0.0]
    );
    let odd = polynomial!(
        I,
        w,
        [
            1.479_819_860_511_658_6e-1,
            1.818_357_216_161_805e-1,
            2.857_142_874_366_239e-1,
            6.666_666_666_666_735e-1,
        ]
    );
    let half = 0.5 * f * f;
    let y = s * (half + fused::<I, _>(z, odd, even)) + e * LN2_LOW - half + f + e * LN2_HIGH;
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x < 0.0 { f64::NAN } else { y };
    // The test uses the product, which is 0 for a denormal if arithmetic flushes those, unlike a
    // comparison of `x`.
    if bits << 1 == 0 { f64::NEG_INFINITY } else { y }
}

#[inline(always)]
fn tanh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let z = a * a;
    let p = polynomial!(
        I,
        z,
        [-9.643_991_794_250_523e-1, -9.928_772_310_019_185e1, -1.614_687_684_417_084_5e3]
    );
    let q = polynomial!(
        I,
        z,
        [1.0, 1.128_116_784_916_329_3e2, 2.235_488_390_601_004_5e3, 4.844_063_053_251_255e3]
    );
    let small = fused::<I, _>(z * (p / q), a, a);
    let large = 1.0 - 2.0 / (exp::<I>(a + a) + 1.0);
    let y = if a < 0.625 { small } else { large };
    y.copysign(x)
}

impl Elementary for f64 {
    const COST_NS: f64 = 2.0;
    const NEAR: f64 = 0.0;
    #[inline(always)]
    fn div(self, other: f64) -> f64 {
        self / other
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        self.sqrt()
    }
    #[inline(always)]
    fn exp<I: Isa>(self) -> f64 {
        exp::<I>(self)
    }
    #[inline(always)]
    fn ln<I: Isa>(self) -> f64 {
        ln::<I>(self)
    }
    #[inline(always)]
    fn tanh<I: Isa>(self) -> f64 {
        tanh::<I>(self)
    }
    #[inline(always)]
    fn sigmoid<I: Isa>(self) -> f64 {
        let e = exp::<I>(-self.abs());
        (if self < 0.0 { e } else { 1.0 }) / (1.0 + e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Avx2, Baseline};

    /// Largest distance in ulp from the C library's function, which is accurate to one.
    fn worst(range: std::ops::Range<f64>, f: fn(f64) -> f64, expected: fn(f64) -> f64) -> u64 {
        let steps = 400_000;
        (0..=steps)
            .map(|i| range.start + (range.end - range.start) * (f64::from(i) / f64::from(steps)))
            .map(|x| f(x).to_bits().abs_diff(expected(x).to_bits()))
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn errors_stay_within_what_is_stated() {
        errors::<Baseline>();
        errors::<Avx2>();
    }

    fn errors<I: Isa>() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        assert!(worst(-708.0..709.7, exp::<I>, f64::exp) <= 1);
        assert!(worst(-1.0..1.0, exp::<I>, f64::exp) <= 1);
        assert!(worst(1e-300..3.0, ln::<I>, f64::ln) <= 1);
        assert!(worst(3.0..1e300, ln::<I>, f64::ln) <= 1);
        assert!(worst(0.5..1.5, ln::<I>, f64::ln) <= 1);
        assert!(worst(-20.0..20.0, tanh::<I>, f64::tanh) <= 2);
        assert!(worst(-0.01..0.01, tanh::<I>, f64::tanh) <= 2);
        // The formula for comparison has errors of its own.
        assert!(worst(-700.0..40.0, Elementary::sigmoid::<I>, sigmoid) <= 3);
    }

    #[test]
    fn special_values_are_those_of_the_functions() {
        special::<Baseline>();
        special::<Avx2>();
    }

    fn special<I: Isa>() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert_eq!(
            (exp::<I>(inf), exp::<I>(-inf), exp::<I>(0.0), exp::<I>(-800.0), exp::<I>(710.0)),
            (inf, 0.0, 1.0, 0.0, inf)
        );
        // Close to the limits of the normal numbers on both sides, within which the result still
        // is.
        assert_eq!(exp::<I>(709.782_712_893_383_9), 709.782_712_893_383_9f64.exp());
        assert_eq!(exp::<I>(-740.0), (-740f64).exp());
        assert_eq!(
            (ln::<I>(0.0), ln::<I>(-0.0), ln::<I>(inf), ln::<I>(1.0)),
            (-inf, -inf, inf, 0.0)
        );
        assert_eq!(ln::<I>(1e-310), 1e-310f64.ln());
        assert_eq!((tanh::<I>(inf), tanh::<I>(-inf), tanh::<I>(1e-10)), (1.0, -1.0, 1e-10));
        assert!(tanh::<I>(-0.0).is_sign_negative());
        assert_eq!(
            (inf.sigmoid::<I>(), (-inf).sigmoid::<I>(), 0f64.sigmoid::<I>()),
            (1.0, 0.0, 0.5)
        );
        assert!(
            [exp::<I>(nan), ln::<I>(nan), ln::<I>(-1.0), tanh::<I>(nan), nan.sigmoid::<I>()]
                .iter()
                .all(|x| x.is_nan())
        );
    }
}
