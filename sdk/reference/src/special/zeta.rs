//! The Hurwitz zeta function and the polygamma functions built on it, by Euler-Maclaurin summation with nine terms
//! before the correction, as in the Cephes library (S. Moshier).

/// (2k)! / B(2k) for k from 1: how the correction's terms are divided.
const DIVISORS: [f64; 12] = [
    12.0,
    -720.0,
    30_240.0,
    -1_209_600.0,
    47_900_160.0,
    -1.892_437_580_318_379_6e9,
    7.472_424_96e10,
    -2.950_130_727_918_164e12,
    1.164_678_281_435_006_7e14,
    -4.597_978_722_407_473e15,
    1.815_210_540_194_354_7e17,
    -7.166_165_256_175_667e18,
];

/// The sum of `(q + k)^-x` over all `k` from 0.
///
/// Infinite for `x` 1, and where a term is; NaN for `x` below 1, and for negative `q` unless all powers are real
/// and none is a pole of odd order.
pub fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x.is_nan() || q.is_nan() || x < 1.0 {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return if x % 2.0 == 0.0 { f64::INFINITY } else { f64::NAN };
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    if q.is_infinite() || x.is_infinite() {
        // The first term is all.
        return q.powf(-x);
    }
    summed(x, q)
}

fn summed(x: f64, q: f64) -> f64 {
    let (mut sum, mut a) = (q.powf(-x), q);
    let mut term = sum;
    let mut count = 0;
    // As many terms as there are below 0, at most; far below, one is like the next.
    while (count < 9 || a <= 9.0) && count < 1_000_000 {
        count += 1;
        a += 1.0;
        term = a.powf(-x);
        sum += term;
        if (term / sum).abs() < 1e-17 && a > 0.0 {
            return sum;
        }
    }
    sum += term * a / (x - 1.0) - 0.5 * term;
    let mut factor = 1.0;
    for (k, divisor) in (0u32..).zip(DIVISORS) {
        let k = f64::from(2 * k);
        factor *= x + k;
        term /= a;
        let correction = factor * term / divisor;
        sum += correction;
        if (correction / sum).abs() < 1e-17 {
            break;
        }
        factor *= x + k + 1.0;
        term /= a;
    }
    sum
}

/// The derivative of order `n` of [`digamma`](super::digamma); NaN unless `n` is a whole number from 0.
pub fn polygamma(n: f64, x: f64) -> f64 {
    if n == 0.0 {
        return super::digamma(x);
    }
    if n != n.floor() || n < 0.0 || n.is_nan() {
        return f64::NAN;
    }
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    sign * libm::tgamma(n + 1.0) * zeta(n + 1.0, x)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::near, *};
    use std::f64::consts::PI;

    #[test]
    fn zetas() {
        near(zeta(2.0, 1.0), PI * PI / 6.0, 1e-15);
        near(zeta(4.0, 1.0), PI.powi(4) / 90.0, 1e-15);
        near(zeta(1.01, 1.0), 100.577_943_338_497, 1e-13);
        near(zeta(2.0, -0.5), 8.934_802_200_544_68, 1e-14);
        assert_eq!((zeta(1.0, 3.0), zeta(2.0, -1.0)), (f64::INFINITY, f64::INFINITY));
        assert!([zeta(0.5, 1.0), zeta(3.0, -2.0), zeta(1.5, -0.5)].iter().all(|x| x.is_nan()));
        assert_eq!((zeta(f64::INFINITY, 2.0), zeta(2.0, f64::INFINITY)), (0.0, 0.0));
    }

    #[test]
    fn polygammas() {
        near(polygamma(1.0, 1.0), PI * PI / 6.0, 1e-15);
        near(polygamma(2.0, -0.5), -0.828_796_644_234_32, 1e-12);
        assert!(polygamma(0.5, 1.0).is_nan() && polygamma(-1.0, 1.0).is_nan());
        assert_eq!(polygamma(1.0, 0.0), f64::INFINITY);
    }
}
