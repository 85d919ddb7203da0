//! The digamma function, and the incomplete gamma functions by the series and the continued fraction of
//! Abramowitz & Stegun, *Handbook of Mathematical Functions*, 6.5.29 and 6.5.31, as in the Cephes library (S.
//! Moshier), whose limits between the two they keep.

use std::f64::consts::PI;

/// The derivative of [`lgamma`](super::lgamma); NaN at 0 and the negative whole numbers.
pub fn digamma(x: f64) -> f64 {
    if x == f64::INFINITY {
        return x;
    }
    if x > 0.0 {
        return positive_digamma(x);
    }
    // Of the fraction alone: pi x would round.
    let fraction = x - x.round();
    if fraction == 0.0 || fraction.is_nan() {
        return f64::NAN;
    }
    positive_digamma(1.0 - x) - PI / (PI * fraction).tan()
}

/// Recurrence up to 10, then the asymptotic series, A&S 6.3.18.
fn positive_digamma(mut x: f64) -> f64 {
    // B(2k) / 2k for k from 7 down to 1.
    const SERIES: [f64; 7] = [
        1.0 / 12.0,
        -691.0 / 32760.0,
        1.0 / 132.0,
        -1.0 / 240.0,
        1.0 / 252.0,
        -1.0 / 120.0,
        1.0 / 12.0,
    ];
    let mut below = 0.0;
    while x < 10.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = SERIES.iter().fold(0.0, |sum, term| (sum * z) + term) * z;
    x.ln() - 0.5 / x - series - below
}

/// Terms after which the sums are given up: they converge in far fewer unless `a` is above a million.
pub(super) const MOST_TERMS: u32 = 20_000;

/// The lower regularised incomplete gamma function P(a, x); NaN for negative arguments, and for `a` 0 unless `x` is 0.
pub fn igamma(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        Some(upper) => 1.0 - upper,
        None if x > 1.0 && x > a => 1.0 - fraction(a, x),
        None => series(a, x),
    }
}

/// The upper regularised incomplete gamma function Q(a, x) = 1 - P(a, x), without cancellation; NaN as [`igamma`],
/// and for `a` and `x` 0.
pub fn igammac(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        _ if a == 0.0 => f64::NAN,
        Some(upper) => upper,
        None if x < 1.0 || x < a => 1.0 - series(a, x),
        None => fraction(a, x),
    }
}

/// Q(a, x) where no sum is needed.
fn edge(a: f64, x: f64) -> Option<f64> {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 || (a.is_infinite() && x.is_infinite()) {
        Some(f64::NAN)
    } else if x == 0.0 || a.is_infinite() {
        Some(1.0)
    } else if a == 0.0 {
        Some(f64::NAN)
    } else if x.is_infinite() {
        Some(0.0)
    } else {
        None
    }
}

/// x^a e^-x / Gamma(a).
pub(super) fn weight(a: f64, x: f64) -> f64 {
    if a > 20.0 {
        // Stirling: the large terms a ln x, x and ln Gamma(a) would cancel.
        let ratio = (x - a) / a;
        let exponent = a * log1p_minus(ratio) - stirling(a);
        return exponent.exp() * (a / (2.0 * PI)).sqrt();
    }
    (a * x.ln() - x - libm::lgamma(a)).exp()
}

/// ln(1 + r) - r.
fn log1p_minus(r: f64) -> f64 {
    if r.abs() > 0.3 {
        return r.ln_1p() - r;
    }
    // With s = r / (2 + r), ln(1 + r) is 2 (s + s^3/3 + s^5/5 + ...), and r - 2 s is r s.
    let s = r / (2.0 + r);
    let z = s * s;
    let tail = (1..=24).rev().fold(0.0, |sum, k| z * (sum + 1.0 / f64::from(2 * k + 1)));
    2.0 * s * tail - r * s
}

/// ln Gamma(a) - (a - 1/2) ln a + a - ln(2 pi) / 2, A&S 6.1.41.
fn stirling(a: f64) -> f64 {
    let z = 1.0 / (a * a);
    let sum = -1.0 / 1680.0 * z + 1.0 / 1260.0;
    let sum = (sum * z - 1.0 / 360.0) * z + 1.0 / 12.0;
    (sum + z * z * z * z * (1.0 / 1188.0 - z * 691.0 / 360_360.0)) / a
}

/// P(a, x) as a power series.
fn series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut r) = (1.0, 1.0, a);
    for _ in 0..MOST_TERMS {
        r += 1.0;
        term *= x / r;
        sum += term;
        if term <= sum * 1e-17 {
            break;
        }
    }
    sum * weight(a, x) / a
}

/// Q(a, x) as a continued fraction, by the modified method of Lentz.
fn fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..MOST_TERMS {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        let away = |x: f64| if x.abs() < TINY { TINY } else { x };
        d = 1.0 / away(an * d + b);
        c = away(b + an / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    weight(a, x) * h
}

#[cfg(test)]
mod tests {
    use super::{super::tests::near, *};

    #[test]
    fn digammas() {
        // As mpmath gives them.
        near(digamma(1.0), -0.577_215_664_901_532_9, 1e-15);
        near(digamma(0.1), -10.423_754_940_411_076, 1e-15);
        near(digamma(30.0), 3.384_438_132_685_525, 1e-15);
        near(digamma(-0.5), 0.036_489_973_978_576_52, 1e-13);
        assert!(digamma(0.0).is_nan() && digamma(-3.0).is_nan());
        assert!(digamma(f64::NEG_INFINITY).is_nan() && digamma(f64::NAN).is_nan());
        assert_eq!(digamma(f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn incomplete_gammas() {
        near(igamma(3.0, 3.0), 0.576_809_918_873_156_4, 1e-14);
        near(igammac(3.0, 3.0), 0.423_190_081_126_843_54, 1e-14);
        // P(1, x) = 1 - e^-x, Q(1/2, x) = erfc(sqrt x)
        for x in [0.01, 0.5, 1.5, 7.0, 40.0] {
            near(igamma(1.0, x), -(-x).exp_m1(), 2e-15);
            near(igammac(0.5, x), libm::erfc(x.sqrt()), 2e-14);
        }
        // Q(n + 1, x) = e^-x sum x^k / k!
        let sum = (0..=200)
            .fold((1.0, 0.0), |(term, sum), k| (term * 190.0 / f64::from(k + 1), sum + term));
        near(igammac(201.0, 190.0), sum.1 * (-190f64).exp(), 1e-12);
        assert_eq!((igamma(0.0, 0.0), igamma(2.0, f64::INFINITY)), (0.0, 1.0));
        assert_eq!((igamma(f64::INFINITY, 2.0), igammac(1.0, 0.0)), (0.0, 1.0));
        assert!(igamma(-1.0, 1.0).is_nan() && igamma(0.0, 1.0).is_nan());
        assert!(igammac(0.0, 0.0).is_nan() && igammac(1.0, -1.0).is_nan());
    }
}
