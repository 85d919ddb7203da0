//! `Elu`, `Selu`, `LeakyRelu`, `Softplus`, `Softsign`: computed in double, except `LeakyRelu`,
//! which multiplies once.

use crate::{
    kernels::elementwise::any::{map_double, map_in_place},
    lane::Compute,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
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

fn softsign_of(x: f64) -> f64 {
    x / (1.0 + x.abs())
}

macro_rules! in_double {
    ($($op:literal $name:ident, $function:ident, $cost:expr;)*) => {$(
        fn $name<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            map_double::<T>(c, $cost, $function)
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [f16, bf16, f32, f64],
            in_place = &[(0, 0)], numerics = Numerics::ulps(2.0));
    )*};
}

in_double! {
    "Elu" elu, elu_of, 6.0;
    "Selu" selu, selu_of, 6.0;
    "Softplus" softplus, softplus_of, 15.0;
    "Softsign" softsign, softsign_of, 1.0;
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
        map_in_place::<T>(c, 0.3, |x| if x > T::ZERO { x } else { T::down(x.up().mul(alpha)) })
    }
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
