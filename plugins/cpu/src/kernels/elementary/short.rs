//! Functions accurate to a float, computed in double without branches or calls, so that loops over
//! them vectorise: for float and the 16-bit floats. Their relative error is below 1e-10, a
//! thousandth of a float's rounding error.
//!
//! Polynomials are Chebyshev fits of the function named beside them (mpmath's `chebyfit`), with the
//! largest error; near zero, where a formula would cancel, a few terms of the Taylor series replace
//! it.

use super::{
    double::{exp, ln},
    polynomial,
};
use crate::arch::Isa;
use std::f64::consts::{FRAC_PI_2, PI, SQRT_2};

/// Below this the first terms of the Taylor series are accurate enough.
const SMALL: f64 = 2e-3;

/// `e^x - 1`.
#[inline(always)]
pub fn expm1<I: Isa>(x: f64) -> f64 {
    let series = x + x * x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0)));
    // 0 is treated separately, since the addition loses its sign.
    let small = if x == 0.0 { x } else { series };
    if x.abs() < SMALL { small } else { exp::<I>(x) - 1.0 }
}

/// `ln(1 + x)`.
#[inline(always)]
pub fn log1p<I: Isa>(x: f64) -> f64 {
    let small = x * (1.0 - x * (0.5 - x * (1.0 / 3.0 - x * 0.25)));
    if x.abs() < SMALL { small } else { ln::<I>(1.0 + x) }
}

/// `ln(1 + e^x)`.
#[inline(always)]
pub fn softplus<I: Isa>(x: f64) -> f64 {
    let y = log1p::<I>(exp::<I>(-x.abs()));
    if x > 0.0 { x + y } else { y }
}

/// The hyperbolic sine.
#[inline(always)]
pub fn sinh<I: Isa>(x: f64) -> f64 {
    let z = x * x;
    let small = x * (1.0 + z * (1.0 / 6.0 + z * (1.0 / 120.0)));
    if x.abs() < SMALL { small } else { 0.5 * (exp::<I>(x) - exp::<I>(-x)) }
}

/// The hyperbolic cosine.
#[inline(always)]
pub fn cosh<I: Isa>(x: f64) -> f64 {
    0.5 * (exp::<I>(x) + exp::<I>(-x))
}

/// The inverse hyperbolic sine.
#[inline(always)]
pub fn asinh<I: Isa>(x: f64) -> f64 {
    let (a, z) = (x.abs(), x * x);
    let small = a * (1.0 - z * (1.0 / 6.0 - z * (3.0 / 40.0)));
    let y = if a < SMALL { small } else { ln::<I>(a + (z + 1.0).sqrt()) };
    y.copysign(x)
}

/// The inverse hyperbolic cosine.
#[inline(always)]
pub fn acosh<I: Isa>(x: f64) -> f64 {
    let y = ln::<I>(x + ((x - 1.0) * (x + 1.0)).sqrt());
    if x < 1.0 { f64::NAN } else { y }
}

/// The inverse hyperbolic tangent.
#[inline(always)]
pub fn atanh<I: Isa>(x: f64) -> f64 {
    let (a, z) = (x.abs(), x * x);
    let small = a * (1.0 + z * (1.0 / 3.0 + z * 0.2));
    let y = if a < SMALL { small } else { 0.5 * ln::<I>((1.0 + a) / (1.0 - a)) };
    y.copysign(x)
}

/// The arc tangent of 0 to 1: `atan(x) / x` as a polynomial of `x^2`, error 2e-12.
#[inline(always)]
fn atan_to_one<I: Isa>(x: f64) -> f64 {
    let z = x * x;
    let p = polynomial!(
        I,
        z,
        [
            -0.000_266_601_967_192_674_25,
            0.002_162_794_422_156_479,
            -0.008_241_899_893_996_813,
            0.019_937_442_836_256_17,
            -0.035_267_720_869_422_44,
            0.050_455_577_528_416_146,
            -0.063_660_922_360_968_26,
            0.076_142_501_990_031_21,
            -0.090_767_988_766_504_77,
            0.111_094_283_643_305_05,
            -0.142_855_923_942_825_29,
            0.199_999_953_403_850_63,
            -0.333_333_332_624_797,
            0.999_999_999_998_196_7,
        ]
    );
    p * x
}

/// The arc tangent.
#[inline(always)]
pub fn atan<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let y = atan_to_one::<I>(if a > 1.0 { 1.0 / a } else { a });
    let y = if a > 1.0 { FRAC_PI_2 - y } else { y };
    y.copysign(x)
}

