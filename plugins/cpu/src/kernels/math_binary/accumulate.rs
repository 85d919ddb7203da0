//! `AccumulateNV2`: the sum of `AddN`, of tensors whose shape an attribute gives.

use super::{arithmetic, complex};
use half::{bf16, f16};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError, PartialShape,
    author::{ComputeContext, CreateContext, Kernel},
    reg::Numerics,
    register_kernel,
};

/// A type of elements that are summed.
trait Sum: Send + Sync + 'static {
    /// Computes the sum, as `AddN` does.
    fn sum(c: &ComputeContext<'_>) -> Result<(), KernelError>;
}

macro_rules! sums {
    ($($module:ident: $($ty:ty),*;)*) => {$($(
        impl Sum for $ty {
            fn sum(c: &ComputeContext<'_>) -> Result<(), KernelError> {
                $module::add_n::<$ty>(c)
            }
        }
    )*)*};
}

sums! {
    arithmetic: i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
    complex: Complex<f32>, Complex<f64>;
}

struct Accumulate<T> {
    shape: PartialShape,
    element: PhantomData<T>,
}

impl<T: Sum> Kernel for Accumulate<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Accumulate { shape: c.attr("shape")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if !self.shape.accepts(c.dims(0)) {
            return Err(KernelError::invalid_argument(format!(
                "inputs must have the shape {} of attribute shape, found {:?}",
                self.shape,
                c.dims(0)
            )));
        }
        T::sum(c)
    }
}

register_kernel!("AccumulateNV2" on "CPU": Accumulate<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>],
    numerics = Numerics::EXACT);
