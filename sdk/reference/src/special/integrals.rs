//! Integrals that are no elementary functions: the exponential integral, Dawson's, Fresnel's and Spence's.

use num_complex::Complex;
use std::f64::consts::{LN_2, PI};

/// The Euler-Mascheroni constant.
const EULER: f64 = 0.577_215_664_901_532_9;

/// The exponential integral `Ei(x)`: the principal value of that of `e^t / t` up to a positive `x`. As in TensorFlow, it
/// is NaN below 0.
///
/// Source: Abramowitz and Stegun, 5.1.10 and 5.1.51.
pub fn expint(x: f64) -> f64 {
    match x {
        x if x.is_nan() || x < 0.0 => f64::NAN,
        0.0 => f64::NEG_INFINITY,
        f64::INFINITY => x,
        x if x <= 40.0 => {
            let (mut power, mut sum, mut k) = (x, x, 1.0);
            loop {
                k += 1.0;
                power *= x / k;
                sum += power / k;
                if (power / k).abs() <= sum.abs() * f64::EPSILON / 4.0 {
                    return EULER + x.ln() + sum;
                }
            }
        }
        x => {
            let (mut term, mut sum) = (1.0, 1.0);
            for k in 1..60 {
                let next = term * f64::from(k) / x;
                if next >= term || next < f64::EPSILON / 8.0 {
                    break;
                }
                (term, sum) = (next, sum + next);
            }
            // In two steps: the power alone may overflow where the function does not.
            (x / 2.0).exp() / x * sum * (x / 2.0).exp()
        }
    }
}

/// Dawson's integral, `e^-x^2` times the integral of `e^t^2` from 0 to `x`.
///
/// Source: G. Rybicki, "Dawson's integral and the sampling theorem", Computers in Physics 3 (1989); steps of a quarter
/// leave an error of `e^-(2 pi)^2`.
pub fn dawsn(x: f64) -> f64 {
    const STEP: f64 = 0.25;
    let size = x.abs();
    if size < 0.3 {
        // The sum of (-2)^k x^(2k + 1) / (2k + 1)!!.
        let (mut term, mut sum, mut k) = (x, x, 0.0);
        while term.abs() > sum.abs() * f64::EPSILON / 8.0 {
            k += 1.0;
            term *= -2.0 * x * x / (2.0 * k + 1.0);
            sum += term;
        }
        return sum;
    }
    if size > 50.0 {
        // The sum of (2k - 1)!! / (2 x^2)^k.
        let square = 1.0 / (x * x);
        let terms = [0.5, 0.75, 1.875, 6.5625, 29.53125];
        let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * square);
        return 0.5 / x * (1.0 + sum);
    }
    let nearest = 2.0 * (0.5 * size / STEP).round();
    let near = size - nearest * STEP;
    let mut sum = 0.0;
    for odd in (-29..=29).step_by(2).map(f64::from) {
        let distance = near - odd * STEP;
        sum += (-distance * distance).exp() / (nearest + odd);
    }
    (sum / PI.sqrt()).copysign(x)
}

/// `C(x)` and `S(x)`: the integrals of `cos(pi t^2 / 2)` and of `sin(pi t^2 / 2)` from 0 to `x`.
///
/// Source: Abramowitz and Stegun, 7.3.11, 7.3.13 (series) and, by the error function of complex numbers, 7.3.22.
fn fresnel(x: f64) -> [f64; 2] {
    let size = x.abs();
    let both = match size {
        x if x.is_nan() => return [x; 2],
        x if x < 1.6 => [fresnel_series(x, 1.0), fresnel_series(x, 3.0)],
        // The waves are below the precision of one half.
        x if x > 1e16 => [0.5, 0.5],
        x => fresnel_fraction(x),
    };
    both.map(|value| value.copysign(x))
}

/// The series of `C` from the power 1 on, or of `S` from the power 3 on.
fn fresnel_series(x: f64, first: f64) -> f64 {
    let angle = PI * x * x / 2.0;
    let mut term = if first == 1.0 { x } else { x * angle };
    let (mut sum, mut k) = (term / first, 0.0);
    while term.abs() > sum.abs() * f64::EPSILON / 8.0 {
        k += 1.0;
        // Of C over (2k)!, of S over (2k + 1)!.
        let even = 2.0 * k + (first - 1.0) / 2.0;
        term *= -angle * angle / (even * (even - 1.0));
        sum += term / (4.0 * k + first);
    }
    sum
}

