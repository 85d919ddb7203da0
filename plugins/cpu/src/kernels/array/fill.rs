//! `Fill`.

use crate::{arch::vectorised, lists};

use super::{JOINED, Word, by_size, element_size, words, words_mut};
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    geometry::{Dims, element_count},
    reg::Numerics,
    register_kernel,
};

fn compute<W: Word>(c: &ComputeContext<'_>, dims: &[i64]) -> Result<(), KernelError> {
    let value = words::<W>(c.input_bytes(1)?)?[0];
    let y = words_mut::<W>(c.output_bytes(0, dims)?)?;
    // The C library fills bytes.
    if size_of::<W>() == 1 {
        y.fill(value)
    } else {
        repeat(value, y)
    }
    Ok(())
}

vectorised! {
    fn repeat[W: Word](value: W, y: &mut [W]) {
        y.fill(value);
    }
}

/// Dimensions of the output of a call.
pub fn fill_dims(c: &ComputeContext<'_>) -> Result<Dims, KernelError> {
    if c.dims(0).len() != 1 {
        return Err(KernelError::invalid_argument(format!(
            "dims must be a vector, found shape {:?}",
            c.dims(0)
        )));
    }
    if !c.dims(1).is_empty() {
        return Err(KernelError::invalid_argument(format!(
            "value must be a scalar, found shape {:?}",
            c.dims(1)
        )));
    }
    lists::short(c, 0)
}

fn fill(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dims = fill_dims(c)?;
    if c.slot(1)?.dtype == DType::STRING {
        let (len, value) = (element_count(&dims)?, c.strings(1)?[0]);
        return c.set_strings(0, &dims, (0..len).map(|_| value));
    }
    by_size!(element_size(c, 1)?, compute(c, &dims))
}

register_kernel!("Fill" on "CPU": fn fill, types = ("T", JOINED), host_memory = &["dims"],
    numerics = Numerics::EXACT);
register_kernel!("Fill" on "CPU": fn fill, types = ("T", &[DType::STRING]), host_memory = &["dims"],
    numerics = Numerics::EXACT);
