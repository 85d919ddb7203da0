//! `ParseTensor` and `SerializeTensor`: tensors as `TensorProto` messages.

use crate::wire::{Malformed, Value, fields, put_bytes, put_number, put_varint, varint};
use std::borrow::Cow;
use tenon_sdk::{geometry::element_count, growth, prelude::*};

/// Numbers of the fields of a `TensorProto`.
mod number {
    pub const DTYPE: u64 = 1;
    pub const SHAPE: u64 = 2;
    pub const CONTENT: u64 = 4;
    pub const TEXTS: u64 = 8;
}

/// The elements of a tensor.
pub enum Elements<'a> {
    /// Of strings.
    Texts(Vec<&'a [u8]>),
    /// Of other types, as in memory.
    Bytes(Cow<'a, [u8]>),
}

/// The message of a tensor of this type and shape.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` without memory.
pub fn message_of(
    dtype: DType,
    dims: &[i64],
    elements: &Elements<'_>,
) -> Result<Vec<u8>, KernelError> {
    let mut message = Vec::new();
    put_number(&mut message, number::DTYPE, u64::from(dtype.base().0))?;
    let mut shape = Vec::new();
    for &size in dims {
        let mut dim = Vec::new();
        put_number(&mut dim, 1, size as u64)?;
        put_bytes(&mut shape, 2, &dim)?;
    }
    put_bytes(&mut message, number::SHAPE, &shape)?;
    match elements {
        Elements::Texts(texts) => {
            texts.iter().try_for_each(|text| put_bytes(&mut message, number::TEXTS, text))?;
        }
        Elements::Bytes(bytes) if bytes.is_empty() => {}
        Elements::Bytes(bytes) => put_bytes(&mut message, number::CONTENT, bytes)?,
    }
    Ok(message)
}

impl<'a> Elements<'a> {
    /// Those of an input.
    ///
    /// # Errors
    /// Those of the input.
    pub fn of_input(c: &ComputeContext<'a>, input: usize) -> Result<Elements<'a>, KernelError> {
        match c.slot(input)?.dtype {
            DType::STRING => c.strings(input).map(Elements::Texts),
            _ => c.input_bytes(input).map(|bytes| Elements::Bytes(bytes.into())),
        }
    }
}

/// Texts as the content of a message: the length of each, then all bytes.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` without memory.
pub fn content_of(texts: &[&[u8]]) -> Result<Elements<'static>, KernelError> {
    let mut content = Vec::new();
    texts.iter().try_for_each(|text| put_varint(&mut content, text.len() as u64))?;
    texts.iter().try_for_each(|text| growth::append(&mut content, text))?;
    Ok(Elements::Bytes(content.into()))
}

/// So many texts of the content of a message; none where it has others.
fn texts_of(mut content: &[u8], count: usize) -> Result<Option<Vec<&[u8]>>, KernelError> {
    let mut lengths = Vec::new();
    for _ in 0..count {
        let length = varint(&mut content).ok().and_then(|length| usize::try_from(length).ok());
        let Some(length) = length else { return Ok(None) };
        growth::push(&mut lengths, length)?;
    }
    let mut texts = growth::with_room(lengths.len())?;
    for length in lengths {
        let Some((text, rest)) = content.split_at_checked(length) else { return Ok(None) };
        texts.push(text);
        content = rest;
    }
    Ok(content.is_empty().then_some(texts))
}

/// The shape and the elements of the message of a tensor of this type, each of which it must have; none where it is no
/// such message.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` without memory.
pub fn tensor_of(
    message: &[u8],
    dtype: DType,
) -> Result<Option<(Vec<i64>, Elements<'_>)>, KernelError> {
    let parsed = match Parsed::new(message, dtype) {
        Ok(parsed) if parsed.dtype == u64::from(dtype.base().0) => parsed,
        Err(Wrong::Other(error)) => return Err(error),
        _ => return Ok(None),
    };
    let Ok(count) = element_count(&parsed.dims) else { return Ok(None) };
    let Parsed { dims, content, texts, elements, .. } = parsed;
    if dtype == DType::STRING {
        let texts = match content {
            [] => Some(texts).filter(|texts| texts.len() == count),
            content => texts_of(content, count)?,
        };
        return Ok(texts.map(|texts| (dims, Elements::Texts(texts))));
    }
    let size = dtype.size().unwrap_or(1);
    let bytes = if content.is_empty() { Cow::Owned(elements) } else { Cow::Borrowed(content) };
    let is_whole = bytes.len() % size == 0 && bytes.len() / size == count;
    // Truth values are bytes of 0 and 1 in memory.
    let is_valid = dtype != DType::BOOL || bytes.iter().all(|&byte| byte < 2);
    Ok((is_whole && is_valid).then_some((dims, Elements::Bytes(bytes))))
}

fn serialize(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let message = message_of(c.slot(0)?.dtype, c.dims(0), &Elements::of_input(c, 0)?)?;
    c.set_strings(0, &[], [message].iter())
}

/// The types of elements that messages hold, but for resources and variants.
pub const TYPES: &[DType] = &[
    DType::BFLOAT16,
    DType::BOOL,
    DType::COMPLEX128,
    DType::COMPLEX64,
    DType::DOUBLE,
    DType::FLOAT,
    DType::HALF,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::INT8,
    DType::STRING,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::UINT8,
];

/// The elements of a message.
#[derive(Default)]
struct Parsed<'a> {
    dtype: u64,
    dims: Vec<i64>,
    content: &'a [u8],
    texts: Vec<&'a [u8]>,
    /// Elements of fields for one type, as bytes.
    elements: Vec<u8>,
}

