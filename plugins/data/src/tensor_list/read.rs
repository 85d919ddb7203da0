//! Ops that read a list.

use super::{TensorList, change::unset, list_in, of_elements, position};
use crate::{
    shapes::{indices_in, merged, rest, shape_in},
    tensors::{Part, count_of, output_parts, with_rows},
};
use tenon_sdk::{growth, prelude::*};

fn length(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let count = list_in(c, 0)?.elements().len();
    let length = i32::try_from(count).map_err(|_| {
        KernelError::invalid_argument(format!("{count} elements are too many for an int32"))
    })?;
    c.output::<i32>(0, &[])?.data[0] = length;
    Ok(())
}

register_kernel!("TensorListLength" on "CPU": fn length);

fn element_shape<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let list = list_in(c, 0)?;
    let Some(dims) = list.shape.dims() else {
        c.output::<T>(0, &[])?.data[0] = T::from_f64(-1.0);
        return Ok(());
    };
    let sizes = c.output::<T>(0, &[dims.len() as i64])?.data;
    for (size, &dim) in sizes.iter_mut().zip(dims) {
        *size = T::from_f64(dim as f64);
        if size.to_f64() as i64 != dim {
            return Err(KernelError::invalid_argument(format!(
                "shape_type: a dimension of {dim} does not fit it, set it to int64"
            )));
        }
    }
    Ok(())
}

register_kernel!("TensorListElementShape" on "CPU": fn element_shape<T> for "shape_type" in [i32, i64]);

/// The shape that an input gives for the elements of a list, with what the list says.
fn shape_for(
    c: &ComputeContext<'_>,
    input: usize,
    list: &TensorList,
) -> Result<PartialShape, KernelError> {
    merged(&list.shape, &shape_in(c, input, "element_shape")?, "element_shape")
}

fn get_item(c: &ComputeContext<'_>, dtype: DType) -> Result<(), KernelError> {
    let list = list_in(c, 0)?;
    list.check_type(dtype)?;
    let at = position(c.integer(1, "index")?, list.elements().len())?;
    if let Some(element) = &list.elements()[at] {
        return c.output_kept(0, element);
    }
    let mut shape = shape_for(c, 2, list)?;
    if shape.full().is_none() {
        shape = list.with_elements(shape, 0..list.elements().len())?;
    }
    let dims = shape.full().ok_or_else(|| unset(&shape))?;
    output_parts(c, 0, dtype, dims.dims(), &[Part::Zeros(count_of(dims.dims())?)])
}

of_elements!(GetItem: get_item);
register_kernel!("TensorListGetItem" on "CPU": GetItem);

/// Returns elements of a list, which are of one shape, as the rows of output 0.
fn output_rows(
    c: &ComputeContext<'_>,
    list: &TensorList,
    shape: PartialShape,
    elements: &[usize],
) -> Result<(), KernelError> {
    if elements.is_empty() && shape.full().is_none() {
        return Err(KernelError::invalid_argument(format!(
            "there are no elements, and a tensor of none needs a full element_shape, found {shape}"
        )));
    }
    let shape = list.with_elements(shape, elements.iter().copied())?;
    let row = shape.full().ok_or_else(|| unset(&shape))?;
    let zeros = count_of(row.dims())?;
    let parts = growth::collected(elements.iter().map(|&at| match &list.elements()[at] {
        Some(element) => Part::Tensor(element),
        None => Part::Zeros(zeros),
    }))?;
    output_parts(c, 0, list.dtype, &with_rows(elements.len(), row.dims()), &parts)
}

struct Stack {
    dtype: DType,
    count: i64,
}

impl Kernel for Stack {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Stack { dtype: c.attr("element_dtype")?, count: c.attr("num_elements")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let list = list_in(c, 0)?;
        list.check_type(self.dtype)?;
        let len = list.elements().len();
        if self.count != -1 && self.count != len as i64 {
            return Err(KernelError::invalid_argument(format!(
                "the list: expected num_elements = {} elements, found {len}",
                self.count
            )));
        }
        let all: Vec<usize> = growth::collected(0..len)?;
        output_rows(c, list, shape_for(c, 1, list)?, &all)
    }
}

register_kernel!("TensorListStack" on "CPU": Stack);

fn gather(c: &ComputeContext<'_>, dtype: DType) -> Result<(), KernelError> {
    let list = list_in(c, 0)?;
    list.check_type(dtype)?;
    let (indices, len) = (indices_in(c, 1, "indices")?, list.elements().len());
    let chosen = indices.iter().map(|&index| position(index.into(), len));
    output_rows(c, list, shape_for(c, 2, list)?, &growth::try_collected(chosen)?)
}

