//! `BatchMatMul`, `BatchMatMulV2` and `BatchMatMulV3`.

use super::{
    matmul::{DOUBLE, FLOAT, convert_down, operands, widen},
    product::{Factor, Multiply, Target, parallel_multiply},
};
use crate::{
    lane::Compute,
    split::{Parts, for_units},
};
use half::{bf16, f16};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{BatchMatMulGeometry, equal_batches},
    reg::Numerics,
    register_kernel,
};

/// Attributes. Real numbers are their own conjugates, so that for them `adj` is transposition.
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
pub fn products<T: Multiply>(
    c: &ComputeContext<'_>,
    g: &BatchMatMulGeometry,
    x: &[T],
    y: &[T],
    z: &mut [T],
    conjugated: [bool; 2],
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
        return parallel_multiply(c, a, b, target, conjugated);
    }
    let z = Parts::new(z);
    for_units(c, pairs.len(), T::cost_ns(size.m, size.n, size.k), |range| {
        for at in range {
            let (i, j) = pairs[at];
            let (a, b) = operands(size, &x[i * x_len..], &y[j * y_len..]);
            // SAFETY: each product writes a matrix of its own, inside the output.
            let target =
                unsafe { Target::new(z.as_mut_ptr().add(at * z_len), size.m, size.n, strides) };
            T::multiply(a, b, target, conjugated);
        }
    })
}

struct BatchMatMul<T> {
    adjoint: Adjoint,
    element: PhantomData<T>,
}

impl<T: Multiply> Kernel for BatchMatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(BatchMatMul { adjoint: Adjoint::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, y) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = BatchMatMulGeometry::new(x.dims, y.dims, self.adjoint.x, self.adjoint.y)?;
        let z = c.output::<T>(0, &g.output)?;
        products(c, &g, x.data, y.data, z.data, [self.adjoint.x, self.adjoint.y])
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
        products(c, &g, x, y, wide, [false; 2])?;
        convert_down(wide, z.data);
        Ok(())
    }
}

/// `BatchMatMul`, whose batches do not broadcast.
struct EqualBatches<K>(K);

impl<K: Kernel> Kernel for EqualBatches<K> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        K::new(c).map(EqualBatches)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        equal_batches(c.dims(0), c.dims(1))?;
        self.0.compute(c)
    }
}

/// `BatchMatMulV3` of two types, or into a third: operands are converted to the type of computation.
struct MixedBatchMatMul<X, Y, Z> {
    adjoint: Adjoint,
    elements: PhantomData<(X, Y, Z)>,
}

impl<X: Compute, Y: Compute, Z: Compute<Wide: Factor>> Kernel for MixedBatchMatMul<X, Y, Z> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MixedBatchMatMul { adjoint: Adjoint::new(c)?, elements: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, y) = (c.input::<X>(0)?, c.input::<Y>(1)?);
        let g = BatchMatMulGeometry::new(x.dims, y.dims, self.adjoint.x, self.adjoint.y)?;
        let z = c.output::<Z>(0, &g.output)?;
        let (x, y) = (convert::<X, Z>(c, x.data)?, convert::<Y, Z>(c, y.data)?);
        let wide = c.scratch_slice::<Z::Wide>(z.data.len())?;
        products(c, &g, x, y, wide, [false; 2])?;
        convert_down(wide, z.data);
        Ok(())
    }
}

/// Numbers that a double holds, in the type of computation.
fn convert<'a, X: Compute, Z: Compute>(
    c: &ComputeContext<'a>,
    x: &[X],
) -> Result<&'a mut [Z::Wide], KernelError> {
    let wide = c.scratch_slice::<Z::Wide>(x.len())?;
    for (y, x) in wide.iter_mut().zip(x) {
        *y = Z::Wide::from_f64(x.to_f64());
    }
    Ok(wide)
}

/// Relative to the sum of the absolute terms.
const HALF: Numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT);
const BFLOAT16: Numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT);

macro_rules! batch_products {
    ($($dtype:ident, $ty:ty, $kernel:ident, $numerics:expr;)*) => {$(
        register_kernel!("BatchMatMul" on "CPU": EqualBatches<$kernel<$ty>>,
            types = ("T", &[DType::$dtype]), numerics = $numerics);
        register_kernel!("BatchMatMulV2" on "CPU": $kernel<$ty>,
            types = ("T", &[DType::$dtype]), numerics = $numerics);
        register_kernel!("BatchMatMulV3" on "CPU": $kernel<$ty>,
            types = ("Ta", &[DType::$dtype]), types = ("Tb", &[DType::$dtype]),
            types = ("Tout", &[DType::$dtype]), numerics = $numerics);
    )*};
}

batch_products! {
    FLOAT, f32, BatchMatMul, FLOAT;
    DOUBLE, f64, BatchMatMul, DOUBLE;
    COMPLEX64, Complex<f32>, BatchMatMul, FLOAT;
    COMPLEX128, Complex<f64>, BatchMatMul, DOUBLE;
    INT32, i32, BatchMatMul, Numerics::EXACT;
    INT64, i64, BatchMatMul, Numerics::EXACT;
    BFLOAT16, bf16, NarrowBatchMatMul, BFLOAT16;
    HALF, f16, NarrowBatchMatMul, HALF;
}

register_kernel!("BatchMatMulV2" on "CPU": BatchMatMul<i16>, types = ("T", &[DType::INT16]),
    numerics = Numerics::EXACT);
register_kernel!("BatchMatMulV3" on "CPU": BatchMatMul<i16>,
    types = ("Ta", &[DType::INT16]), types = ("Tb", &[DType::INT16]),
    types = ("Tout", &[DType::INT16]), numerics = Numerics::EXACT);

macro_rules! mixed_products {
    ($($a:ident $x:ty, $b:ident $y:ty, $out:ident $z:ty, $numerics:expr;)*) => {$(
        register_kernel!("BatchMatMulV3" on "CPU": MixedBatchMatMul<$x, $y, $z>,
            types = ("Ta", &[DType::$a]), types = ("Tb", &[DType::$b]),
            types = ("Tout", &[DType::$out]), numerics = $numerics);
    )*};
}

mixed_products! {
    INT8 i8, INT8 i8, INT32 i32, Numerics::EXACT;
    INT8 i8, UINT8 u8, INT32 i32, Numerics::EXACT;
    UINT8 u8, INT8 i8, INT32 i32, Numerics::EXACT;
    UINT8 u8, UINT8 u8, INT32 i32, Numerics::EXACT;
    BFLOAT16 bf16, INT8 i8, BFLOAT16 bf16, BFLOAT16;
    BFLOAT16 bf16, UINT8 u8, BFLOAT16 bf16, BFLOAT16;
    INT8 i8, BFLOAT16 bf16, BFLOAT16 bf16, BFLOAT16;
    UINT8 u8, BFLOAT16 bf16, BFLOAT16 bf16, BFLOAT16;
}
