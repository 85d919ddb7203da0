//! `BandedTriangularSolve`.

use crate::{
    batch::{Matrices, parts, same_size},
    cholesky::{DOUBLE, FLOAT},
    scalar::{Field, Scalar},
};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{BatchMatMulGeometry, Dims, GeometryError},
    growth, register_kernel,
};

/// Solves `A X = B`, or `A^H X = B`, for the triangle `A` of some diagonals: from the main one down,
/// shifted to the right, or from the highest one down to the main one, shifted to the left. Batches
/// broadcast.
struct BandedTriangularSolve<T> {
    lower: bool,
    adjoint: bool,
    element: PhantomData<T>,
}

impl<T: Scalar> Kernel for BandedTriangularSolve<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (lower, adjoint) = (c.attr("lower")?, c.attr("adjoint")?);
        Ok(BandedTriangularSolve { lower, adjoint, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (matrix, rhs) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let (a, b) = (Matrices::new(matrix, "matrix")?, Matrices::new(rhs, "rhs")?);
        check_diagonals(&a)?;
        same_size("the number of rows of rhs", a.cols, b.rows)?;
        // Batches are those of the product of what holds the diagonals and of B.
        let g = BatchMatMulGeometry::new(matrix.dims, rhs.dims, false, false)?;
        let mut dims = Dims::from_slice(&g.output[..g.output.len() - 2])?;
        dims.push(b.rows as i64)?;
        dims.push(b.cols as i64)?;
        let y = c.output::<T>(0, &dims)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let pairs = growth::collected(g.products())?;
        let cost = 20.0 + (a.rows * b.cols) as f64 * a.cols as f64;
        c.parallel_items(parts(y, pairs.len()), cost, |number, y| {
            let (i, j) = pairs[number];
            let bands = Bands {
                data: a.rows_of(i),
                width: a.rows,
                size: a.cols,
                lower: self.lower,
                adjoint: self.adjoint,
            };
            if bands.is_singular() {
                return Err(KernelError::invalid_argument(format!(
                    "matrix is not invertible: matrix number {i} has a 0 on its diagonal"
                )));
            }
            let mut x = growth::collected(b.rows_of(j).iter().map(|x| x.up()))?;
            bands.solve(&mut x, b.cols);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = T::down(x));
            Ok(())
        })
    }
}

fn check_diagonals<T>(a: &Matrices<'_, T>) -> Result<(), KernelError> {
    let what = "the number of diagonals";
    if a.rows == 0 {
        return Err(GeometryError::TooSmall { what, least: 1, found: 0 }.into());
    }
    if a.rows > a.cols.max(1) {
        return Err(KernelError::invalid_argument(format!(
            "{what} must be at most the number of columns, which is {}, got {}",
            a.cols, a.rows
        )));
    }
    Ok(())
}

/// The diagonals of a triangle, and which triangle it is.
struct Bands<'a, T> {
    data: &'a [T],
    width: usize,
    size: usize,
    lower: bool,
    adjoint: bool,
}

impl<T: Scalar> Bands<'_, T> {
    /// Element `i, j` of the triangle that is solved with, which is within its diagonals.
    fn at(&self, i: usize, j: usize) -> T::Wide {
        let (row, col) = if self.adjoint { (j, i) } else { (i, j) };
        let diagonal = if self.lower { row - col } else { self.width - 1 - (col - row) };
        let value = self.data[diagonal * self.size + row].up();
        if self.adjoint { value.conjugate() } else { value }
    }

    fn is_singular(&self) -> bool {
        let zero = Complex::ZERO;
        (0..self.size).any(|i| self.at(i, i).to_complex() == zero)
    }

    /// Replaces `x`, whose rows have `cols` elements, by the solution.
    fn solve(&self, x: &mut [T::Wide], cols: usize) {
        let forward = self.lower != self.adjoint;
        for step in 0..self.size {
            let i = if forward { step } else { self.size - 1 - step };
            let reach = (self.width - 1).min(step);
            for distance in 1..=reach {
                let j = if forward { i - distance } else { i + distance };
                let factor = self.at(i, j);
                for col in 0..cols {
                    x[i * cols + col] = x[i * cols + col] - factor * x[j * cols + col];
                }
            }
            let pivot = self.at(i, i);
            x[i * cols..][..cols].iter_mut().for_each(|x| *x = x.over(pivot));
        }
    }
}

register_kernel!("BandedTriangularSolve" on "CPU": BandedTriangularSolve<T>
    for "T" in [f32, Complex<f32>], numerics = FLOAT);
register_kernel!("BandedTriangularSolve" on "CPU": BandedTriangularSolve<T>
    for "T" in [f64, Complex<f64>], numerics = DOUBLE);
