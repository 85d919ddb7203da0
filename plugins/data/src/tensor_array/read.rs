//! Ops that read elements.

use super::{TensorArray, Value, make::array_in};
use crate::{
    shapes::indices_in,
    tensors::{Part, count_of, output_parts, with_rows},
};
use tenon_sdk::{growth, prelude::*};

/// Zeros are numbers or bools.
fn part<'v>(array: &TensorArray, value: &'v Value) -> Result<Part<'v>, KernelError> {
    match value {
        Value::Tensor(tensor) => Ok(Part::Tensor(tensor)),
        Value::Zeros(dims) => {
            let count = count_of(dims)?;
            if count > 0 && array.form.dtype.needs_drop() {
                let message = format!("there are no zeros of {}", array.form.dtype);
                return Err(array.refuse(&message));
            }
            Ok(Part::Zeros(count))
        }
    }
}

struct Read {
    dtype: DType,
}

impl Kernel for Read {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Read { dtype: c.attr("dtype")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let array = array_in(c)?;
        let index = c.integer(1, "index")? as i32;
        array.check_type(self.dtype)?;
        for value in &array.read(&[index])? {
            match value {
                Value::Tensor(tensor) => c.output_kept(0, tensor)?,
                Value::Zeros(dims) => {
                    output_parts(c, 0, self.dtype, dims, &[part(&array, value)?])?;
                }
            }
        }
        Ok(())
    }
}

register_kernel!("TensorArrayRead" on "CPU": Read);
register_kernel!("TensorArrayReadV2" on "CPU": Read);
register_kernel!("TensorArrayReadV3" on "CPU": Read);

/// The error of a tensor of no elements, of which not all sizes are known.
fn nothing(what: &str, shape: &PartialShape) -> KernelError {
    KernelError::unimplemented(format!(
        "{what}: there are no elements, and a tensor of none needs a full shape, found {shape}"
    ))
}

fn parts<'v>(array: &TensorArray, values: &'v [Value]) -> Result<Vec<Part<'v>>, KernelError> {
    growth::try_collected(values.iter().map(|value| part(array, value)))
}

struct Gather {
    dtype: DType,
    shape: PartialShape,
}

impl Kernel for Gather {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Gather { dtype: c.attr("dtype")?, shape: c.attr("element_shape")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let array = array_in(c)?;
        array.check_type(self.dtype)?;
        array.learn(&self.shape)?;
        let all: Vec<i32>;
        let indices = match c.input_count() {
            // All elements.
            2 => {
                let count = i32::try_from(array.len()?).unwrap_or(i32::MAX);
                all = growth::collected(0..count)?;
                &all
            }
            _ => indices_in(c, 1, "indices")?,
        };
        if indices.is_empty() {
            let row = self.shape.full().ok_or_else(|| nothing("element_shape", &self.shape))?;
            return output_parts(c, 0, self.dtype, &with_rows(0, row.dims()), &[]);
        }
        let values = array.read(indices)?;
        let row = values[0].dims();
        if !self.shape.accepts(row) {
            return Err(array.refuse(&format!(
                "expected elements of a shape that agrees with {}, found {row:?} at {}",
                self.shape, indices[0]
            )));
        }
        if let Some(at) = values.iter().position(|value| value.dims() != row) {
            return Err(array.refuse(&format!(
                "expected elements of one shape, found {row:?} at {} and {:?} at {}",
                indices[0],
                values[at].dims(),
                indices[at]
            )));
        }
        let dims = with_rows(values.len(), row);
        output_parts(c, 0, self.dtype, &dims, &parts(&array, &values)?)
    }
}

register_kernel!("TensorArrayPack" on "CPU": Gather);
register_kernel!("TensorArrayGather" on "CPU": Gather);
register_kernel!("TensorArrayGatherV2" on "CPU": Gather);
register_kernel!("TensorArrayGatherV3" on "CPU": Gather);

struct Concat {
    dtype: DType,
    /// What the rows of all elements agree with.
    row: PartialShape,
}

impl Kernel for Concat {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Concat { dtype: c.attr("dtype")?, row: c.attr("element_shape_except0")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let array = array_in(c)?;
        array.check_type(self.dtype)?;
        let count = array.len_of_concat()?;
        if count == 0 {
            let row = self.row.full();
            let row = row.ok_or_else(|| nothing("element_shape_except0", &self.row))?;
            c.output::<i64>(1, &[0])?;
            return output_parts(c, 0, self.dtype, &with_rows(0, row.dims()), &[]);
        }
        let all: Vec<i32> = growth::collected(0..i32::try_from(count).unwrap_or(i32::MAX))?;
        let values = array.read(&all)?;
        let lengths = c.output::<i64>(1, &[count as i64])?.data;
        let (row, total) = self.rows_of(&array, &values, lengths)?;
        let dims = with_rows(total, row);
        output_parts(c, 0, self.dtype, &dims, &parts(&array, &values)?)
    }
}

impl Concat {
    /// The shape of the rows of all elements, and how many there are; their numbers go to `lengths`.
    fn rows_of<'v>(
        &self,
        array: &TensorArray,
        values: &'v [Value],
        lengths: &mut [i64],
    ) -> Result<(&'v [i64], usize), KernelError> {
        let (mut all, mut total) = (None, 0usize);
        for (at, (value, length)) in values.iter().zip(lengths).enumerate() {
            let Some((&first, row)) = value.dims().split_first() else {
                let message = format!("element {at} is a scalar, which is not concatenated");
                return Err(array.refuse(&message));
            };
            let expected = *all.get_or_insert(row);
            if row != expected || !self.row.accepts(row) {
                return Err(array.refuse(&format!(
                    "element {at}: expected rows of shape {expected:?} that agree with {}, found {row:?}",
                    self.row
                )));
            }
            *length = first;
            total = total.saturating_add(first as usize);
        }
        Ok((all.unwrap_or_default(), total))
    }
}

register_kernel!("TensorArrayConcat" on "CPU": Concat);
register_kernel!("TensorArrayConcatV2" on "CPU": Concat);
register_kernel!("TensorArrayConcatV3" on "CPU": Concat);
