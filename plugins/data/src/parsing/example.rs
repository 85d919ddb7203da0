//! The features of an `Example` message, read from its bytes.

use crate::wire::{Malformed, Value, fields, varint};
use std::collections::HashMap;
use tenon_sdk::prelude::*;

/// The features of an example by name, each as a `Feature` message.
pub type Features<'a> = HashMap<&'a [u8], &'a [u8]>;

/// The values of a feature: a list message of one of three types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List<'a> {
    /// Type of the values.
    pub dtype: DType,
    message: &'a [u8],
}

/// Adds the entries of a message that is a map from names to messages. Of equal names the last one counts.
fn entries<'a>(message: &'a [u8], to: &mut Features<'a>) -> Result<(), Malformed> {
    for field in fields(message) {
        let (1, Value::Bytes(entry)) = field? else { continue };
        let (mut key, mut feature): (&[u8], &[u8]) = (b"", b"");
        for field in fields(entry) {
            match field? {
                (1, Value::Bytes(bytes)) => key = bytes,
                (2, Value::Bytes(bytes)) => feature = bytes,
                _ => {}
            }
        }
        to.insert(key, feature);
    }
    Ok(())
}

/// The features of an example.
pub fn features(example: &[u8]) -> Result<Features<'_>, Malformed> {
    let mut found = Features::new();
    for field in fields(example) {
        if let (1, Value::Bytes(message)) = field? {
            entries(message, &mut found)?;
        }
    }
    Ok(found)
}

/// The features of a `SequenceExample`, and its lists of features by name, each as a `FeatureList` message.
pub fn sequence(example: &[u8]) -> Result<[Features<'_>; 2], Malformed> {
    let (mut context, mut lists) = (Features::new(), Features::new());
    for field in fields(example) {
        match field? {
            (1, Value::Bytes(message)) => entries(message, &mut context)?,
            (2, Value::Bytes(message)) => entries(message, &mut lists)?,
            _ => {}
        }
    }
    Ok([context, lists])
}

/// The features of a list, each as a `Feature` message.
pub fn steps(list: &[u8]) -> impl Iterator<Item = Result<&[u8], Malformed>> {
    fields(list).filter_map(|field| match field {
        Ok((1, Value::Bytes(feature))) => Some(Ok(feature)),
        Ok(_) => None,
        Err(malformed) => Some(Err(malformed)),
    })
}

/// The list of a feature; `None` for a feature without one.
pub fn list(feature: &[u8]) -> Result<Option<List<'_>>, Malformed> {
    let mut found = None;
    for field in fields(feature) {
        let (number, Value::Bytes(message)) = field? else { continue };
        let dtype = match number {
            1 => DType::STRING,
            2 => DType::FLOAT,
            3 => DType::INT64,
            _ => continue,
        };
        found = Some(List { dtype, message });
    }
    Ok(found)
}

impl<'a> List<'a> {
    /// Calls `with` for each string.
    pub fn texts(&self, mut with: impl FnMut(&'a [u8])) -> Result<(), Malformed> {
        for field in fields(self.message) {
            if let (1, Value::Bytes(text)) = field? {
                with(text);
            }
        }
        Ok(())
    }

    /// Calls `with` for each float, packed or not.
    pub fn floats(&self, mut with: impl FnMut(f32)) -> Result<(), Malformed> {
        for field in fields(self.message) {
            match field? {
                (1, Value::Fixed32(bytes)) => with(f32::from_le_bytes(bytes)),
                (1, Value::Bytes(packed)) => {
                    let (numbers, rest) = packed.as_chunks::<4>();
                    if !rest.is_empty() {
                        return Err(Malformed);
                    }
                    numbers.iter().for_each(|bytes| with(f32::from_le_bytes(*bytes)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Calls `with` for each integer, packed or not.
    pub fn integers(&self, mut with: impl FnMut(i64)) -> Result<(), Malformed> {
        for field in fields(self.message) {
            match field? {
                (1, Value::Varint(value)) => with(value as i64),
                (1, Value::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        with(varint(&mut packed)? as i64);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
