//! `SelfAdjointEigV2`.

use crate::{
    batch::{Matrices, count, parts, store},
    cholesky::{DOUBLE, FLOAT},
    range,
    scalar::{Field, Scalar},
};
use faer::Mat;
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    register_kernel,
};

/// Eigenvalues in ascending order, and eigenvectors as columns, with any sign (any phase, if they
/// are complex). Only the lower triangle is used. As in TensorFlow, vectors that are not requested
/// are a scalar, here 0.
struct SelfAdjointEig<T> {
    vectors: bool,
    element: PhantomData<T>,
}

impl<T: Scalar> Kernel for SelfAdjointEig<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SelfAdjointEig { vectors: c.attr("compute_v")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let input = c.input::<T>(0)?;
        let x = Matrices::square(input, "input")?;
        let e = c.output::<T>(0, &x.dims(&[x.rows])?)?.data;
        let v = c.output::<T>(1, if self.vectors { input.dims } else { &[] })?.data;
        if !self.vectors {
            v.fill(T::default());
        }
        if e.is_empty() {
            return Ok(());
        }
        let count = count(x.batch);
        let v = if self.vectors { v } else { &mut [] };
        let items = parts(e, count).zip(parts(v, count));
        c.parallel_items(items, 10.0 * x.cost_ns(), |number, (e, v)| {
            let (values, vectors) = decompose(&x.get(number)?, self.vectors)?;
            for (e, value) in e.iter_mut().zip(values) {
                *e = T::down(Field::from_complex(value.into()));
            }
            if let Some(vectors) = vectors {
                store(&vectors, v);
            }
            Ok(())
        })
    }
}

/// The eigenvalues and, if requested, the eigenvectors.
type Decomposition<F> = (Vec<f64>, Option<Mat<F>>);

fn decompose<F: Field>(a: &Mat<F>, vectors: bool) -> Result<Decomposition<F>, KernelError> {
    let refused = || {
        KernelError::invalid_argument(
            "the eigenvalues of input cannot be found: is its lower triangle finite?",
        )
    };
    let size = a.nrows();
    let finite = (0..size).all(|i| (0..=i).all(|j| a[(i, j)].to_complex().is_finite()));
    if !finite {
        return Err(refused());
    }
    // The decomposition receives only the lower triangle: the other may contain anything.
    let lower = |i: usize, j: usize| match i.cmp(&j) {
        std::cmp::Ordering::Less => a[(j, i)].conjugate(),
        std::cmp::Ordering::Equal => F::from_complex(a[(i, i)].to_complex().re.into()),
        std::cmp::Ordering::Greater => a[(i, j)],
    };
    let a = Mat::from_fn(size, size, lower);
    if vectors {
        let (values, vectors) = range::eigen(&a).ok_or_else(refused)?;
        return Ok((values, Some(vectors)));
    }
    Ok((range::eigenvalues(&a).ok_or_else(refused)?, None))
}

register_kernel!("SelfAdjointEigV2" on "CPU": SelfAdjointEig<T> for "T" in [f32, Complex<f32>],
    numerics = FLOAT);
register_kernel!("SelfAdjointEigV2" on "CPU": SelfAdjointEig<T> for "T" in [f64, Complex<f64>],
    numerics = DOUBLE);
