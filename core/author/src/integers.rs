//! Integer inputs of a call of any width: axes, sizes, paddings.

use crate::ComputeContext;
use tenon_abi::DType;
use tenon_framework::{KernelError, growth};

impl ComputeContext<'_> {
    /// An integer input of type int32 or int64 (also int16) and of any shape, such as paddings, widened.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is of another type; `RESOURCE_EXHAUSTED` when there is no memory for the list.
    pub fn integers(&self, input: usize) -> Result<Vec<i64>, KernelError> {
        let widen = |dtype: DType| match dtype {
            DType::INT16 => {
                growth::collected(self.input::<i16>(input)?.data.iter().map(|&x| x.into()))
            }
            DType::INT32 => {
                growth::collected(self.input::<i32>(input)?.data.iter().map(|&x| x.into()))
            }
            DType::INT64 => growth::copied(self.input::<i64>(input)?.data),
            other => Err(KernelError::invalid_argument(format!(
                "input {input}: expected int16, int32 or int64, found {other}"
            ))),
        };
        widen(self.slot(input)?.dtype)
    }

    /// One integer, such as an axis: as [`ComputeContext::integers`], of a scalar.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is of another type or shape; `name` says which argument.
    pub fn integer(&self, input: usize, name: &str) -> Result<i64, KernelError> {
        match (&self.integers(input)?[..], self.dims(input)) {
            (&[value], []) => Ok(value),
            (_, dims) => Err(wrong_shape(name, "a scalar", dims)),
        }
    }

    /// A list of integers, such as axes, of which a scalar is one: as [`ComputeContext::integers`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is of another type or has two or more dimensions; `name` says which argument.
    pub fn integer_list(&self, input: usize, name: &str) -> Result<Vec<i64>, KernelError> {
        match self.dims(input) {
            [] | [_] => self.integers(input),
            dims => Err(wrong_shape(name, "a scalar or a vector", dims)),
        }
    }
}

#[cold]
fn wrong_shape(name: &str, expected: &str, found: &[i64]) -> KernelError {
    KernelError::invalid_argument(format!("{name} must be {expected}, found shape {found:?}"))
}
