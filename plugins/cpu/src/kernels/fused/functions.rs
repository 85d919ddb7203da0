//! Functions of one element for which the kernels of single ops have no loop.

use crate::kernels::{
    elementary::{Elementary, normal_distribution, short},
    elementwise::{BinaryOp, UnaryOp},
    math_unary::{Signed, Whole},
    nn::elu::{elu_of, softplus_of},
};
use crate::{arch::Isa, lane::Compute};
use std::f64::consts::FRAC_1_SQRT_2;
use tenon_reference::special;
use tenon_sdk::element::Number;

/// A type of computation with the functions of this file. Those of float are computed in double and
/// rounded once, except for `gelu`.
pub trait Special: Elementary + Whole + Signed {
    /// Error function.
    fn erf<I: Isa>(self) -> Self;
    /// `0.5 x (1 + erf(x / sqrt(2)))`; for float with an error of 2e-7 times `x`.
    fn gelu<I: Isa>(self) -> Self;
    /// `0.5 (1 + erf(x / sqrt(2)))`; for float with an error of 2e-7.
    fn distribution<I: Isa>(self) -> Self;
    /// `x` if it is not below 0, else `e^x - 1`.
    fn elu<I: Isa>(self) -> Self;
    /// `ln(1 + e^x)`.
    fn softplus<I: Isa>(self) -> Self;
}

impl Special for f32 {
    #[inline(always)]
    fn erf<I: Isa>(self) -> f32 {
        short::erf::<I>(self.into()) as f32
    }
    #[inline(always)]
    fn gelu<I: Isa>(self) -> f32 {
        self * normal_distribution::<I>(self)
    }
    #[inline(always)]
    fn distribution<I: Isa>(self) -> f32 {
        normal_distribution::<I>(self)
    }
    #[inline(always)]
    fn elu<I: Isa>(self) -> f32 {
        let less = short::expm1::<I>(self.into()) as f32;
        if self < 0.0 { less } else { self }
    }
    #[inline(always)]
    fn softplus<I: Isa>(self) -> f32 {
        short::softplus::<I>(self.into()) as f32
    }
}

impl Special for f64 {
    #[inline(always)]
    fn erf<I: Isa>(self) -> f64 {
        special::erf(self)
    }
    #[inline(always)]
    fn gelu<I: Isa>(self) -> f64 {
        0.5 * self * special::erfc(-self * FRAC_1_SQRT_2)
    }
    #[inline(always)]
    fn distribution<I: Isa>(self) -> f64 {
        0.5 * special::erfc(-self * FRAC_1_SQRT_2)
    }
    #[inline(always)]
    fn elu<I: Isa>(self) -> f64 {
        elu_of(self)
    }
    #[inline(always)]
    fn softplus<I: Isa>(self) -> f64 {
        softplus_of(self)
    }
}

/// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
#[inline(always)]
fn gelu_by_tanh<I: Isa, W: Special>(x: W) -> W {
    let cube = W::from_f64(0.044_715).mul(x).mul(x).mul(x);
    let inner = W::from_f64(0.797_884_560_802_865_4).mul(x.add(cube));
    W::from_f64(0.5).mul(x).mul(W::ONE.add(Elementary::tanh::<I>(inner)))
}

/// The slope of GELU: with the normal distribution `P`, `P(x) + x e^(-x^2 / 2) / sqrt(2 pi)`.
#[inline(always)]
fn gelu_slope<I: Isa, W: Special>(x: W) -> W {
    let bell = Elementary::exp::<I>(x.mul(x).mul(W::from_f64(-0.5)));
    let density = W::from_f64(0.398_942_280_401_432_7).mul(bell);
    x.distribution::<I>().add(x.mul(density))
}

/// The slope of [`gelu_by_tanh`]: with `t` its tangent,
/// `0.5 (1 + t) + 0.5 x (1 - t^2) sqrt(2 / pi) (1 + 3 * 0.044715 x^2)`.
#[inline(always)]
fn gelu_slope_by_tanh<I: Isa, W: Special>(x: W) -> W {
    let (half, square) = (W::from_f64(0.5), x.mul(x));
    let root = W::from_f64(0.797_884_560_802_865_4);
    let inner = root.mul(x.add(W::from_f64(0.044_715).mul(square).mul(x)));
    let tangent = Elementary::tanh::<I>(inner);
    let along = root.mul(W::ONE.add(W::from_f64(0.134_145).mul(square)));
    let rest = half.mul(x).mul(W::ONE.sub(tangent.mul(tangent))).mul(along);
    half.mul(W::ONE.add(tangent)).add(rest)
}

