//! Gradients of neural-network ops.

mod activation;
mod conv;
mod norm;
mod pool;

use crate::shape::{dims_of, same_size};
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

#[cfg(test)]
mod tests;
