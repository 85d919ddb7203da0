//! Functions of one number: element `i` of `y` from element `i` of `x`. Out of their domain (`Sqrt` and `Log` of a negative number) they give NaN.

use super::special;
use tenon_framework::element::{Float, Number};

/// Writes `f(x[i])` to `y[i]`.
pub fn map<T: Copy, U>(x: &[T], y: &mut [U], f: impl Fn(T) -> U) {
    debug_assert_eq!(x.len(), y.len());
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f(x);
    }
}

/// Computes in `f64` and rounds.
fn map_f64<T: Float>(x: &[T], y: &mut [T], f: impl Fn(f64) -> f64) {
    map(x, y, |x| T::from_f64(f(x.to_f64())));
}

/// `-x`; integers wrap.
pub fn neg<T: Number>(x: &[T], y: &mut [T]) {
    map(x, y, Number::neg);
}

/// `x * x`; integers wrap.
pub fn square<T: Number>(x: &[T], y: &mut [T]) {
    map(x, y, |x| x.mul(x));
}

/// The square root; that of -0 is -0.
pub fn sqrt<T: Float>(x: &[T], y: &mut [T]) {
    map_f64(x, y, f64::sqrt);
}

/// `1 / sqrt(x)`; that of 0 is infinite, with its sign.
pub fn rsqrt<T: Float>(x: &[T], y: &mut [T]) {
    map_f64(x, y, |x| 1.0 / x.sqrt());
}

/// `e^x`.
pub fn exp<T: Float>(x: &[T], y: &mut [T]) {
    map_f64(x, y, f64::exp);
}

/// The natural logarithm; that of both zeros is negative infinity.
pub fn log<T: Float>(x: &[T], y: &mut [T]) {
    map_f64(x, y, f64::ln);
}

/// The hyperbolic tangent.
pub fn tanh<T: Float>(x: &[T], y: &mut [T]) {
    map_f64(x, y, f64::tanh);
}

/// `1 / (1 + e^-x)`.
pub fn sigmoid<T: Float>(x: &[T], y: &mut [T]) {
    map_f64(x, y, |x| 1.0 / (1.0 + (-x).exp()));
}

macro_rules! elementary {
    ($($name:ident: $text:literal, $function:expr;)*) => {$(
        #[doc = $text]
        pub fn $name<T: Float>(x: &[T], y: &mut [T]) {
            map_f64(x, y, $function);
        }
    )*};
}

elementary! {
    reciprocal: "`1 / x`; that of 0 is infinite, with its sign.", |x| 1.0 / x;
    expm1: "`e^x - 1`.", f64::exp_m1;
    log1p: "`ln(1 + x)`.", f64::ln_1p;
    sin: "The sine.", f64::sin;
    cos: "The cosine.", f64::cos;
    tan: "The tangent.", f64::tan;
    asin: "The arc sine.", f64::asin;
    acos: "The arc cosine.", f64::acos;
    atan: "The arc tangent.", f64::atan;
    sinh: "The hyperbolic sine.", f64::sinh;
    cosh: "The hyperbolic cosine.", f64::cosh;
    asinh: "The inverse hyperbolic sine.", special::asinh;
    acosh: "The inverse hyperbolic cosine.", special::acosh;
    atanh: "The inverse hyperbolic tangent.", special::atanh;
    erf: "The error function.", special::erf;
    erfc: "`1 - erf(x)`.", special::erfc;
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    /// A function on one value.
    fn one<T: Number>(f: fn(&[T], &mut [T]), x: T) -> T {
        let mut y = [T::ZERO];
        f(&[x], &mut y);
        y[0]
    }

    const INF: f32 = f32::INFINITY;

    #[test]
    fn special_values_are_tensorflow_s() {
        assert_eq!(one(neg, -128i8), -128);
        assert_eq!(one(square, 200u8), 64);
        assert_eq!(one(sqrt, -0.0f32).to_bits(), (-0.0f32).to_bits());
        assert!(one(sqrt, -1.0f32).is_nan());
        assert_eq!([0.0, -0.0, INF].map(|x| one(rsqrt, x)), [INF, -INF, 0.0]);
        assert!(one(rsqrt, -1.0f32).is_nan());
        assert_eq!([INF, -INF, 100.0].map(|x| one(exp, x)), [INF, 0.0, INF]);
        assert_eq!([0.0, -0.0, INF].map(|x| one(log, x)), [-INF, -INF, INF]);
        assert!(one(log, -1.0f32).is_nan());
        assert_eq!([INF, -INF, 1e-10].map(|x| one(tanh, x)), [1.0, -1.0, 1e-10]);
        assert_eq!([INF, -INF, 100.0].map(|x| one(sigmoid, x)), [1.0, 0.0, 1.0]);
        assert!(one(sigmoid, f32::NAN).is_nan());
    }

    #[test]
    fn values_are_tensorflow_s() {
        // tf.raw_ops on half: Rsqrt(3), Sigmoid(-8), Sigmoid(1), Exp(1), Exp(11.2)
        let half = |f: fn(&[f16], &mut [f16]), x: f32| one(f, f16::from_f32(x)).to_f32();
        assert_eq!(half(rsqrt, 3.0), 0.57714844);
        assert_eq!(half(sigmoid, -8.0), 0.00033545494);
        assert_eq!(half(sigmoid, 1.0), 0.73095703);
        assert_eq!(half(exp, 1.0), 2.71875);
        assert_eq!(half(exp, 11.2), INF);
        assert_eq!(one(tanh, 0.5f64), 0.46211715726000973);
        assert_eq!(one(log, 10.0f64), std::f64::consts::LN_10);
    }
}
