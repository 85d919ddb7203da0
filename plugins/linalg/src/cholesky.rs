//! `Cholesky`.

use crate::{
    batch::{Matrices, for_each, store},
    range,
    scalar::{Field, Scalar},
};
use faer::Mat;
use num_complex::Complex;
use tenon_sdk::{DType, KernelError, author::ComputeContext, reg::Numerics, register_kernel};

/// As in TensorFlow, a matrix without a Cholesky factor yields NaN in place of the factor, and no
/// error.
fn factor<F: Field>(a: &Mat<F>) -> Mat<F> {
    if let Some(factor) = range::cholesky(a) {
        return factor;
    }
    let nan = F::from_complex(Complex::new(f64::NAN, 0.0));
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| if i >= j { nan } else { F::default() })
}

fn cholesky<T: Scalar>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let input = c.input::<T>(0)?;
    let x = Matrices::square(input, "input")?;
    for_each(c, &x, input.dims, |number, y| {
        match x.few(number).and_then(|few| few.cholesky()) {
            Some(factor) => factor.store(y),
            None => store(&factor(&x.get(number)?), y),
        }
        Ok(())
    })
}

/// Bounds relative to the norm of the result times the condition number of the matrix.
pub const FLOAT: Numerics = Numerics::relative(1e-30, 1e-5).accumulation(DType::FLOAT);
/// As [`FLOAT`].
pub const DOUBLE: Numerics = Numerics::relative(1e-300, 2e-14).accumulation(DType::DOUBLE);
/// As [`FLOAT`], computed in float and rounded.
pub const HALF: Numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT);

register_kernel!("Cholesky" on "CPU": fn cholesky<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("Cholesky" on "CPU": fn cholesky<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);
