//! Values: a list of tensors of one type and shape.

use super::key::owned;
use tenon_sdk::{growth, prelude::*};

/// The values of a table, by number.
pub enum Column {
    /// Of a type of fixed size: the number of bytes of each.
    Bytes {
        /// Bytes of a value.
        width: usize,
        /// All of them.
        data: Vec<u8>,
    },
    /// So many strings each.
    Texts {
        /// Strings of a value.
        per: usize,
        /// All of them.
        data: Vec<Box<[u8]>>,
    },
}

/// Values that an input gives.
pub enum Values<'a> {
    /// As in [`Column::Bytes`].
    Bytes(&'a [u8]),
    /// As in [`Column::Texts`].
    Texts(Vec<&'a [u8]>),
}

impl<'a> Values<'a> {
    /// The values of an input.
    ///
    /// # Errors
    /// As the inputs of [`ComputeContext`].
    pub fn new(c: &ComputeContext<'a>, input: usize) -> Result<Values<'a>, KernelError> {
        match c.slot(input)?.dtype {
            DType::STRING => c.strings(input).map(Values::Texts),
            _ => c.input_bytes(input).map(Values::Bytes),
        }
    }
}

/// What is wrong with values of another form, which the types of the op rule out.
fn mixed() -> KernelError {
    KernelError::internal("a table's values are of another form than its column")
}

impl Column {
    /// A column without values, each of which has `elements` elements.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a type that tables do not hold, or values that are too large.
    pub fn new(dtype: DType, elements: usize) -> Result<Column, KernelError> {
        if dtype == DType::STRING {
            return Ok(Column::Texts { per: elements, data: Vec::new() });
        }
        let width = dtype.size().and_then(|size| size.checked_mul(elements)).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "value_dtype: expected a type of fixed size or string, found {elements} elements of {dtype}"
            ))
        })?;
        Ok(Column::Bytes { width, data: Vec::new() })
    }

    /// A column of the same form without values.
    pub fn blank(&self) -> Column {
        match self {
            Column::Bytes { width, .. } => Column::Bytes { width: *width, data: Vec::new() },
            Column::Texts { per, .. } => Column::Texts { per: *per, data: Vec::new() },
        }
    }

    /// Adds value `at` of `values` at the end.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory.
    pub fn push(&mut self, values: &Values<'_>, at: usize) -> Result<(), KernelError> {
        match (self, values) {
            (Column::Bytes { width, data }, Values::Bytes(from)) => {
                growth::append(data, &from[at * *width..][..*width])
            }
            (Column::Texts { per, data }, Values::Texts(from)) => {
                growth::reserve(data, *per)?;
                from[at * *per..][..*per].iter().try_for_each(|text| {
                    data.push(owned(text)?);
                    Ok(())
                })
            }
            _ => Err(mixed()),
        }
    }

    /// Replaces value `to` by value `at` of `values`.
    ///
    /// # Errors
    /// As [`Column::push`].
    pub fn set(&mut self, to: usize, values: &Values<'_>, at: usize) -> Result<(), KernelError> {
        match (self, values) {
            (Column::Bytes { width, data }, Values::Bytes(from)) => {
                data[to * *width..][..*width].copy_from_slice(&from[at * *width..][..*width]);
                Ok(())
            }
            (Column::Texts { per, data }, Values::Texts(from)) => {
                let to = &mut data[to * *per..][..*per];
                to.iter_mut().zip(&from[at * *per..]).try_for_each(|(to, text)| {
                    *to = owned(text)?;
                    Ok(())
                })
            }
            _ => Err(mixed()),
        }
    }

    /// Whether value `to` equals value `at` of `values`.
    pub fn equals(&self, to: usize, values: &Values<'_>, at: usize) -> bool {
        match (self, values) {
            (Column::Bytes { width, data }, Values::Bytes(from)) => {
                data[to * width..][..*width] == from[at * width..][..*width]
            }
            (Column::Texts { per, data }, Values::Texts(from)) => {
                let to = &data[to * per..][..*per];
                to.iter().zip(&from[at * per..]).all(|(to, from)| **to == **from)
            }
            _ => false,
        }
    }

    /// Removes value `at`; the last one takes its place.
    pub fn swap_remove(&mut self, at: usize) {
        match self {
            Column::Bytes { width, data } => {
                let last = data.len() - *width;
                data.copy_within(last.., at * *width);
                data.truncate(last);
            }
            Column::Texts { per, data } => {
                for part in (0..*per).rev() {
                    data.swap_remove(at * *per + part);
                }
            }
        }
    }

    /// Returns all values as an output that has place for `count`; zeros or empty strings follow them.
    ///
    /// # Errors
    /// As the outputs of [`ComputeContext`].
    pub fn output(
        &self,
        c: &ComputeContext<'_>,
        output: usize,
        dims: &[i64],
        count: usize,
    ) -> Result<(), KernelError> {
        match self {
            Column::Bytes { data, .. } => {
                let (filled, rest) = c.output_bytes(output, dims)?.split_at_mut(data.len());
                filled.copy_from_slice(data);
                rest.fill(0);
                Ok(())
            }
            Column::Texts { per, data } => {
                let text = |at: usize| data.get(at).map_or(&b""[..], |text| text);
                c.set_strings(output, dims, (0..count * per).map(text))
            }
        }
    }

    /// Returns values as output 0: for each place the one with its number, or the default for it, of which there is
    /// one for each place or one for all.
    ///
    /// # Errors
    /// As the outputs of [`ComputeContext`].
    pub fn pick(
        &self,
        c: &ComputeContext<'_>,
        dims: &[i64],
        numbers: &[Option<usize>],
        default: (&Values<'_>, bool),
    ) -> Result<(), KernelError> {
        let (default, is_per_place) = default;
        let default_at = |place: usize| if is_per_place { place } else { 0 };
        match (self, default) {
            (Column::Bytes { width, data }, Values::Bytes(default)) => {
                let output = c.output_bytes(0, dims)?;
                if *width == 0 {
                    return Ok(());
                }
                let places = output.chunks_exact_mut(*width).zip(numbers).enumerate();
                for (place, (to, number)) in places {
                    to.copy_from_slice(match number {
                        Some(number) => &data[number * width..][..*width],
                        None => &default[default_at(place) * width..][..*width],
                    });
                }
                Ok(())
            }
            (Column::Texts { per, data }, Values::Texts(default)) => {
                let text = |at: usize| match numbers[at / per] {
                    Some(number) => &*data[number * per + at % per],
                    None => default[default_at(at / per) * per + at % per],
                };
                c.set_strings(0, dims, (0..numbers.len() * per).map(text))
            }
            _ => Err(mixed()),
        }
    }
}
