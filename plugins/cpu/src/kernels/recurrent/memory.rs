//! Inputs and outputs as floats, and products of parts of them.

use crate::{
    kernels::linalg::{
        matmul::{convert_down, widen},
        product::{Operand, product_into},
    },
    lane::Compute,
    panels::{as_itself, as_wide},
};
use tenon_sdk::{KernelError, author::ComputeContext, geometry::GeometryError};

/// The elements of an input as floats.
///
/// # Errors
/// No memory.
pub fn read<'a, T: Compute<Wide = f32>>(
    c: &ComputeContext<'a>,
    input: usize,
) -> Result<&'a [f32], KernelError> {
    let x = c.input::<T>(input)?.data;
    match as_itself(x) {
        Some(x) => Ok(x),
        None => Ok(widen(c, x)?),
    }
}

/// An output that is written as floats.
pub struct Output<'a, T> {
    /// What is written.
    pub wide: &'a mut [f32],
    /// Where it is rounded to, if that is not the same memory.
    narrow: Option<&'a mut [T]>,
}

impl<'a, T: Compute<Wide = f32>> Output<'a, T> {
    /// The output of this number; its contents are undefined where floats need no rounding, and else 0.
    ///
    /// # Errors
    /// Those of the output; no memory.
    pub fn new(
        c: &ComputeContext<'a>,
        output: usize,
        dims: &[i64],
    ) -> Result<Output<'a, T>, KernelError> {
        let y = c.output::<T>(output, dims)?.data;
        if as_wide::<T>(&mut []).is_none() {
            return Ok(Output { wide: c.scratch_slice(y.len())?, narrow: Some(y) });
        }
        let wide = as_wide(y).ok_or_else(|| KernelError::internal("floats that are none"))?;
        Ok(Output { wide, narrow: None })
    }

    /// Rounds what was written.
    pub fn finish(self) {
        if let Some(narrow) = self.narrow {
            convert_down(self.wide, narrow);
        }
    }
}

/// `y = a b`, of matrices that are dense; `sizes` are the rows and terms of `a`, and the columns of `b`.
///
/// # Errors
/// No memory; or the call was cancelled.
pub fn multiply(
    c: &ComputeContext<'_>,
    a: Operand<'_, f32>,
    b: Operand<'_, f32>,
    y: &mut [f32],
) -> Result<(), KernelError> {
    let columns = b.cols;
    product_into(c, a, b, y, columns)
}

/// Checks the shape of an input.
///
/// # Errors
/// `INVALID_ARGUMENT` for another one.
pub fn expect(
    c: &ComputeContext<'_>,
    input: usize,
    what: &'static str,
    expected: &[i64],
) -> Result<(), KernelError> {
    let found = c.dims(input);
    if found.len() != expected.len() {
        let (expected, found) = (expected.len(), found.len());
        return Err(GeometryError::Rank { what, expected, found }.into());
    }
    match found == expected {
        true => Ok(()),
        false => Err(KernelError::invalid_argument(format!(
            "{what}: expected shape {expected:?}, found {found:?}"
        ))),
    }
}
