//! `MatMul`.

use super::{
    gemm::{
        constant::{RIGHT, RightFactor},
        ending::Ending,
        left::Left,
        output::{self, Columns, Rows},
        turned,
    },
    product::{Factor, Multiply, Operand, Target, is_small, small},
};
use crate::{lane::Compute, panels::as_wide};
use half::{bf16, f16};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack},
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

    /// The sizes of a call.
    ///
    /// # Errors
    /// The inputs do not fit each other.
    pub fn geometry(self, c: &ComputeContext<'_>) -> Result<MatMulGeometry, KernelError> {
        Ok(MatMulGeometry::new(c.dims(0), c.dims(RIGHT), self.a, self.b)?)
    }
}

/// The operands of a product with this geometry.
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

/// `y[i] = x[i]` in the type of computation.
pub fn convert_up<T: Compute>(x: &[T], y: &mut [T::Wide]) {
    T::all_up(x, y);
}

/// `y[i] = x[i]`, rounded.
pub fn convert_down<T: Compute>(x: &[T::Wide], y: &mut [T]) {
    T::all_down(x, y);
}

/// The right factor of a product of matrices, which may be a constant.
pub struct Right<T: Compute> {
    transposed: Transposed,
    factor: RightFactor<T>,
}

impl<T: Compute<Wide: Factor>> Right<T> {
    /// Reads the attributes and the knob `isa`.
    ///
    /// # Errors
    /// As [`Transposed::new`]; or the knob `isa` names an instruction set that does not exist.
    pub fn new(c: &CreateContext<'_>) -> Result<Right<T>, KernelError> {
        Ok(Right { transposed: Transposed::new(c)?, factor: RightFactor::new(c)? })
    }

    /// Packs a constant right factor.
    pub fn prepack(&self, input: usize, view: &Slot) -> Option<Packed> {
        self.factor.prepack(input, view, |dims, data| {
            let &[rows, cols] = dims else { return None };
            let matrix = Operand::dense(data, rows as usize, cols as usize);
            Some(if self.transposed.b { matrix.transposed() } else { matrix })
        })
    }

    /// Takes over the packed factor.
    pub fn attach(&mut self, input: usize, packed: &Packed) {
        self.factor.attach(input, packed);
    }

    /// The sizes of a call.
    ///
    /// # Errors
    /// The inputs do not fit each other.
    pub fn geometry(&self, c: &ComputeContext<'_>) -> Result<MatMulGeometry, KernelError> {
        self.transposed.geometry(c)
    }

    /// Computes the product, and applies `ending` to the results.
    ///
    /// # Errors
    /// No memory; or the call was cancelled.
    pub fn multiply(
        &self,
        c: &ComputeContext<'_>,
        g: &MatMulGeometry,
        y: &mut [T],
        ending: Ending<'_, T>,
    ) -> Result<(), KernelError> {
        let left =
            Operand { data: c.input::<T>(0)?.data, rows: g.m, cols: g.k, strides: g.a_strides };
        let columns = match self.factor.packed() {
            Some(right) => Columns::Packed(right),
            None => Columns::Matrix(Operand {
                data: c.input::<T>(RIGHT)?.data,
                rows: g.k,
                cols: g.n,
                strides: g.b_strides,
            }),
        };
        if let Columns::Matrix(right) = &columns
            && small_product(c, &left, right, y)?
        {
            ending.all.iter().for_each(|after| after(0, y));
            return Ok(());
        }
        let isa = self.factor.isa().expect("products of integers are small");
        if let Columns::Matrix(right) = &columns
            && turned::write(c, isa, [&left, right], y, ending.all)?
        {
            return Ok(());
        }
        let rows = Rows { all: y, first: 0, stride: g.n };
        output::write(c, isa, &left as &dyn Left<T::Wide>, columns, rows, ending)
    }
}

/// Computes the whole product where it is small and its type computes in itself; else returns
/// `false`.
fn small_product<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    a: &Operand<'_, T>,
    b: &Operand<'_, T>,
    y: &mut [T],
) -> Result<bool, KernelError> {
    if !is_small::<T::Wide>(a.rows, b.cols, a.cols) {
        return Ok(false);
    }
    let (Some(a), Some(b), Some(y)) = (a.itself(), b.itself(), as_wide(y)) else {
        return Ok(false);
    };
    assert_eq!(y.len(), a.rows * b.cols, "the whole output");
    // SAFETY: the target is the whole output.
    let target = unsafe { Target::new(y.as_mut_ptr(), a.rows, b.cols, [b.cols, 1]) };
    Multiply::parallel(c, a, b, target, [false; 2])?;
    Ok(true)
}

/// The kernel for numbers. Where the type does not compute in itself, each sum is rounded once.
struct MatMul<T: Compute>(Right<T>);

impl<T: Compute<Wide: Factor>> Kernel for MatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Right::new(c).map(MatMul)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.0.geometry(c)?;
        let y = c.output::<T>(0, &[g.m as i64, g.n as i64])?;
        self.0.multiply(c, &g, y.data, Ending::NONE)
    }
}

impl<T: Compute<Wide: Factor>> Prepack for MatMul<T> {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.0.prepack(input, view))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.0.attach(input, packed);
    }
}

/// The kernel for complex numbers.
struct ComplexMatMul<T> {
    transposed: Transposed,
    element: PhantomData<T>,
}

impl<T: Multiply> Kernel for ComplexMatMul<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ComplexMatMul { transposed: Transposed::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (a, b) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = MatMulGeometry::new(a.dims, b.dims, self.transposed.a, self.transposed.b)?;
        let y = c.output::<T>(0, &[g.m as i64, g.n as i64])?;
        let (a, b) = operands(&g, a.data, b.data);
        // SAFETY: the target is the whole output.
        let target = unsafe { Target::new(y.data.as_mut_ptr(), g.m, g.n, [g.n, 1]) };
        T::parallel(c, a, b, target, [false; 2])
    }
}

/// The product by tiles in registers alone, without packing, whatever the size. The ordinary kernel
/// is measured against it.
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
/// As [`FLOAT`].
pub const DOUBLE: Numerics = Numerics::relative(1e-300, 4e-15).accumulation(DType::DOUBLE);

register_kernel!("MatMul" on "CPU": MatMul<T> for "T" in [f32], numerics = FLOAT);
register_kernel!("MatMul" on "CPU": MatMul<T> for "T" in [f64], numerics = DOUBLE);
register_kernel!("MatMul" on "CPU": ComplexMatMul<T> for "T" in [Complex<f32>], numerics = FLOAT);
register_kernel!("MatMul" on "CPU": ComplexMatMul<T> for "T" in [Complex<f64>], numerics = DOUBLE);
register_kernel!("MatMul" on "CPU": MatMul<T> for "T" in [i32, i64], numerics = Numerics::EXACT);
register_kernel!("MatMul" on "CPU": MatMul<T> for "T" in [f16],
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("MatMul" on "CPU": MatMul<T> for "T" in [bf16],
    numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT));
register_kernel!("MatMul" on "CPU": PortableMatMul, types = ("T", &[DType::FLOAT]),
    label = "portable", on_request = true, numerics = FLOAT);