/// Why a message has no tensor.
enum Wrong {
    Malformed,
    Other(KernelError),
}

impl From<Malformed> for Wrong {
    fn from(_: Malformed) -> Wrong {
        Wrong::Malformed
    }
}

impl From<KernelError> for Wrong {
    fn from(error: KernelError) -> Wrong {
        Wrong::Other(error)
    }
}

/// The field that has the elements of a type, and the bytes of one of its numbers in memory.
fn field_of(dtype: DType) -> (u64, usize) {
    match dtype {
        DType::FLOAT => (5, 4),
        DType::DOUBLE => (6, 8),
        DType::INT32 => (7, 4),
        DType::INT16 | DType::UINT16 => (7, 2),
        DType::INT8 | DType::UINT8 => (7, 1),
        DType::COMPLEX64 => (9, 4),
        DType::INT64 => (10, 8),
        DType::BOOL => (11, 1),
        DType::COMPLEX128 => (12, 8),
        DType::HALF | DType::BFLOAT16 => (13, 2),
        DType::UINT32 => (16, 4),
        DType::UINT64 => (17, 8),
        _ => (0, 0),
    }
}

/// Whether the numbers of a field have a fixed size in a message.
fn is_fixed(field: u64) -> bool {
    matches!(field, 5 | 6 | 9 | 12)
}

fn shape(message: &[u8]) -> Result<Vec<i64>, Malformed> {
    let mut dims = Vec::new();
    for field in fields(message) {
        match field? {
            (2, Value::Bytes(dim)) => {
                let mut size = 0;
                for field in fields(dim) {
                    if let (1, Value::Varint(value)) = field? {
                        size = value as i64;
                    }
                }
                dims.push(size);
            }
            // The rank is unknown, which that of a tensor is not.
            (3, Value::Varint(1)) => return Err(Malformed),
            _ => {}
        }
    }
    Ok(dims)
}

