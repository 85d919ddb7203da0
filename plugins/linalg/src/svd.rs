//! `Svd`.

use crate::{
    batch::{Matrices, count, parts, store},
    cholesky::{DOUBLE, FLOAT},
    range,
    scalar::{Field, Scalar, Svd as Decomposition, identity, is_finite},
};
use faer::Mat;
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    register_kernel,
};

/// Singular values in descending order, and vectors as columns, pairs of which may have any sign
/// (any phase, if they are complex). As in TensorFlow, a matrix that is not finite yields NaN, and
/// vectors that are not requested are scalars, here 0.
struct Svd<T> {
    vectors: bool,
    full: bool,
    element: PhantomData<T>,
}

impl<T: Scalar> Kernel for Svd<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (vectors, full) = (c.attr("compute_uv")?, c.attr("full_matrices")?);
        Ok(Svd { vectors, full, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = Matrices::new(c.input::<T>(0)?, "input")?;
        let (rows, cols) = (x.rows, x.cols);
        let least = rows.min(cols);
        let s = c.output::<T>(0, &x.dims(&[least])?)?.data;
        if !self.vectors {
            c.output::<T>(1, &[])?.data.fill(T::default());
            c.output::<T>(2, &[])?.data.fill(T::default());
            if s.is_empty() {
                return Ok(());
            }
            let items = parts(s, count(x.batch));
            return c.parallel_items(items, 4.0 * x.cost_ns(), |number, s| {
                store_values(&values(&x.get(number)?), s);
                Ok(())
            });
        }
        let (left, right) = if self.full { (rows, cols) } else { (least, least) };
        let u = c.output::<T>(1, &x.dims(&[rows, left])?)?.data;
        let v = c.output::<T>(2, &x.dims(&[cols, right])?)?.data;
        if s.is_empty() && u.is_empty() && v.is_empty() {
            return Ok(());
        }
        let count = count(x.batch);
        let vectors = parts(u, count).zip(parts(v, count));
        let items = parts(s, count).zip(vectors);
        c.parallel_items(items, 20.0 * x.cost_ns(), |number, (s, (u, v))| {
            let found = decompose(&x.get(number)?, self.full);
            store_values(&found.values, s);
            store(&found.left, u);
            store(&found.right, v);
            Ok(())
        })
    }
}

fn store_values<T: Scalar>(values: &[f64], y: &mut [T]) {
    for (y, &value) in y.iter_mut().zip(values) {
        *y = T::down(Field::from_complex(value.into()));
    }
}

/// The singular values; NaN if they do not exist.
fn values<F: Field>(a: &Mat<F>) -> Vec<f64> {
    let least = a.nrows().min(a.ncols());
    let found = is_finite(a).then(|| range::singular_values(a)).flatten();
    found.unwrap_or_else(|| vec![f64::NAN; least])
}

/// Values and vectors; NaN if they do not exist.
fn decompose<F: Field>(a: &Mat<F>, full: bool) -> Decomposition<F> {
    let (rows, cols) = (a.nrows(), a.ncols());
    let least = rows.min(cols);
    let (left, right) = if full { (rows, cols) } else { (least, least) };
    if least == 0 {
        let (left, right) = (identity(rows, left), identity(cols, right));
        return Decomposition { values: Vec::new(), left, right };
    }
    let found = is_finite(a).then(|| range::svd(a, full)).flatten();
    found.unwrap_or_else(|| {
        let nan = F::from_complex(f64::NAN.into());
        let filled = |rows, cols| Mat::from_fn(rows, cols, |_, _| nan);
        let (left, right) = (filled(rows, left), filled(cols, right));
        Decomposition { values: vec![f64::NAN; least], left, right }
    })
}

register_kernel!("Svd" on "CPU": Svd<T> for "T" in [f32, Complex<f32>], numerics = FLOAT);
register_kernel!("Svd" on "CPU": Svd<T> for "T" in [f64, Complex<f64>], numerics = DOUBLE);
