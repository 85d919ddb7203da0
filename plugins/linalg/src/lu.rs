//! Ops by LU decomposition: `Lu`, `MatrixInverse`, `MatrixSolve`, `MatrixDeterminant` and
//! `LogMatrixDeterminant`.

use crate::{
    batch::{Matrices, count, for_each, parts, same_batch, same_size, store},
    cholesky::{DOUBLE, FLOAT, HALF},
    few::{Few, FewFactors},
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
    check(factors.pivots().map(|(pivot, _)| pivot), what, number)?;
    Ok(factors)
}

/// As [`invertible`], of few elements.
fn few_invertible<F: Field>(
    a: Few<F>,
    what: &str,
    number: usize,
) -> Result<FewFactors<F>, KernelError> {
    let factors = FewFactors::new(a);
    check(factors.pivots(), what, number)?;
    Ok(factors)
}

/// Checks that no pivot is zero.
fn check(
    mut pivots: impl Iterator<Item = Complex<f64>>,
    what: &str,
    number: usize,
) -> Result<(), KernelError> {
    // TensorFlow's comparison detects a NaN pivot only in the first place.
    let first = |pivot: Complex<f64>| pivot.is_nan() || pivot == Complex::ZERO;
    if pivots.next().is_some_and(first) || pivots.any(|pivot| pivot == Complex::ZERO) {
        return Err(KernelError::invalid_argument(format!(
            "{what} is not invertible: its matrix number {number} is singular or not finite"
        )));
    }
    Ok(())
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
        let write_rows = |p: &mut [I], rows: &[usize]| {
            p.iter_mut().zip(rows).for_each(|(p, &row)| *p = I::from_f64(row as f64));
        };
        if let Some(few) = x.few(number) {
            let factors = few_invertible(few, "input", number)?;
            factors.packed.store(y);
            write_rows(p, factors.rows());
            return Ok(());
        }
        let factors = invertible(&x.get(number)?, "input", number)?;
        store(&factors.packed(), y);
        write_rows(p, factors.rows());
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
            if let Some(few) = x.few(number) {
                let inverse = few_invertible(few, "input", number)?.solve(&Few::identity(x.rows));
                (if self.adjoint { inverse.adjoint() } else { inverse }).store(y);
                return Ok(());
            }
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
            if let (Some(a), Some(b)) = (a.few(number), b.few(number)) {
                let a = if self.adjoint { a.adjoint() } else { a };
                few_invertible(a, "matrix", number)?.solve(&b).store(y);
                return Ok(());
            }
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

/// Pivots, each with the exponent of two to multiply it by.
type Pivots<'a> = &'a mut dyn Iterator<Item = (Complex<f64>, i32)>;

/// A determinant as a number of modulus 1 (or 0 if it is 0), and the logarithm of its modulus, from
/// the parity of the rows and the pivots.
fn log_determinant(parity: f64, pivots: Pivots<'_>) -> (Complex<f64>, f64) {
    let mut sign = Complex::new(parity, 0.0);
    // Powers of two are summed separately, so that those of large and small pivots cancel exactly.
    let (mut log, mut powers) = (0.0, 0i64);
    for (pivot, power) in pivots {
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

/// A determinant, as for [`log_determinant`].
fn determinant(parity: f64, pivots: Pivots<'_>) -> Complex<f64> {
    let mut product = Product::new(parity);
    for (pivot, power) in pivots {
        if pivot == Complex::ZERO {
            return Complex::ZERO;
        }
        product.times(pivot, power);
    }
    product.value()
}

/// What a function of the parity and the pivots of matrix `number` yields.
fn of_pivots<T: Scalar, R>(
    x: &Matrices<'_, T>,
    number: usize,
    function: impl Fn(f64, Pivots<'_>) -> R,
) -> Result<R, KernelError> {
    if let Some(few) = x.few(number) {
        let factors = FewFactors::new(few);
        return Ok(function(factors.parity, &mut factors.pivots().map(|pivot| (pivot, 0))));
    }
    let factors = Factors::new(&x.get(number)?);
    Ok(function(parity(factors.rows()), &mut factors.pivots()))
}

fn matrix_determinant<T: Scalar>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = Matrices::square(c.input::<T>(0)?, "input")?;
    for_each(c, &x, x.batch, |number, y| {
        y[0] = T::down(Field::from_complex(of_pivots(&x, number, determinant)?));
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
        let (unit, modulus) = of_pivots(&x, number, log_determinant)?;
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
        let of = |a: Mat<f64>| {
            let factors = Factors::new(&a);
            determinant(parity(factors.rows()), &mut factors.pivots()).re
        };
        let found = of(Mat::from_fn(5, 5, |i, j| if i == j { sizes[i] } else { 0.0f64 }));
        assert!((found / 1e3 - 1.0).abs() < 1e-12, "{found}");
        let found = of(Mat::from_fn(4, 4, |i, j| if i == j { -1e200 } else { 0.0f64 }));
        assert_eq!(found, f64::INFINITY);
    }
}