/// The gradient of GELU, from that of its result and its operand.
pub struct GeluSlope;

impl<W: Special> BinaryOp<W> for GeluSlope {
    const COST_NS: f64 = 3.0;
    const BY_ISA: bool = true;
    #[inline(always)]
    fn apply<I: Isa>(dy: W, x: W) -> W {
        dy.mul(gelu_slope::<I, W>(x))
    }
}

/// The gradient of the approximation of GELU by `tanh`.
pub struct GeluTanhSlope;

impl<W: Special> BinaryOp<W> for GeluTanhSlope {
    const COST_NS: f64 = 1.5;
    const BY_ISA: bool = true;
    #[inline(always)]
    fn apply<I: Isa>(dy: W, x: W) -> W {
        dy.mul(gelu_slope_by_tanh::<I, W>(x))
    }
}

macro_rules! slopes {
    ($($(#[$meta:meta])* $op:ident: |$dy:ident, $y:ident| $value:expr;)*) => {$(
        $(#[$meta])*
        pub struct $op;

        impl<W: Number> BinaryOp<W> for $op {
            #[inline(always)]
            fn apply<I: Isa>($dy: W, $y: W) -> W {
                $value
            }
        }
    )*};
}

// As the kernels of the ops compute them, in `nn::activation_grad`.
slopes! {
    /// `ReluGrad`: 0 times an infinity is NaN.
    ReluSlope: |dy, y| dy.mul(if y > W::ZERO { W::ONE } else { W::ZERO });
    /// `TanhGrad`, its operands exchanged.
    TanhSlope: |dy, y| dy.mul(W::ONE.sub(y.mul(y)));
    /// `SigmoidGrad`, its operands exchanged.
    SigmoidSlope: |dy, y| y.mul(W::ONE.sub(y)).mul(dy);
}

macro_rules! functions {
    ($($(#[$meta:meta])* $op:ident: $bound:path, $cost:expr, |$x:ident| $value:expr;)*) => {$(
        $(#[$meta])*
        pub struct $op;

        impl<W: $bound> UnaryOp<W> for $op {
            const COST_NS: f64 = $cost;
            const BY_ISA: bool = true;
            #[inline(always)]
            fn apply<I: Isa>($x: W) -> W {
                $value
            }
        }
    )*};
}

functions! {
    /// Absolute value.
    Abs: Magnitude, 0.15, |x| x.magnitude();
    /// Largest integer not above `x`.
    Floor: Special, 0.5, |x| Whole::floor(x);
    /// Smallest integer not below `x`.
    Ceil: Special, 0.5, |x| Whole::ceil(x);
    /// Error function.
    Erf: Special, 2.0, |x| x.erf::<I>();
    /// `x` if it is not below 0, else `e^x - 1`.
    Elu: Special, 1.5, |x| x.elu::<I>();
    /// `ln(1 + e^x)`.
    Softplus: Special, 3.0, |x| x.softplus::<I>();
    /// `0.5 x (1 + erf(x / sqrt(2)))`.
    Gelu: Special, 2.0, |x| x.gelu::<I>();
    /// The approximation of `Gelu` by `tanh`.
    GeluTanh: Special, 1.0, |x| gelu_by_tanh::<I, _>(x);
}

/// A type of computation with a sign.
pub trait Magnitude: Compute<Wide = Self> + Signed {}
impl<W: Compute<Wide = W> + Signed> Magnitude for W {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        arch::{Baseline, Level},
        kernels::elementwise::map,
        testing::values,
    };
    use half::bf16;

    /// Compares an op with a function of doubles, at every level.
    fn check<T: Compute, O: UnaryOp<T::Wide>>(exact: fn(f64) -> f64, absolute: f64, relative: f64) {
        let x = values::<T>(517, 4);
        let expected: Vec<f64> = x.iter().map(|x| exact(x.to_f64())).collect();
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            let mut found = vec![T::ZERO; x.len()];
            map::<T, O>(level, &x, &mut found);
            for ((x, y), e) in x.iter().zip(&found).zip(&expected) {
                let bound = absolute + relative * e.abs();
                assert!((y.to_f64() - e).abs() <= bound, "{}: {} for {e}", x.to_f64(), y.to_f64());
            }
        }
    }

    fn exact_gelu(x: f64) -> f64 {
        0.5 * x * special::erfc(-x * FRAC_1_SQRT_2)
    }

    fn approximate_gelu(x: f64) -> f64 {
        0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh())
    }

    fn exact_slope(x: f64) -> f64 {
        let bell = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        0.5 * special::erfc(-x * FRAC_1_SQRT_2) + x * bell
    }

    /// By central differences, whose error is that of the fourth power of the step.
    fn approximate_slope(x: f64) -> f64 {
        let at = |steps: f64| approximate_gelu(x + steps / 256.0);
        (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) * 256.0 / 12.0
    }

    /// Compares the gradient where that of the result is 1, or another number, with a slope.
    fn check_slope<T: Compute, O: BinaryOp<T::Wide>>(
        exact: fn(f64) -> f64,
        absolute: f64,
        relative: f64,
    ) {
        let x = values::<T>(517, 4);
        for dy in [1.0, -3.5] {
            for x in &x {
                let y = O::apply::<Baseline>(<T::Wide as Number>::from_f64(dy), x.up());
                let (y, e) = (T::down(y).to_f64(), dy * exact(x.to_f64()));
                let bound = absolute * dy.abs() + relative * e.abs();
                assert!((y - e).abs() <= bound, "{}: {y} for {e}", x.to_f64());
            }
        }
    }

    #[test]
    fn slopes_of_gelu_are_its_derivatives() {
        check_slope::<f32, GeluSlope>(exact_slope, 1e-6, 1e-6);
        check_slope::<f64, GeluSlope>(exact_slope, 1e-15, 2e-15);
        check_slope::<bf16, GeluSlope>(exact_slope, 1e-6, 4e-3);
        // The hyperbolic tangent is off by up to 6 ulp, and the slope multiplies that by up to 12.
        check_slope::<f32, GeluTanhSlope>(approximate_slope, 4e-6, 4e-6);
        check_slope::<f64, GeluTanhSlope>(approximate_slope, 1e-8, 1e-8);
        check_slope::<bf16, GeluTanhSlope>(approximate_slope, 4e-6, 4e-3);
    }

    #[test]
    fn functions_agree_with_those_of_the_c_library() {
        check::<f32, Elu>(|x| if x < 0.0 { x.exp_m1() } else { x }, 0.0, 1.2e-7);
        check::<f32, Softplus>(|x| x.exp().ln_1p(), 0.0, 1.2e-7);
        check::<f64, Softplus>(|x| x.exp().ln_1p(), 0.0, 1e-15);
        check::<f32, Erf>(special::erf, 0.0, 1.2e-7);
        check::<f32, Gelu>(exact_gelu, 1e-6, 4e-7);
        check::<f64, Gelu>(exact_gelu, 0.0, 1e-15);
        check::<bf16, Gelu>(exact_gelu, 1e-6, 4e-3);
        check::<f32, GeluTanh>(approximate_gelu, 1e-6, 1e-6);
        check::<f64, GeluTanh>(approximate_gelu, 2e-15, 1e-15);
        check::<f32, Floor>(f64::floor, 0.0, 0.0);
        check::<i32, Abs>(f64::abs, 0.0, 0.0);
    }

    #[test]
    fn ends_and_zeros() {
        assert_eq!(<Softplus as UnaryOp<f32>>::apply::<Baseline>(800.0), 800.0);
        assert!(Special::gelu::<Baseline>(f32::NAN).is_nan());
        assert_eq!(Special::gelu::<Baseline>(f32::INFINITY), f32::INFINITY);
        assert_eq!(Special::gelu::<Baseline>(-1000f32), 0.0);
        assert_eq!(<Elu as UnaryOp<f32>>::apply::<Baseline>(f32::NEG_INFINITY), -1.0);
        assert!(<Abs as UnaryOp<f32>>::apply::<Baseline>(-0.0).is_sign_positive());
    }
}
