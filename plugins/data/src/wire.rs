//! Fields of serialised messages (Protocol Buffers), read and written one by one.

use tenon_sdk::{growth, prelude::*};

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes.
    Fixed64([u8; 8]),
    /// Four bytes.
    Fixed32([u8; 4]),
    /// Bytes: text, a message, or packed numbers.
    Bytes(&'a [u8]),
}

/// The bytes do not follow the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The fields of a message, in order. It ends after an error.
#[derive(Debug, Clone)]
pub struct Fields<'a>(&'a [u8]);

/// The fields of a message.
pub fn fields(message: &[u8]) -> Fields<'_> {
    Fields(message)
}

fn split<const N: usize>(from: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (first, rest) = from.split_first_chunk::<N>().ok_or(Malformed)?;
    *from = rest;
    Ok(*first)
}

/// Takes a number of variable length.
pub fn varint(from: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for at in 0..10 {
        let [byte] = split(from)?;
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

/// Takes bytes after their number.
pub fn bytes<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let len = usize::try_from(varint(from)?).map_err(|_| Malformed)?;
    let (bytes, rest) = from.split_at_checked(len).ok_or(Malformed)?;
    *from = rest;
    Ok(bytes)
}

fn field<'a>(from: &mut &'a [u8]) -> Result<(u64, Value<'a>), Malformed> {
    let tag = varint(from)?;
    let value = match tag & 7 {
        0 => Value::Varint(varint(from)?),
        1 => Value::Fixed64(split(from)?),
        2 => Value::Bytes(bytes(from)?),
        5 => Value::Fixed32(split(from)?),
        _ => return Err(Malformed),
    };
    match tag >> 3 {
        0 => Err(Malformed),
        number => Ok((number, value)),
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let found = field(&mut self.0);
        if found.is_err() {
            self.0 = &[];
        }
        Some(found)
    }
}

/// Appends a number of variable length.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` without memory.
pub fn put_varint(to: &mut Vec<u8>, mut value: u64) -> Result<(), KernelError> {
    while value >= 0x80 {
        growth::push(to, value as u8 | 0x80)?;
        value >>= 7;
    }
    growth::push(to, value as u8)
}

/// Appends a field that is a number of variable length, unless it is 0, which is what a missing one means.
///
/// # Errors
/// As [`put_varint`].
pub fn put_number(to: &mut Vec<u8>, number: u64, value: u64) -> Result<(), KernelError> {
    if value == 0 {
        return Ok(());
    }
    put_varint(to, number << 3)?;
    put_varint(to, value)
}

/// Appends a field of bytes.
///
/// # Errors
/// As [`put_varint`].
pub fn put_bytes(to: &mut Vec<u8>, number: u64, value: &[u8]) -> Result<(), KernelError> {
    put_varint(to, number << 3 | 2)?;
    put_varint(to, value.len() as u64)?;
    growth::append(to, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let mut message = Vec::new();
        put_number(&mut message, 1, 300).unwrap();
        put_number(&mut message, 2, 0).unwrap();
        put_bytes(&mut message, 3, b"text").unwrap();
        put_number(&mut message, 4, u64::MAX).unwrap();
        let found: Vec<_> = fields(&message).map(Result::unwrap).collect();
        let expected =
            [(1, Value::Varint(300)), (3, Value::Bytes(b"text")), (4, Value::Varint(u64::MAX))];
        assert_eq!(found, expected);
        for cut in 1..message.len() {
            let read: Vec<_> = fields(&message[..cut]).collect();
            let whole = read.iter().flatten().count();
            assert!(read.last().unwrap().is_err() || [3, 9].contains(&cut), "{cut} {whole}");
        }
    }

    #[test]
    fn what_no_message_begins_with() {
        for bytes in [&[0x00, 0x01][..], &[0x0b], &[0x80; 11], &[0x0a, 0x05, 1], &[0x0d, 1, 2]] {
            assert_eq!(fields(bytes).last(), Some(Err(Malformed)), "{bytes:?}");
        }
    }
}
