//! `UnicodeDecode`, `UnicodeDecodeWithOffsets`, `UnicodeEncode` and `UnicodeTranscode`.
//!
//! Texts are read in UTF-8, UTF-16, UTF-32 (big endian), ISO 8859-1 and ASCII; TensorFlow, through ICU, reads others too.
//! A part that is no character counts as one error, as the Unicode standard recommends: the longest start of a character,
//! or one unit.

use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    growth,
    reg::Numerics,
    register_kernel,
};

/// How a text is read.
#[derive(Clone, Copy)]
enum Reading {
    Utf8,
    Utf16,
    Utf32,
    Latin1,
    Ascii,
}

/// How a text is written.
#[derive(Clone, Copy)]
enum Writing {
    Utf8,
    Utf16,
    Utf32,
}

/// The start of a text: a character, or `None` for what is none, and how many bytes it takes.
type Part = (Option<char>, usize);

impl Reading {
    fn new(name: &str) -> Result<Reading, KernelError> {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        match &*plain.to_ascii_uppercase() {
            "UTF8" => Ok(Reading::Utf8),
            "UTF16BE" => Ok(Reading::Utf16),
            "UTF32BE" => Ok(Reading::Utf32),
            "ISO88591" | "LATIN1" => Ok(Reading::Latin1),
            "USASCII" | "ASCII" => Ok(Reading::Ascii),
            _ => Err(KernelError::invalid_argument(format!(
                "input_encoding must be UTF-8, UTF-16-BE, UTF-32-BE, ISO-8859-1 or US-ASCII, found '{name}'"
            ))),
        }
    }

    /// The first part of a text that is not empty.
    fn first(self, text: &[u8]) -> Part {
        match self {
            Reading::Utf8 => first_utf8(text),
            Reading::Utf16 => first_utf16(text),
            Reading::Utf32 => match *text {
                [a, b, c, d, ..] => (char::from_u32(u32::from_be_bytes([a, b, c, d])), 4),
                _ => (None, text.len()),
            },
            Reading::Latin1 => (Some(char::from(text[0])), 1),
            Reading::Ascii => (Some(char::from(text[0])).filter(char::is_ascii), 1),
        }
    }
}

fn first_utf8(text: &[u8]) -> Part {
    // No character is longer than four bytes.
    let Some(chunk) = text[..text.len().min(4)].utf8_chunks().next() else { return (None, 0) };
    match chunk.valid().chars().next() {
        Some(found) => (Some(found), found.len_utf8()),
        None => (None, chunk.invalid().len().max(1)),
    }
}

fn first_utf16(text: &[u8]) -> Part {
    let unit = |at: usize| text.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let Some(first) = unit(0) else { return (None, text.len()) };
    if (0xd800..0xdc00).contains(&first)
        && let Some(second) = unit(2).filter(|unit| (0xdc00..0xe000).contains(unit))
    {
        let code = 0x10000 + (u32::from(first - 0xd800) << 10) + u32::from(second - 0xdc00);
        return (char::from_u32(code), 4);
    }
    (char::from_u32(first.into()), 2)
}

impl Writing {
    fn new(name: &str) -> Writing {
        match name {
            "UTF-16-BE" => Writing::Utf16,
            "UTF-32-BE" => Writing::Utf32,
            _ => Writing::Utf8,
        }
    }

    fn write(self, character: char, to: &mut Vec<u8>) -> Result<(), KernelError> {
        match self {
            Writing::Utf8 => growth::append(to, character.encode_utf8(&mut [0; 4]).as_bytes()),
            Writing::Utf16 => {
                let mut units = [0; 2];
                let units = character.encode_utf16(&mut units).iter();
                units.copied().try_for_each(|unit| growth::append(to, &unit.to_be_bytes()))
            }
            Writing::Utf32 => growth::append(to, &u32::from(character).to_be_bytes()),
        }
    }
}

/// What is put in the place of an error.
struct Errors {
    /// Whether they are refused.
    is_strict: bool,
    /// The character; `None` leaves errors out.
    replacement: Option<char>,
    /// Whether control characters count as errors, but for strictness.
    replaces_control: bool,
}

impl Errors {
    fn new(c: &CreateContext<'_>) -> Result<Errors, KernelError> {
        let code: i64 = c.attr("replacement_char")?;
        let found = u32::try_from(code).ok().and_then(char::from_u32);
        let replacement = found.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "replacement_char must be a Unicode character, found {code}"
            ))
        })?;
        let (kind, name) = (c.attr::<&str>("errors")?, "replace_control_characters");
        Ok(Errors {
            is_strict: kind == "strict",
            replacement: Some(replacement).filter(|_| kind != "ignore"),
            replaces_control: c.attrs().has(name) && c.attr(name)?,
        })
    }

    /// The character for a part of a text; `None` where it is left out.
    fn resolved(&self, found: Option<char>) -> Result<Option<char>, KernelError> {
        match found {
            None if self.is_strict => Err(KernelError::invalid_argument(
                "input must have the encoding of the node, found a part that is no character",
            )),
            Some(found) if !self.replaces_control || found > '\u{1f}' => Ok(Some(found)),
            _ => Ok(self.replacement),
        }
    }
}

