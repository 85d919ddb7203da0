//! A list as bytes, as TensorFlow writes them, and tensors.
//!
//! The tensors are the elements that are set, in order. The bytes are numbers, each a varint: how
//! many elements are not set, their positions in order, the type of the elements, `limit` as an
//! unsigned number; then the shape of the elements as the bytes of a `TensorShapeProto`.

use super::TensorList;
use std::sync::Arc;
use tenon_sdk::{
    author::{EncodedValue, TensorSink},
    growth,
    prelude::*,
};

/// Fields of `TensorShapeProto` and of its `Dim`, with their wire types.
const DIM: u64 = 2 << 3 | 2;
const UNKNOWN_RANK: u64 = 3 << 3;
const SIZE: u64 = 1 << 3;

pub fn encode(list: &TensorList, tensors: &mut TensorSink<'_>) -> Result<Vec<u8>, KernelError> {
    for element in list.elements().iter().flatten() {
        tensors.give(element)?;
    }
    metadata(list)
}

fn metadata(list: &TensorList) -> Result<Vec<u8>, KernelError> {
    let elements = list.elements().iter().enumerate();
    let unset = elements.filter(|(_, element)| element.is_none()).map(|(at, _)| at as u64);
    let unset = growth::collected(unset)?;
    let mut bytes = Vec::new();
    put(&mut bytes, unset.len() as u64)?;
    for &at in &unset {
        put(&mut bytes, at)?;
    }
    put(&mut bytes, list.dtype.0.into())?;
    put(&mut bytes, i64::from(list.limit) as u64)?;
    let Some(dims) = list.shape.dims() else {
        put(&mut bytes, UNKNOWN_RANK)?;
        put(&mut bytes, 1)?;
        return Ok(bytes);
    };
    for &dim in dims {
        let mut message = Vec::new();
        // A size of 0 is the default, which is not written.
        if dim != 0 {
            put(&mut message, SIZE)?;
            put(&mut message, dim as u64)?;
        }
        put(&mut bytes, DIM)?;
        put(&mut bytes, message.len() as u64)?;
        growth::append(&mut bytes, &message)?;
    }
    Ok(bytes)
}

fn put(bytes: &mut Vec<u8>, mut number: u64) -> Result<(), KernelError> {
    while number >= 0x80 {
        growth::push(bytes, number as u8 | 0x80)?;
        number >>= 7;
    }
    growth::push(bytes, number as u8)
}

pub fn decode(encoded: &EncodedValue<'_>) -> Result<TensorList, KernelError> {
    let form = Form::parse(encoded.bytes())?;
    let count = encoded.tensor_count() + form.unset.len();
    let mut list = TensorList::new(form.dtype, form.shape, Vec::new());
    list.limit = form.limit;
    let mut elements = growth::with_room(count)?;
    let (mut unset, mut next) = (form.unset.iter().peekable(), 0);
    for at in 0..count as u64 {
        if unset.next_if_eq(&&at).is_some() {
            elements.push(None);
            continue;
        }
        let tensor = encoded.tensor(next)?;
        list.check_type(tensor.dtype())?;
        list.check_shape(tensor.dims())?;
        elements.push(Some(Arc::new(tensor)));
        next += 1;
    }
    *list.elements_mut()? = elements;
    Ok(list)
}

/// What the bytes say.
#[derive(Debug, PartialEq)]
struct Form {
    unset: Vec<u64>,
    dtype: DType,
    limit: i32,
    shape: PartialShape,
}

impl Form {
    /// # Errors
    /// `INVALID_ARGUMENT` for bytes that end too early, or say what no list is.
    fn parse(bytes: &[u8]) -> Result<Form, KernelError> {
        let mut reader = Reader { rest: bytes };
        let count = reader.number()?;
        // Each position takes a byte at least.
        if count > reader.rest.len() as u64 {
            return Err(corrupt("more positions than there are bytes"));
        }
        let mut unset = growth::with_room(count as usize)?;
        for _ in 0..count {
            let at = reader.number()?;
            if unset.last().is_some_and(|&before| before >= at) {
                return Err(corrupt("positions that do not ascend"));
            }
            unset.push(at);
        }
        let dtype = DType(u32::try_from(reader.number()?).unwrap_or(0));
        if !dtype.is_valid() || dtype.is_ref() {
            return Err(corrupt("an unknown element type"));
        }
        let limit = reader.number()? as i64;
        let limit = i32::try_from(limit).map_err(|_| corrupt("a limit beyond an int32"))?;
        Ok(Form { unset, dtype, limit, shape: shape(reader)? })
    }
}

