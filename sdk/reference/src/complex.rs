//! Functions of complex numbers where those of `num_complex` lose digits or overflow, in double precision.
//!
//! Inverse functions are on the branches of the C standard. The formulas are W. Kahan's ("Branch cuts for complex
//! elementary functions", 1987), which cancel nowhere.

use num_complex::Complex;
use std::ops::{Add, Mul, Neg, Sub};
use tenon_framework::element::Element;

/// A complex number of doubles.
pub type Complex64 = Complex<f64>;

/// The complex element types.
pub trait ComplexNumber:
    Element + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// In double precision.
    fn widen(self) -> Complex64;
    /// Rounded from double precision.
    fn narrow(value: Complex64) -> Self;
    /// With the sign of the imaginary part flipped.
    fn conjugate(self) -> Self;
}

impl ComplexNumber for Complex<f32> {
    fn widen(self) -> Complex64 {
        Complex::new(self.re.into(), self.im.into())
    }
    fn narrow(value: Complex64) -> Complex<f32> {
        Complex::new(value.re as f32, value.im as f32)
    }
    fn conjugate(self) -> Complex<f32> {
        self.conj()
    }
}

impl ComplexNumber for Complex64 {
    fn widen(self) -> Complex64 {
        self
    }
    fn narrow(value: Complex64) -> Complex64 {
        value
    }
    fn conjugate(self) -> Complex64 {
        self.conj()
    }
}

/// `x / y` by R. L. Smith's method (1962): no intermediate overflows where the quotient does not.
pub fn div(x: Complex64, y: Complex64) -> Complex64 {
    if y.re.abs() >= y.im.abs() {
        let ratio = if y.im == 0.0 { y.im } else { y.im / y.re };
        let scale = y.re + y.im * ratio;
        Complex::new((x.re + x.im * ratio) / scale, (x.im - x.re * ratio) / scale)
    } else {
        let ratio = y.re / y.im;
        let scale = y.re * ratio + y.im;
        Complex::new((x.re * ratio + x.im) / scale, (x.im * ratio - x.re) / scale)
    }
}

/// `1 / x`.
pub fn reciprocal(x: Complex64) -> Complex64 {
    div(Complex::new(1.0, 0.0), x)
}

/// `x / |x|`, and 0 of 0.
pub fn sign(x: Complex64) -> Complex64 {
    let modulus = x.re.hypot(x.im);
    if modulus == 0.0 { Complex::new(0.0, 0.0) } else { x / modulus }
}

/// `e^x - 1`.
pub fn expm1(x: Complex64) -> Complex64 {
    // cos(y) - 1 is -2 sin(y / 2)^2.
    let (e, half) = (x.re.exp_m1(), (0.5 * x.im).sin());
    Complex::new(e * x.im.cos() - 2.0 * half * half, x.re.exp() * x.im.sin())
}

/// `ln(1 + x)`.
pub fn log1p(x: Complex64) -> Complex64 {
    let y = x.re + 1.0;
    let modulus = if x.re.abs() < 0.5 && x.im.abs() < 0.5 {
        0.5 * (x.re * (2.0 + x.re) + x.im * x.im).ln_1p()
    } else {
        y.hypot(x.im).ln()
    };
    Complex::new(modulus, x.im.atan2(y))
}

/// The natural logarithm.
pub fn ln(x: Complex64) -> Complex64 {
    // Near modulus 1 its logarithm would cancel: ln |x|^2 is ln(1 + (|x|^2 - 1)).
    let modulus = x.re.hypot(x.im);
    let (large, small) = (x.re.abs().max(x.im.abs()), x.re.abs().min(x.im.abs()));
    let log = if (0.5..2.0).contains(&modulus) {
        0.5 * ((large - 1.0) * (large + 1.0) + small * small).ln_1p()
    } else {
        modulus.ln()
    };
    Complex::new(log, x.im.atan2(x.re))
}

/// `x` to the power of `y`; to the power of 0, 1.
pub fn pow(x: Complex64, y: Complex64) -> Complex64 {
    let zero = Complex::new(0.0, 0.0);
    match (x == zero, y == zero) {
        (_, true) => Complex::new(1.0, 0.0),
        (true, false) => zero,
        _ => (y * ln(x)).exp(),
    }
}

/// `1 / (1 + e^-x)`.
pub fn sigmoid(x: Complex64) -> Complex64 {
    // Where e^-x is beyond the range, so is 1 beside it.
    if x.re < -700.0 { x.exp() } else { reciprocal((-x).exp() + 1.0) }
}

/// The hyperbolic tangent.
pub fn tanh(x: Complex64) -> Complex64 {
    if x.re.abs() > 20.0 {
        // 1 less than half an ulp beside it; the imaginary part is 4 sin cos e^(-2 |re|).
        let im = 2.0 * (2.0 * x.im).sin() * (-2.0 * x.re.abs()).exp();
        return Complex::new(1f64.copysign(x.re), im);
    }
    let (t, s) = (x.im.tan(), x.re.sinh());
    let (beta, rho) = (1.0 + t * t, (1.0 + s * s).sqrt());
    let scale = 1.0 + beta * s * s;
    Complex::new(beta * rho * s / scale, t / scale)
}

