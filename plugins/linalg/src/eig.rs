//! `Eig`.

use crate::{
    batch::{Matrices, count, parts},
    cholesky::{DOUBLE, FLOAT},
    range,
    scalar::{Field, Scalar, is_finite},
};
use faer::Mat;
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    growth, register_kernel,
};

type C = Complex<f64>;

/// Eigenvalues in the order of their moduli, and eigenvectors of length 1 as columns, with any
/// phase. As in TensorFlow, vectors that are not requested are a scalar, here 0.
struct Eig<T, Y> {
    vectors: bool,
    element: PhantomData<fn(T) -> Y>,
}

impl<T: Scalar, Y: Scalar<Wide = C>> Kernel for Eig<T, Y> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Eig { vectors: c.attr("compute_v")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let input = c.input::<T>(0)?;
        let x = Matrices::square(input, "input")?;
        let e = c.output::<Y>(0, &x.dims(&[x.rows])?)?.data;
        let v = c.output::<Y>(1, if self.vectors { input.dims } else { &[] })?.data;
        if !self.vectors {
            v.fill(Y::default());
        }
        if e.is_empty() {
            return Ok(());
        }
        let count = count(x.batch);
        let v = if self.vectors { v } else { &mut [] };
        let items = parts(e, count).zip(parts(v, count));
        c.parallel_items(items, 30.0 * x.cost_ns(), |number, (e, v)| {
            decompose(&x.get(number)?, number, e, v)
        })
    }
}

fn decompose<F: Field, Y: Scalar<Wide = C>>(
    a: &Mat<F>,
    number: usize,
    e: &mut [Y],
    v: &mut [Y],
) -> Result<(), KernelError> {
    let found = is_finite(a).then(|| range::schur(a)).flatten();
    let (schur, power) = found.ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "the eigenvalues of matrix number {number} of input cannot be found: are its elements finite?"
        ))
    })?;
    let size = a.nrows();
    let value = |at: usize| schur.triangle[(at, at)];
    let mut order = growth::collected(0..size)?;
    order.sort_by(|&a, &b| value(a).norm().total_cmp(&value(b).norm()));
    for (e, &at) in e.iter_mut().zip(&order) {
        *e = Y::down(value(at).shifted(power));
    }
    if !v.is_empty() {
        let vectors = schur.eigenvectors();
        for (at, v) in v.iter_mut().enumerate() {
            *v = Y::down(vectors[(at / size, order[at % size])]);
        }
    }
    Ok(())
}

type Single<T> = Eig<T, Complex<f32>>;
type Double<T> = Eig<T, Complex<f64>>;

register_kernel!("Eig" on "CPU": Single<T> for "T" in [f32, Complex<f32>],
    types = ("Tout", &[DType::COMPLEX64]), numerics = FLOAT);
register_kernel!("Eig" on "CPU": Double<T> for "T" in [f64, Complex<f64>],
    types = ("Tout", &[DType::COMPLEX128]), numerics = DOUBLE);