fn shape(mut reader: Reader<'_>) -> Result<PartialShape, KernelError> {
    let (mut dims, mut is_unknown) = (Vec::new(), false);
    while !reader.rest.is_empty() {
        match reader.number()? {
            DIM => {
                let len = reader.number()?;
                let mut message = Reader { rest: reader.take(len)? };
                let mut size = 0;
                while !message.rest.is_empty() {
                    match message.number()? {
                        SIZE => size = message.number()? as i64,
                        other => message.skip(other)?,
                    }
                }
                growth::push(&mut dims, size)?;
            }
            UNKNOWN_RANK => is_unknown = reader.number()? != 0,
            other => reader.skip(other)?,
        }
    }
    if is_unknown {
        return Ok(PartialShape::UNKNOWN);
    }
    crate::shapes::shape_of(&dims, "the element_shape of an encoded list")
}

fn corrupt(what: &str) -> KernelError {
    KernelError::invalid_argument(format!("the bytes of an encoded list have {what}"))
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: u64) -> Result<&'a [u8], KernelError> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let (taken, rest) =
            self.rest.split_at_checked(len).ok_or_else(|| corrupt("too early an end"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, KernelError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let &byte = self.take(1)?.first().ok_or_else(|| corrupt("too early an end"))?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(corrupt("too long a number"))
    }

    /// Skips the value of a field of another version.
    fn skip(&mut self, key: u64) -> Result<(), KernelError> {
        match key & 7 {
            0 => self.number().map(drop),
            1 => self.take(8).map(drop),
            2 => self.number().and_then(|len| self.take(len)).map(drop),
            5 => self.take(4).map(drop),
            _ => Err(corrupt("a field of an unknown kind")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(shape: PartialShape, limit: i32) -> TensorList {
        TensorList { limit, ..TensorList::new(DType::FLOAT, shape, vec![None; 2]) }
    }

    /// The bytes as TensorFlow 2.21 writes them.
    #[test]
    fn the_bytes_are_tensorflow_s() {
        let bytes = metadata(&list(PartialShape::new(&[3, -1]).unwrap(), -1)).unwrap();
        let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        let mut expected = vec![2, 0, 1, 1];
        expected.extend(minus_one);
        expected.extend([0x12, 2, 8, 3, 0x12, 11, 8]);
        expected.extend(minus_one);
        assert_eq!(bytes, expected);
        let bytes = metadata(&list(PartialShape::UNKNOWN, 7)).unwrap();
        assert_eq!(bytes, [2, 0, 1, 1, 7, 0x18, 1]);
    }

    #[test]
    fn what_is_written_is_read_and_other_bytes_are_refused() {
        for shape in [&[][..], &[0, 4], &[-1, 1 << 40]] {
            let list = list(PartialShape::new(shape).unwrap(), 5);
            let bytes = metadata(&list).unwrap();
            let form = Form::parse(&bytes).unwrap();
            let expected =
                Form { unset: vec![0, 1], dtype: DType::FLOAT, limit: 5, shape: list.shape };
            assert_eq!(form, expected);
            // A shape may end after each dimension; all else ends too early.
            for end in 0..5 {
                assert_eq!(Form::parse(&bytes[..end]).is_err(), end < 5, "{end}");
            }
        }
        for bytes in
            [&[0xff; 12][..], &[9, 0, 0], &[2, 1, 0, 1, 1], &[0, 0, 1], &[0, 1, 1, 0x12, 9]]
        {
            assert_eq!(Form::parse(bytes).unwrap_err().code, Code::INVALID_ARGUMENT, "{bytes:?}");
        }
    }
}