/// The angle of the point `(x, y)`.
#[inline(always)]
pub fn atan2<I: Isa>(y: f64, x: f64) -> f64 {
    let (a, b) = (x.abs(), y.abs());
    let (low, high) = if b > a { (a, b) } else { (b, a) };
    let ratio = low / high;
    // 0 by 0 is 0; two infinities have the ratio 1.
    let ratio = if high == 0.0 { 0.0 } else { ratio };
    let ratio = if low == f64::INFINITY { 1.0 } else { ratio };
    let angle = atan_to_one::<I>(ratio);
    let angle = if b > a { FRAC_PI_2 - angle } else { angle };
    let angle = if x.is_sign_negative() { PI - angle } else { angle };
    let angle = if x.is_nan() || y.is_nan() { f64::NAN } else { angle };
    angle.copysign(y)
}

/// The arc sine.
#[inline(always)]
pub fn asin<I: Isa>(x: f64) -> f64 {
    atan2::<I>(x, ((1.0 - x) * (1.0 + x)).sqrt())
}

/// The arc cosine.
#[inline(always)]
pub fn acos<I: Isa>(x: f64) -> f64 {
    atan2::<I>(((1.0 - x) * (1.0 + x)).sqrt(), x)
}

/// `erf(x)` up to 1: `erf(x) / x` as a polynomial of `x^2`, error 1e-12.
#[inline(always)]
fn small_erf<I: Isa>(x: f64) -> f64 {
    let z = x * x;
    let p = polynomial!(
        I,
        z,
        [
            1.058_938_064_107_502e-06,
            -1.390_934_002_187_459_9e-05,
            0.000_119_565_625_682_073_3,
            -0.000_854_263_799_708_722_9,
            0.005_223_783_477_189_248,
            -0.026_866_133_235_095_593,
            0.112_837_913_086_045_82,
            -0.376_126_388_896_353_1,
            1.128_379_167_094_676_8,
        ]
    );
    p * x
}

/// `erfc(x)` from 1: `e^(x^2) erfc(x) / t` as a polynomial of `t = 1 / (1 + x / 2)`, error 5e-12.
#[inline(always)]
fn large_erfc<I: Isa>(x: f64) -> f64 {
    // Beyond 28 the result is 0, and an infinity would become NaN.
    let x = if x > 28.0 { 28.0 } else { x };
    let t = 1.0 / (1.0 + 0.5 * x);
    let p = polynomial!(
        I,
        t,
        [
            -0.055_416_220_877_075_595,
            0.321_886_593_500_679_66,
            -0.772_577_969_614_831_7,
            0.951_160_700_274_350_2,
            -0.598_898_086_308_558,
            0.210_016_597_806_518_74,
            -0.138_111_437_616_274_45,
            0.013_298_553_646_100_457,
            0.081_057_097_391_046_07,
            0.176_586_378_103_555_82,
            0.246_814_636_895_494_54,
            0.282_095_485_238_048_67,
            0.282_094_780_409_696_4,
        ]
    );
    p * t * exp::<I>(-x * x)
}

/// The error function.
#[inline(always)]
pub fn erf<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let large = (1.0 - large_erfc::<I>(a)).copysign(x);
    if a < 1.0 { small_erf::<I>(x) } else { large }
}

/// `1 - erf(x)`.
#[inline(always)]
pub fn erfc<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let tail = large_erfc::<I>(a);
    let large = if x < 0.0 { 2.0 - tail } else { tail };
    if a < 1.0 { 1.0 - small_erf::<I>(x) } else { large }
}

/// `erfinv(x) / x` of `w = -ln(1 - x^2)`, up to 121: as a polynomial of `w` up to 6, with an error
/// of 4e-11, and of its square root beyond.
#[inline(always)]
fn inverse_erf_ratio<I: Isa>(w: f64) -> f64 {
    let near = w - 3.0;
    let centre = polynomial!(
        I,
        near,
        [
            1.2961748038399046e-13,
            1.1892146350213194e-12,
            -1.863748238551682e-11,
            -1.240185824245712e-11,
            1.1186909237483739e-09,
            -5.593270701360593e-09,
            -2.371560306891766e-08,
            4.504397688878656e-07,
            -1.7479536683526028e-06,
            -1.2717270191855453e-05,
            0.00019506128514561083,
            -0.0008361810758538487,
            -0.005738135211645762,
            0.24163040399766883,
            1.6235420064648298,
        ]
    );
    let large = large_inverse_erf_ratio::<I>(w.sqrt());
    if w < 6.0 { centre } else { large }
}

