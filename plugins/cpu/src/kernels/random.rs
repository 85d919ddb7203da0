//! Random numbers: the streams of TensorFlow's Philox generator, and the distributions drawn from
//! them.

mod binomial;
mod bounded;
mod boxes;
mod choice;
mod distribution;
mod gamma;
mod glimpse;
mod index_shuffle;
mod of_variable;
mod poisson;
mod sobol;
mod stateful;
mod stateless;

use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    geometry::{GeometryError, element_count},
};

/// The dimensions that an input gives.
fn shape_input(c: &ComputeContext<'_>, input: usize) -> Result<Vec<i64>, KernelError> {
    if c.dims(input).len() != 1 {
        let found = c.dims(input);
        return Err(KernelError::invalid_argument(format!(
            "shape must be a vector, found shape {found:?}"
        )));
    }
    let dims = c.integers(input)?;
    if let Some(&found) = dims.iter().find(|&&size| size < 0) {
        return Err(GeometryError::TooSmall { what: "shape", least: 0, found }.into());
    }
    element_count(&dims).map_err(|error| error.of("shape"))?;
    Ok(dims)
}
