//! Keys: integers, strings, or lists of them.

use tenon_sdk::{growth, prelude::*};

/// A key of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// Of an integer type.
    Integer(i64),
    /// A string.
    Text(Box<[u8]>),
    /// A key that is a tensor.
    List(Box<[Key]>),
}

/// A copy of bytes.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` without memory.
pub fn owned(bytes: &[u8]) -> Result<Box<[u8]>, KernelError> {
    Ok(growth::copied(bytes)?.into_boxed_slice())
}

/// The keys in an input, each of `per` elements; of a scalar key 1.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` without memory; `INVALID_ARGUMENT` for an input of another type.
pub fn keys(c: &ComputeContext<'_>, input: usize, per: usize) -> Result<Vec<Key>, KernelError> {
    let elements: Vec<Key> = match c.slot(input)?.dtype {
        DType::STRING => {
            let texts = c.strings(input)?;
            growth::try_collected(texts.into_iter().map(|text| owned(text).map(Key::Text)))?
        }
        _ => growth::collected(c.integers(input)?.into_iter().map(Key::Integer))?,
    };
    if per == 1 {
        return Ok(elements);
    }
    let list = |key: &[Key]| Ok(Key::List(growth::copied(key)?.into_boxed_slice()));
    growth::try_collected(elements.chunks_exact(per.max(1)).map(list))
}

/// Returns keys as an output.
///
/// # Errors
/// As the outputs of [`ComputeContext`].
pub fn set_keys<'k>(
    c: &ComputeContext<'_>,
    output: usize,
    dims: &[i64],
    keys: impl Iterator<Item = &'k Key>,
) -> Result<(), KernelError> {
    let elements = growth::collected(keys.flat_map(|key| match key {
        Key::List(list) => &list[..],
        one => std::slice::from_ref(one),
    }))?;
    let integer = |key: &Key| match key {
        Key::Integer(value) => *value,
        _ => 0,
    };
    match c.output_slot(output)?.dtype {
        DType::STRING => {
            let text = |key: &&'k Key| match key {
                Key::Text(text) => &text[..],
                _ => &[],
            };
            c.set_strings(output, dims, elements.iter().map(text))
        }
        DType::INT32 => {
            let to = c.output::<i32>(output, dims)?.data;
            to.iter_mut().zip(elements).for_each(|(to, key)| *to = integer(key) as i32);
            Ok(())
        }
        _ => {
            let to = c.output::<i64>(output, dims)?.data;
            to.iter_mut().zip(elements).for_each(|(to, key)| *to = integer(key));
            Ok(())
        }
    }
}
