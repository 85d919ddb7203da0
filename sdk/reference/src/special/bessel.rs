//! Bessel functions of order 0 and 1; those of the first and second kind are the C library's.
//!
//! Sources of the formulas: Abramowitz and Stegun, "Handbook of mathematical functions", 9.6.10 to 9.6.13 (series) and
//! 9.7.1 (large arguments); N. Temme, "On the numerical evaluation of the modified Bessel function of the third kind",
//! Journal of Computational Physics 19 (1975) (continued fraction).

use std::f64::consts::{PI, TAU};

/// The Euler-Mascheroni constant.
const EULER: f64 = 0.577_215_664_901_532_9;
/// From here on, the terms for large arguments fall below a double's precision.
const LARGE: f64 = 30.0;

/// `sum of (x^2/4)^k / (k! (k + order)!)`, of which all terms have one sign.
fn series(x: f64, order: u32) -> f64 {
    let square = x * x / 4.0;
    let (mut term, mut sum, mut k) = (1.0, 1.0, 0.0);
    while term > sum * f64::EPSILON / 4.0 {
        k += 1.0;
        term *= square / (k * (k + f64::from(order)));
        sum += term;
    }
    sum
}

/// `sqrt(2 pi x) e^-x I(x)` for a large `x`, or with `sign` -1 `sqrt(2 x / pi) e^x K(x)`.
fn large(x: f64, order: u32, sign: f64) -> f64 {
    let mu = f64::from(4 * order * order);
    let (mut term, mut sum) = (1.0f64, 1.0);
    for k in 1..200 {
        let odd = f64::from(2 * k - 1);
        let next = -sign * term * (mu - odd * odd) / (f64::from(k) * 8.0 * x);
        // The terms grow from some place on, and are of no use there.
        if next.abs() >= term.abs() || next.abs() < f64::EPSILON / 8.0 {
            break;
        }
        term = next;
        sum += term;
    }
    sum
}

/// `e^-|x| I(x)` of a positive `x`.
fn scaled(x: f64, order: u32) -> f64 {
    match x {
        x if x > LARGE => large(x, order, 1.0) / (TAU * x).sqrt(),
        x if order == 0 => (-x).exp() * series(x, 0),
        x => (-x).exp() * series(x, 1) * (x / 2.0),
    }
}

/// `I(x)` of a positive `x`.
fn unscaled(x: f64, order: u32) -> f64 {
    match x {
        f64::INFINITY => x,
        // In two steps: the power alone may overflow where the function does not.
        x if x > LARGE => (x / 2.0).exp() * scaled(x, order) * (x / 2.0).exp(),
        x if order == 0 => series(x, 0),
        x => series(x, 1) * (x / 2.0),
    }
}

/// The modified Bessel function of the first kind and order 0.
pub fn bessel_i0(x: f64) -> f64 {
    unscaled(x.abs(), 0)
}

/// `e^-|x| I0(x)`.
pub fn bessel_i0e(x: f64) -> f64 {
    if x.is_infinite() { 0.0 } else { scaled(x.abs(), 0) }
}

/// The modified Bessel function of the first kind and order 1, which is odd.
pub fn bessel_i1(x: f64) -> f64 {
    unscaled(x.abs(), 1).copysign(x)
}

/// `e^-|x| I1(x)`.
pub fn bessel_i1e(x: f64) -> f64 {
    if x.is_infinite() { 0f64.copysign(x) } else { scaled(x.abs(), 1).copysign(x) }
}

/// `e^x K0(x)` and `e^x K1(x)` of an `x` above 2, by a continued fraction and the sum that normalises it.
fn fraction(x: f64) -> [f64; 2] {
    let mut b = 2.0 * (1.0 + x);
    let mut d = 1.0 / b;
    let (mut h, mut delta) = (d, d);
    let (mut q1, mut q2) = (0.0, 1.0);
    // A quarter less the square of the order, which is 0.
    let mut a = -0.25;
    let (mut q, mut c) = (0.25, 0.25);
    let mut s = 1.0 + q * delta;
    for i in 2..10_000 {
        a -= f64::from(2 * (i - 1));
        c = -a * c / f64::from(i);
        let next = (q1 - b * q2) / a;
        (q1, q2) = (q2, next);
        q += c * next;
        b += 2.0;
        d = 1.0 / (b + a * d);
        delta *= b * d - 1.0;
        h += delta;
        let part = q * delta;
        s += part;
        if (part / s).abs() < f64::EPSILON / 4.0 {
            break;
        }
    }
    let k0 = (PI / (2.0 * x)).sqrt() / s;
    [k0, k0 * (x + 0.5 - 0.25 * h) / x]
}

