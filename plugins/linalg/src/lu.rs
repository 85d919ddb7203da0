//! Ops by LU decomposition: `Lu`, `MatrixInverse`, `MatrixSolve`, `MatrixDeterminant` and
//! `LogMatrixDeterminant`.

use crate::{
    batch::{Matrices, count, for_each, parts, same_batch, same_size, store},
    cholesky::{DOUBLE, FLOAT, HALF},
    range::{Factors, Product, near_one},
    scalar::{Field, Scalar, adjoint, identity},
};
use faer::Mat;
use half::f16;
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    register_kernel,
};

/// The decomposition of an invertible matrix, matrix `number` of an input.
fn invertible<F: Field>(a: &Mat<F>, what: &str, number: usize) -> Result<Factors<F>, KernelError> {
    let factors = Factors::new(a);
    // TensorFlow's comparison detects a NaN pivot only in the first place.
    let first = factors.pivots().next().is_some_and(|(pivot, _)| pivot.is_nan());
    if first || factors.pivots().any(|(pivot, _)| pivot == Complex::ZERO) {
        return Err(KernelError::invalid_argument(format!(
            "{what} is not invertible: its matrix number {number} is singular or not finite"
        )));
    }
    Ok(factors)
}

/// `Lu`: both triangles in one matrix, and the source of each row.
fn lu<T: Scalar>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match c.output_slot(1)?.dtype {
        DType::INT32 => write_lu::<T, i32>(c),
        _ => write_lu::<T, i64>(c),
    }
}

fn write_lu<T: Scalar, I: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let input = c.input::<T>(0)?;
    let x = Matrices::square(input, "input")?;
    let y = c.output::<T>(0, input.dims)?.data;
    let p = c.output::<I>(1, &x.dims(&[x.rows])?)?.data;
    if y.is_empty() {
        return Ok(());
    }
    let count = count(x.batch);
    let items = parts(y, count).zip(parts(p, count));
    c.parallel_items(items, x.cost_ns(), |number, (y, p)| {
        let factors = invertible(&x.get(number)?, "input", number)?;
        store(&factors.packed(), y);
        for (p, &row) in p.iter_mut().zip(factors.rows()) {
            *p = I::from_f64(row as f64);
        }
        Ok(())
    })
}

/// `MatrixInverse`: the inverse of each matrix, or of its adjoint.
struct MatrixInverse<T> {
    adjoint: bool,
    element: PhantomData<T>,
}

impl<T: Scalar> Kernel for MatrixInverse<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MatrixInverse { adjoint: c.attr("adjoint")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let input = c.input::<T>(0)?;
        let x = Matrices::square(input, "input")?;
        for_each(c, &x, input.dims, |number, y| {
            let factors = invertible(&x.get(number)?, "input", number)?;
            let inverse = factors.solve(&identity(x.rows, x.cols));
            match self.adjoint {
                true => store(&adjoint(&inverse), y),
                false => store(&inverse, y),
            }
            Ok(())
        })
    }
}

/// `MatrixSolve`: the solution `X` of `A X = B`, or of `A^H X = B`.
struct MatrixSolve<T> {
    adjoint: bool,
    element: PhantomData<T>,
}

impl<T: Scalar> Kernel for MatrixSolve<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MatrixSolve { adjoint: c.attr("adjoint")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (matrix, rhs) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let (a, b) = (Matrices::square(matrix, "matrix")?, Matrices::new(rhs, "rhs")?);
        same_batch(&a, &b, "matrix and rhs")?;
        same_size("the number of rows of rhs", a.rows, b.rows)?;
        for_each(c, &a, rhs.dims, |number, y| {
            let matrix = a.get(number)?;
            let matrix = if self.adjoint { adjoint(&matrix) } else { matrix };
            let factors = invertible(&matrix, "matrix", number)?;
            store(&factors.solve(&b.get(number)?), y);
            Ok(())
        })
    }
}

/// The parity of a permutation: 1 for an even number of exchanges, -1 for an odd one.
fn parity(permutation: &[usize]) -> f64 {
    let mut seen = vec![false; permutation.len()];
    let mut sign = 1.0;
    for start in 0..permutation.len() {
        let mut at = permutation[start];
        while !seen[start] && at != start {
            seen[at] = true;
            sign = -sign;
            at = permutation[at];
        }
    }
    sign
}

