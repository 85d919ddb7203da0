//! `MatrixSolveLs`.

use crate::{
    batch::{Matrices, for_each, same_batch, same_size, store},
    cholesky::{DOUBLE, FLOAT},
    range,
    scalar::{Field, Scalar, Triangle, adjoint, is_finite, nan, product},
};
use faer::Mat;
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    register_kernel,
};

/// The `X` that makes `A X` closest to `B`, or the smallest of those with `A X = B`.
struct MatrixSolveLs<T> {
    fast: bool,
    element: PhantomData<T>,
}

impl<T: Scalar> Kernel for MatrixSolveLs<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MatrixSolveLs { fast: c.attr("fast")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let a = Matrices::new(c.input::<T>(0)?, "matrix")?;
        let b = Matrices::new(c.input::<T>(1)?, "rhs")?;
        same_batch(&a, &b, "matrix and rhs")?;
        same_size("the number of rows of rhs", a.rows, b.rows)?;
        let regularizer = regularizer(c)?;
        for_each(c, &a, &a.dims(&[a.cols, b.cols])?, |number, y| {
            if a.rows == 0 {
                // No equation: the smallest solution is zero.
                y.fill(T::default());
                return Ok(());
            }
            let (a, b) = (a.get(number)?, b.get(number)?);
            let solution = match self.fast {
                true => {
                    by_normal_equations(&a, &b, regularizer).ok_or_else(|| deficient(number))?
                }
                false => by_singular_values(&a, &b, T::EPSILON),
            };
            store(&solution, y);
            Ok(())
        })
    }
}

fn regularizer(c: &ComputeContext<'_>) -> Result<f64, KernelError> {
    let view = c.input::<f64>(2)?;
    match (view.data, view.dims) {
        (&[by], []) if by >= 0.0 => Ok(by),
        (&[by], []) => Err(KernelError::invalid_argument(format!(
            "l2_regularizer must be at least 0, got {by}"
        ))),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "l2_regularizer must be a scalar, found shape {dims:?}"
        ))),
    }
}

fn deficient(number: usize) -> KernelError {
    KernelError::invalid_argument(format!(
        "matrix number {number} is close to one of lower rank: set `fast` to false, or give a larger l2_regularizer"
    ))
}

/// `(A^H A + r I)^-1 A^H B`, or `A^H (A A^H + r I)^-1 B` where `A` has fewer rows than columns;
/// `None` where the matrix in parentheses is not positive definite.
fn by_normal_equations<F: Field>(a: &Mat<F>, b: &Mat<F>, regularizer: f64) -> Option<Mat<F>> {
    let turned = adjoint(a);
    let is_deep = a.nrows() >= a.ncols();
    let mut square = if is_deep { product(&turned, a) } else { product(a, &turned) };
    let added = F::from_complex(regularizer.into());
    (0..square.nrows()).for_each(|i| square[(i, i)] = square[(i, i)] + added);
    let factor = range::cholesky(&square)?;
    let mut x = if is_deep { product(&turned, b) } else { b.clone() };
    range::solve_triangle(&factor, Triangle::Lower, &mut x);
    range::solve_triangle(&adjoint(&factor), Triangle::Upper, &mut x);
    Some(if is_deep { x } else { product(&turned, &x) })
}

/// The smallest solution by the singular values that differ from zero to the precision of the type; NaN
/// where there are none.
fn by_singular_values<F: Field>(a: &Mat<F>, b: &Mat<F>, epsilon: f64) -> Mat<F> {
    let found = is_finite(a).then(|| range::svd(a, false)).flatten();
    let Some(svd) = found else { return nan(a.ncols(), b.ncols()) };
    let values = &svd.values;
    let least = values.first().map_or(0.0, |first| first * epsilon * values.len() as f64);
    let along = product(&adjoint(&svd.left), b);
    let scaled = Mat::from_fn(values.len(), b.ncols(), |i, j| match values[i] > least {
        true => along[(i, j)] / F::from_complex(values[i].into()),
        false => F::default(),
    });
    product(&svd.right, &scaled)
}

register_kernel!("MatrixSolveLs" on "CPU": MatrixSolveLs<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("MatrixSolveLs" on "CPU": MatrixSolveLs<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);