/// `K0(x)` and `K1(x)` of an `x` of at most 2, by the series with logarithms.
fn near_zero(x: f64) -> [f64; 2] {
    let (square, log) = (x * x / 4.0, (x / 2.0).ln() + EULER);
    let (mut term0, mut term1, mut harmonic) = (1.0, 1.0, 0.0);
    let (mut k0, mut k1) = (-log, log - 0.5);
    for k in 1..60 {
        let k = f64::from(k);
        harmonic += 1.0 / k;
        term0 *= square / (k * k);
        term1 *= square / (k * (k + 1.0));
        k0 += term0 * (harmonic - log);
        k1 += term1 * (log - harmonic - 0.5 / (k + 1.0));
        if term0 < f64::EPSILON / 64.0 {
            break;
        }
    }
    [k0, 1.0 / x + k1 * (x / 2.0)]
}

/// The modified Bessel function of the second kind of an order, times `e^x` if `is_scaled`.
fn second_kind(x: f64, order: usize, is_scaled: bool) -> f64 {
    match x {
        x if x.is_nan() || x < 0.0 => f64::NAN,
        0.0 => f64::INFINITY,
        f64::INFINITY => 0.0,
        x if x <= 2.0 => near_zero(x)[order] * if is_scaled { x.exp() } else { 1.0 },
        x => fraction(x)[order] * if is_scaled { 1.0 } else { (-x).exp() },
    }
}

/// The modified Bessel function of the second kind and order 0; infinite at 0, NaN below.
pub fn bessel_k0(x: f64) -> f64 {
    second_kind(x, 0, false)
}

/// `e^x K0(x)`.
pub fn bessel_k0e(x: f64) -> f64 {
    second_kind(x, 0, true)
}

/// The modified Bessel function of the second kind and order 1; infinite at 0, NaN below.
pub fn bessel_k1(x: f64) -> f64 {
    second_kind(x, 1, false)
}

/// `e^x K1(x)`.
pub fn bessel_k1e(x: f64) -> f64 {
    second_kind(x, 1, true)
}

/// The Bessel function of the first kind and order 0.
pub fn bessel_j0(x: f64) -> f64 {
    libm::j0(x)
}

/// The Bessel function of the first kind and order 1.
pub fn bessel_j1(x: f64) -> f64 {
    libm::j1(x)
}

/// The Bessel function of the second kind and order 0; minus infinity at 0, NaN below.
pub fn bessel_y0(x: f64) -> f64 {
    if x < 0.0 { f64::NAN } else { libm::y0(x) }
}

/// The Bessel function of the second kind and order 1; minus infinity at 0, NaN below.
pub fn bessel_y1(x: f64) -> f64 {
    if x < 0.0 { f64::NAN } else { libm::y1(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `I0(x) K1(x) + I1(x) K0(x) = 1 / x`.
    #[test]
    fn both_kinds_fit_together() {
        for x in [1e-6, 0.01, 0.5, 1.0, 1.9999, 2.0, 2.0001, 5.0, 29.99, 30.01, 80.0, 1e3, 1e6] {
            let sum = bessel_i0e(x) * bessel_k1e(x) + bessel_i1e(x) * bessel_k0e(x);
            assert!((sum * x - 1.0).abs() < 1e-14, "{x}: {}", sum * x);
        }
    }

    #[test]
    fn scaled_forms_are_the_others_times_a_power() {
        for x in [0.1, 1.0, 2.5, 20.0, 40.0, 300.0] {
            for (plain, scaled) in [(bessel_i0(x), bessel_i0e(x)), (bessel_i1(x), bessel_i1e(x))] {
                assert!((plain * (-x).exp() / scaled - 1.0).abs() < 1e-12, "{x}");
            }
            for (plain, scaled) in [(bessel_k0(x), bessel_k0e(x)), (bessel_k1(x), bessel_k1e(x))] {
                assert!((plain * x.exp() / scaled - 1.0).abs() < 1e-12, "{x}");
            }
        }
    }

    #[test]
    fn ends() {
        assert_eq!([bessel_i0(0.0), bessel_i1(0.0), bessel_i0e(-0.0)], [1.0, 0.0, 1.0]);
        assert_eq!([bessel_i0(1e4), bessel_i1(-1e4)], [f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!([bessel_k0(0.0), bessel_k1(1e4)], [f64::INFINITY, 0.0]);
        assert!(
            bessel_k0(-1.0).is_nan() && bessel_y1(-1.0).is_nan() && bessel_i0(f64::NAN).is_nan()
        );
    }
}
