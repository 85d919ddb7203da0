//! `CholeskyGrad`.
//!
//! Source: I. Murray, "Differentiation of the Cholesky decomposition" (2016), the algorithm without blocks. It is computed
//! in doubles.

use crate::{
    batch::{Matrices, for_each},
    cholesky::{DOUBLE, FLOAT},
    scalar::{Field, Scalar},
};
use tenon_sdk::{KernelError, author::ComputeContext, growth, register_kernel};

/// Turns the gradient by a factor, a lower triangle, into that by the matrix, twice as a lower
/// triangle but for the diagonal. Both are in row order.
fn differentiate(size: usize, l: &[f64], g: &mut [f64]) {
    for k in (0..size).rev() {
        let pivot = l[k * size + k];
        let below: f64 = (k + 1..size).map(|i| l[i * size + k] * g[i * size + k]).sum();
        g[k * size + k] -= below / pivot;
        (k..size).for_each(|i| g[i * size + k] /= pivot);
        for i in k..size {
            let factor = g[i * size + k];
            for j in 0..k {
                g[k * size + j] -= factor * l[i * size + j];
            }
        }
        for i in k + 1..size {
            let factor = g[i * size + k];
            for j in 0..k {
                g[i * size + j] -= factor * l[k * size + j];
            }
        }
        g[k * size + k] /= 2.0;
    }
}

fn cholesky_grad<T: Scalar>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (factor, gradient) = (c.input::<T>(0)?, c.input::<T>(1)?);
    let (l, g) = (Matrices::square(factor, "l")?, Matrices::square(gradient, "grad")?);
    if factor.dims != gradient.dims {
        return Err(KernelError::invalid_argument(format!(
            "l and grad must have the same shape, found {:?} and {:?}",
            factor.dims, gradient.dims
        )));
    }
    let size = l.rows;
    for_each(c, &l, factor.dims, |number, y| {
        let lower = |data: &[T]| {
            let element = |(at, x): (usize, &T)| {
                if at % size <= at / size { x.up().to_complex().re } else { 0.0 }
            };
            growth::collected(data.iter().enumerate().map(element))
        };
        let (l, mut g) = (lower(l.rows_of(number))?, lower(g.rows_of(number))?);
        differentiate(size, &l, &mut g);
        for (at, y) in y.iter_mut().enumerate() {
            let (i, j) = (at / size, at % size);
            let sum = g[at] + g[j * size + i];
            *y = T::down(Field::from_complex((0.5 * sum).into()));
        }
        Ok(())
    })
}

register_kernel!("CholeskyGrad" on "CPU": fn cholesky_grad<T> for "T" in [f32], numerics = FLOAT);
register_kernel!("CholeskyGrad" on "CPU": fn cholesky_grad<T> for "T" in [f64], numerics = DOUBLE);
