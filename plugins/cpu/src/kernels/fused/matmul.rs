//! `_FusedMatMul`: the epilogue is applied to each part of the product while that is in the cache.

use super::{epilogue::Attributes, functions::Special};
#[cfg(target_arch = "x86_64")]
use crate::kernels::linalg::bf16_dot;
use crate::{
    kernels::linalg::{matmul::Right, product::Factor},
    lane::Compute,
};
use half::{bf16, f16};
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack},
    geometry::DataFormat,
    reg::Numerics,
    register_kernel,
};

struct FusedMatMul<T: Compute> {
    right: Right<T>,
    epilogue: Attributes,
}

impl<T: Compute<Wide: Factor + Special>> Kernel for FusedMatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedMatMul { right: Right::new(c)?, epilogue: Attributes::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.right.geometry(c)?;
        let output = [g.m as i64, g.n as i64];
        let steps = self.epilogue.bind::<T>(c, &output, DataFormat::Nhwc)?;
        let y = c.output::<T>(0, &output)?.data;
        steps.ending(|ending| self.right.multiply(c, &g, y, ending))
    }
}

impl<T: Compute<Wide: Factor + Special>> Prepack for FusedMatMul<T> {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.right.prepack(input, view))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.right.attach(input, packed);
    }
}

/// [`FusedMatMul`] of bfloat16 by dot products of pairs.
#[cfg(target_arch = "x86_64")]
struct FusedDot {
    products: bf16_dot::Products,
    epilogue: Attributes,
}

#[cfg(target_arch = "x86_64")]
impl Kernel for FusedDot {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedDot { products: bf16_dot::Products::new(c)?, epilogue: Attributes::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.products.geometry(c)?;
        let output = [g.m as i64, g.n as i64];
        let steps = self.epilogue.bind::<bf16>(c, &output, DataFormat::Nhwc)?;
        let y = c.output::<bf16>(0, &output)?.data;
        steps.ending(|ending| self.products.multiply(c, &g, y, ending))
    }
}

impl Prepack for FusedDot {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.products.prepack(input, view))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.products.attach(input, packed);
    }
}

// Bounds of the product relative to the sum of its absolute terms, plus those of the functions that
// follow.
register_kernel!("_FusedMatMul" on "CPU": FusedMatMul<T> for "T" in [f32],
    numerics = Numerics::relative(1e-6, 4e-6).accumulation(DType::FLOAT));
register_kernel!("_FusedMatMul" on "CPU": FusedMatMul<T> for "T" in [f64],
    numerics = Numerics::relative(1e-14, 8e-15).accumulation(DType::DOUBLE));
register_kernel!("_FusedMatMul" on "CPU": FusedMatMul<T> for "T" in [f16],
    numerics = Numerics::relative(1e-3, 4e-3).accumulation(DType::FLOAT));
register_kernel!("_FusedMatMul" on "CPU": FusedMatMul<T> for "T" in [bf16],
    numerics = Numerics::relative(8e-3, 3.2e-2).accumulation(DType::FLOAT));
#[cfg(target_arch = "x86_64")]
register_kernel!("_FusedMatMul" on "CPU": FusedDot, types = ("T", &[DType::BFLOAT16]),
    label = "bf16_dot", on_request = true, features = bf16_dot::FEATURES,
    numerics = Numerics::relative(8e-3, 3.2e-2).accumulation(DType::FLOAT));
