//! Special functions of doubles. Poles and values outside the domain give what TensorFlow gives.

mod bessel;
mod beta;
mod gamma;
mod gamma_grad;
mod integrals;
mod quantile;
mod zeta;

pub use bessel::{
    bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, bessel_j0, bessel_j1, bessel_k0, bessel_k0e,
    bessel_k1, bessel_k1e, bessel_y0, bessel_y1,
};
pub use beta::betainc;
pub use gamma::{digamma, igamma, igammac};
pub use gamma_grad::{igamma_grad_a, random_gamma_grad};
pub use integrals::{dawsn, expint, fresnel_cos, fresnel_sin, spence};
pub use quantile::{erfinv, ndtri};
pub use zeta::{polygamma, zeta};

/// The inverse hyperbolic sine.
pub fn asinh(x: f64) -> f64 {
    libm::asinh(x)
}

/// The inverse hyperbolic cosine; NaN below 1.
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.
pub fn atanh(x: f64) -> f64 {
    libm::atanh(x)
}

/// The error function.
pub fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// `1 - erf(x)`, without cancellation.
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// The logarithm of the absolute value of the gamma function; infinite at 0 and the negative whole numbers.
pub fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The number next to `x` in the direction of `y`; `y` where they are equal.
pub fn next_after(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let order = |bits: i64| if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits };
    let (from, to) = (order(x.to_bits() as i64), order(y.to_bits() as i64));
    if from == to {
        return y;
    }
    // Both zeros are 0 here, from which a step down leads to the other sign.
    let next = from + (to > from) as i64 - (to < from) as i64;
    f64::from_bits(order(next) as u64)
}

/// [`next_after`] of floats.
pub fn next_after_f32(x: f32, y: f32) -> f32 {
    if x.is_nan() || y.is_nan() {
        return f32::NAN;
    }
    let order = |bits: i32| if bits < 0 { i32::MIN.wrapping_sub(bits) } else { bits };
    let (from, to) = (order(x.to_bits() as i32), order(y.to_bits() as i32));
    if from == to {
        return y;
    }
    let next = from + (to > from) as i32 - (to < from) as i32;
    f32::from_bits(order(next) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That a value is within a relative distance of a known one.
    pub(super) fn near(found: f64, expected: f64, relative: f64) {
        let distance = (found - expected).abs();
        assert!(distance <= relative * expected.abs(), "{found:e} for {expected:e}");
    }

    #[test]
    fn neighbours() {
        assert_eq!(next_after(1.0, 2.0), 1.0 + f64::EPSILON);
        assert_eq!(next_after(0.0, -1.0), -f64::from_bits(1));
        assert_eq!(next_after(-0.0, 1.0), f64::from_bits(1));
        assert_eq!(next_after(f64::from_bits(1), -1.0), 0.0);
        assert_eq!(next_after(f64::INFINITY, 0.0), f64::MAX);
        assert_eq!(next_after(-1.0, -2.0), -1.0 - f64::EPSILON);
        assert_eq!(next_after_f32(1.0, 0.0), 1.0 - f32::EPSILON / 2.0);
        assert_eq!(next_after_f32(f32::MAX, f32::INFINITY), f32::INFINITY);
        assert_eq!(next_after_f32(0.0, -0.0).to_bits(), (-0.0f32).to_bits());
        assert!(next_after(f64::NAN, 1.0).is_nan() && next_after_f32(1.0, f32::NAN).is_nan());
    }
}