impl<'a> Parsed<'a> {
    fn new(message: &'a [u8], dtype: DType) -> Result<Parsed<'a>, Wrong> {
        let (own, width) = field_of(dtype);
        let mut parsed = Parsed::default();
        for field in fields(message) {
            match field? {
                (number::DTYPE, Value::Varint(found)) => parsed.dtype = found,
                (number::SHAPE, Value::Bytes(message)) => parsed.dims = shape(message)?,
                (number::CONTENT, Value::Bytes(content)) => parsed.content = content,
                (number::TEXTS, Value::Bytes(text)) => growth::push(&mut parsed.texts, text)?,
                (field, value) if field == own => parsed.push(value, width, is_fixed(own))?,
                _ => {}
            }
        }
        Ok(parsed)
    }

    /// Adds numbers of a field, packed or not.
    fn push(&mut self, value: Value<'_>, width: usize, is_fixed: bool) -> Result<(), Wrong> {
        let mut number =
            |value: u64| growth::append(&mut self.elements, &value.to_le_bytes()[..width]);
        match value {
            Value::Varint(value) => number(value)?,
            Value::Bytes(packed) if is_fixed => {
                if packed.len() % width != 0 {
                    return Err(Wrong::Malformed);
                }
                growth::append(&mut self.elements, packed)?;
            }
            Value::Bytes(mut packed) => {
                while !packed.is_empty() {
                    number(varint(&mut packed)?)?;
                }
            }
            Value::Fixed32(bytes) if width == 4 => growth::append(&mut self.elements, &bytes)?,
            Value::Fixed64(bytes) if width == 8 => growth::append(&mut self.elements, &bytes)?,
            _ => return Err(Wrong::Malformed),
        }
        Ok(())
    }

    /// Writes the tensor: all elements, or some, of which the last stands for those that follow.
    fn output(&self, c: &ComputeContext<'_>, dtype: DType) -> Result<(), Wrong> {
        let count = element_count(&self.dims).map_err(KernelError::from)?;
        if dtype == DType::STRING {
            if self.texts.len() > count {
                return Err(Wrong::Malformed);
            }
            let last = self.texts.last().copied().unwrap_or_default();
            let text = |at: usize| self.texts.get(at).copied().unwrap_or(last);
            return Ok(c.set_strings(0, &self.dims, (0..count).map(text))?);
        }
        let size = dtype.size().unwrap_or(1);
        let given = if self.content.is_empty() { &self.elements[..] } else { self.content };
        let fits = match self.content {
            [] => given.len() % size == 0 && given.len() / size <= count,
            content => content.len() / size == count && content.len() % size == 0,
        };
        if !fits {
            return Err(Wrong::Malformed);
        }
        let (filled, rest) = c.output_bytes(0, &self.dims)?.split_at_mut(given.len());
        filled.copy_from_slice(given);
        match given.len().checked_sub(size).map(|at| &given[at..]) {
            Some(last) => rest.chunks_exact_mut(size).for_each(|to| to.copy_from_slice(last)),
            None => rest.fill(0),
        }
        if dtype == DType::BOOL {
            filled.iter_mut().chain(rest).for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(())
    }
}

fn parse(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (&[message], []) = (&c.strings(0)?[..], c.dims(0)) else {
        return Err(KernelError::invalid_argument(format!(
            "serialized: expected a scalar, found shape {:?}",
            c.dims(0)
        )));
    };
    let dtype = c.output_slot(0)?.dtype;
    let written = Parsed::new(message, dtype).and_then(|parsed| {
        if parsed.dtype != u64::from(dtype.base().0) {
            return Err(Wrong::Other(KernelError::invalid_argument(format!(
                "serialized: expected a tensor of {dtype}, found type number {}",
                parsed.dtype
            ))));
        }
        parsed.output(c, dtype)
    });
    written.map_err(|wrong| match wrong {
        Wrong::Other(error) => error,
        Wrong::Malformed => KernelError::invalid_argument(format!(
            "serialized: expected a TensorProto message with a tensor of {dtype}, found {} bytes that are none",
            message.len()
        )),
    })
}

register_kernel!("SerializeTensor" on "CPU": fn serialize, types = ("T", TYPES));
register_kernel!("ParseTensor" on "CPU": fn parse, types = ("out_type", TYPES));
