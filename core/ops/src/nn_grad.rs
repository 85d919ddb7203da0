//! Gradients of neural-network ops.

mod activation;
mod conv;
mod dilation;
mod norm;
mod pool;
mod pool_volume;
mod second;

use crate::shape::{dims_of, input_of_rank, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

/// Checks two inputs of equal shape, which is also the output's.
fn both_alike(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, alike(c, "the shape of the second input", c.input(0), c.input(1))?)
}

/// Merges two shapes that must be equal; `what` names the second.
fn alike(
    c: &ShapeContext<'_>,
    what: &'static str,
    expected: ShapeHandle,
    found: ShapeHandle,
) -> Result<ShapeHandle, KernelError> {
    let (Some(rank), Some(other)) = (c.rank(expected), c.rank(found)) else {
        return c.merge(expected, found);
    };
    if rank != other {
        return Err(GeometryError::Rank { what, expected: rank, found: other }.into());
    }
    let dims = dims_of(c, expected).into_iter().zip(dims_of(c, found));
    let dims = dims.map(|(expected, found)| same_size(c, what, expected, found));
    Ok(c.make_shape(&dims.collect::<Result<Vec<Dim>, KernelError>>()?))
}

/// Checks that an input is a vector of this length, as far as its shape is known.
fn vector_of(
    c: &ShapeContext<'_>,
    input: usize,
    what: &'static str,
    expected: usize,
) -> ShapeResult {
    let vector = input_of_rank(c, input, what, 1)?;
    match c.value(c.dim(vector, 0)).filter(|&found| found != expected as i64) {
        Some(found) => {
            let found = found as usize;
            Err(GeometryError::Length { what, expected, found }.into())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
