//! Random numbers: the streams of TensorFlow's Philox generator, and what is made of them.

mod choice;
mod distribution;
mod gamma;
mod philox;
mod stateful;
mod stateless;

use tenon_sdk::{KernelError, author::ComputeContext, geometry::element_count};

/// The dimensions that an input holds.
fn shape_input(c: &ComputeContext<'_>, input: usize) -> Result<Vec<i64>, KernelError> {
    if c.dims(input).len() != 1 {
        let found = c.dims(input);
        return Err(KernelError::invalid_argument(format!(
            "shape must be a vector, found shape {found:?}"
        )));
    }
    let dims = c.integers(input)?;
    element_count(&dims)?;
    Ok(dims)
}
