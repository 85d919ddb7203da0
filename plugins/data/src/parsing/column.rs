//! Values of one feature of many examples, of one of the three types that features have.

use super::example::List;
use crate::wire::Malformed;
use tenon_sdk::{growth, prelude::*};

/// Values in order.
#[derive(Debug, Clone)]
pub enum Column<'a> {
    /// Floats.
    Floats(Vec<f32>),
    /// Integers.
    Integers(Vec<i64>),
    /// Strings, of inputs of the call.
    Texts(Vec<&'a [u8]>),
}

/// Why a list cannot be added.
pub enum NotAdded {
    /// It does not follow the format.
    Malformed,
    /// There is no memory.
    NoMemory(KernelError),
}

impl From<Malformed> for NotAdded {
    fn from(_: Malformed) -> NotAdded {
        NotAdded::Malformed
    }
}

impl<'a> Column<'a> {
    /// No values.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a type that features do not have.
    pub fn new(dtype: DType) -> Result<Column<'a>, KernelError> {
        match dtype {
            DType::FLOAT => Ok(Column::Floats(Vec::new())),
            DType::INT64 => Ok(Column::Integers(Vec::new())),
            DType::STRING => Ok(Column::Texts(Vec::new())),
            found => Err(KernelError::invalid_argument(format!(
                "a feature: expected type float, int64 or string, found {found}"
            ))),
        }
    }

    /// The values of an input.
    ///
    /// # Errors
    /// As [`Column::new`], and as the inputs of [`ComputeContext`].
    pub fn of_input(c: &ComputeContext<'a>, input: usize) -> Result<Column<'a>, KernelError> {
        match Column::new(c.slot(input)?.dtype)? {
            Column::Floats(_) => growth::copied(c.input(input)?.data).map(Column::Floats),
            Column::Integers(_) => growth::copied(c.input(input)?.data).map(Column::Integers),
            Column::Texts(_) => c.strings(input).map(Column::Texts),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Column::Floats(values) => values.len(),
            Column::Integers(values) => values.len(),
            Column::Texts(values) => values.len(),
        }
    }

    /// Type of the values.
    pub fn dtype(&self) -> DType {
        match self {
            Column::Floats(_) => DType::FLOAT,
            Column::Integers(_) => DType::INT64,
            Column::Texts(_) => DType::STRING,
        }
    }

    /// Adds the values of a list of this type; how many.
    pub fn append(&mut self, list: &List<'a>) -> Result<usize, NotAdded> {
        let before = self.len();
        let mut pushed = Ok(());
        let mut note = |result: Result<(), KernelError>| {
            if pushed.is_ok() {
                pushed = result;
            }
        };
        match self {
            Column::Floats(to) => list.floats(|value| note(growth::push(to, value)))?,
            Column::Integers(to) => list.integers(|value| note(growth::push(to, value)))?,
            Column::Texts(to) => list.texts(|value| note(growth::push(to, value)))?,
        }
        pushed.map_err(NotAdded::NoMemory)?;
        Ok(self.len() - before)
    }

    /// Adds all values of another column of this type.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory.
    pub fn append_all(&mut self, from: &Column<'a>) -> Result<(), KernelError> {
        match (self, from) {
            (Column::Floats(to), Column::Floats(from)) => growth::append(to, from),
            (Column::Integers(to), Column::Integers(from)) => growth::append(to, from),
            (Column::Texts(to), Column::Texts(from)) => growth::append(to, from),
            _ => Err(KernelError::internal("a default value is of another type than its feature")),
        }
    }

    /// Returns all values as an output.
    ///
    /// # Errors
    /// As the outputs of [`ComputeContext`].
    pub fn output(
        &self,
        c: &ComputeContext<'_>,
        output: usize,
        dims: &[i64],
    ) -> Result<(), KernelError> {
        match self {
            Column::Floats(values) => {
                c.output::<f32>(output, dims)?.data.copy_from_slice(values);
                Ok(())
            }
            Column::Integers(values) => {
                c.output::<i64>(output, dims)?.data.copy_from_slice(values);
                Ok(())
            }
            Column::Texts(values) => c.set_strings(output, dims, values.iter()),
        }
    }

    /// The rows of this column, which have these lengths, each continued to `most` by the one value of `padding`.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory.
    pub fn padded(
        &self,
        lengths: &[usize],
        most: usize,
        padding: &Column<'a>,
    ) -> Result<Column<'a>, KernelError> {
        match (self, padding) {
            (Column::Floats(values), Column::Floats(padding)) => {
                padded(values, lengths, most, padding).map(Column::Floats)
            }
            (Column::Integers(values), Column::Integers(padding)) => {
                padded(values, lengths, most, padding).map(Column::Integers)
            }
            (Column::Texts(values), Column::Texts(padding)) => {
                padded(values, lengths, most, padding).map(Column::Texts)
            }
            _ => Err(KernelError::internal("a default value is of another type than its feature")),
        }
    }
}

fn padded<T: Copy + Default>(
    values: &[T],
    lengths: &[usize],
    most: usize,
    padding: &[T],
) -> Result<Vec<T>, KernelError> {
    let total = lengths.len().checked_mul(most).ok_or_else(|| {
        KernelError::new(Code::RESOURCE_EXHAUSTED, "the size of a padded feature overflows")
    })?;
    let padding = padding.first().copied().unwrap_or_default();
    let (mut to, mut from) = (growth::filled(total, padding)?, 0);
    for (row, &len) in lengths.iter().enumerate() {
        to[row * most..][..len].copy_from_slice(&values[from..from + len]);
        from += len;
    }
    Ok(to)
}
