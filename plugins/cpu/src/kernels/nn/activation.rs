//! `Relu` and `Relu6`. `Relu` of float has two variants with fixed instructions, to be timed
//! against each other.

use crate::{
    arch::{Isa, Level},
    kernels::elementwise::{UnaryOp, unary, unary_at},
    lane::Compute,
};
use half::{bf16, f16};
use tenon_sdk::{DType, KernelError, author::ComputeContext, reg::Numerics, register_kernel};

/// `max(x, 0)`; NaN stays.
pub struct Relu;

impl<W: Compute> UnaryOp<W> for Relu {
    #[inline(always)]
    fn apply<I: Isa>(x: W) -> W {
        x.clamped(W::HIGHEST)
    }
    #[inline(always)]
    fn on<I: Isa, T: Compute<Wide = W>>(x: T) -> T {
        x.clamped(T::HIGHEST)
    }
    #[inline(always)]
    fn is_identity<T: Compute<Wide = W>>() -> bool {
        T::LOWEST == T::ZERO
    }
}

/// `min(max(x, 0), 6)`; NaN stays.
pub struct Relu6;

impl<W: Compute> UnaryOp<W> for Relu6 {
    #[inline(always)]
    fn apply<I: Isa>(x: W) -> W {
        x.clamped(W::from_f64(6.0))
    }
    #[inline(always)]
    fn on<I: Isa, T: Compute<Wide = W>>(x: T) -> T {
        // Rounded here, because the half crate would detect the processor's features for each
        // element.
        x.clamped(T::down(W::from_f64(6.0)))
    }
}

fn relu<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    unary::<T, Relu>(c)
}

fn relu6<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    unary::<T, Relu6>(c)
}

fn relu_avx2(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    unary_at::<f32, Relu>(c, || Level::Avx2)
}

fn relu_avx512(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    unary_at::<f32, Relu>(c, || Level::Avx512)
}

register_kernel!("Relu" on "CPU": fn relu<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Relu6" on "CPU": fn relu6<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Relu" on "CPU": fn relu_avx2, types = ("T", &[DType::FLOAT]), label = "avx2",
    priority = 1, features = &["avx2", "fma"], in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Relu" on "CPU": fn relu_avx512, types = ("T", &[DType::FLOAT]), label = "avx512",
    priority = 2, features = &["avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernels::elementwise::map,
        testing::{assert_ulps, values},
    };
    use tenon_reference::nn as reference;

    fn check<T: Compute, O: UnaryOp<T::Wide>>(expected: fn(&[T], &mut [T])) {
        let mut x: Vec<T> = values::<T>(333, 8).iter().map(|x| x.add(*x)).collect();
        x[5] = T::from_f64(f64::NAN);
        let (mut y, mut found) = (vec![T::ZERO; 333], vec![T::ZERO; 333]);
        expected(&x, &mut y);
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            map::<T, O>(level, &x, &mut found);
            assert_ulps(&found, &y, 0.0);
        }
    }

    #[test]
    fn every_level_agrees_with_the_reference() {
        check::<f32, Relu>(reference::relu);
        check::<i8, Relu>(reference::relu);
        check::<u16, Relu6>(reference::relu6);
        check::<f16, Relu6>(reference::relu6);
        check::<bf16, Relu>(reference::relu);
        check::<f64, Relu6>(reference::relu6);
    }
}
