//! Ops that make lists.

use super::{TensorList, of_elements, position};
use crate::{
    shapes::{indices_in, rest, rows_of, shape_in},
    tensors::{Held, count_of},
};
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

fn give(c: &ComputeContext<'_>, list: TensorList) -> Result<(), KernelError> {
    c.set_variant(0, Variant::new(list))
}

fn empty(c: &ComputeContext<'_>, dtype: DType) -> Result<(), KernelError> {
    let limit = c.integer(1, "max_num_elements")? as i32;
    let shape = shape_in(c, 0, "element_shape")?;
    give(c, TensorList { limit, ..TensorList::new(dtype, shape, Vec::new()) })
}

of_elements!(Empty: empty);
register_kernel!("EmptyTensorList" on "CPU": Empty);

fn reserve(c: &ComputeContext<'_>, dtype: DType) -> Result<(), KernelError> {
    let shape = shape_in(c, 0, "element_shape")?;
    let count = c.integer(1, "num_elements")?;
    let count = usize::try_from(count).map_err(|_| {
        KernelError::invalid_argument(format!("num_elements: expected at least 0, found {count}"))
    })?;
    give(c, TensorList::new(dtype, shape, growth::filled(count, None)?))
}

of_elements!(Reserve: reserve);
register_kernel!("TensorListReserve" on "CPU": Reserve);

/// The rows of an input, one by one.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` without memory.
pub fn rows<'c>(
    c: &'c ComputeContext<'_>,
    input: usize,
    row: &'c [i64],
) -> Result<impl Fn(usize) -> Result<Held, KernelError> + 'c, KernelError> {
    let size = count_of(row)? as u64;
    Ok(move |at| c.keep_part(input, at as u64 * size, row).map(Arc::new))
}

/// The tensor that is input 0, as rows of a list whose elements have the shape of another input.
///
/// # Errors
/// `INVALID_ARGUMENT` when its rows are not of that shape.
fn listed(
    c: &ComputeContext<'_>,
    shape: usize,
) -> Result<(TensorList, usize, Vec<i64>), KernelError> {
    let (count, row) = rows_of(c, 0, "tensor")?;
    let shape = shape_in(c, shape, "element_shape")?;
    let list = TensorList::new(c.slot(0)?.dtype, shape, Vec::new());
    list.check_shape(row)?;
    Ok((list, count as usize, row.to_vec()))
}

fn from_tensor(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (mut list, count, row) = listed(c, 1)?;
    let row_at = rows(c, 0, &row)?;
    *list.elements_mut()? = growth::try_collected((0..count).map(|at| row_at(at).map(Some)))?;
    give(c, list)
}

register_kernel!("TensorListFromTensor" on "CPU": fn from_tensor);

fn split(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (count, row) = rows_of(c, 0, "tensor")?;
    let shape = shape_in(c, 1, "element_shape")?;
    let Some(of_rows) = rest(&shape) else {
        return Err(KernelError::invalid_argument(
            "element_shape: expected at least one dimension, found a scalar's",
        ));
    };
    if !of_rows.accepts(row) {
        return Err(KernelError::invalid_argument(format!(
            "tensor: expected rows of a shape that agrees with {of_rows}, found {row:?}"
        )));
    }
    let lengths = c.input::<i64>(2)?;
    if lengths.dims.len() != 1 {
        return Err(KernelError::invalid_argument(format!(
            "lengths: expected a vector, found shape {:?}",
            lengths.dims
        )));
    }
    let parts = cut(c, 0, (count, row), lengths.data)?;
    let parts = growth::collected(parts.into_iter().map(Some))?;
    give(c, TensorList::new(c.slot(0)?.dtype, shape, parts))
}

register_kernel!("TensorListSplit" on "CPU": fn split);

/// Parts of an input of these lengths along its first dimension, which they fill.
///
/// # Errors
/// `INVALID_ARGUMENT` for lengths that do not; `RESOURCE_EXHAUSTED` without memory.
pub fn cut(
    c: &ComputeContext<'_>,
    input: usize,
    (count, row): (i64, &[i64]),
    lengths: &[i64],
) -> Result<Vec<Held>, KernelError> {
    let sum = lengths
        .iter()
        .try_fold(0i64, |sum, &length| if length < 0 { None } else { sum.checked_add(length) });
    if sum != Some(count) {
        return Err(KernelError::invalid_argument(format!(
            "lengths: expected lengths of at least 0 with the sum {count}, the first dimension of the tensor, \
             found {lengths:?}"
        )));
    }
    let size = count_of(row)?;
    let mut first = 0i64;
    growth::try_collected(lengths.iter().map(|&length| {
        let dims: Vec<i64> = std::iter::once(length).chain(row.iter().copied()).collect();
        let part = c.keep_part(input, (first * size) as u64, &dims).map(Arc::new);
        first += length;
        part
    }))
}

fn scatter(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (mut list, count, row) = listed(c, 2)?;
    let indices = indices_in(c, 1, "indices")?;
    let asked = if c.input_count() > 3 { c.integer(3, "num_elements")? } else { -1 };
    if asked < -1 {
        return Err(KernelError::invalid_argument(format!(
            "num_elements: expected at least 0, or -1 for as many as needed, found {asked}"
        )));
    }
    let highest = indices.iter().map(|&index| i64::from(index)).max().unwrap_or(-1);
    let len = if asked < 0 { highest + 1 } else { asked };
    list.resize(usize::try_from(len).unwrap_or(0))?;
    put(c, &mut list, (0, count, &row), indices)?;
    give(c, list)
}

register_kernel!("TensorListScatter" on "CPU": fn scatter);
register_kernel!("TensorListScatterV2" on "CPU": fn scatter);

/// Puts the `count` rows of an input into a list, at these indices.
///
/// # Errors
/// `INVALID_ARGUMENT` for another number of indices, or one at which the list has no element.
pub fn put(
    c: &ComputeContext<'_>,
    list: &mut TensorList,
    (input, count, row): (usize, usize, &[i64]),
    indices: &[i32],
) -> Result<(), KernelError> {
    if indices.len() != count {
        return Err(KernelError::invalid_argument(format!(
            "indices: expected one for each of the {count} rows of the tensor, found {}",
            indices.len()
        )));
    }
    let row_at = rows(c, input, row)?;
    let elements = list.elements_mut()?;
    for (at, &index) in indices.iter().enumerate() {
        let position = position(index.into(), elements.len())?;
        elements[position] = Some(row_at(at)?);
    }
    Ok(())
}
