//! `StringLower`, `StringUpper`, `StringLength` and `Substr`.
//!
//! A character is a UTF-8 byte with the continuation bytes (`10xxxxxx`) after it; invalid UTF-8 is
//! counted in the same way.

use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{Dims, broadcast_shape, row_major_strides},
    growth,
    reg::Numerics,
    register_kernel,
};

/// `StringLower`, or with `UPPER` `StringUpper`.
struct Case<const UPPER: bool> {
    unicode: bool,
}

impl<const UPPER: bool> Kernel for Case<UPPER> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        match c.attr::<&str>("encoding")? {
            "" => Ok(Case { unicode: false }),
            "utf-8" => Ok(Case { unicode: true }),
            other => Err(KernelError::invalid_argument(format!(
                "encoding must be 'utf-8' or empty, found '{other}'"
            ))),
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.strings(0)?;
        c.write_texts(0, c.dims(0), |at, text| self.write(x[at], text))
    }
}

impl<const UPPER: bool> Case<UPPER> {
    fn write(&self, text: &[u8], to: &mut Vec<u8>) -> Result<(), KernelError> {
        match (self.unicode, UPPER) {
            (false, _) => {
                growth::append(to, text)?;
                if UPPER { to.make_ascii_uppercase() } else { to.make_ascii_lowercase() }
            }
            (true, _) => {
                foresee_case(text)?;
                let text = String::from_utf8_lossy(text);
                let text = if UPPER { text.to_uppercase() } else { text.to_lowercase() };
                growth::append(to, text.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Checks that there is memory for the case conversion: the standard library takes at most three
/// bytes for each byte, and as many again for invalid UTF-8.
fn foresee_case(text: &[u8]) -> Result<(), KernelError> {
    if text.len() < SMALL { Ok(()) } else { growth::foresee(text.len().saturating_mul(6)) }
}

/// Least number of bytes whose allocation is checked in advance.
const SMALL: usize = 4096;

register_kernel!("StringLower" on "CPU": Case<false>, numerics = Numerics::EXACT);
register_kernel!("StringUpper" on "CPU": Case<true>, numerics = Numerics::EXACT);

/// The unit of lengths and positions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte,
    Character,
}

impl Unit {
    fn new(c: &CreateContext<'_>) -> Result<Unit, KernelError> {
        let unit: &str = c.attr("unit")?;
        Ok(if unit == "UTF8_CHAR" { Unit::Character } else { Unit::Byte })
    }
}

fn is_trailing(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

struct Length(Unit);

impl Kernel for Length {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Unit::new(c).map(Length)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let y = c.output::<i32>(0, c.dims(0))?.data;
        for (y, x) in y.iter_mut().zip(c.strings(0)?) {
            *y = match self.0 {
                Unit::Byte => x.len(),
                Unit::Character => x.iter().filter(|byte| !is_trailing(**byte)).count(),
            } as i32;
        }
        Ok(())
    }
}

register_kernel!("StringLength" on "CPU": Length, numerics = Numerics::EXACT);

struct Substr(Unit);

impl Kernel for Substr {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Unit::new(c).map(Substr)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (text, pos, len) = (c.strings(0)?, c.integers(1)?, c.integers(2)?);
        if c.dims(1) != c.dims(2) {
            return Err(KernelError::invalid_argument(format!(
                "pos and len must have one shape, found {:?} and {:?}",
                c.dims(1),
                c.dims(2)
            )));
        }
        let dims = broadcast_shape(c.dims(0), c.dims(1))?;
        let (texts, places) = (Source::new(c.dims(0), &dims)?, Source::new(c.dims(1), &dims)?);
        c.write_texts(0, &dims, |at, to| {
            let (text, place) = (text[texts.of(at)], places.of(at));
            let part = match self.0 {
                Unit::Byte => bytes(text, pos[place], len[place]),
                Unit::Character => characters(text, pos[place], len[place]),
            };
            let part = part.ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "pos {} is out of range for the string '{}' at index {at}",
                    pos[place],
                    crate::shown(text)
                ))
            })?;
            growth::append(to, part)
        })
    }
}

register_kernel!("Substr" on "CPU": Substr, numerics = Numerics::EXACT);

/// Maps elements of a broadcast output to those of an input.
struct Source {
    /// For each dimension of the output: its size, its stride, and the input's stride, 0 where it
    /// repeats.
    steps: Vec<[usize; 3]>,
}

impl Source {
    fn new(input: &[i64], output: &Dims) -> Result<Source, KernelError> {
        let (own, strides) = (row_major_strides(input)?, row_major_strides(output)?);
        let missing = output.len() - input.len();
        let step = |at: usize| {
            let stride = match at.checked_sub(missing) {
                Some(at) if input[at] != 1 => own[at] as usize,
                _ => 0,
            };
            [output[at] as usize, strides[at] as usize, stride]
        };
        Ok(Source { steps: (0..output.len()).map(step).collect() })
    }

    fn of(&self, at: usize) -> usize {
        self.steps.iter().map(|[size, stride, own]| at / stride % size * own).sum()
    }
}

/// A substring in bytes; a negative length means up to the end.
fn bytes(text: &[u8], pos: i64, len: i64) -> Option<&[u8]> {
    let first = if pos < 0 { pos.checked_add(text.len() as i64)? } else { pos };
    let rest = text.get(usize::try_from(first).ok()?..)?;
    Some(usize::try_from(len).ok().and_then(|len| rest.get(..len)).unwrap_or(rest))
}

/// A substring in characters; empty for a negative length.
fn characters(text: &[u8], pos: i64, len: i64) -> Option<&[u8]> {
    let starts = || (0..text.len()).filter(|&at| at == 0 || !is_trailing(text[at]));
    let first = if pos < 0 { pos.checked_add(starts().count() as i64)? } else { pos };
    let first = usize::try_from(first).ok()?;
    // The end of the text is a valid position too.
    let mut from = starts().chain([text.len()]).skip(first);
    let begin = from.next()?;
    let Some(more) = usize::try_from(len).ok().filter(|&len| len > 0) else { return Some(&[]) };
    Some(&text[begin..from.nth(more - 1).unwrap_or(text.len())])
}

#[cfg(test)]
mod tests {
    use super::{bytes, characters};

    #[test]
    fn positions_count_from_either_end() {
        assert_eq!(bytes(b"hello", -5, 2), Some(&b"he"[..]));
        assert_eq!(bytes(b"hello", 5, 1), Some(&b""[..]));
        assert_eq!(bytes(b"hello", 6, 1), None);
        assert_eq!(bytes(b"hello", i64::MIN, 1), None);
        assert_eq!(bytes(b"hello", 1, -1), Some(&b"ello"[..]));
        assert_eq!(bytes(b"hello", 1, i64::MAX), Some(&b"ello"[..]));
    }

    #[test]
    fn characters_may_be_cut_anywhere_but_inside() {
        let text = "h\u{e9}l\u{20ac}".as_bytes();
        assert_eq!(characters(text, -1, 9), Some("\u{20ac}".as_bytes()));
        assert_eq!(characters(text, 1, 2), Some("\u{e9}l".as_bytes()));
        assert_eq!(characters(text, 4, 1), Some(&b""[..]));
        assert_eq!(characters(text, 5, 1), None);
        assert_eq!(characters(text, -5, 1), None);
        assert_eq!(characters(text, 0, -1), Some(&b""[..]));
        assert_eq!(characters(b"\x80\x80a\x80b", 1, 1), Some(&b"a\x80"[..]));
        assert_eq!(characters(b"", 0, i64::MAX), Some(&b""[..]));
    }
}