/// Both integrals of an `x` that is not small.
fn fresnel_fraction(x: f64) -> [f64; 2] {
    let square = PI * x * x;
    let mut b = Complex::new(1.0, -square);
    // Large, with a square that is finite.
    let mut c = Complex::new(1e150, 0.0);
    let mut d = 1.0 / b;
    let mut h = d;
    let mut n = -1.0;
    for _ in 0..10_000 {
        n += 2.0;
        let a = -n * (n + 1.0);
        b += 4.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        let delta = c * d;
        h *= delta;
        if (delta.re - 1.0).abs() + delta.im.abs() < f64::EPSILON {
            break;
        }
    }
    // The angle counts modulo a whole turn: x^2 / 4 modulo 1.
    let turns = (x * 0.5).mul_add(x * 0.5, -(x * 0.5 * (x * 0.5)).floor());
    let (sin, cos) = (2.0 * PI * turns).sin_cos();
    let h = h * Complex::new(x, -x);
    let result = Complex::new(0.5, 0.5) * (1.0 - Complex::new(cos, sin) * h);
    [result.re, result.im]
}

/// The integral of `cos(pi t^2 / 2)` from 0 to `x`.
pub fn fresnel_cos(x: f64) -> f64 {
    fresnel(x)[0]
}

/// The integral of `sin(pi t^2 / 2)` from 0 to `x`.
pub fn fresnel_sin(x: f64) -> f64 {
    fresnel(x)[1]
}

/// Spence's function, the integral of `ln t / (1 - t)` from 1 to `x`, which is the dilogarithm of `1 - x`; NaN below 0.
///
/// Source: L. Lewin, "Polylogarithms and associated functions" (1981), 1.5, 1.11 and the series of Bernoulli's numbers.
pub fn spence(x: f64) -> f64 {
    let zeta = PI * PI / 6.0;
    match x {
        x if x.is_nan() || x < 0.0 => f64::NAN,
        0.0 => zeta,
        x if x < 0.5 => zeta - x.ln() * (-x).ln_1p() - near_one(1.0 - x),
        x if x <= 2.0 => near_one(x),
        f64::INFINITY => f64::NEG_INFINITY,
        x => -0.5 * x.ln().powi(2) - spence(1.0 / x),
    }
}

/// [`spence`] between a half and 2, as a series in `ln x`, which is at most ln 2 in size.
fn near_one(x: f64) -> f64 {
    debug_assert!(x.ln().abs() <= LN_2 * 1.01);
    // B(2n) / (2n + 1)!.
    const BERNOULLI: [f64; 11] = [
        2.777_777_777_777_778e-2,
        -2.777_777_777_777_778e-4,
        4.724_111_866_969_01e-6,
        -9.185_773_074_661_964e-8,
        1.897_886_998_897_1e-9,
        -4.064_761_645_144_226e-11,
        8.921_691_020_456_452e-13,
        -1.993_929_586_072_108e-14,
        4.518_980_029_619_918e-16,
        -1.035_651_761_218_125e-17,
        2.395_218_621_026_187e-19,
    ];
    let u = -(x - 1.0).ln_1p();
    let square = u * u;
    let sum = BERNOULLI.iter().rev().fold(0.0, |sum, factor| sum * square + factor);
    u - square / 4.0 + u * square * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-14 * expected.abs().max(1e-3), "{found} {expected}");
    }

    /// Values of mpmath 1.3, to 16 digits.
    #[test]
    fn values() {
        near(expint(1.0), 1.895117816355937);
        near(dawsn(0.1), 0.09933599239785286);
        near(dawsn(1.0), 0.5380795069127684);
        near(dawsn(-10.0), -0.05025384718759853);
        near(fresnel_cos(1.0), 0.7798934003768228);
        near(fresnel_sin(1.0), 0.4382591473903548);
        near(spence(0.25), 0.9784693929303061);
        near(spence(2.0), -0.8224670334241132);
    }

    #[test]
    fn forms_meet_where_they_take_over() {
        type Forms<'a> = (fn(f64) -> f64, &'a [f64]);
        let pairs: [Forms<'_>; 5] = [
            (expint, &[40.0]),
            (dawsn, &[0.3, 50.0]),
            (fresnel_cos, &[1.6]),
            (fresnel_sin, &[1.6]),
            (spence, &[0.5, 2.0]),
        ];
        for (function, places) in pairs {
            for place in places {
                let (below, above) = (function(place.next_down()), function(place.next_up()));
                assert!((below / above - 1.0).abs() < 2e-14, "{place}: {below} {above}");
            }
        }
    }

    #[test]
    fn ends() {
        assert_eq!([expint(0.0), expint(f64::INFINITY)], [f64::NEG_INFINITY, f64::INFINITY]);
        assert!(expint(-1.0).is_nan());
        assert_eq!([dawsn(0.0), dawsn(f64::INFINITY)], [0.0, 0.0]);
        assert_eq!([fresnel_cos(f64::NEG_INFINITY), fresnel_sin(1e30)], [-0.5, 0.5]);
        assert_eq!([spence(1.0), spence(f64::INFINITY)], [0.0, f64::NEG_INFINITY]);
        assert!(
            spence(-1.0).is_nan() && fresnel_sin(f64::NAN).is_nan() && dawsn(f64::NAN).is_nan()
        );
    }
}
