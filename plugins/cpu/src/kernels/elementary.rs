//! Elementary functions as polynomials, without branches or calls, so that loops over them vectorise. Here those
//! of float; `double` has the others.
//!
//! Coefficients and reductions are those of the Cephes library (S. Moshier, single precision). Largest error
//! against the exact value: `exp` and `ln` 2 ulp, `tanh` 3, `sigmoid` 3.

mod double;
pub mod short;

use crate::lane::Compute;

/// A type of computation with elementary functions.
pub trait Elementary: Compute<Wide = Self> {
    /// About how long one function value takes.
    const COST_NS: f64;
    /// Quotient.
    fn div(self, other: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// `e^x`.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// `1 / (1 + e^-x)`.
    fn sigmoid(self) -> Self;
}

/// ln 2 in two parts: products of the first with small whole numbers are exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

#[inline(always)]
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits((exponent.wrapping_add(127) as u32) << 23)
}

#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding this rounds to a whole number, which then stands in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = if x < -105.0 { -105.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 5e-1;
    let y = p * (r * r) + r + 1.0;
    // In two steps: the power alone may be beyond what float holds when the result is not.
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let half = n >> 1;
    y * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

#[inline(always)]
fn ln(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits();
    let m = f32::from_bits(bits & 0x007f_ffff | 0x3f00_0000);
    let low = m < std::f32::consts::FRAC_1_SQRT_2;
    let exponent = (bits >> 23) as i32 - 126 - if tiny { 23 } else { 0 } - if low { 1 } else { 0 };
    let e = exponent as f32;
    let m = if low { m + m - 1.0 } else { m - 1.0 };
    let z = m * m;
    let p = 7.037_683_6e-2;
    let p = p * m - 1.151_461e-1;
    let p = p * m + 1.167_699_84e-1;
    let p = p * m - 1.242_014_1e-1;
    let p = p * m + 1.424_932_3e-1;
    let p = p * m - 1.666_805_8e-1;
    let p = p * m + 2.000_071_5e-1;
    let p = p * m - 2.499_999_4e-1;
    let p = p * m + 3.333_333e-1;
    let y = p * m * z + e * LN2_LOW - 0.5 * z;
    let y = m + y + e * LN2_HIGH;
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x < 0.0 { f32::NAN } else { y };
    // Of the product, which is 0 for a denormal where arithmetic flushes those: comparing `x` may not see it.
    if bits << 1 == 0 { f32::NEG_INFINITY } else { y }
}

#[inline(always)]
fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let z = a * a;
    let p = -5.704_988_7e-3;
    let p = p * z + 2.063_909e-2;
    let p = p * z - 5.373_971_6e-2;
    let p = p * z + 1.333_144_2e-1;
    let p = p * z - 3.333_328e-1;
    let small = p * z * a + a;
    let large = 1.0 - 2.0 / (exp(a + a) + 1.0);
    let y = if a < 0.625 { small } else { large };
    y.copysign(x)
}

impl Elementary for f32 {
    const COST_NS: f64 = 0.8;
    #[inline(always)]
    fn div(self, other: f32) -> f32 {
        self / other
    }
    #[inline(always)]
    fn sqrt(self) -> f32 {
        self.sqrt()
    }
    #[inline(always)]
    fn exp(self) -> f32 {
        exp(self)
    }
    #[inline(always)]
    fn ln(self) -> f32 {
        ln(self)
    }
    #[inline(always)]
    fn tanh(self) -> f32 {
        tanh(self)
    }
    #[inline(always)]
    fn sigmoid(self) -> f32 {
        let e = exp(-self.abs());
        (if self < 0.0 { e } else { 1.0 }) / (1.0 + e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest error in ulp over floats spread over all bit patterns in a range.
    fn worst(range: std::ops::Range<f32>, f: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let steps = 400_000;
        (0..=steps)
            .map(|i| range.start + (range.end - range.start) * (i as f32 / steps as f32))
            .map(|x| {
                let expected = exact(x.into());
                let rounded = expected as f32;
                let ulp = f64::from(f32::from_bits(rounded.abs().to_bits() + 1))
                    - f64::from(rounded.abs());
                (f64::from(f(x)) - expected).abs() / ulp
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn errors_stay_within_what_is_stated() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        assert!(worst(-87.0..88.7, exp, f64::exp) <= 2.0);
        assert!(worst(1e-30..3.0, ln, f64::ln) <= 2.0);
        assert!(worst(3.0..1e30, ln, f64::ln) <= 2.0);
        assert!(worst(0.9..1.1, ln, f64::ln) <= 2.0);
        assert!(worst(-10.0..10.0, tanh, f64::tanh) <= 3.0);
        assert!(worst(-0.01..0.01, tanh, f64::tanh) <= 3.0);
        assert!(worst(-80.0..80.0, Elementary::sigmoid, sigmoid) <= 3.0);
    }

    #[test]
    fn special_values_are_those_of_the_functions() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        assert_eq!(
            (exp(inf), exp(-inf), exp(0.0), exp(-200.0), exp(89.0)),
            (inf, 0.0, 1.0, 0.0, inf)
        );
        assert_eq!((ln(0.0), ln(-0.0), ln(inf), ln(1.0)), (-inf, -inf, inf, 0.0));
        assert_eq!((tanh(inf), tanh(-inf), tanh(1e-10)), (1.0, -1.0, 1e-10));
        assert!(tanh(-0.0).is_sign_negative());
        assert_eq!((inf.sigmoid(), (-inf).sigmoid(), 0f32.sigmoid()), (1.0, 0.0, 0.5));
        assert!([exp(nan), ln(nan), ln(-1.0), tanh(nan), nan.sigmoid()].iter().all(|x| x.is_nan()));
        assert!((ln(1e-40) - (1e-40f32 as f64).ln() as f32).abs() < 1e-5);
    }
}
