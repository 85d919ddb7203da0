//! `Elu`, `Selu`, `LeakyRelu`, `Softplus`, `Softsign`: computed in double, except `LeakyRelu`,
//! which multiplies once. Float and the 16-bit floats have loops that vectorise.

use crate::{
    arch::{Isa, vectorised},
    kernels::{
        elementary::short,
        elementwise::{UnaryOp, any::map_in_place as map_each, unary},
    },
    lane::Compute,
    split::for_parts,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, InOut, Kernel},
    element::Number,
    reg::Numerics,
    register_kernel,
};

/// The constants of G. Klambauer et al., "Self-Normalizing Neural Networks" (2017), section 2.
pub const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
/// `SELU_SCALE` times the paper's alpha.
pub const SELU_SCALED_ALPHA: f64 = 1.758_099_340_847_376_6;

/// `x` where it is not below 0, else `e^x - 1`.
pub fn elu_of(x: f64) -> f64 {
    if x < 0.0 { x.exp_m1() } else { x }
}

fn selu_of(x: f64) -> f64 {
    if x < 0.0 { SELU_SCALED_ALPHA * x.exp_m1() } else { SELU_SCALE * x }
}

/// `ln(1 + e^x)`.
pub fn softplus_of(x: f64) -> f64 {
    // Either form is exact where the other overflows.
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

#[inline(always)]
fn softsign_of(x: f64) -> f64 {
    x / (1.0 + x.abs())
}

macro_rules! in_double {
    ($($op:literal $name:ident $exact:ident $fast:ident, $function:ident, $cost:expr,
        |$x:ident| $value:expr;)*) => {$(
        struct $fast;

        impl UnaryOp<f32> for $fast {
            const COST_NS: f64 = $cost;
            const BY_ISA: bool = true;
            #[inline(always)]
            fn apply<I: Isa>(x: f32) -> f32 {
                let $x = f64::from(x);
                ($value) as f32
            }
        }

        #[inline(always)]
        fn $name<T: Compute<Wide = f32>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            unary::<T, $fast>(c)
        }

        fn $exact(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            map_each::<f64>(c, 4.0 * $cost, $function)
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [f16, bf16, f32],
            in_place = &[(0, 0)], numerics = Numerics::ulps(2.0));
        register_kernel!($op on "CPU": fn $exact, types = ("T", &[DType::DOUBLE]),
            in_place = &[(0, 0)], numerics = Numerics::ulps(2.0));
    )*};
}

in_double! {
    "Elu" elu exact_elu Elu, elu_of, 1.5,
        |x| if x < 0.0 { short::expm1::<I>(x) } else { x };
    "Selu" selu exact_selu Selu, selu_of, 1.5,
        |x| if x < 0.0 { SELU_SCALED_ALPHA * short::expm1::<I>(x) } else { SELU_SCALE * x };
    "Softplus" softplus exact_softplus Softplus, softplus_of, 3.0,
        |x| short::softplus::<I>(x);
    "Softsign" softsign exact_softsign Softsign, softsign_of, 0.5,
        |x| softsign_of(x);
}

struct LeakyRelu<T> {
    alpha: f32,
    element: PhantomData<T>,
}

impl<T: Compute> Kernel for LeakyRelu<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(LeakyRelu { alpha: c.attr("alpha")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let alpha = rounded::<T>(self.alpha);
        match c.in_place::<T>(0, 0, c.dims(0))? {
            InOut::InPlace(y) => for_parts(c, y, 0.2, |_, y| leak_in_place::<T>(y, alpha)),
            InOut::Separate(x, y) => {
                for_parts(c, y, 0.2, |start, y| leak::<T>(&x[start..][..y.len()], alpha, y))
            }
        }
    }
}

vectorised! {
    /// `y[i] = x[i]` where that is above 0, else `x[i] * alpha`.
    fn leak[T: Compute](x: &[T], alpha: T::Wide, y: &mut [T]) {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = leaked(x, alpha));
    }
}

vectorised! {
    /// As [`leak`], in place.
    fn leak_in_place[T: Compute](y: &mut [T], alpha: T::Wide) {
        y.iter_mut().for_each(|y| *y = leaked(*y, alpha));
    }
}

#[inline(always)]
fn leaked<T: Compute>(x: T, alpha: T::Wide) -> T {
    let wide = x.up();
    if wide > T::Wide::ZERO { x } else { T::down(wide.mul(alpha)) }
}

/// An attribute rounded to the type, in its type of computation.
pub fn rounded<T: Compute>(value: f32) -> T::Wide {
    T::down(<T::Wide as Number>::from_f64(value.into())).up()
}

register_kernel!("LeakyRelu" on "CPU": LeakyRelu<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_keep_their_digits_at_the_ends() {
        assert_eq!((softplus_of(800.0), softplus_of(-800.0)), (800.0, 0.0));
        assert!((softplus_of(-30.0) / (-30f64).exp() - 1.0).abs() < 1e-12);
        assert_eq!(softplus_of(0.0), std::f64::consts::LN_2);
        assert_eq!((elu_of(-1e-20), elu_of(f64::NEG_INFINITY), elu_of(2.0)), (-1e-20, -1.0, 2.0));
        assert_eq!(selu_of(f64::NEG_INFINITY), -SELU_SCALED_ALPHA);
        assert!((SELU_SCALED_ALPHA / SELU_SCALE - 1.673_263_242_354_377_2).abs() < 1e-15);
        assert!(softsign_of(f64::INFINITY).is_nan());
        assert_eq!(rounded::<bf16>(0.2), bf16::from_f32(0.2).to_f32());
    }
}
