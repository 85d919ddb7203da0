//! `MatrixTriangularSolve`.

use crate::{
    batch::{Matrices, for_each, same_size, store},
    cholesky::{DOUBLE, FLOAT},
    few::Few,
    range,
    scalar::{Scalar, Triangle, adjoint},
};
use faer::Mat;
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::BatchMatMulGeometry,
    growth, register_kernel,
};

/// Solves `A X = B`, or `A^H X = B`, using only a triangle of `A`. Batches broadcast.
struct MatrixTriangularSolve<T> {
    lower: bool,
    adjoint: bool,
    element: PhantomData<T>,
}

impl<T: Scalar> Kernel for MatrixTriangularSolve<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (lower, adjoint) = (c.attr("lower")?, c.attr("adjoint")?);
        Ok(MatrixTriangularSolve { lower, adjoint, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (matrix, rhs) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let (a, b) = (Matrices::square(matrix, "matrix")?, Matrices::new(rhs, "rhs")?);
        same_size("the number of rows of rhs", a.rows, b.rows)?;
        // The shapes are those of the product of A and B.
        let g = BatchMatMulGeometry::new(matrix.dims, rhs.dims, self.adjoint, false)?;
        if g.output.contains(&0) {
            c.output::<T>(0, &g.output)?;
            return Ok(());
        }
        let pairs = growth::collected(g.products())?;
        let x = b.of_batch(&g.output[..g.output.len() - 2]);
        for_each(c, &x, &g.output, |number, y| {
            let (i, j) = pairs[number];
            if let (Some(a), Some(b)) = (self.few(&a, i), x.few(j)) {
                a.solve(self.triangle(), b).store(y);
                return Ok(());
            }
            let mut solution = x.get(j)?;
            self.solve(&a.get(i)?, &mut solution);
            store(&solution, y);
            Ok(())
        })
    }
}

impl<T: Scalar> MatrixTriangularSolve<T> {
    /// The triangle that is solved with, which is the adjoint of the other one if `adjoint`.
    fn triangle(&self) -> Triangle {
        if self.lower != self.adjoint { Triangle::Lower } else { Triangle::Upper }
    }

    /// That triangle of matrix `number`, if it has few elements of ordinary magnitude.
    fn few(&self, a: &Matrices<'_, T>, number: usize) -> Option<Few<T::Wide>> {
        let given = if self.lower { Triangle::Lower } else { Triangle::Upper };
        let few = Few::triangle(a.rows_of(number), a.rows, given)?;
        Some(if self.adjoint { few.adjoint() } else { few })
    }

    fn solve(&self, a: &Mat<T::Wide>, x: &mut Mat<T::Wide>) {
        match self.adjoint {
            true => range::solve_triangle(&adjoint(a), self.triangle(), x),
            false => range::solve_triangle(a, self.triangle(), x),
        }
    }
}

register_kernel!("MatrixTriangularSolve" on "CPU": MatrixTriangularSolve<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("MatrixTriangularSolve" on "CPU": MatrixTriangularSolve<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);
