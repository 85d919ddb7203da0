//! `Neg`, `Square`, `Sqrt`, `Rsqrt`, `Exp`, `Log`, `Tanh`, `Sigmoid`.

use crate::kernels::{
    elementary::Elementary,
    elementwise::{UnaryOp, unary},
};
use crate::{arch::Isa, lane::Compute};
use half::{bf16, f16};
use tenon_sdk::{KernelError, author::ComputeContext, reg::Numerics, register_kernel};

macro_rules! unary_ops {
    ($($op:ident, $function:ident: $bound:ident, $cost:expr, $(by_isa: $by_isa:literal,)? |$x:ident| $value:expr
        $(, on |$y:ident| $on:expr)? $(, near $near:ident)?;)*) => {$(
        /// One of the ops of this file.
        pub struct $op;

        impl<W: $bound<Wide = W>> UnaryOp<W> for $op {
            const COST_NS: f64 = $cost;
            $(const BY_ISA: bool = $by_isa;)?
            #[inline(always)]
            fn apply<I: Isa>($x: W) -> W {
                $value
            }
            $(#[inline(always)]
            fn on<I: Isa, T: Compute<Wide = W>>($y: T) -> T {
                $on
            })?
            $(const HAS_NEAR: bool = true;
            #[inline(always)]
            fn are_near<T: Compute<Wide = W>>(x: &[T]) -> bool {
                W::are_within(x, W::NEAR)
            }
            #[inline(always)]
            fn near<I: Isa, T: Compute<Wide = W>>(x: T) -> T {
                T::down(x.up().$near::<I>())
            })?
        }

        #[inline(always)]
        fn $function<T: Compute<Wide: $bound>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            unary::<T, $op>(c)
        }
    )*};
}

unary_ops! {
    // Only the sign changes, for 16-bit floats too: nothing is widened or rounded.
    Neg, neg: Compute, 0.15, |x| x.neg(), on |x| x.neg();
    Square, square: Compute, 0.15, |x| x.mul(x);
    Sqrt, sqrt: Elementary, 0.5, |x| x.sqrt();
    Rsqrt, rsqrt: Elementary, 0.8, |x| W::ONE.div(x.sqrt());
    Exp, exp: Elementary, W::COST_NS, by_isa: true, |x| x.exp::<I>(), near exp_near;
    Log, log: Elementary, W::COST_NS, by_isa: true, |x| x.ln::<I>();
    Tanh, tanh: Elementary, W::COST_NS, by_isa: true, |x| x.tanh::<I>();
    Sigmoid, sigmoid: Elementary, W::COST_NS, by_isa: true, |x| x.sigmoid::<I>(), near sigmoid_near;
}

register_kernel!("Neg" on "CPU": fn neg<T> for "T" in [i8, i16, i32, i64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Square" on "CPU": fn square<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Sqrt" on "CPU": fn sqrt<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Rsqrt" on "CPU": fn rsqrt<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::ulps(2.0));
register_kernel!("Exp" on "CPU": fn exp<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::ulps(2.0));
register_kernel!("Log" on "CPU": fn log<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::ulps(2.0));
register_kernel!("Tanh" on "CPU": fn tanh<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::ulps(6.0));
register_kernel!("Sigmoid" on "CPU": fn sigmoid<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::ulps(3.0));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        arch::Level,
        kernels::elementwise::map,
        testing::{assert_ulps, values},
    };
    use tenon_reference::math_unary as reference;

    fn check<T: Compute, O: UnaryOp<T::Wide>>(expected: fn(&[T], &mut [T]), ulps: f64) {
        let x = values::<T>(1003, 3);
        let mut y = vec![T::ZERO; x.len()];
        expected(&x, &mut y);
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            let mut found = vec![T::ZERO; x.len()];
            map::<T, O>(level, &x, &mut found);
            assert_ulps(&found, &y, ulps);
        }
    }

    #[test]
    fn every_level_agrees_with_the_reference() {
        check::<i16, Neg>(reference::neg, 0.0);
        check::<u8, Square>(reference::square, 0.0);
        check::<bf16, Neg>(reference::neg, 0.0);
        check::<f32, Square>(reference::square, 0.0);
        check::<f32, Sqrt>(reference::sqrt, 0.0);
        check::<f64, Rsqrt>(reference::rsqrt, 2.0);
        check::<f32, Exp>(reference::exp, 2.0);
        check::<f16, Exp>(reference::exp, 1.0);
        check::<f32, Log>(reference::log, 2.0);
        check::<bf16, Log>(reference::log, 1.0);
        check::<f32, Tanh>(reference::tanh, 6.0);
        check::<f32, Sigmoid>(reference::sigmoid, 3.0);
        check::<f64, Sigmoid>(reference::sigmoid, 3.0);
    }
}
