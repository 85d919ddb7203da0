//! Matrix products.

use super::ROUNDED;
use crate::kernels::linalg::{batch_matmul::Adjoint, matmul::Transposed};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_reference::{Accumulate, linalg};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{BatchMatMulGeometry, MatMulGeometry},
    register_kernel,
};

struct MatMul<T> {
    transposed: Transposed,
    element: PhantomData<T>,
}

impl<T: Accumulate> Kernel for MatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MatMul { transposed: Transposed::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a, b) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = MatMulGeometry::new(a.dims, b.dims, self.transposed.a, self.transposed.b)?;
        let y = c.output::<T>(0, &[g.m as i64, g.n as i64])?;
        linalg::matmul(&g, a.data, b.data, y.data);
        Ok(())
    }
}

struct BatchMatMul<T> {
    adjoint: Adjoint,
    element: PhantomData<T>,
}

impl<T: Accumulate> Kernel for BatchMatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(BatchMatMul { adjoint: Adjoint::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, y) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = BatchMatMulGeometry::new(x.dims, y.dims, self.adjoint.x, self.adjoint.y)?;
        let z = c.output::<T>(0, &g.output)?.data;
        if !z.is_empty() {
            linalg::batch_matmul(&g, x.data, y.data, z);
        }
        Ok(())
    }
}

register_kernel!("MatMul" on "CPU": MatMul<T> for "T" in [i32, i64, f16, bf16, f32, f64],
    label = "reference", on_request = true, numerics = ROUNDED);
register_kernel!("BatchMatMulV2" on "CPU": BatchMatMul<T> for "T" in [i16, i32, i64, f16, bf16, f32, f64],
    label = "reference", on_request = true, numerics = ROUNDED);
