//! Quantiles of the normal distribution and the inverse of the error function: Halley's method on `erfc`, which
//! keeps its digits in the tail, from the estimate of Abramowitz & Stegun 26.2.23, good to 4.5e-4.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// The value below which a standard normal variable lies with probability `p`; NaN outside 0 and 1.
pub fn ndtri(p: f64) -> f64 {
    let y = 2.0 * p - 1.0;
    if y.abs() < 0.5 {
        (SQRT_2 * centre(y.abs())).copysign(y)
    } else if p < 0.5 {
        -upper(p)
    } else {
        upper(1.0 - p)
    }
}

/// The inverse of [`erf`](super::erf); NaN beyond -1 and 1.
pub fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    let y = if a < 0.5 { centre(a) } else { FRAC_1_SQRT_2 * upper(0.5 * (1.0 - a)) };
    y.copysign(x)
}

/// The value that a standard normal variable exceeds with probability `p`, up to one half. Denormals count as 0, also
/// where the processor keeps them.
fn upper(p: f64) -> f64 {
    if (0.0..f64::MIN_POSITIVE).contains(&p) {
        return f64::INFINITY;
    }
    if p.is_nan() || p < 0.0 {
        return f64::NAN;
    }
    let t = (-2.0 * p.ln()).sqrt();
    let estimate = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    (0..3).fold(estimate, |x, _| {
        // Relative to p: of the smallest numbers half of `erfc` and what it is above p are denormals, which are flushed.
        let excess = libm::erfc(x * FRAC_1_SQRT_2) / (2.0 * p) - 1.0;
        // The density is e^(-x^2 / 2) / sqrt(2 pi).
        let step = excess * (p * (0.5 * x * x).exp()) * SQRT_2 / (0.5 * FRAC_2_SQRT_PI);
        x + step / (1.0 - 0.5 * x * step)
    })
}

/// The inverse of the error function up to one half.
fn centre(x: f64) -> f64 {
    let z = x * x;
    // The series at 0: its first coefficients are pi / 12 and 7 pi^2 / 480.
    let estimate = x / FRAC_2_SQRT_PI * (1.0 + z * (0.261_799_388 + z * (0.143_931_73 + z * 0.1)));
    (0..2).fold(estimate, |y, _| {
        let step = (libm::erf(y) - x) / (FRAC_2_SQRT_PI * (-y * y).exp());
        y - step / (1.0 + y * step)
    })
}

#[cfg(test)]
mod tests {
    use super::{super::tests::near, *};

    #[test]
    fn inverses_undo_their_functions() {
        for i in 1..400 {
            let y = f64::from(i) / 100.0;
            near(erfinv(libm::erf(y).min(0.999)), y.min(erfinv(0.999)), 1e-13);
            near(-ndtri(0.5 * libm::erfc(y)), y * SQRT_2, 1e-14);
        }
        near(ndtri(1e-300), -37.047_096_299_361_2, 1e-14);
        // As SciPy's ndtri.
        near(ndtri(f64::MIN_POSITIVE), -37.519_379_347_144_5, 1e-14);
        near(erfinv(1e-10), 8.862_269_254_527_58e-11, 1e-14);
    }

    #[test]
    fn special_values_are_tensorflow_s() {
        assert_eq!((ndtri(0.0), ndtri(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!((ndtri(0.5), erfinv(0.0)), (0.0, 0.0));
        assert_eq!(ndtri(f64::MIN_POSITIVE.next_down()), f64::NEG_INFINITY);
        assert_eq!((erfinv(-1.0), erfinv(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!([ndtri(-0.1), ndtri(1.1), erfinv(1.5), ndtri(f64::NAN)].iter().all(|x| x.is_nan()));
    }
}