/// A determinant as a number of modulus 1 (or 0 if it is 0), and the logarithm of its modulus.
fn log_determinant<F: Field>(a: &Mat<F>) -> (Complex<f64>, f64) {
    let factors = Factors::new(a);
    let mut sign = Complex::new(parity(factors.rows()), 0.0);
    // Powers of two are summed separately, so that those of large and small pivots cancel exactly.
    let (mut log, mut powers) = (0.0, 0i64);
    for (pivot, power) in factors.pivots() {
        if pivot == Complex::ZERO {
            return (Complex::ZERO, f64::NEG_INFINITY);
        }
        let (pivot, own) = near_one(pivot);
        let modulus = pivot.norm();
        // The sign of an infinite real number is that of 1, and NaN if it is not real.
        sign *= if modulus.is_infinite() && pivot.im == 0.0 {
            Complex::new(pivot.re.signum(), 0.0)
        } else {
            pivot / modulus
        };
        log += modulus.ln();
        powers += i64::from(power) + i64::from(own);
    }
    (sign, log + powers as f64 * std::f64::consts::LN_2)
}

fn determinant<F: Field>(a: &Mat<F>) -> Complex<f64> {
    let factors = Factors::new(a);
    let mut product = Product::new(parity(factors.rows()));
    for (pivot, power) in factors.pivots() {
        if pivot == Complex::ZERO {
            return Complex::ZERO;
        }
        product.times(pivot, power);
    }
    product.value()
}

fn matrix_determinant<T: Scalar>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = Matrices::square(c.input::<T>(0)?, "input")?;
    for_each(c, &x, x.batch, |number, y| {
        y[0] = T::down(Field::from_complex(determinant(&x.get(number)?)));
        Ok(())
    })
}

fn log_matrix_determinant<T: Scalar>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = Matrices::square(c.input::<T>(0)?, "input")?;
    let sign = c.output::<T>(0, x.batch)?.data;
    let log = c.output::<T>(1, x.batch)?.data;
    if sign.is_empty() {
        return Ok(());
    }
    let count = count(x.batch);
    let items = parts(sign, count).zip(parts(log, count));
    c.parallel_items(items, x.cost_ns(), |number, (sign, log)| {
        let (unit, modulus) = log_determinant(&x.get(number)?);
        sign[0] = T::down(Field::from_complex(unit));
        log[0] = T::down(Field::from_complex(Complex::new(modulus, 0.0)));
        Ok(())
    })
}

register_kernel!("Lu" on "CPU": fn lu<T> for "T" in [f32, Complex<f32>], numerics = FLOAT);
register_kernel!("Lu" on "CPU": fn lu<T> for "T" in [f64, Complex<f64>], numerics = DOUBLE);
register_kernel!("MatrixInverse" on "CPU": MatrixInverse<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("MatrixInverse" on "CPU": MatrixInverse<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);
register_kernel!("MatrixInverse" on "CPU": MatrixInverse<T> for "T" in [f16], numerics = HALF);
register_kernel!("MatrixSolve" on "CPU": MatrixSolve<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("MatrixSolve" on "CPU": MatrixSolve<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);
register_kernel!("MatrixDeterminant" on "CPU": fn matrix_determinant<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("MatrixDeterminant" on "CPU": fn matrix_determinant<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);
register_kernel!("LogMatrixDeterminant" on "CPU": fn log_matrix_determinant<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("LogMatrixDeterminant" on "CPU": fn log_matrix_determinant<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parities_of_permutations() {
        for (permutation, sign) in
            [(&[][..], 1.0), (&[0], 1.0), (&[1, 0], -1.0), (&[1, 2, 0], 1.0), (&[1, 0, 3, 2], 1.0)]
        {
            assert_eq!(parity(permutation), sign, "{permutation:?}");
        }
        assert_eq!(parity(&[3, 1, 2, 0]), -1.0);
    }

    #[test]
    fn a_determinant_does_not_overflow_on_the_way() {
        let sizes = [1e200, 1e200, 1e-200, 1e-200, 1e3];
        let a = Mat::from_fn(5, 5, |i, j| if i == j { sizes[i] } else { 0.0f64 });
        let found = determinant(&a).re;
        assert!((found / 1e3 - 1.0).abs() < 1e-12, "{found}");
        let a = Mat::from_fn(4, 4, |i, j| if i == j { -1e200 } else { 0.0f64 });
        assert_eq!(determinant(&a).re, f64::INFINITY);
    }
}
