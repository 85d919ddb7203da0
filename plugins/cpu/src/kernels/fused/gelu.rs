//! `_FusedGelu` and `_FusedGeluGrad`.

use super::functions::{Gelu, GeluSlope, GeluTanh, GeluTanhSlope, Special};
use crate::{
    kernels::elementwise::{binary, unary},
    lane::Compute,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    reg::Numerics,
    register_kernel,
};

struct FusedGelu<T> {
    approximate: bool,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Special>> Kernel for FusedGelu<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedGelu { approximate: c.attr("approximate")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if self.approximate { unary::<T, GeluTanh>(c) } else { unary::<T, Gelu>(c) }
    }
}

struct FusedGeluGrad<T> {
    approximate: bool,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Special>> Kernel for FusedGeluGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedGeluGrad { approximate: c.attr("approximate")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if c.dims(0) != c.dims(1) {
            return Err(KernelError::invalid_argument(format!(
                "both inputs must have the same shape, found {:?} and {:?}",
                c.dims(0),
                c.dims(1)
            )));
        }
        if self.approximate { binary::<T, GeluTanhSlope>(c) } else { binary::<T, GeluSlope>(c) }
    }
}

// The slope, from -0.13 to 1.13, has an absolute error, which the gradient multiplies.
register_kernel!("_FusedGeluGrad" on "CPU": FusedGeluGrad<T> for "T" in [f32],
    in_place = &[(0, 0)], numerics = Numerics::relative(4e-6, 4e-6));
register_kernel!("_FusedGeluGrad" on "CPU": FusedGeluGrad<T> for "T" in [f64],
    in_place = &[(0, 0)], numerics = Numerics::relative(2e-14, 1e-14));
register_kernel!("_FusedGeluGrad" on "CPU": FusedGeluGrad<T> for "T" in [f16],
    in_place = &[(0, 0)], numerics = Numerics::relative(4e-6, 1e-3));
register_kernel!("_FusedGeluGrad" on "CPU": FusedGeluGrad<T> for "T" in [bf16],
    in_place = &[(0, 0)], numerics = Numerics::relative(4e-6, 8e-3));

register_kernel!("_FusedGelu" on "CPU": FusedGelu<T> for "T" in [f32],
    in_place = &[(0, 0)], numerics = Numerics::relative(1e-6, 1e-6));
register_kernel!("_FusedGelu" on "CPU": FusedGelu<T> for "T" in [f64],
    in_place = &[(0, 0)], numerics = Numerics::relative(4e-15, 2e-15));
register_kernel!("_FusedGelu" on "CPU": FusedGelu<T> for "T" in [f16],
    in_place = &[(0, 0)], numerics = Numerics::relative(1e-6, 1e-3));
register_kernel!("_FusedGelu" on "CPU": FusedGelu<T> for "T" in [bf16],
    in_place = &[(0, 0)], numerics = Numerics::relative(1e-6, 8e-3));
