//! `Qr`.

use crate::{
    batch::{Matrices, count, parts, store},
    cholesky::{DOUBLE, FLOAT, HALF},
    range,
    scalar::{Field, Scalar, identity},
};
use faer::Mat;
use half::f16;
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    register_kernel,
};

/// By reflections: the diagonal of R is real, with the signs of LAPACK and TensorFlow.
struct Qr<T> {
    full: bool,
    element: PhantomData<T>,
}

impl<T: Scalar> Kernel for Qr<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Qr { full: c.attr("full_matrices")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = Matrices::new(c.input::<T>(0)?, "input")?;
        let (rows, cols) = (x.rows, x.cols);
        let inner = if self.full { rows } else { rows.min(cols) };
        let q = c.output::<T>(0, &x.dims(&[rows, inner])?)?.data;
        let r = c.output::<T>(1, &x.dims(&[inner, cols])?)?.data;
        if q.is_empty() && r.is_empty() {
            return Ok(());
        }
        let count = count(x.batch);
        let items = parts(q, count).zip(parts(r, count));
        c.parallel_items(items, 3.0 * x.cost_ns(), |number, (q, r)| {
            let (q_factor, r_factor) = factors(&x.get(number)?, inner);
            store(&q_factor, q);
            store(&r_factor, r);
            Ok(())
        })
    }
}

/// Q with `inner` columns, and R with as many rows.
fn factors<F: Field>(a: &Mat<F>, inner: usize) -> (Mat<F>, Mat<F>) {
    if a.nrows().min(a.ncols()) == 0 {
        return (identity(a.nrows(), inner), Mat::from_fn(inner, a.ncols(), |_, _| F::default()));
    }
    range::qr(a, inner)
}

register_kernel!("Qr" on "CPU": Qr<T> for "T" in [f32, Complex<f32>], numerics = FLOAT);
register_kernel!("Qr" on "CPU": Qr<T> for "T" in [f64, Complex<f64>], numerics = DOUBLE);
register_kernel!("Qr" on "CPU": Qr<T> for "T" in [f16], numerics = HALF);
