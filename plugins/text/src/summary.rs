//! Summarises the elements of a tensor as text, for `StringFormat`, `Print` and `Assert`.

use crate::{
    printf::{double, single},
    value::{Value, Values, values},
};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, StepWatch},
    growth,
};

/// The two styles of abbreviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The first elements, `[[1 2][3...]...]`: for `Print` and `Assert`.
    First,
    /// A number of elements at both ends of each dimension, on separate lines, with strings in
    /// quotes: for `StringFormat`.
    Ends,
}

/// Appends a summary of an input: at most `limit` elements (of each dimension), all with `None`.
pub fn summary(
    c: &ComputeContext<'_>,
    input: usize,
    limit: Option<usize>,
    style: Style,
    text: &mut Vec<u8>,
) -> Result<(), KernelError> {
    let (dims, elements) = (c.dims(input), c.slot(input)?.elements as usize);
    let limit = limit.map_or(elements, |limit| limit.min(elements));
    let values = values(c, input)?.filter(|_| {
        // Complex numbers have no text in this style.
        !matches!(c.slot(input), Ok(slot) if is_complex(slot.dtype))
    });
    let Some(values) = values else { return unknown(dims, elements, limit, style, text) };
    let watch = c.watch();
    let mut text = Summary { dims, values, style, limit, next: 0, text, watch, written: 0 };
    match style {
        _ if dims.is_empty() => (0..limit).try_for_each(|at| text.element(at))?,
        Style::Ends => text.ends(0, 0)?,
        Style::First => text.first(0)?,
    }
    if elements > limit && (style == Style::First || dims.is_empty()) {
        text.push("...")?;
    }
    Ok(())
}

fn is_complex(dtype: tenon_sdk::DType) -> bool {
    matches!(dtype, tenon_sdk::DType::COMPLEX64 | tenon_sdk::DType::COMPLEX128)
}

/// Appends placeholders for elements without a text.
fn unknown(
    dims: &[i64],
    elements: usize,
    limit: usize,
    style: Style,
    text: &mut Vec<u8>,
) -> Result<(), KernelError> {
    let brackets = style == Style::Ends && !dims.is_empty();
    // A mark and a separator for each element, and the rest.
    growth::reserve(text, limit.saturating_mul(2).saturating_add(5))?;
    if brackets {
        text.push(b'[');
    }
    for at in 0..limit {
        text.extend_from_slice(if at > 0 { b" ?" } else { b"?" });
    }
    if elements > limit {
        text.extend_from_slice(b"...");
    }
    if brackets {
        text.push(b']');
    }
    Ok(())
}

/// Number of elements between checks whether the step still needs the text.
const LOOK: usize = 1024;

struct Summary<'a> {
    dims: &'a [i64],
    values: Values<'a>,
    style: Style,
    limit: usize,
    /// Number of elements written, for [`Style::First`].
    next: usize,
    text: &'a mut Vec<u8>,
    watch: StepWatch<'a>,
    written: usize,
}

impl Summary<'_> {
    fn push(&mut self, text: &str) -> Result<(), KernelError> {
        growth::append(self.text, text.as_bytes())
    }

    fn element(&mut self, at: usize) -> Result<(), KernelError> {
        if self.written.is_multiple_of(LOOK) {
            self.watch.check()?;
        }
        self.written += 1;
        match (self.values)(at) {
            Value::Signed(x) => self.push(&x.to_string()),
            Value::Unsigned(x) => self.push(&x.to_string()),
            Value::Single(x) => self.push(&single(x)),
            Value::Double(x) => self.push(&double(x)),
            Value::Bool(x) => self.push(if x { "1" } else { "0" }),
            Value::Complex(..) => self.push("?"),
            Value::Text(x) if self.style == Style::Ends => {
                self.push("\"")?;
                escape(x, self.text)?;
                self.push("\"")
            }
            Value::Text(x) => escape(x, self.text),
        }
    }

    fn first(&mut self, dim: usize) -> Result<(), KernelError> {
        if self.next >= self.limit {
            return Ok(());
        }
        if dim + 1 == self.dims.len() {
            return self.first_row(dim);
        }
        for _ in 0..self.dims[dim] {
            if self.next >= self.limit {
                return Ok(());
            }
            self.push("[")?;
            self.first(dim + 1)?;
            self.push("]")?;
        }
        Ok(())
    }

    fn first_row(&mut self, dim: usize) -> Result<(), KernelError> {
        for at in 0..self.dims[dim] {
            if self.next >= self.limit {
                if dim != 0 {
                    self.push("...")?;
                }
                return Ok(());
            }
            if at > 0 {
                self.push(" ")?;
            }
            self.element(self.next)?;
            self.next += 1;
        }
        Ok(())
    }

    fn ends(&mut self, dim: usize, offset: usize) -> Result<(), KernelError> {
        if dim == self.dims.len() {
            return self.element(offset);
        }
        let count = self.dims[dim] as usize;
        let stride: usize = self.dims[dim + 1..].iter().map(|&size| size as usize).product();
        self.push("[")?;
        for at in 0..self.limit.min(count) {
            if at > 0 {
                self.space(dim)?;
            }
            self.ends(dim + 1, offset + at * stride)?;
        }
        if count > self.limit.saturating_mul(2) {
            self.space(dim)?;
            self.push("...")?;
        }
        for at in self.limit.max(count.saturating_sub(self.limit))..count {
            self.space(dim)?;
            self.ends(dim + 1, offset + at * stride)?;
        }
        self.push("]")
    }

    /// Appends the separator of the parts of a dimension: a space, or a line end for each inner
    /// dimension.
    fn space(&mut self, dim: usize) -> Result<(), KernelError> {
        let within = self.dims.len() - dim - 1;
        let text =
            if within == 0 { " ".to_owned() } else { "\n".repeat(within) + &" ".repeat(dim + 1) };
        self.push(&text)
    }
}

/// Escapes like a C string literal, except for bytes of UTF-8, which are unchanged.
fn escape(text: &[u8], to: &mut Vec<u8>) -> Result<(), KernelError> {
    for &byte in text {
        match byte {
            b'\n' => growth::append(to, b"\\n")?,
            b'\r' => growth::append(to, b"\\r")?,
            b'\t' => growth::append(to, b"\\t")?,
            b'"' | b'\'' | b'\\' => growth::append(to, &[b'\\', byte])?,
            0x20..=0x7e | 0x80.. => growth::push(to, byte)?,
            _ => growth::append(to, format!("\\{byte:03o}").as_bytes())?,
        }
    }
    Ok(())
}
