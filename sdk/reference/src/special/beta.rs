//! The incomplete beta function.

use super::lgamma;

/// The regularised incomplete beta function `I_x(a, b)`, between 0 and 1 for an `x` between them and positive `a` and
/// `b`; NaN for others.
///
/// Source: Abramowitz and Stegun, 26.5.8 (continued fraction) and 26.5.2 (symmetry).
pub fn betainc(a: f64, b: f64, x: f64) -> f64 {
    if !(a > 0.0 && b > 0.0 && (0.0..=1.0).contains(&x)) {
        return f64::NAN;
    }
    if x == 0.0 || x == 1.0 {
        return x;
    }
    let log = a * x.ln() + b * (-x).ln_1p() + lgamma(a + b) - lgamma(a) - lgamma(b);
    // The fraction converges fast below the mean.
    match x < (a + 1.0) / (a + b + 2.0) {
        true => log.exp() * fraction(a, b, x) / a,
        false => 1.0 - log.exp() * fraction(b, a, 1.0 - x) / b,
    }
}

/// The continued fraction, by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut h = d;
    for m in (1..100_000).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut delta = 1.0;
        for step in [even, odd] {
            d = 1.0 / away(1.0 + step * d);
            c = away(1.0 + step / c);
            delta = d * c;
            h *= delta;
        }
        if (delta - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_parameters_give_sums_of_binomial_numbers() {
        for x in [0.01, 0.3, 0.5, 0.77, 0.99f64] {
            // I_x(2, 3): at least 2 successes of 4.
            let failures = 1.0 - x;
            let expected =
                6.0 * x.powi(2) * failures.powi(2) + 4.0 * x.powi(3) * failures + x.powi(4);
            assert!((betainc(2.0, 3.0, x) / expected - 1.0).abs() < 1e-13, "{x}");
            assert!((betainc(1.0, 1.0, x) / x - 1.0).abs() < 1e-14, "{x}");
        }
    }

    #[test]
    fn ends_and_what_is_outside() {
        assert_eq!([betainc(2.0, 3.0, 0.0), betainc(2.0, 3.0, 1.0)], [0.0, 1.0]);
        for (a, b, x) in [(0.0, 1.0, 0.5), (1.0, -1.0, 0.5), (1.0, 1.0, 1.5), (1.0, 1.0, f64::NAN)]
        {
            assert!(betainc(a, b, x).is_nan(), "{a} {b} {x}");
        }
        assert!((betainc(1e4, 1e4, 0.5) - 0.5).abs() < 1e-9);
    }
}
