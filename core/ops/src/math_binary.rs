//! Functions of two and three numbers, sums of several tensors, and conversion.

mod arithmetic;
mod bitwise;
mod comparison;
mod division;
mod selection;

use crate::shape::{broadcast_dims, dims_of};
use tenon_author::{ShapeContext, ShapeResult};

/// The output has the shape that the two inputs broadcast to.
pub(crate) fn broadcast(c: &ShapeContext<'_>) -> ShapeResult {
    let (x, y) = (c.input(0), c.input(1));
    if c.rank(x).is_none() || c.rank(y).is_none() {
        return c.set_output(0, c.unknown());
    }
    c.set_output(0, broadcast_dims(c, &dims_of(c, x), &dims_of(c, y))?)
}
