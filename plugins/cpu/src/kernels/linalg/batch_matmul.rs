//! `BatchMatMulV2`.

use super::{
    matmul::{convert_down, operands, widen},
    product::{Factor, Target, cost_ns, parallel_product, product},
};
use crate::{
    lane::Compute,
    split::{Parts, for_units},
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::BatchMatMulGeometry,
    reg::Numerics,
    register_kernel,
};

/// Attributes; real numbers are their own conjugates, so `adj` is transposition.
pub struct Adjoint {
    /// Of `x`.
    pub x: bool,
    /// Of `y`.
    pub y: bool,
}

impl Adjoint {
    /// Reads them.
    pub fn new(c: &CreateContext<'_>) -> Result<Adjoint, KernelError> {
        Ok(Adjoint { x: c.attr("adj_x")?, y: c.attr("adj_y")? })
    }
}

/// All products, in matrices of the type of computation.
fn products<T: Factor>(
    c: &ComputeContext<'_>,
    g: &BatchMatMulGeometry,
    x: &[T],
    y: &[T],
    z: &mut [T],
) -> Result<(), KernelError> {
    let size = &g.matrix;
    let (x_len, y_len, z_len) = (size.m * size.k, size.k * size.n, size.m * size.n);
    let strides = [size.n, 1];
    if z_len == 0 || z.is_empty() {
        return Ok(());
    }
    let pairs: Vec<(usize, usize)> = g.products().collect();
    if let &[(i, j)] = &pairs[..] {
        let (a, b) = operands(size, &x[i * x_len..], &y[j * y_len..]);
        // SAFETY: the target is the whole output.
        let target = unsafe { Target::new(z.as_mut_ptr(), size.m, size.n, strides) };
        return parallel_product(c, a, b, target);
    }
    let z = Parts::new(z);
    for_units(c, pairs.len(), cost_ns::<T>(size.m, size.n, size.k), |range| {
        for at in range {
            let (i, j) = pairs[at];
            let (a, b) = operands(size, &x[i * x_len..], &y[j * y_len..]);
            // SAFETY: each product writes a matrix of its own, inside the output.
            let target =
                unsafe { Target::new(z.as_mut_ptr().add(at * z_len), size.m, size.n, strides) };
            product(a, b, target);
        }
    })
}

struct BatchMatMul<T> {
    adjoint: Adjoint,
    element: PhantomData<T>,
}

impl<T: Factor> Kernel for BatchMatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(BatchMatMul { adjoint: Adjoint::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, y) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = BatchMatMulGeometry::new(x.dims, y.dims, self.adjoint.x, self.adjoint.y)?;
        let z = c.output::<T>(0, &g.output)?;
        products(c, &g, x.data, y.data, z.data)
    }
}

/// 16-bit floats: operands are converted, products are rounded once.
struct NarrowBatchMatMul<T> {
    adjoint: Adjoint,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor>> Kernel for NarrowBatchMatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(NarrowBatchMatMul { adjoint: Adjoint::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, y) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = BatchMatMulGeometry::new(x.dims, y.dims, self.adjoint.x, self.adjoint.y)?;
        let z = c.output::<T>(0, &g.output)?;
        let (x, y) = (widen(c, x.data)?, widen(c, y.data)?);
        let wide = c.scratch_slice::<T::Wide>(z.data.len())?;
        products(c, &g, x, y, wide)?;
        convert_down(wide, z.data);
        Ok(())
    }
}

register_kernel!("BatchMatMulV2" on "CPU": BatchMatMul<T> for "T" in [f32],
    numerics = Numerics::relative(1e-30, 2e-6).accumulation(DType::FLOAT));
register_kernel!("BatchMatMulV2" on "CPU": BatchMatMul<T> for "T" in [f64],
    numerics = Numerics::relative(1e-300, 4e-15).accumulation(DType::DOUBLE));
register_kernel!("BatchMatMulV2" on "CPU": BatchMatMul<T> for "T" in [i16, i32, i64],
    numerics = Numerics::EXACT);
register_kernel!("BatchMatMulV2" on "CPU": NarrowBatchMatMul<T> for "T" in [f16],
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("BatchMatMulV2" on "CPU": NarrowBatchMatMul<T> for "T" in [bf16],
    numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT));
