//! `SerializeSparse`, `SerializeManySparse`, `DeserializeSparse` and `DeserializeManySparse`: sparse tensors as three
//! messages of tensors each, the indices, the values and the shape.

use super::{
    moved::Values,
    places::{Places, rank, write_numbers},
};
use crate::parsing::tensor::{Elements, TYPES, content_of, message_of, tensor_of};
use std::borrow::Cow;
use tenon_sdk::{
    geometry::{GeometryError, byte_size},
    growth,
    prelude::*,
};

fn serialize(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    for (at, what, expected) in
        [(0, "sparse_indices", 2), (1, "sparse_values", 1), (2, "sparse_shape", 1)]
    {
        rank(c, at, what, expected)?;
    }
    let message = |at: usize| {
        let elements = match Elements::of_input(c, at)? {
            Elements::Texts(texts) => content_of(&texts)?,
            elements => elements,
        };
        message_of(c.slot(at)?.dtype, c.dims(at), &elements)
    };
    c.set_strings(0, &[3], [message(0)?, message(1)?, message(2)?].iter())
}

/// The message of a matrix or vector of numbers.
fn of_numbers(dims: &[i64], numbers: &[i64]) -> Result<Vec<u8>, KernelError> {
    let bytes = growth::collected(numbers.iter().map(|number| number.to_le_bytes()))?;
    message_of(DType::INT64, dims, &Elements::Bytes(bytes.as_flattened().into()))
}

/// The messages of the values from `first` to before `end`, without their first coordinate.
fn of_part(
    places: &Places,
    values: &Values<'_>,
    dtype: DType,
    (first, end): (usize, usize),
) -> Result<[Vec<u8>; 2], KernelError> {
    let mut indices = Vec::new();
    (first..end).try_for_each(|value| growth::append(&mut indices, &places.at(value)[1..]))?;
    let count = (end - first) as i64;
    let elements = match values {
        Values::Texts(texts) => content_of(&texts[0][first..end])?,
        Values::Bytes(bytes, size) => Elements::Bytes(bytes[0][first * size..end * size].into()),
    };
    let columns = places.shape.len() as i64 - 1;
    Ok([of_numbers(&[count, columns], &indices)?, message_of(dtype, &[count], &elements)?])
}

fn serialize_many(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let places = Places::inside(c, [0, 1, 2])?;
    let found = places.shape.len();
    if found < 2 {
        let what = "sparse_shape";
        return Err(GeometryError::RankTooSmall { what, expected: 2, found }.into());
    }
    places.check_order()?;
    let (values, dtype) = (Values::new(c, [1])?, c.slot(1)?.dtype);
    let shape = of_numbers(&[found as i64 - 1], &places.shape[1..])?;
    let dims = [places.shape[0], 3];
    byte_size(&dims, 24)?;
    let (mut next, mut of_row) = (0, [Vec::new(), Vec::new()]);
    c.write_texts(0, &dims, |at, text| {
        let (row, column) = ((at / 3) as i64, at % 3);
        if column == 0 {
            let first = next;
            while next < places.count && places.at(next)[0] == row {
                next += 1;
            }
            of_row = of_part(&places, &values, dtype, (first, next))?;
        }
        growth::append(text, of_row.get(column).unwrap_or(&shape))
    })
}

/// One sparse tensor.
struct Part<'a> {
    indices: Vec<i64>,
    values: Elements<'a>,
    count: usize,
    shape: Vec<i64>,
}

fn numbers(elements: &Elements<'_>) -> Result<Vec<i64>, KernelError> {
    let bytes: &[u8] = if let Elements::Bytes(bytes) = elements { bytes } else { &[] };
    growth::collected(bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)))
}

