//! Fields of serialised messages (Protocol Buffers), in the order of their numbers.

use std::io::{self, Write};
use tenon_sdk::{growth, prelude::*};

/// A message that is written field by field. A field whose value is the default is left out.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) -> Result<(), KernelError> {
        while value >= 0x80 {
            growth::push(&mut self.0, value as u8 | 0x80)?;
            value >>= 7;
        }
        growth::push(&mut self.0, value as u8)
    }

    /// A field that is a number of variable length.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory, as of all methods.
    pub fn number(&mut self, field: u64, value: u64) -> Result<(), KernelError> {
        if value == 0 {
            return Ok(());
        }
        self.varint(field << 3)?;
        self.varint(value)
    }

    /// A float that is written even if it is 0: one of several kinds of value.
    pub fn chosen_float(&mut self, field: u64, value: f32) -> Result<(), KernelError> {
        self.varint(field << 3 | 5)?;
        growth::append(&mut self.0, &value.to_le_bytes())
    }

    /// A float.
    pub fn float(&mut self, field: u64, value: f32) -> Result<(), KernelError> {
        if value.to_bits() == 0 { Ok(()) } else { self.chosen_float(field, value) }
    }

    /// A double.
    pub fn double(&mut self, field: u64, value: f64) -> Result<(), KernelError> {
        if value.to_bits() == 0 {
            return Ok(());
        }
        self.varint(field << 3 | 1)?;
        growth::append(&mut self.0, &value.to_le_bytes())
    }

    /// Packed doubles.
    pub fn doubles(&mut self, field: u64, values: &[f64]) -> Result<(), KernelError> {
        if values.is_empty() {
            return Ok(());
        }
        self.varint(field << 3 | 2)?;
        self.varint(8 * values.len() as u64)?;
        values.iter().try_for_each(|value| growth::append(&mut self.0, &value.to_le_bytes()))
    }

    /// Text or bytes.
    pub fn text(&mut self, field: u64, value: &[u8]) -> Result<(), KernelError> {
        if value.is_empty() { Ok(()) } else { self.bytes(field, value) }
    }

    /// Bytes, or a message, that are written even if they are empty.
    pub fn bytes(&mut self, field: u64, value: &[u8]) -> Result<(), KernelError> {
        self.varint(field << 3 | 2)?;
        self.varint(value.len() as u64)?;
        growth::append(&mut self.0, value)
    }

    /// A message.
    pub fn message(&mut self, field: u64, value: &Message) -> Result<(), KernelError> {
        self.bytes(field, &value.0)
    }

    /// The serialised message.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes that a library writes, and that may run out of memory.
pub struct Growing<'v>(pub &'v mut Vec<u8>);

impl Write for Growing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        growth::append(self.0, bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error.message))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A field of a serialised message: its number, and its bytes where it has a length.
pub type Field<'a> = (u64, Option<&'a [u8]>);

/// The fields of a serialised message; `None` where it is none.
pub fn fields(mut message: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let (field, len) = (
            tag >> 3,
            match tag & 7 {
                0 => {
                    varint(&mut message)?;
                    None
                }
                1 => Some(8),
                2 => Some(varint(&mut message)?),
                5 => Some(4),
                _ => return None,
            },
        );
        let bytes = match len {
            None => None,
            Some(len) => {
                let (bytes, rest) = message.split_at_checked(usize::try_from(len).ok()?)?;
                message = rest;
                (tag & 7 == 2).then_some(bytes)
            }
        };
        if field == 0 {
            return None;
        }
        growth::push(&mut found, (field, bytes)).ok()?;
    }
    Some(found)
}

fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for at in 0..10 {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A scalar input.
///
/// # Errors
/// `INVALID_ARGUMENT` for another shape.
pub fn scalar<T: Element>(
    c: &ComputeContext<'_>,
    input: usize,
    name: &str,
) -> Result<T, KernelError> {
    let value = c.input::<T>(input)?;
    match (value.data, value.dims) {
        (&[value], []) => Ok(value),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "{name} must be scalar, found shape {dims:?}"
        ))),
    }
}

/// Gives a scalar string output.
///
/// # Errors
/// As `ComputeContext::set_strings`.
pub fn give(c: &ComputeContext<'_>, summary: &Message) -> Result<(), KernelError> {
    c.set_strings(0, &[], [summary.as_bytes()].iter())
}

/// A scalar string input.
///
/// # Errors
/// `INVALID_ARGUMENT` for another shape.
pub fn text<'a>(c: &ComputeContext<'a>, input: usize, name: &str) -> Result<&'a [u8], KernelError> {
    match (&c.strings(input)?[..], c.dims(input)) {
        (&[text], []) => Ok(text),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "{name} must be scalar, found shape {dims:?}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_as_they_were_written() {
        let mut message = Message::default();
        message.text(1, b"tag").unwrap();
        message.number(2, 300).unwrap();
        message.chosen_float(3, 0.0).unwrap();
        message.double(4, 1.5).unwrap();
        message.number(5, 0).unwrap();
        let found = fields(message.as_bytes()).unwrap();
        assert_eq!(found, [(1, Some(&b"tag"[..])), (2, None), (3, None), (4, None)]);
        for broken in [&[0x0a, 5, 1][..], &[0x80; 11], &[0x0b], &[0x02, 0]] {
            assert_eq!(fields(broken), None, "{broken:?}");
        }
    }
}
