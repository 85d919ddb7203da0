//! `MatMul`.

use super::product::{Factor, Multiply, Operand, Target, parallel_multiply, small};
use crate::lane::Compute;
use half::{bf16, f16};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::MatMulGeometry,
    reg::Numerics,
    register_kernel,
};

/// The two flags that say how operands are stored.
#[derive(Debug, Clone, Copy)]
pub struct Transposed {
    /// `A` is stored as `[k, m]`.
    pub a: bool,
    /// `B` is stored as `[n, k]`.
    pub b: bool,
}

impl Transposed {
    /// Reads the attributes.
    pub fn new(c: &CreateContext<'_>) -> Result<Transposed, KernelError> {
        Ok(Transposed { a: c.attr("transpose_a")?, b: c.attr("transpose_b")? })
    }
}

/// The operands of a product of this geometry.
pub fn operands<'a, T>(
    g: &MatMulGeometry,
    a: &'a [T],
    b: &'a [T],
) -> (Operand<'a, T>, Operand<'a, T>) {
    (
        Operand { data: a, rows: g.m, cols: g.k, strides: g.a_strides },
        Operand { data: b, rows: g.k, cols: g.n, strides: g.b_strides },
    )
}

/// Converts to the type of computation.
pub fn widen<'a, T: Compute>(
    c: &ComputeContext<'a>,
    x: &[T],
) -> Result<&'a mut [T::Wide], KernelError> {
    let wide = c.scratch_slice::<T::Wide>(x.len())?;
    convert_up(x, wide);
    Ok(wide)
}

crate::arch::vectorised! {
    /// `y[i] = x[i]` in the type of computation.
    pub fn convert_up[T: Compute](x: &[T], y: &mut [T::Wide]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = x.up();
        }
    }
}

crate::arch::vectorised! {
    /// `y[i] = x[i]`, rounded.
    pub fn convert_down[T: Compute](x: &[T::Wide], y: &mut [T]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = T::down(x);
        }
    }
}

/// The kernel for types that compute in themselves.
struct MatMul<T> {
    transposed: Transposed,
    element: PhantomData<T>,
}

impl<T: Multiply> Kernel for MatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MatMul { transposed: Transposed::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a, b) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = MatMulGeometry::new(a.dims, b.dims, self.transposed.a, self.transposed.b)?;
        let y = c.output::<T>(0, &[g.m as i64, g.n as i64])?;
        matmul(c, &g, a.data, b.data, y.data)
    }
}

/// The product in types that compute in themselves.
///
/// # Errors
/// The call was cancelled.
pub fn matmul<T: Multiply>(
    c: &ComputeContext<'_>,
    g: &MatMulGeometry,
    a: &[T],
    b: &[T],
    y: &mut [T],
) -> Result<(), KernelError> {
    let (a, b) = operands(g, a, b);
    assert_eq!(y.len(), g.m * g.n, "the whole output");
    // SAFETY: the target is the whole output.
    let target = unsafe { Target::new(y.as_mut_ptr(), g.m, g.n, [g.n, 1]) };
    parallel_multiply(c, a, b, target, [false; 2])
}

/// The product of 16-bit floats: operands are converted, the product is rounded once.
///
/// # Errors
/// No memory; the call was cancelled.
pub fn narrow_matmul<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    g: &MatMulGeometry,
    a: &[T],
    b: &[T],
    y: &mut [T],
) -> Result<(), KernelError> {
    let (a, b) = (widen(c, a)?, widen(c, b)?);
    let wide = c.scratch_slice::<T::Wide>(y.len())?;
    matmul(c, g, a, b, wide)?;
    convert_down(wide, y);
    Ok(())
}

/// The kernel for 16-bit floats.
struct NarrowMatMul<T> {
    transposed: Transposed,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor>> Kernel for NarrowMatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(NarrowMatMul { transposed: Transposed::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a, b) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = MatMulGeometry::new(a.dims, b.dims, self.transposed.a, self.transposed.b)?;
        let y = c.output::<T>(0, &[g.m as i64, g.n as i64])?;
        narrow_matmul(c, &g, a.data, b.data, y.data)
    }
}

/// The product by tiles in registers alone, without packing, whatever the size: what the ordinary kernel is
/// measured against.
struct PortableMatMul(Transposed);

impl Kernel for PortableMatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(PortableMatMul(Transposed::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a, b) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
        let g = MatMulGeometry::new(a.dims, b.dims, self.0.a, self.0.b)?;
        let y = c.output::<f32>(0, &[g.m as i64, g.n as i64])?;
        let (a, b) = operands(&g, a.data, b.data);
        // SAFETY: the target is the whole output.
        small(a, b, unsafe { Target::new(y.data.as_mut_ptr(), g.m, g.n, [g.n, 1]) });
        Ok(())
    }
}

/// Relative to the sum of the absolute terms.
pub const FLOAT: Numerics = Numerics::relative(1e-30, 2e-6).accumulation(DType::FLOAT);
/// The same.
pub const DOUBLE: Numerics = Numerics::relative(1e-300, 4e-15).accumulation(DType::DOUBLE);

register_kernel!("MatMul" on "CPU": MatMul<T> for "T" in [f32, Complex<f32>], numerics = FLOAT);
register_kernel!("MatMul" on "CPU": MatMul<T> for "T" in [f64, Complex<f64>], numerics = DOUBLE);
register_kernel!("MatMul" on "CPU": MatMul<T> for "T" in [i32, i64], numerics = Numerics::EXACT);
register_kernel!("MatMul" on "CPU": NarrowMatMul<T> for "T" in [f16],
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("MatMul" on "CPU": NarrowMatMul<T> for "T" in [bf16],
    numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT));
register_kernel!("MatMul" on "CPU": PortableMatMul, types = ("T", &[DType::FLOAT]),
    label = "portable", on_request = true, numerics = FLOAT);
