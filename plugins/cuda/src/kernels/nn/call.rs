//! Operands of a convolution's call.

use super::epilogue::{Epilogue, Inputs};
use crate::launch::{Launch, Operand};
use tenon_sdk::{KernelError, author::ComputeContext, geometry::DataFormat};

/// Output, images and filter, in the device's memory, and the inputs of the steps that follow.
pub(super) struct Call<'a> {
    pub launch: Launch<'a>,
    pub y: Operand,
    pub x: Operand,
    pub filter: Operand,
    pub inputs: Inputs,
}

impl<'a> Call<'a> {
    /// The operands of a call whose output has these dimensions. `None`: the output is empty, and
    /// there is nothing to do.
    ///
    /// # Errors
    /// Inputs that the steps do not accept; out of memory.
    pub fn new(
        c: &'a ComputeContext<'a>,
        epilogue: &Epilogue,
        dims: &[i64],
        format: DataFormat,
    ) -> Result<Option<Call<'a>>, KernelError> {
        let launch = Launch::new(c)?;
        let inputs = epilogue.bind(c, &launch, dims, format)?;
        let (x, filter) = (launch.input(0)?, launch.input(1)?);
        let y = launch.output(0, dims)?;
        Ok((y.elements > 0).then_some(Call { launch, y, x, filter, inputs }))
    }
}
