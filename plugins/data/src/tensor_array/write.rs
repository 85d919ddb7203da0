//! Ops that write elements.

use super::make::array_in;
use crate::{
    shapes::{indices_in, rows_of},
    tensor_list::{cut, rows},
    tensors::Held,
};
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

/// Returns the flow, an input, as the output.
fn pass_flow(c: &ComputeContext<'_>, input: usize) -> Result<(), KernelError> {
    c.share(input, 0, c.dims(input))
}

fn write(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let array = array_in(c)?;
    let index = c.integer(1, "index")? as i32;
    let tensor = Arc::new(c.keep(2)?);
    array.check_type(tensor.dtype())?;
    array.write([(index, tensor)])?;
    pass_flow(c, 3)
}

register_kernel!("TensorArrayWrite" on "CPU": fn write);
register_kernel!("TensorArrayWriteV2" on "CPU": fn write);
register_kernel!("TensorArrayWriteV3" on "CPU": fn write);

fn scatter(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let array = array_in(c)?;
    let (count, row) = rows_of(c, 2, "value")?;
    array.check_type(c.slot(2)?.dtype)?;
    let indices = indices_in(c, 1, "indices")?;
    if indices.len() as i64 != count {
        return Err(KernelError::invalid_argument(format!(
            "indices: expected one for each of the {count} rows of value, found {}",
            indices.len()
        )));
    }
    let highest = indices.iter().copied().max().unwrap_or(-1);
    let len = array.len_for(usize::try_from(i64::from(highest) + 1).unwrap_or(0))?;
    if i64::from(highest) >= len as i64 {
        return Err(array.refuse(&format!(
            "index {highest} cannot be written: it has {len} elements and does not grow"
        )));
    }
    let row_at = rows(c, 2, row)?;
    let elements: Vec<Held> = growth::try_collected((0..indices.len()).map(row_at))?;
    array.write(indices.iter().copied().zip(elements))?;
    pass_flow(c, 3)
}

register_kernel!("TensorArrayScatter" on "CPU": fn scatter);
register_kernel!("TensorArrayScatterV2" on "CPU": fn scatter);
register_kernel!("TensorArrayScatterV3" on "CPU": fn scatter);

fn unpack(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let array = array_in(c)?;
    let (count, row) = rows_of(c, 1, "value")?;
    array.check_type(c.slot(1)?.dtype)?;
    let count = usize::try_from(count).unwrap_or(0);
    let len = array.len_for(count)?;
    if len != count {
        return Err(array.refuse(&format!(
            "{count} rows cannot be its elements: it has {len} and does not grow"
        )));
    }
    let row_at = rows(c, 1, row)?;
    let elements: Vec<Held> = growth::try_collected((0..count).map(row_at))?;
    array.write((0..).zip(elements))?;
    pass_flow(c, 2)
}

register_kernel!("TensorArrayUnpack" on "CPU": fn unpack);

fn split(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let array = array_in(c)?;
    let (count, row) = rows_of(c, 1, "value")?;
    let lengths = c.input::<i64>(2)?;
    if lengths.dims.len() != 1 || i32::try_from(lengths.data.len()).is_err() {
        return Err(KernelError::invalid_argument(format!(
            "lengths: expected a vector of at most {} elements, found shape {:?}",
            i32::MAX,
            lengths.dims
        )));
    }
    array.check_type(c.slot(1)?.dtype)?;
    let len = array.len_for(lengths.data.len())?;
    if len != lengths.data.len() {
        return Err(array.refuse(&format!(
            "cannot be split into {} elements: it has {len} and does not grow",
            lengths.data.len()
        )));
    }
    let elements = cut(c, 1, (count, row), lengths.data)?;
    array.mark_split(len)?;
    array.write((0..).zip(elements))?;
    pass_flow(c, 3)
}

register_kernel!("TensorArraySplit" on "CPU": fn split);
register_kernel!("TensorArraySplitV2" on "CPU": fn split);
register_kernel!("TensorArraySplitV3" on "CPU": fn split);