/// Calls `take` with each character of a text and the place where it begins.
fn characters(
    text: &[u8],
    reading: Reading,
    errors: &Errors,
    mut take: impl FnMut(char, usize) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let mut at = 0;
    while at < text.len() {
        let (found, len) = reading.first(&text[at..]);
        if let Some(character) = errors.resolved(found)? {
            take(character, at)?;
        }
        at += len;
    }
    Ok(())
}

struct Decode {
    reading: Reading,
    errors: Errors,
}

impl Kernel for Decode {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let reading = Reading::new(c.attr("input_encoding")?)?;
        Ok(Decode { reading, errors: Errors::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let texts = c.strings(0)?;
        let (mut splits, mut codes, mut starts) = (vec![0i64], Vec::new(), Vec::new());
        for text in texts {
            c.watch().check()?;
            characters(text, self.reading, &self.errors, |character, at| {
                growth::push(&mut starts, at as i64)?;
                growth::push(&mut codes, u32::from(character) as i32)
            })?;
            growth::push(&mut splits, codes.len() as i64)?;
        }
        write_splits(c, &splits)?;
        c.output::<i32>(1, &[codes.len() as i64])?.data.copy_from_slice(&codes);
        if c.output_count() > 2 {
            c.output::<i64>(2, &[starts.len() as i64])?.data.copy_from_slice(&starts);
        }
        Ok(())
    }
}

fn write_splits(c: &ComputeContext<'_>, splits: &[i64]) -> Result<(), KernelError> {
    let dims = [splits.len() as i64];
    if c.output_slot(0)?.dtype == DType::INT64 {
        c.output::<i64>(0, &dims)?.data.copy_from_slice(splits);
        return Ok(());
    }
    let y = c.output::<i32>(0, &dims)?.data;
    for (y, &split) in y.iter_mut().zip(splits) {
        *y = i32::try_from(split).map_err(|_| {
            KernelError::invalid_argument(format!(
                "{split} characters are more than Tsplits int32 can count: use int64"
            ))
        })?;
    }
    Ok(())
}

struct Transcode {
    reading: Reading,
    writing: Writing,
    errors: Errors,
}

impl Kernel for Transcode {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Transcode {
            reading: Reading::new(c.attr("input_encoding")?)?,
            writing: Writing::new(c.attr("output_encoding")?),
            errors: Errors::new(c)?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let texts = c.strings(0)?;
        c.write_texts(0, c.dims(0), |at, to| {
            characters(texts[at], self.reading, &self.errors, |character, _| {
                self.writing.write(character, to)
            })
        })
    }
}

struct Encode {
    writing: Writing,
    errors: Errors,
}

impl Kernel for Encode {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let writing = Writing::new(c.attr("output_encoding")?);
        Ok(Encode { writing, errors: Errors::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (codes, splits) = (c.input::<i32>(0)?, c.integers(1)?);
        for (at, what) in [(0, "input_values"), (1, "input_splits")] {
            if c.dims(at).len() != 1 {
                return Err(KernelError::invalid_argument(format!(
                    "{what} must be a vector, found shape {:?}",
                    c.dims(at)
                )));
            }
        }
        check_splits(&splits, codes.data.len())?;
        c.write_texts(0, &[splits.len() as i64 - 1], |at, to| {
            for &code in &codes.data[splits[at] as usize..splits[at + 1] as usize] {
                let found = u32::try_from(code).ok().and_then(char::from_u32);
                if let Some(character) = self.errors.resolved(found)? {
                    self.writing.write(character, to)?;
                }
            }
            Ok(())
        })
    }
}

/// Checks that the splits begin at 0, do not fall, and end at the number of values.
fn check_splits(splits: &[i64], count: usize) -> Result<(), KernelError> {
    let rises = splits.windows(2).all(|pair| pair[0] <= pair[1]);
    match (splits.first(), splits.last()) {
        (Some(0), Some(&last)) if rises && last == count as i64 => Ok(()),
        _ => Err(KernelError::invalid_argument(format!(
            "input_splits must rise from 0 to {count}, the number of input_values, found {splits:?}"
        ))),
    }
}

register_kernel!("UnicodeDecode" on "CPU": Decode, numerics = Numerics::EXACT);
register_kernel!("UnicodeDecodeWithOffsets" on "CPU": Decode, numerics = Numerics::EXACT);
register_kernel!("UnicodeTranscode" on "CPU": Transcode, numerics = Numerics::EXACT);
register_kernel!("UnicodeEncode" on "CPU": Encode, host_memory = &["input_splits"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_takes_the_longest_start_of_a_character() {
        let parts = |text: &[u8], reading: Reading| {
            let (mut at, mut parts) = (0, Vec::new());
            while at < text.len() {
                let (found, len) = reading.first(&text[at..]);
                parts.push((found, len));
                at += len;
            }
            parts
        };
        let found = parts(b"a\xe2\x82b\xff", Reading::Utf8);
        assert_eq!(found, [(Some('a'), 1), (None, 2), (Some('b'), 1), (None, 1)]);
        let found = parts(b"\xd8\x3d\xde\x00\xd8\x3d\0a\0", Reading::Utf16);
        assert_eq!(found, [(Some('\u{1f600}'), 4), (None, 2), (Some('a'), 2), (None, 1)]);
        assert_eq!(parts(b"\0\x11\0\0", Reading::Utf32), [(None, 4)]);
    }
}
