//! Variables: values that outlive a step.
//!
//! A resource variable is reached by a handle, which has the element type and shape of the value; a
//! reference variable of older graphs is an output that is a reference.

mod gather;
mod handle;
mod mutex;
mod random;
mod reference;
mod resource;
mod scatter;
mod slice;

use tenon_author::{ShapeContext, ShapeHandle, ShapeResult};
use tenon_framework::{DType, KernelError, PartialShape};

/// Attribute `shape`.
fn attr_shape(c: &ShapeContext<'_>) -> Result<ShapeHandle, KernelError> {
    let shape: PartialShape = c.attr("shape")?;
    Ok(shape_of(c, &shape))
}

/// A shape with what is known of another.
fn shape_of(c: &ShapeContext<'_>, shape: &PartialShape) -> ShapeHandle {
    shape.dims().map_or_else(|| c.unknown(), |dims| c.shape_of(dims))
}

/// The shape of the value behind the handle that is input 0, as far as it is known.
fn value_of_handle(c: &ShapeContext<'_>) -> ShapeHandle {
    let parts: Vec<(DType, ShapeHandle)> = c.input_handle(0);
    parts.first().map_or_else(|| c.unknown(), |&(_, shape)| shape)
}

/// Input 1 has the shape of the value behind the handle.
fn same_as_handle(c: &ShapeContext<'_>) -> ShapeResult {
    c.merge(value_of_handle(c), c.input(1)).map(drop)
}

/// The output is the reference that is input 0, whose value has the shape of input 1.
fn merged(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.merge(c.input(0), c.input(1))?)
}