impl<'a> Part<'a> {
    /// Reads three messages; `at` is their number among all.
    fn new(messages: [&'a [u8]; 3], dtype: DType, at: usize) -> Result<Part<'a>, KernelError> {
        let wrong = |expected: &str, found: &dyn std::fmt::Debug| {
            KernelError::invalid_argument(format!(
                "serialized_sparse: expected {expected} in tensor {at}, found {found:?}"
            ))
        };
        let read = |column: usize, dtype: DType, expected: &str| {
            let found = tensor_of(messages[column], dtype)?;
            found.ok_or_else(|| {
                wrong(expected, &format!("{} bytes that are none", messages[column].len()))
            })
        };
        let (dims, indices) = read(0, DType::INT64, "a message with all of a matrix of int64")?;
        let (of_values, values) =
            read(1, dtype, &format!("a message with all of a vector of {dtype}"))?;
        let (of_shape, shape) = read(2, DType::INT64, "a message with all of a vector of int64")?;
        let shape = numbers(&shape)?;
        let (&[count, columns], true) = (&dims[..], of_values.len() == 1 && of_shape.len() == 1)
        else {
            return Err(wrong("a matrix and two vectors", &[dims, of_values, of_shape]));
        };
        if of_values != [count] || of_shape != [columns] {
            return Err(wrong(
                "as many values as rows of indices, and as many sizes as columns",
                &[dims, of_values, of_shape],
            ));
        }
        let part = Part { indices: numbers(&indices)?, values, count: count as usize, shape };
        for place in (0..part.count).map(|value| part.place(value)) {
            if !place.iter().zip(&part.shape).all(|(at, size)| (0..*size).contains(at)) {
                return Err(wrong(&format!("places inside of shape {:?}", part.shape), &place));
            }
        }
        Ok(part)
    }

    fn place(&self, value: usize) -> &[i64] {
        let rank = self.shape.len();
        &self.indices[value * rank..][..rank]
    }
}

/// Writes the values of all parts.
fn write_values(
    c: &ComputeContext<'_>,
    parts: &[Part<'_>],
    dtype: DType,
) -> Result<(), KernelError> {
    let count: usize = parts.iter().map(|part| part.count).sum();
    let (mut texts, mut bytes) = (Vec::new(), Vec::new());
    for part in parts {
        match &part.values {
            Elements::Texts(values) => growth::append(&mut texts, values)?,
            Elements::Bytes(values) => growth::append(&mut bytes, values)?,
        }
    }
    if dtype == DType::STRING {
        return c.set_strings(1, &[count as i64], texts.iter());
    }
    c.output_bytes(1, &[count as i64])?.copy_from_slice(&bytes);
    Ok(())
}

/// The greatest of the sizes of parts, which have one rank.
fn greatest(parts: &[Part<'_>]) -> Result<Vec<i64>, KernelError> {
    let mut sizes: Cow<'_, [i64]> = (&parts[0].shape[..]).into();
    for part in parts {
        if part.shape.len() != sizes.len() {
            return Err(KernelError::invalid_argument(format!(
                "serialized_sparse: expected tensors of {} dimensions, as the first, found shape {:?}",
                sizes.len(),
                part.shape
            )));
        }
        sizes
            .to_mut()
            .iter_mut()
            .zip(&part.shape)
            .for_each(|(most, &size)| *most = size.max(*most));
    }
    Ok(sizes.into_owned())
}

fn deserialize(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dtype = c.output_slot(1)?.dtype;
    let Some((&3, outer)) = c.dims(0).split_last() else {
        return Err(KernelError::invalid_argument(format!(
            "serialized_sparse: expected 3 messages in the last dimension, found shape {:?}",
            c.dims(0)
        )));
    };
    let messages = c.strings(0)?;
    let messages = messages.as_chunks::<3>().0;
    let all = messages.iter().enumerate();
    let parts = growth::try_collected(all.map(|(at, part)| Part::new(*part, dtype, at)))?;
    if parts.is_empty() {
        return Err(KernelError::invalid_argument(format!(
            "serialized_sparse: expected the messages of one tensor or more, found shape {:?}",
            c.dims(0)
        )));
    }
    let sizes = greatest(&parts)?;
    let mut shape = growth::copied(outer)?;
    growth::append(&mut shape, &sizes)?;
    let mut indices = Vec::new();
    let mut place = growth::filled(outer.len(), 0i64)?;
    for part in &parts {
        for value in 0..part.count {
            growth::append(&mut indices, &place)?;
            growth::append(&mut indices, part.place(value))?;
        }
        for (at, size) in place.iter_mut().zip(outer).rev() {
            *at += 1;
            if *at < *size {
                break;
            }
            *at = 0;
        }
    }
    let count: usize = parts.iter().map(|part| part.count).sum();
    let dims = [count as i64, shape.len() as i64];
    c.output::<i64>(0, &dims)?.data.copy_from_slice(&indices);
    write_values(c, &parts, dtype)?;
    write_numbers(c, 2, &shape)
}

fn deserialize_many(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    rank(c, 0, "serialized_sparse", 2)?;
    deserialize(c)
}

const STRING: &[DType] = &[DType::STRING];

register_kernel!("SerializeSparse" on "CPU": fn serialize, types = ("T", TYPES), types = ("out_type", STRING));
register_kernel!("SerializeManySparse" on "CPU": fn serialize_many,
    types = ("T", TYPES), types = ("out_type", STRING), host_memory = &["sparse_shape"]);
register_kernel!("DeserializeSparse" on "CPU": fn deserialize,
    types = ("dtype", TYPES), types = ("Tserialized", STRING));
register_kernel!("DeserializeManySparse" on "CPU": fn deserialize_many, types = ("dtype", TYPES));
