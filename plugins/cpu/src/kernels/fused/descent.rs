//! `_FusedMatMulDescent`: a product is subtracted from a variable as its tiles leave the registers.
//!
//! The factors `-alpha a` are rounded before the product, instead of the product before it is
//! multiplied. Nothing of the size of the variable is written but the variable.

use crate::{
    kernels::linalg::{
        gemm::{
            blocks::Product,
            ending::Ending,
            isa::{Isa, chosen},
            left::Left,
            spread,
        },
        matmul::{Transposed, operands},
        product::{Factor, Operand, Target},
    },
    lane::Compute,
};
use std::ops::Range;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::MatMulGeometry,
    register_kernel,
};

/// Indices of the inputs after the variable.
const ALPHA: usize = 1;
const A: usize = 2;
const B: usize = 3;

/// A matrix times a number.
struct Scaled<'a, T> {
    matrix: Operand<'a, T>,
    by: T,
}

impl<T: Factor> Left<T> for Scaled<'_, T> {
    fn rows(&self) -> usize {
        self.matrix.rows
    }

    fn depth(&self) -> usize {
        self.matrix.cols
    }

    fn in_place(&self) -> Option<(*const T, usize)> {
        None
    }

    fn pack(&self, rows: Range<usize>, depths: Range<usize>, to: &mut [T], step: usize) {
        let (count, len) = (rows.len(), depths.len());
        Left::pack(&self.matrix, rows, depths, to, step);
        for row in to.chunks_mut(step).take(count) {
            scale(&mut row[..len], self.by);
        }
    }
}

crate::arch::vectorised! {
    /// Multiplies numbers by one number.
    fn scale[T: Compute](x: &mut [T], by: T::Wide) {
        for x in x.iter_mut() {
            *x = T::down(x.up().mul(by));
        }
    }
}

struct Descent<T: Factor> {
    transposed: Transposed,
    isa: &'static Isa<T>,
}

impl<T: Factor> Kernel for Descent<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let isa = chosen(c.knobs())?;
        let isa = isa.ok_or_else(|| KernelError::internal("there are no tiles for the type"))?;
        Ok(Descent { transposed: Transposed::new(c)?, isa })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Transposed { a, b } = self.transposed;
        let g = MatMulGeometry::new(c.dims(A), c.dims(B), a, b)?;
        let alpha = c.input::<T>(ALPHA)?;
        let (&[alpha], []) = (alpha.data, alpha.dims) else {
            return Err(KernelError::invalid_argument(format!(
                "alpha must be a scalar, found shape {:?}",
                alpha.dims
            )));
        };
        let state = c.state();
        let variable = state.input_variable(0)?;
        let variables = [&variable];
        let mut locked = state.lock(&variables)?;
        let [variable] = locked.views_mut::<T, 1>()?;
        let product = [g.m as i64, g.n as i64];
        if variable.dims != product {
            return Err(KernelError::invalid_argument(format!(
                "var and the product of a and b do not have the same shape: {:?} and {product:?}",
                variable.dims
            )));
        }
        if g.m == 0 || g.n == 0 || g.k == 0 {
            return Ok(());
        }
        let (a, b) = operands(&g, c.input::<T>(A)?.data, c.input::<T>(B)?.data);
        let left = Scaled { matrix: a, by: alpha.neg() };
        // SAFETY: the target is the whole variable, which is locked.
        let to = unsafe { Target::new(variable.data.as_mut_ptr(), g.m, g.n, [g.n, 1]) };
        let right = spread::pack(c, self.isa, &b)?;
        spread::compute(c, &Product::new(&left, right, &to, Ending::NONE).adding())
    }
}

register_kernel!("_FusedMatMulDescent" on "CPU": Descent<T> for "T" in [f32, f64]);