of_elements!(Gather: gather);
register_kernel!("TensorListGather" on "CPU": Gather);

struct Concat {
    dtype: DType,
    /// What the op says of the shapes of the elements, in the form that has no input for it.
    shape: Option<PartialShape>,
}

impl Kernel for Concat {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let has_attr = c.attrs().has("element_shape");
        let shape = has_attr.then(|| c.attr("element_shape")).transpose()?;
        Ok(Concat { dtype: c.attr("element_dtype")?, shape })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let list = list_in(c, 0)?;
        list.check_type(self.dtype)?;
        // The first form says nothing of the first dimension, nor has it the list's shape.
        let (shape, first) = match &self.shape {
            Some(shape) => (shape.clone(), None),
            None => {
                let shape = shape_for(c, 1, list)?;
                let first = shape.dims().and_then(|dims| dims.first().copied());
                (shape, first.filter(|&first| first >= 0))
            }
        };
        let row = rest(&shape).ok_or_else(scalars)?;
        if list.elements().is_empty() && row.full().is_none() {
            return Err(KernelError::invalid_argument(format!(
                "the list is empty, and a tensor of nothing needs the sizes of all but the first dimension, found {shape}"
            )));
        }
        let (row, first) = match list.shape.full() {
            Some(_) => (row, first),
            None => rows_together(list, row, first)?,
        };
        let row = row.full().ok_or_else(|| unset(&row))?;
        let lengths = lengths(c, list, first)?;
        output_concat(c, list, row.dims(), &lengths)
    }
}

register_kernel!("TensorListConcat" on "CPU": Concat);
register_kernel!("TensorListConcatV2" on "CPU": Concat);

fn scalars() -> KernelError {
    KernelError::invalid_argument("expected elements with a first dimension, found scalars")
}

/// What all elements that are set say of their rows, and their common length where they have one.
fn rows_together(
    list: &TensorList,
    mut row: PartialShape,
    expected: Option<i64>,
) -> Result<(PartialShape, Option<i64>), KernelError> {
    let mut lengths = Vec::new();
    for (at, element) in list.elements().iter().enumerate() {
        let Some(element) = element else { continue };
        let (&length, own) = element.dims().split_first().ok_or_else(scalars)?;
        if expected.is_some_and(|expected| expected != length) {
            return Err(KernelError::invalid_argument(format!(
                "element {at} of the list: expected the first dimension of element_shape, {expected:?}, found {length}"
            )));
        }
        if !(row.full().is_some() && row.accepts(own)) {
            let own = crate::shapes::shape_of(own, "the shape of an element")?;
            row = merged(&row, &own, &format!("element {at} of the list"))?;
        }
        if lengths.last() != Some(&length) {
            growth::push(&mut lengths, length)?;
        }
    }
    let common = match lengths[..] {
        [length] => Some(length),
        _ => None,
    };
    Ok((row, expected.or(common)))
}

/// The length of each element; that of one that is not set is an input's, or the common one.
fn lengths(
    c: &ComputeContext<'_>,
    list: &TensorList,
    common: Option<i64>,
) -> Result<Vec<i64>, KernelError> {
    let given = if c.input_count() > 2 { c.input::<i64>(2)?.data } else { &[] };
    growth::try_collected(list.elements().iter().enumerate().map(|(at, element)| {
        let length = match element {
            Some(element) => element.dims().first().copied(),
            None => given.get(at).copied().or(common),
        };
        length.filter(|&length| length >= 0).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "element {at} of the list is not set: expected its length in leading_dims, found {given:?}"
            ))
        })
    }))
}

fn output_concat(
    c: &ComputeContext<'_>,
    list: &TensorList,
    row: &[i64],
    lengths: &[i64],
) -> Result<(), KernelError> {
    let total = lengths.iter().try_fold(0usize, |all, &length| all.checked_add(length as usize));
    let total = total.ok_or_else(|| {
        KernelError::invalid_argument(format!("leading_dims: {lengths:?} are too large"))
    })?;
    let dims = with_rows(total, row);
    count_of(&dims)?;
    let size = count_of(row)?;
    let parts = growth::collected(list.elements().iter().zip(lengths).map(
        |(element, &length)| match element {
            Some(element) => Part::Tensor(element),
            None => Part::Zeros(length * size),
        },
    ))?;
    output_parts(c, 0, list.dtype, &dims, &parts)?;
    c.output::<i64>(1, &[lengths.len() as i64])?.data.copy_from_slice(lengths);
    Ok(())
}
