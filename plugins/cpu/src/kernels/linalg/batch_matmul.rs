//! `BatchMatMul`, `BatchMatMulV2` and `BatchMatMulV3`.

use super::{
    gemm::{
        constant::{RIGHT, RightFactor},
        ending::Ending,
        isa::Isa,
        left::Left,
        output::{self, Columns, Rows},
        right::Right,
    },
    matmul::{DOUBLE, FLOAT, convert_down, operands, widen},
    product::{Factor, Multiply, Operand, Target},
};
use crate::{
    lane::Compute,
    panels::{as_itself, as_wide},
    split::{Parts, for_units},
};
use half::{bf16, f16};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack},
    element::Number,
    geometry::{BatchMatMulGeometry, equal_batches},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Attributes `adj_x` and `adj_y`. Real numbers are their own conjugates, so for them `adj` means
/// transposition.
pub struct Adjoint {
    /// Whether `x` is adjoint.
    pub x: bool,
    /// Whether `y` is adjoint.
    pub y: bool,
}

impl Adjoint {
    /// Reads the attributes.
    pub fn new(c: &CreateContext<'_>) -> Result<Adjoint, KernelError> {
        Ok(Adjoint { x: c.attr("adj_x")?, y: c.attr("adj_y")? })
    }
}

/// Computes all products, of matrices of the type of computation.
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
    let pairs = growth::collected(g.products())?;
    // The rows of all matrices form one matrix if they are multiplied by the same columns.
    let is_one = pairs.len() == 1 || y.len() == y_len && size.a_strides == [size.k, 1];
    if is_one && let Some(&(i, j)) = pairs.first() {
        let (a, b) = operands(size, &x[i * x_len..], &y[j * y_len..]);
        let rows = pairs.len() * size.m;
        // SAFETY: the target is the whole output.
        let target = unsafe { Target::new(z.as_mut_ptr(), rows, size.n, strides) };
        return T::parallel(c, Operand { rows, ..a }, b, target, conjugated);
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

/// Products of floats, whose right factor may be a constant matrix. Operands of 16 bits are
/// converted, and products rounded once.
struct FloatBatchMatMul<T: Compute> {
    adjoint: Adjoint,
    right: RightFactor<T>,
}

impl<T: Compute<Wide: Factor>> Kernel for FloatBatchMatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FloatBatchMatMul { adjoint: Adjoint::new(c)?, right: RightFactor::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, y_dims) = (c.input::<T>(0)?, c.dims(RIGHT));
        let g = BatchMatMulGeometry::new(x.dims, y_dims, self.adjoint.x, self.adjoint.y)?;
        let z = c.output::<T>(0, &g.output)?.data;
        if let (Some(right), Some(isa)) = (self.right.packed(), self.right.isa()) {
            return by_packed(c, &g, isa, right, x.data, z);
        }
        let y = c.input::<T>(RIGHT)?.data;
        if let (Some(x), Some(y), Some(z)) = (as_itself(x.data), as_itself(y), as_wide(&mut *z)) {
            return products(c, &g, x, y, z, [false; 2]);
        }
        let (x, y) = (widen(c, x.data)?, widen(c, y)?);
        let wide = c.scratch_slice::<T::Wide>(z.len())?;
        products(c, &g, x, y, wide, [false; 2])?;
        convert_down(wide, z);
        Ok(())
    }
}

impl<T: Compute<Wide: Factor>> Prepack for FloatBatchMatMul<T> {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.right.prepack(input, view, |dims, data| {
            let (batch, &[rows, cols]) = dims.split_last_chunk()?;
            let matrix = Operand::dense(data, rows as usize, cols as usize);
            let matrix = if self.adjoint.y { matrix.transposed() } else { matrix };
            batch.iter().all(|&size| size == 1).then_some(matrix)
        }))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.right.attach(input, packed);
    }
}

/// Computes all products by one packed matrix: of the rows of all matrices at once, if they are
/// contiguous.
fn by_packed<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    g: &BatchMatMulGeometry,
    isa: &'static Isa<T::Wide>,
    right: Right<'_, T::Wide>,
    x: &[T],
    z: &mut [T],
) -> Result<(), KernelError> {
    let size = &g.matrix;
    let follow = size.a_strides == [size.k, 1];
    let count = if follow { 1 } else { x.len() / (size.m * size.k).max(1) };
    for at in 0..count {
        let rows = if follow { z.len() / size.n.max(1) } else { size.m };
        let data = &x[at * size.m * size.k..];
        let left = Operand { data, rows, cols: size.k, strides: size.a_strides };
        let to = Rows { all: &mut *z, first: at * size.m * size.n, stride: size.n };
        let left: &dyn Left<T::Wide> = &left;
        output::write(c, isa, left, Columns::Packed(right), to, Ending::NONE)?;
    }
    Ok(())
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

impl<K: Prepack> Prepack for EqualBatches<K> {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        self.0.prepack(input, view)
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.0.attach_packed(input, packed);
    }
}

/// `BatchMatMulV3` of two types, or into a third: operands are converted to the type of
/// computation.
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

/// Converts numbers that a double represents to the type of computation.
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

/// Bounds relative to the sum of the absolute terms.
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
    FLOAT, f32, FloatBatchMatMul, FLOAT;
    DOUBLE, f64, FloatBatchMatMul, DOUBLE;
    COMPLEX64, Complex<f32>, BatchMatMul, FLOAT;
    COMPLEX128, Complex<f64>, BatchMatMul, DOUBLE;
    INT32, i32, BatchMatMul, Numerics::EXACT;
    INT64, i64, BatchMatMul, Numerics::EXACT;
    BFLOAT16, bf16, FloatBatchMatMul, BFLOAT16;
    HALF, f16, FloatBatchMatMul, HALF;
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