/// [`inverse_erf_ratio`] of a square root up to 5, and beyond; errors 1e-11 and 2e-11.
#[inline(always)]
fn large_inverse_erf_ratio<I: Isa>(s: f64) -> f64 {
    const TAIL: f64 = 3.724_744_871_391_589;
    let t = s - TAIL;
    let tail = polynomial!(
        I,
        t,
        [
            -9.839838141677754e-08,
            1.98939147499656e-07,
            5.71048851655042e-07,
            -2.2842267408296528e-06,
            2.6887519732693787e-06,
            1.5044380736748814e-06,
            -1.638224456254037e-05,
            5.054406939829218e-05,
            -0.0001056394297359697,
            0.0001775003261132757,
            -0.00029108040432652553,
            0.0005797228517130838,
            -0.001343453127747211,
            0.0021540616967949543,
            1.0085713714062938,
            3.5620312350584444,
        ]
    );
    let t = s - 8.0;
    let far = polynomial!(
        I,
        t,
        [
            1.1755354613602441e-12,
            -9.30689262178895e-12,
            3.800800019531318e-11,
            -2.78920405977246e-10,
            2.3520850802804377e-09,
            -1.6069887940933516e-08,
            9.861354367130806e-08,
            -5.092044034939937e-07,
            1.2566297231439305e-06,
            1.909972651469272e-05,
            -0.00046988278243532055,
            1.007606854917921,
            7.8771136061629345,
        ]
    );
    if s < 5.0 { tail } else { far }
}

/// The inverse of the error function.
#[inline(always)]
pub fn erfinv<I: Isa>(x: f64) -> f64 {
    let y = x * inverse_erf_ratio::<I>(-ln::<I>((1.0 - x) * (1.0 + x)));
    if x.abs() == 1.0 { f64::INFINITY.copysign(x) } else { y }
}

/// The quantile of the standard normal distribution, of a probability that is 0 or at least the
/// least float.
#[inline(always)]
pub fn ndtri<I: Isa>(p: f64) -> f64 {
    let x = 2.0 * p - 1.0;
    let y = SQRT_2 * x * inverse_erf_ratio::<I>(-ln::<I>(4.0 * p * (1.0 - p)));
    if p == 0.0 || p == 1.0 { f64::INFINITY.copysign(x) } else { y }
}

/// `x` to the power of `y`.
#[inline(always)]
pub fn pow<I: Isa>(x: f64, y: f64) -> f64 {
    let a = x.abs();
    let power = exp::<I>(y * ln::<I>(a));
    let half = 0.5 * y;
    let (is_whole, is_odd) = (y.trunc() == y, half.trunc() != half);
    let power = if x.is_sign_negative() && is_whole && is_odd { -power } else { power };
    let power = if x < 0.0 && !is_whole && a < f64::INFINITY { f64::NAN } else { power };
    let is_one = y == 0.0 || x == 1.0 || (a == 1.0 && y.abs() == f64::INFINITY);
    if is_one { 1.0 } else { power }
}

/// 0 where the factor is 0, whatever the value.
#[inline(always)]
pub fn unless_zero(factor: f64, value: f64) -> f64 {
    if factor == 0.0 { 0.0 } else { value }
}

macro_rules! unless_zero {
    ($($name:ident: |$x:ident, $y:ident| $factor:expr, $value:expr, $what:literal;)*) => {$(
        #[doc = $what]
        #[inline(always)]
        pub fn $name<I: Isa>($x: f64, $y: f64) -> f64 {
            unless_zero($factor, $value)
        }
    )*};
}

