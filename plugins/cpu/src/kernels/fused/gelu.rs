//! `_FusedGelu`.

use super::functions::{Gelu, GeluTanh, Special};
use crate::{kernels::elementwise::unary, lane::Compute};
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

register_kernel!("_FusedGelu" on "CPU": FusedGelu<T> for "T" in [f32],
    in_place = &[(0, 0)], numerics = Numerics::relative(1e-6, 1e-6));
register_kernel!("_FusedGelu" on "CPU": FusedGelu<T> for "T" in [f64],
    in_place = &[(0, 0)], numerics = Numerics::relative(4e-15, 2e-15));
register_kernel!("_FusedGelu" on "CPU": FusedGelu<T> for "T" in [f16],
    in_place = &[(0, 0)], numerics = Numerics::relative(1e-6, 1e-3));
register_kernel!("_FusedGelu" on "CPU": FusedGelu<T> for "T" in [bf16],
    in_place = &[(0, 0)], numerics = Numerics::relative(1e-6, 8e-3));