/// The tangent.
pub fn tan(x: Complex64) -> Complex64 {
    out_of_plane(tanh(into_plane(x)))
}

/// `i x`.
fn into_plane(x: Complex64) -> Complex64 {
    Complex::new(-x.im, x.re)
}

/// `-i x`.
fn out_of_plane(x: Complex64) -> Complex64 {
    Complex::new(x.im, -x.re)
}

/// The arc sine.
pub fn asin(x: Complex64) -> Complex64 {
    let (a, b) = (root(1.0 - x.re, -x.im), root(1.0 + x.re, x.im));
    let re = x.re.atan2(a.re * b.re - a.im * b.im);
    Complex::new(re, crate::special::asinh(a.re * b.im - a.im * b.re))
}

/// The arc cosine.
pub fn acos(x: Complex64) -> Complex64 {
    let (a, b) = (root(1.0 - x.re, -x.im), root(1.0 + x.re, x.im));
    let im = crate::special::asinh(b.re * a.im - b.im * a.re);
    Complex::new(2.0 * a.re.atan2(b.re), im)
}

/// The arc tangent.
pub fn atan(x: Complex64) -> Complex64 {
    out_of_plane(atanh(into_plane(x)))
}

/// The inverse hyperbolic sine.
pub fn asinh(x: Complex64) -> Complex64 {
    out_of_plane(asin(into_plane(x)))
}

/// The inverse hyperbolic cosine.
pub fn acosh(x: Complex64) -> Complex64 {
    let (a, b) = (root(x.re - 1.0, x.im), root(x.re + 1.0, x.im));
    let re = crate::special::asinh(a.re * b.re + a.im * b.im);
    Complex::new(re, 2.0 * a.im.atan2(b.re))
}

/// The inverse hyperbolic tangent.
pub fn atanh(x: Complex64) -> Complex64 {
    let (re, im) = (x.re.abs(), x.im);
    // |1 + x|^2 / |1 - x|^2 is 1 + 4 re / |1 - x|^2.
    let below = (1.0 - re) * (1.0 - re) + im * im;
    let modulus = 0.25 * (4.0 * re / below).ln_1p();
    let argument = 0.5 * (2.0 * im).atan2((1.0 - re) * (1.0 + re) - im * im);
    Complex::new(modulus.copysign(x.re), argument)
}

/// The square root of a number in parts.
fn root(re: f64, im: f64) -> Complex64 {
    sqrt(Complex::new(re, im))
}

/// The square root with a real part that is not negative; both parts are as exact as their arguments.
pub fn sqrt(x: Complex64) -> Complex64 {
    // Halved twice where the modulus would be beyond the range.
    let large = x.re.abs().max(x.im.abs()) > 1e300;
    let (re, im) = if large { (0.25 * x.re, 0.25 * x.im) } else { (x.re, x.im) };
    let larger = (0.5 * (re.abs() + re.hypot(im))).sqrt();
    let smaller = if larger == 0.0 { 0.0 } else { 0.5 * im.abs() / larger };
    let (re, im) =
        if re >= 0.0 { (larger, smaller.copysign(im)) } else { (smaller, larger.copysign(im)) };
    if large { Complex::new(2.0 * re, 2.0 * im) } else { Complex::new(re, im) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Complex64, expected: Complex64) {
        let distance = (found - expected).norm();
        assert!(distance <= 1e-15 * expected.norm(), "{found} for {expected}");
    }

    #[test]
    fn inverses_undo_their_functions() {
        for re in [-1.2, -0.3, 1e-9, 0.7] {
            for im in [-1.1, -0.2, 1e-9, 0.9] {
                let x = Complex::new(re, im);
                let undone =
                    [asin(x.sin()), atan(tan(x)), asinh(x.sinh()), atanh(tanh(x)), log1p(expm1(x))];
                for (n, found) in undone.into_iter().enumerate() {
                    assert!((found - x).norm() < 1e-14 * x.norm(), "{n}: {found} for {x}");
                }
            }
        }
        let x = Complex::new(0.8, 0.6);
        near(acos(x.cos()), x);
        near(acosh(x.cosh()), x);
    }

    #[test]
    fn quotients_do_not_overflow() {
        let big = Complex::new(1e300, 1e300);
        near(div(big, big), Complex::new(1.0, 0.0));
        near(reciprocal(Complex::new(0.0, 2.0)), Complex::new(0.0, -0.5));
        assert_eq!(sign(Complex::new(0.0, 0.0)), Complex::new(0.0, 0.0));
        near(tanh(Complex::new(800.0, 1.0)), Complex::new(1.0, 0.0));
        near(sigmoid(Complex::new(-800.0, 0.0)), Complex::new(0.0, 0.0));
    }
}