unless_zero! {
    xdivy: |x, y| x, x / y, "`x / y`, and 0 where `x` is 0.";
    xlogy: |x, y| x, x * ln::<I>(y), "`x ln y`, and 0 where `x` is 0.";
    xlog1py: |x, y| x, x * log1p::<I>(y), "`x ln(1 + y)`, and 0 where `x` is 0.";
    mul_no_nan: |x, y| y, x * y, "`x y`, and 0 where `y` is 0.";
    div_no_nan: |x, y| y, x / y, "`x / y`, and 0 where `y` is 0.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Avx2, Baseline};

    /// The largest relative distance from the C library's function, over floats in a range.
    fn worst(range: std::ops::Range<f32>, f: fn(f64) -> f64, exact: fn(f64) -> f64) -> f64 {
        let steps = 100_000;
        (0..=steps)
            .map(|i| range.start + (range.end - range.start) * (i as f32 / steps as f32))
            .map(|x| (f(x.into()), exact(x.into())))
            .filter(|(found, expected)| found != expected)
            .map(|(found, expected)| (found / expected - 1.0).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn errors_stay_within_what_is_stated() {
        errors::<Baseline>();
        errors::<Avx2>();
    }

    fn errors<I: Isa>() {
        use tenon_reference::special;
        type Function = fn(f64) -> f64;
        let all: [(std::ops::Range<f32>, Function, Function); 23] = [
            (-0.999..0.999, erfinv::<I>, special::erfinv),
            (0.9999..0.999_999_9, erfinv::<I>, special::erfinv),
            (1e-3..0.999, ndtri::<I>, special::ndtri),
            (1e-9..1e-7, ndtri::<I>, special::ndtri),
            (1e-37..1e-30, ndtri::<I>, special::ndtri),
            (-20.0..88.0, expm1::<I>, f64::exp_m1),
            (-0.01..0.01, expm1::<I>, f64::exp_m1),
            (-0.99..30.0, log1p::<I>, f64::ln_1p),
            (-0.01..0.01, log1p::<I>, f64::ln_1p),
            (-88.0..88.0, sinh::<I>, f64::sinh),
            (-0.01..0.01, sinh::<I>, f64::sinh),
            (-88.0..88.0, cosh::<I>, f64::cosh),
            (-1e3..1e3, asinh::<I>, special::asinh),
            (-0.01..0.01, asinh::<I>, special::asinh),
            (1.0..9.0, acosh::<I>, special::acosh),
            (-0.9999..0.9999, atanh::<I>, special::atanh),
            (-0.01..0.01, atanh::<I>, special::atanh),
            (-9.0..9.0, atan::<I>, f64::atan),
            (-1.0..1.0, asin::<I>, f64::asin),
            (-1.0..1.0, acos::<I>, f64::acos),
            (-5.0..5.0, erf::<I>, special::erf),
            (-5.0..10.0, erfc::<I>, special::erfc),
            (0.001..40.0, |x| pow::<I>(x, 2.7), |x| x.powf(2.7)),
        ];
        for (n, (range, found, exact)) in all.into_iter().enumerate() {
            let worst = worst(range.clone(), found, exact);
            assert!(worst < 1e-10, "function {n} on {range:?}: {worst:e}");
        }
    }

    #[test]
    fn special_values_are_those_of_the_functions() {
        special_values::<Baseline>();
        special_values::<Avx2>();
    }

    fn special_values<I: Isa>() {
        let values =
            [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let same = |found: f64, expected: f64| {
            found.is_nan() && expected.is_nan()
                || (found - expected).abs() <= 1e-10 * expected.abs()
                || found == expected && found.is_sign_negative() == expected.is_sign_negative()
        };
        for x in values {
            for y in values {
                assert!(same(pow::<I>(x, y), x.powf(y)), "{x}^{y}: {}", pow::<I>(x, y));
                assert!(same(atan2::<I>(y, x), y.atan2(x)), "{y} {x}: {}", atan2::<I>(y, x));
                let product = if x == 0.0 { 0.0 } else { x * y.ln() };
                assert!(same(xlogy::<I>(x, y), product), "{x} {y}: {}", xlogy::<I>(x, y));
                let product = if x == 0.0 { 0.0 } else { x * y.ln_1p() };
                assert!(same(xlog1py::<I>(x, y), product), "{x} {y}: {}", xlog1py::<I>(x, y));
            }
            assert!(same(expm1::<I>(x), x.exp_m1()) && same(log1p::<I>(x), x.ln_1p()), "{x}");
            assert!(same(sinh::<I>(x), x.sinh()) && same(cosh::<I>(x), x.cosh()), "{x}");
            assert!(same(asinh::<I>(x), x.asinh()) && same(acosh::<I>(x), x.acosh()), "{x}");
            assert!(same(atanh::<I>(x), x.atanh()) && same(atan::<I>(x), x.atan()), "{x}");
            assert!(same(asin::<I>(x), x.asin()) && same(acos::<I>(x), x.acos()), "{x}");
            assert!(same(erf::<I>(x), tenon_reference::special::erf(x)), "{x}");
            assert!(same(erfc::<I>(x), tenon_reference::special::erfc(x)), "{x}");
        }
    }
}
