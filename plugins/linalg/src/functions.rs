//! `MatrixSquareRoot` and `MatrixLogarithm`.

use crate::{
    batch::{Matrices, for_each, store},
    cholesky::{DOUBLE, FLOAT},
    range,
    scalar::{Field, Scalar, is_finite, nan},
    schur,
};
use faer::Mat;
use num_complex::Complex;
use tenon_sdk::{KernelError, author::ComputeContext, register_kernel};

/// The imaginary part, relative to the largest element, that rounding may give to the root of a
/// real matrix: an eigenvalue of zero may be as far below it as the precision, whose root this is.
const REAL: f64 = 1e-7;

/// The principal square root. As in TensorFlow, it is NaN for a matrix that is not finite, and
/// where it would not be real.
fn root_of<F: Field>(a: &Mat<F>) -> Mat<F> {
    let unknown = || nan(a.nrows(), a.ncols());
    let found = is_finite(a).then(|| range::schur(a)).flatten();
    let Some((schur, power)) = found else { return unknown() };
    let root = schur.with(&schur::root(&schur.triangle));
    let is_real = F::from_complex(Complex::I).to_complex() == Complex::ZERO;
    let largest = |part: fn(&Complex<f64>) -> f64| {
        root.col_iter().flat_map(|column| column.iter()).map(part).fold(0.0, f64::max)
    };
    if is_real && largest(|x| x.im.abs()) > REAL * largest(|x| x.norm()) {
        return unknown();
    }
    range::finished(&root, power / 2)
}

/// The principal logarithm; NaN for a singular matrix, or one that is not finite.
fn logarithm_of<F: Field>(a: &Mat<F>) -> Mat<F> {
    let found = is_finite(a).then(|| range::schur(a)).flatten();
    let made = found.and_then(|(schur, power)| {
        let mut triangle = schur::logarithm(&schur.triangle)?;
        let added = f64::from(power) * std::f64::consts::LN_2;
        (0..a.nrows()).for_each(|i| triangle[(i, i)] += added);
        Some(range::finished(&schur.with(&triangle), 0))
    });
    made.unwrap_or_else(|| nan(a.nrows(), a.ncols()))
}

fn compute<T: Scalar>(
    c: &ComputeContext<'_>,
    function: impl Fn(&Mat<T::Wide>) -> Mat<T::Wide> + Sync,
) -> Result<(), KernelError> {
    let input = c.input::<T>(0)?;
    let x = Matrices::square(input, "input")?;
    for_each(c, &x, input.dims, |number, y| {
        store(&function(&x.get(number)?), y);
        Ok(())
    })
}

fn square_root<T: Scalar>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    compute::<T>(c, root_of)
}

fn logarithm<T: Scalar>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    compute::<T>(c, logarithm_of)
}

register_kernel!("MatrixSquareRoot" on "CPU": fn square_root<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("MatrixSquareRoot" on "CPU": fn square_root<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);
register_kernel!("MatrixLogarithm" on "CPU": fn logarithm<T> for "T" in [Complex<f32>],
    numerics = FLOAT);
register_kernel!("MatrixLogarithm" on "CPU": fn logarithm<T> for "T" in [Complex<f64>],
    numerics = DOUBLE);
