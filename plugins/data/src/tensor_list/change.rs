//! Ops that change a list.

use super::{
    TensorList, change_list,
    make::{put, rows},
    of_elements, position,
};
use crate::{
    shapes::{indices_in, merged, rows_of, shape_in},
    tensors::{Part, count_of, output_parts},
};
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

/// Checks that one more element may come.
fn check_room(list: &TensorList) -> Result<(), KernelError> {
    let len = list.elements().len();
    match usize::try_from(list.limit) {
        Ok(limit) if len >= limit => Err(KernelError::invalid_argument(format!(
            "the list is full: it has {len} elements, and max_num_elements is {limit}"
        ))),
        _ => Ok(()),
    }
}

fn push_back(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let element = Arc::new(c.keep(1)?);
    change_list(c, |list| {
        list.check_shape(element.dims())?;
        list.check_type(element.dtype())?;
        check_room(list)?;
        growth::push(list.elements_mut()?, Some(Arc::clone(&element)))
    })
}

register_kernel!("TensorListPushBack" on "CPU": fn push_back);

fn push_back_batch(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (count, row) = rows_of(c, 1, "tensor")?;
    if c.dims(0) != [count] {
        return Err(KernelError::invalid_argument(format!(
            "input_handles: expected a vector of {count} lists, one for each row of the tensor, found shape {:?}",
            c.dims(0)
        )));
    }
    let (dtype, row_at) = (c.slot(1)?.dtype, rows(c, 1, row)?);
    c.change_variants(0, 0, |at, list: &mut TensorList| {
        list.check_shape(row)?;
        list.check_type(dtype)?;
        growth::push(list.elements_mut()?, Some(row_at(at)?))
    })
}

register_kernel!("TensorListPushBackBatch" on "CPU": fn push_back_batch);

fn pop_back(c: &ComputeContext<'_>, dtype: DType) -> Result<(), KernelError> {
    let asked = shape_in(c, 1, "element_shape")?;
    change_list(c, |list| {
        list.check_type(dtype)?;
        match list.elements().last() {
            Some(Some(element)) => c.output_kept(1, element)?,
            Some(None) => {
                let shape = merged(&asked, &list.shape, "the list's element_shape")?;
                let dims = shape.full().ok_or_else(|| unset(&shape))?;
                let zeros = [Part::Zeros(count_of(dims.dims())?)];
                output_parts(c, 1, dtype, dims.dims(), &zeros)?;
            }
            None => {
                return Err(KernelError::invalid_argument(
                    "cannot pop an element: the list is empty",
                ));
            }
        }
        list.elements_mut()?.pop();
        Ok(())
    })
}

of_elements!(PopBack: pop_back);
register_kernel!("TensorListPopBack" on "CPU": PopBack);

/// The error of an element that is not set, and would be zeros of a shape that is not known.
pub fn unset(shape: &PartialShape) -> KernelError {
    KernelError::invalid_argument(format!(
        "the element is not set, and zeros for it need a full element_shape, found {shape}"
    ))
}

struct SetItem {
    resize: bool,
}

impl Kernel for SetItem {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SetItem { resize: c.attr("resize_if_index_out_of_bounds")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (index, element) = (c.integer(1, "index")?, Arc::new(c.keep(2)?));
        change_list(c, |list| {
            list.check_type(element.dtype())?;
            list.check_shape(element.dims())?;
            if self.resize && index >= list.elements().len() as i64 {
                list.resize(index as usize + 1)?;
            }
            let elements = list.elements_mut()?;
            let at = position(index, elements.len())?;
            elements[at] = Some(Arc::clone(&element));
            Ok(())
        })
    }
}

register_kernel!("TensorListSetItem" on "CPU": SetItem);

fn resize(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let size = c.integer(1, "size")?;
    let len = usize::try_from(size).map_err(|_| {
        KernelError::invalid_argument(format!("size: expected at least 0, found {size}"))
    })?;
    change_list(c, |list| list.resize(len))
}

register_kernel!("TensorListResize" on "CPU": fn resize);

fn scatter_into(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (count, row) = rows_of(c, 1, "tensor")?;
    let (dtype, indices) = (c.slot(1)?.dtype, indices_in(c, 2, "indices")?);
    let highest = indices.iter().copied().max().unwrap_or(-1);
    let needed = usize::try_from(i64::from(highest) + 1).unwrap_or(0);
    change_list(c, |list| {
        list.check_type(dtype)?;
        list.check_shape(row)?;
        if needed > list.elements().len() {
            list.resize(needed)?;
        }
        put(c, list, (1, count as usize, row), indices)
    })
}

register_kernel!("TensorListScatterIntoExistingList" on "CPU": fn scatter_into);

fn concat_lists(c: &ComputeContext<'_>, dtype: DType) -> Result<(), KernelError> {
    if c.dims(0) != c.dims(1) {
        return Err(KernelError::invalid_argument(format!(
            "input_b: expected the shape of input_a, {:?}, found {:?}",
            c.dims(0),
            c.dims(1)
        )));
    }
    let others = c.variants(1)?;
    c.change_variants(0, 0, |at, list: &mut TensorList| {
        let Some(other) = others[at].get::<TensorList>() else {
            return Err(KernelError::invalid_argument(format!(
                "input_b: expected lists, found {:?} at {at}",
                others[at]
            )));
        };
        list.check_type(dtype)?;
        other.check_type(dtype)?;
        if list.shape != other.shape {
            return Err(KernelError::invalid_argument(format!(
                "input_b: expected lists of the same element_shape, found {} and {} at {at}",
                list.shape, other.shape
            )));
        }
        growth::append(list.elements_mut()?, other.elements())
    })
}

of_elements!(ConcatLists: concat_lists);
register_kernel!("TensorListConcatLists" on "CPU": ConcatLists);
