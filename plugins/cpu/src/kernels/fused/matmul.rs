//! `_FusedMatMul`: the product, then its epilogue, a piece of the rows at a time.

use super::{epilogue::Attributes, functions::Special};
use crate::{
    kernels::linalg::matmul::{Transposed, matmul, narrow_matmul},
    lane::Compute,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{DataFormat, MatMulGeometry},
    reg::Numerics,
    register_kernel,
};

/// An element type with its product of matrices.
trait Product: Compute<Wide: Special> {
    fn product(
        c: &ComputeContext<'_>,
        g: &MatMulGeometry,
        a: &[Self],
        b: &[Self],
        y: &mut [Self],
    ) -> Result<(), KernelError>;
}

macro_rules! products {
    ($($ty:ty: $function:ident;)*) => {$(
        impl Product for $ty {
            fn product(
                c: &ComputeContext<'_>,
                g: &MatMulGeometry,
                a: &[$ty],
                b: &[$ty],
                y: &mut [$ty],
            ) -> Result<(), KernelError> {
                $function(c, g, a, b, y)
            }
        }
    )*};
}

products! {
    f32: matmul;
    f64: matmul;
    f16: narrow_matmul;
    bf16: narrow_matmul;
}

struct FusedMatMul<T> {
    transposed: Transposed,
    epilogue: Attributes,
    element: PhantomData<T>,
}

impl<T: Product> Kernel for FusedMatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let transposed = Transposed::new(c)?;
        Ok(FusedMatMul { transposed, epilogue: Attributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a, b) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = MatMulGeometry::new(a.dims, b.dims, self.transposed.a, self.transposed.b)?;
        let output = [g.m as i64, g.n as i64];
        let steps = self.epilogue.bind::<T>(c, &output, DataFormat::Nhwc)?;
        let y = c.output::<T>(0, &output)?.data;
        T::product(c, &g, a.data, b.data, y)?;
        steps.pass(c, y)
    }
}

// Of the product relative to the sum of its absolute terms, and of the functions that follow.
register_kernel!("_FusedMatMul" on "CPU": FusedMatMul<T> for "T" in [f32],
    numerics = Numerics::relative(1e-6, 4e-6).accumulation(DType::FLOAT));
register_kernel!("_FusedMatMul" on "CPU": FusedMatMul<T> for "T" in [f64],
    numerics = Numerics::relative(1e-14, 8e-15).accumulation(DType::DOUBLE));
register_kernel!("_FusedMatMul" on "CPU": FusedMatMul<T> for "T" in [f16],
    numerics = Numerics::relative(1e-3, 4e-3).accumulation(DType::FLOAT));
register_kernel!("_FusedMatMul" on "CPU": FusedMatMul<T> for "T" in [bf16],
    numerics = Numerics::relative(8e-3, 3.2e-2).accumulation(DType::FLOAT));
