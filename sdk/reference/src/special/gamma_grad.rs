//! Derivatives of the incomplete gamma function by its first argument, and of numbers of the gamma distribution by
//! its parameter. The series and the continued fraction of the function (A&S 6.5.29 and 6.5.31) are differentiated
//! term by term, as in Eigen's `SpecialFunctions`, whose limits between the two they keep.

use super::gamma::{MOST_TERMS, digamma, weight};

/// The sum by which the function is its weight, the sum's derivative by `a`, and that of the weight's logarithm.
struct Sum {
    value: f64,
    slope: f64,
    log_slope: f64,
}

impl Sum {
    /// The derivative of the logarithm of the product, times the sum.
    fn total(&self) -> f64 {
        self.slope + self.value * self.log_slope
    }
}

/// The derivative of P(a, x) by `a`; NaN for negative arguments and for `a` 0, 0 where P no longer depends on `a`.
pub fn igamma_grad_a(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        Some(known) => known,
        None if weight(a, x) == 0.0 => nothing(a, x),
        None if x > 1.0 && x > a => -(fraction(a, x).total() * weight(a, x)),
        None => series(a, x).total() * weight(a, x) / a,
    }
}

/// The derivative by `alpha` of a number `sample` of the gamma distribution with that parameter and scale 1, where
/// its probability P(alpha, sample) is kept: `-(dP / d alpha) / (dP / d sample)`. NaN and 0 as [`igamma_grad_a`].
pub fn random_gamma_grad(alpha: f64, sample: f64) -> f64 {
    let (a, x) = (alpha, sample);
    match edge(a, x) {
        Some(known) => known,
        None if weight(a, x) == 0.0 => nothing(a, x),
        None if x > 1.0 && x > a => fraction(a, x).total() * x,
        None => -series(a, x).total() * x / a,
    }
}

/// The derivatives where no sum is needed.
fn edge(a: f64, x: f64) -> Option<f64> {
    if a.is_nan() || x.is_nan() {
        Some(f64::NAN)
    } else if x == 0.0 {
        Some(0.0)
    } else if x < 0.0 || a <= 0.0 {
        Some(f64::NAN)
    } else if x.is_infinite() || a.is_infinite() {
        Some(nothing(a, x))
    } else {
        None
    }
}

/// 0, with the sign that TensorFlow gives it: the continued fraction is that of 1 - P.
fn nothing(a: f64, x: f64) -> f64 {
    if x > 1.0 && x > a { -0.0 } else { 0.0 }
}

/// P(a, x) as a power series times x^a e^-x / Gamma(a + 1).
fn series(a: f64, x: f64) -> Sum {
    let (mut term, mut term_slope, mut r) = (1.0, 0.0, a);
    let (mut value, mut slope) = (1.0, 0.0);
    for _ in 0..MOST_TERMS {
        r += 1.0;
        let ratio = x / r;
        term_slope = ratio * term_slope - x / (r * r) * term;
        slope += term_slope;
        term *= ratio;
        value += term;
        if f64::abs(term_slope) <= f64::EPSILON * f64::abs(slope) {
            break;
        }
    }
    Sum { value, slope, log_slope: x.ln() - digamma(a + 1.0) }
}

/// Numerator or denominator of a convergent of the continued fraction, with its derivative by `a`.
#[derive(Clone, Copy)]
struct Part {
    value: f64,
    slope: f64,
}

impl Part {
    /// The part of the next convergent from this one and the one before.
    fn next(self, before: Part, [z, y, c]: [f64; 3]) -> Part {
        Part {
            value: self.value * z - before.value * y * c,
            slope: self.slope * z - self.value - before.slope * y * c + before.value * c,
        }
    }

    fn scaled(self, factor: f64) -> Part {
        Part { value: self.value * factor, slope: self.slope * factor }
    }
}

/// Q(a, x) as a continued fraction times x^a e^-x / Gamma(a).
fn fraction(a: f64, x: f64) -> Sum {
    // Convergents are scaled down before they overflow.
    const LARGE: f64 = 4_503_599_627_370_496.0;
    let (mut y, mut c) = (1.0 - a, 0.0);
    let mut z = x + y + 1.0;
    let mut above = [Part { value: 1.0, slope: 0.0 }, Part { value: x + 1.0, slope: 0.0 }];
    let mut below = [Part { value: x, slope: 0.0 }, Part { value: z * x, slope: -x }];
    let ratio = |above: Part, below: Part| {
        let value = above.value / below.value;
        (value, (above.slope - value * below.slope) / below.value)
    };
    let (mut value, mut slope) = ratio(above[1], below[1]);
    for _ in 0..MOST_TERMS {
        (c, y, z) = (c + 1.0, y + 1.0, z + 2.0);
        above = [above[1], above[1].next(above[0], [z, y, c])];
        below = [below[1], below[1].next(below[0], [z, y, c])];
        if below[1].value != 0.0 {
            let before = slope;
            (value, slope) = ratio(above[1], below[1]);
            if (slope - before).abs() <= f64::EPSILON * slope.abs() {
                break;
            }
        }
        if above[1].value.abs() > LARGE {
            above = above.map(|part| part.scaled(1.0 / LARGE));
            below = below.map(|part| part.scaled(1.0 / LARGE));
        }
    }
    Sum { value, slope, log_slope: x.ln() - digamma(a) }
}

#[cfg(test)]
mod tests {
    use super::{super::gamma::igamma, super::tests::near, *};

    /// Arguments of the series and of the continued fraction.
    const PAIRS: [(f64, f64); 7] =
        [(0.3, 0.2), (2.0, 1.0), (7.5, 6.0), (0.4, 1.5), (2.0, 3.5), (9.0, 20.0), (30.0, 31.0)];

    #[test]
    fn derivatives_are_quotients_of_differences() {
        for (a, x) in PAIRS {
            let step = 1e-5 * a;
            let quotient = (igamma(a + step, x) - igamma(a - step, x)) / (2.0 * step);
            near(igamma_grad_a(a, x), quotient, 1e-7);
        }
    }

    #[test]
    fn a_number_moves_so_that_its_probability_stays() {
        for (a, x) in PAIRS {
            let density = weight(a, x) / x;
            near(random_gamma_grad(a, x), -igamma_grad_a(a, x) / density, 1e-13);
        }
        // As TensorFlow gives them.
        near(random_gamma_grad(2.0, 1.0), 0.750_778_614_700_424_6, 1e-6);
        near(igamma_grad_a(2.0, 1.0), -0.276_196_004, 1e-6);
    }

    #[test]
    fn edges() {
        for f in [igamma_grad_a, random_gamma_grad] {
            assert_eq!(
                (f(1.0, 0.0), f(f64::INFINITY, 1.0), f(2.0, f64::INFINITY)),
                (0.0, 0.0, 0.0)
            );
            assert!(f(0.0, 1.0).is_nan() && f(-1.0, 1.0).is_nan() && f(2.0, -1.0).is_nan());
            assert!(f(f64::NAN, 1.0).is_nan() && f(1.0, f64::NAN).is_nan());
        }
    }
}
