//! Elementary functions as polynomials, without branches or calls, so that loops over them
//! vectorise. This file has those of float; the modules have the others.
//!
//! Coefficients and reductions of `exp` and `ln` are those of the Cephes library (S. Moshier,
//! single precision); `tanh` and `normal_distribution` are quotients of polynomials, fitted to the
//! function over `x` by weighted least squares on Chebyshev nodes in 50 digits. Largest error
//! against the exact value: `exp` and `ln` 2 ulp, `sigmoid` 3, `tanh` 6: both polynomials are
//! rounded where an ulp is up to twice that of a result just below 1.

pub mod angle;
mod double;
pub mod incomplete;
pub mod short;
pub mod zeta;

use crate::{arch::Isa, lane::Compute, side};

/// A type of computation with elementary functions. `I` describes the instructions of the enclosing
/// loop.
pub trait Elementary: Compute<Wide = Self> {
    /// Approximate nanoseconds of one function value.
    const COST_NS: f64;
    /// Quotient.
    fn div(self, other: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Greatest magnitude of near numbers: for them `exp` is far from the limits of the type, and
    /// takes fewer operations.
    const NEAR: Self;
    /// Whether these all have at most this magnitude. It may return false for any, and does if that
    /// is unknown.
    #[inline(always)]
    fn are_within<T: Compute<Wide = Self>>(_: &[T], _bound: Self) -> bool {
        false
    }
    /// `e^x`.
    fn exp<I: Isa>(self) -> Self;
    /// [`exp`](Elementary::exp) of near numbers, with the same bits.
    #[inline(always)]
    fn exp_near<I: Isa>(self) -> Self {
        self.exp::<I>()
    }
    /// `e^x` of an `x` of at most 0; 0 if the result is not a normal number.
    #[inline(always)]
    fn exp_of_negative<I: Isa>(self) -> Self {
        self.exp::<I>()
    }
    /// Natural logarithm.
    fn ln<I: Isa>(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh<I: Isa>(self) -> Self;
    /// `1 / (1 + e^-x)`.
    fn sigmoid<I: Isa>(self) -> Self;
    /// [`sigmoid`](Elementary::sigmoid) of near numbers, with the same bits.
    #[inline(always)]
    fn sigmoid_near<I: Isa>(self) -> Self {
        self.sigmoid::<I>()
    }
}

/// `polynomial!(I, x, [c, ..., b, a])` is `a + b x + ... + c x^n`, by Estrin's scheme: adjacent
/// terms are combined, then pairs of them, so that few operations wait for each other. `I` is the
/// [`Isa`].
macro_rules! polynomial {
    ($isa:ty, $x:expr, [$($coefficient:expr),+ $(,)?]) => {{
        let x = $x;
        $crate::kernels::elementary::polynomial!(@reverse $isa, x, [$($coefficient),+] [])
    }};
    (@reverse $isa:ty, $x:ident, [$first:expr $(, $rest:expr)*] [$($done:expr),*]) => {
        $crate::kernels::elementary::polynomial!(@reverse $isa, $x, [$($rest),*] [$first $(, $done)*])
    };
    (@reverse $isa:ty, $x:ident, [] [$($done:expr),*]) => {
        $crate::kernels::elementary::polynomial!(@pairs $isa, $x, [$($done),*] [])
    };
    (@pairs $isa:ty, $x:ident, [$low:expr, $high:expr $(, $rest:expr)*] [$($done:expr),*]) => {
        $crate::kernels::elementary::polynomial!(@pairs $isa, $x, [$($rest),*]
            [$($done,)* $crate::kernels::elementary::fused::<$isa, _>($high, $x, $low)])
    };
    (@pairs $isa:ty, $x:ident, [] [$all:expr]) => { $all };
    (@pairs $isa:ty, $x:ident, [$($odd:expr)?] [$($done:expr),+]) => {{
        let square = $x * $x;
        $crate::kernels::elementary::polynomial!(@pairs $isa, square, [$($done),+ $(, $odd)?] [])
    }};
}

use polynomial;

/// `x * y + z`, as [`Compute::mul_add`].
#[inline(always)]
pub(super) fn fused<I: Isa, W: Compute>(x: W, y: W, z: W) -> W {
    x.mul_add::<I>(y, z)
}

/// ln 2 in two parts: products of the first with small integers are exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

#[inline(always)]
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits((exponent.wrapping_add(127) as u32) << 23)
}

/// Adding this rounds to an integer, in the lowest bits of the sum.
const ROUND: f32 = 12_582_912.0;

/// A factor of `e^x`, and the exponent of two of the other factor, as an integer in the lowest bits
/// of [`ROUND`].
#[inline(always)]
fn exp_parts<I: Isa>(x: f32) -> (f32, f32) {
    let shifted = fused::<I, _>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fused::<I, _>(n, -LN2_LOW, fused::<I, _>(n, -LN2_HIGH, x));
    let y = polynomial!(
        I,
        r,
        [
            1.987_569_1e-4,
            1.398_199_9e-3,
            8.333_452e-3,
            4.166_579_6e-2,
            1.666_666_5e-1,
            5e-1,
            1.0,
            1.0
        ]
    );
    (y, shifted)
}

#[inline(always)]
fn exp<I: Isa>(x: f32) -> f32 {
    let x = if x < -105.0 { -105.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let (y, shifted) = exp_parts::<I>(x);
    // In two steps: the power alone may overflow when the result does not.
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let half = n >> 1;
    y * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

#[inline(always)]
fn exp_near<I: Isa>(x: f32) -> f32 {
    let (y, shifted) = exp_parts::<I>(x);
    y * power_of_two(shifted.to_bits() as i32)
}

#[inline(always)]
fn exp_of_negative<I: Isa>(x: f32) -> f32 {
    // Above it, the power of two is a normal number.
    const LEAST: f32 = -87.33;
    let y = exp_near::<I>(if x < LEAST { LEAST } else { x });
    if x < LEAST { 0.0 } else { y }
}

#[inline(always)]
fn ln<I: Isa>(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits();
    let m = f32::from_bits(bits & 0x007f_ffff | 0x3f00_0000);
    let low = m < std::f32::consts::FRAC_1_SQRT_2;
    let exponent = (bits >> 23) as i32 - 126 - if tiny { 23 } else { 0 } - if low { 1 } else { 0 };
    let e = exponent as f32;
    let m = if low { m + m - 1.0 } else { m - 1.0 };
    let z = m * m;
    let p = polynomial!(
        I,
        m,
        [
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_84e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_8e-1,
            2.000_071_5e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ]
    );
    let y = fused::<I, _>(-0.5, z, fused::<I, _>(e, LN2_LOW, p * m * z));
    let y = fused::<I, _>(e, LN2_HIGH, m + y);
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x < 0.0 { f32::NAN } else { y };
    // The test uses the product, which is 0 for a denormal if arithmetic flushes those, unlike a
    // comparison of `x`.
    if bits << 1 == 0 { f32::NEG_INFINITY } else { y }
}

#[inline(always)]
fn tanh<I: Isa>(x: f32) -> f32 {
    // From here on the result is 1.
    const LARGEST: f32 = 9.02;
    let a = x.abs();
    let a = if a > LARGEST { LARGEST } else { a };
    let z = a * a;
    let p = polynomial!(
        I,
        z,
        [-1.220_614_8e-11, 3.058_897_5e-8, 2.800_921_5e-5, 3.868_418e-3, 1.367_998_9e-1, 1.0]
    );
    let q = polynomial!(I, z, [1.287_485_7e-6, 3.938_788e-4, 2.724_617_2e-2, 4.701_332_2e-1, 1.0]);
    let y = p * a / q;
    let y = if y > 1.0 { 1.0 } else { y };
    y.copysign(x)
}

/// The distribution function of the normal distribution, with an absolute error of 2e-7; 0 below
/// -5.6.
#[inline(always)]
pub fn normal_distribution<I: Isa>(x: f32) -> f32 {
    const LARGEST: f32 = 5.6;
    let a = if x > LARGEST { LARGEST } else { x };
    let a = if a < -LARGEST { -LARGEST } else { a };
    let z = a * a;
    let p = polynomial!(
        I,
        z,
        [2.215_328e-8, 6.352_342e-6, 1.735_562_3e-4, 4.705_48e-3, 3.434_952_3e-2, 3.989_422_3e-1]
    );
    let q = polynomial!(
        I,
        z,
        [1.180_129_7e-6, 7.499_551e-5, 1.911_341_4e-3, 2.892_446_7e-2, 2.527_672_4e-1, 1.0]
    );
    let y = 0.5 + p * a / q;
    if x < -LARGEST { 0.0 } else { y }
}

/// The error function with a relative error of 3e-6, which is enough for a 16-bit float: beyond 2.8
/// these round to 1. `erf(x) / x` as a polynomial of `x^2 - 3.92`, a Chebyshev fit.
#[inline(always)]
pub fn short_erf<I: Isa>(x: f32) -> f32 {
    const LARGEST: f32 = 2.8;
    let x = if x > LARGEST { LARGEST } else { x };
    let x = if x < -LARGEST { -LARGEST } else { x };
    let z = fused::<I, _>(x, x, -3.92);
    let p = polynomial!(
        I,
        z,
        [
            -6.588_822e-9,
            7.320_475e-8,
            -4.989_31e-7,
            4.313_457_3e-6,
            -3.670_451e-5,
            2.645_376_4e-4,
            -1.711_040_4e-3,
            1.028_566_4e-2,
            -6.123_82e-2,
            5.024_961e-1,
        ]
    );
    p * x
}

/// The sigmoid of `x`, given `e = e^-|x|`.
#[inline(always)]
fn logistic(x: f32, e: f32) -> f32 {
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

impl Elementary for f32 {
    const COST_NS: f64 = 0.4;
    #[inline(always)]
    fn div(self, other: f32) -> f32 {
        self / other
    }
    #[inline(always)]
    fn sqrt(self) -> f32 {
        self.sqrt()
    }
    /// The exponential of this is a normal number, and so is its reciprocal.
    const NEAR: f32 = 87.0;
    #[inline(always)]
    fn are_within<T: Compute<Wide = f32>>(x: &[T], bound: f32) -> bool {
        const MAGNITUDE: u32 = u32::MAX >> 1;
        // Magnitudes are ordered like their bits, with NaN above all. Types other than float are
        // not worth widening.
        size_of::<T>() == size_of::<f32>()
            && side::fold(x, 0, |most, x| most.max(x.up().to_bits() & MAGNITUDE), u32::max)
                <= bound.to_bits()
    }
    #[inline(always)]
    fn exp<I: Isa>(self) -> f32 {
        exp::<I>(self)
    }
    #[inline(always)]
    fn exp_near<I: Isa>(self) -> f32 {
        exp_near::<I>(self)
    }
    #[inline(always)]
    fn exp_of_negative<I: Isa>(self) -> f32 {
        exp_of_negative::<I>(self)
    }
    #[inline(always)]
    fn ln<I: Isa>(self) -> f32 {
        ln::<I>(self)
    }
    #[inline(always)]
    fn tanh<I: Isa>(self) -> f32 {
        tanh::<I>(self)
    }
    #[inline(always)]
    fn sigmoid<I: Isa>(self) -> f32 {
        logistic(self, exp::<I>(-self.abs()))
    }
    #[inline(always)]
    fn sigmoid_near<I: Isa>(self) -> f32 {
        logistic(self, exp_near::<I>(-self.abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Avx2, Baseline};

    #[test]
    fn what_is_near_gives_the_same_bits() {
        for i in -100_000..=100_000 {
            let x = i as f32 * (f32::NEAR / 100_000.0);
            assert_eq!(exp_near::<Avx2>(x).to_bits(), exp::<Avx2>(x).to_bits(), "{x}");
            assert_eq!(exp_near::<Baseline>(x).to_bits(), exp::<Baseline>(x).to_bits(), "{x}");
            let (near, far) = (x.sigmoid_near::<Avx2>(), x.sigmoid::<Avx2>());
            assert_eq!(near.to_bits(), far.to_bits(), "{x}");
        }
    }

    #[test]
    fn one_that_is_far_is_found_wherever_it_stands() {
        for len in [1, 7, 64, 100, 5000] {
            let mut x = vec![-f32::NEAR; len];
            assert!(f32::are_within(&x, f32::NEAR), "{len}");
            for at in [0, len / 2, len - 1] {
                for far in [87.1, -87.1, f32::NEG_INFINITY, f32::NAN, -f32::NAN] {
                    x[at] = far;
                    assert!(!f32::are_within(&x, f32::NEAR), "{far} at {at} of {len}");
                }
                x[at] = 0.0;
            }
        }
    }

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
        errors::<Baseline>();
        errors::<Avx2>();
    }

    fn errors<I: Isa>() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        assert!(worst(-87.0..88.7, exp::<I>, f64::exp) <= 2.0);
        assert!(worst(-87.3..0.0, exp_of_negative::<I>, f64::exp) <= 2.0);
        assert!(worst(1e-30..3.0, ln::<I>, f64::ln) <= 2.0);
        assert!(worst(3.0..1e30, ln::<I>, f64::ln) <= 2.0);
        assert!(worst(0.9..1.1, ln::<I>, f64::ln) <= 2.0);
        assert!(worst(-10.0..10.0, tanh::<I>, f64::tanh) <= 6.0);
        assert!(worst(-0.01..0.01, tanh::<I>, f64::tanh) <= 3.0);
        assert!(worst(-80.0..80.0, Elementary::sigmoid::<I>, sigmoid) <= 3.0);
    }

    #[test]
    fn the_short_error_function_is_near_the_exact_one() {
        use half::{bf16, f16};
        for bits in 0..=u16::MAX {
            let (x, y) = (f16::from_bits(bits).to_f32(), bf16::from_bits(bits).to_f32());
            for x in [x, y] {
                let exact = tenon_reference::special::erf(x.into());
                for found in [short_erf::<Avx2>(x), short_erf::<Baseline>(x)] {
                    // Half a unit in the last place of half near 1 is 2.4e-4.
                    // A denormal float has fewer digits.
                    let near = (f64::from(found) - exact).abs() <= 3e-6 * exact.abs() + 1e-44;
                    let is_one = x.abs() > 2.79 && (f64::from(found) - exact).abs() < 1e-4;
                    assert!(near || is_one || x.is_nan() && found.is_nan(), "{x}: {found}");
                    assert!(x.is_nan() || found.is_sign_negative() == x.is_sign_negative());
                }
            }
        }
    }

    #[test]
    fn special_values_are_those_of_the_functions() {
        special::<Baseline>();
        special::<Avx2>();
    }

    fn special<I: Isa>() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        assert_eq!(
            (exp::<I>(inf), exp::<I>(-inf), exp::<I>(0.0), exp::<I>(-200.0), exp::<I>(89.0)),
            (inf, 0.0, 1.0, 0.0, inf)
        );
        assert_eq!(
            (ln::<I>(0.0), ln::<I>(-0.0), ln::<I>(inf), ln::<I>(1.0)),
            (-inf, -inf, inf, 0.0)
        );
        assert_eq!((tanh::<I>(inf), tanh::<I>(-inf), tanh::<I>(1e-10)), (1.0, -1.0, 1e-10));
        assert!(tanh::<I>(-0.0).is_sign_negative());
        assert_eq!(
            (inf.sigmoid::<I>(), (-inf).sigmoid::<I>(), 0f32.sigmoid::<I>()),
            (1.0, 0.0, 0.5)
        );
        assert!(
            [exp::<I>(nan), ln::<I>(nan), ln::<I>(-1.0), tanh::<I>(nan), nan.sigmoid::<I>()]
                .iter()
                .all(|x| x.is_nan())
        );
        assert!((ln::<I>(1e-40) - (1e-40f32 as f64).ln() as f32).abs() < 1e-5);
    }
}
