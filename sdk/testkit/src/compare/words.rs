//! Elements and differences in words.

use super::{Difference, Mismatch, lanes};
use crate::float::{Format, Number};
use std::fmt;
use tenon_framework::{DType, Tensor};

/// A number with its bits.
pub(super) fn number_text(number: Number, format: Format) -> String {
    format!("{:e} (0x{:0width$x})", number.value(), number.bits(), width = format.size() * 2)
}

/// How many representable numbers apart two are, where that says how near they are: of one sign, and within a factor
/// of two, beyond which the figure counts exponents.
pub(super) fn telling_ulps(got: Number, expected: Number, format: Format) -> Option<u64> {
    let same_sign = (got.bits() ^ expected.bits()) & format.sign() == 0;
    got.ulp_distance(expected).filter(|&ulps| same_sign && ulps < format.normal())
}

/// The element of a tensor at a flat position, floats with their bits; `None` where it cannot be read.
pub(crate) fn shown(tensor: &Tensor, at: usize) -> Option<String> {
    element_text(tensor, at, number_text)
}

/// As [`shown`], without the bits.
pub(crate) fn shown_briefly(tensor: &Tensor, at: usize) -> Option<String> {
    element_text(tensor, at, |number, format| match format.size() {
        8 => format!("{:?}", number.value()),
        _ => format!("{:?}", number.value() as f32),
    })
}

fn element_text(
    tensor: &Tensor,
    at: usize,
    number: impl Fn(Number, Format) -> String,
) -> Option<String> {
    let dtype = tensor.dtype();
    if at >= tensor.elements() {
        return None;
    }
    if dtype == DType::STRING {
        return Some(format!("\"{}\"", tensor.as_strings().ok()?.get(at)?.escape_ascii()));
    }
    let bytes = tensor.as_bytes().ok()?;
    if let Some(format) = Format::of_parts(dtype) {
        let lanes = lanes(dtype);
        let parts: Vec<String> = (at * lanes..(at + 1) * lanes)
            .map(|part| number(format.read(bytes, part), format))
            .collect();
        return Some(parts.join(" + i "));
    }
    let size = dtype.size()?;
    let element = bytes.get(at * size..(at + 1) * size)?;
    Some(match (dtype, element) {
        (DType::BOOL, &[0]) => "false".to_owned(),
        (DType::BOOL, &[_]) => "true".to_owned(),
        _ => plain_text(dtype, element),
    })
}

pub(super) fn plain_text(dtype: DType, bytes: &[u8]) -> String {
    let signed = matches!(
        dtype,
        DType::INT8
            | DType::INT16
            | DType::INT32
            | DType::INT64
            | DType::QINT8
            | DType::QINT16
            | DType::QINT32
    );
    let mut word = [0u8; 8];
    if bytes.len() > word.len() {
        return format!("{bytes:02x?}");
    }
    for (place, &byte) in word.iter_mut().zip(bytes) {
        *place = byte;
    }
    let value = u64::from_le_bytes(word);
    if cfg!(target_endian = "big") {
        return format!("{bytes:02x?}");
    }
    let unused = 64 - 8 * bytes.len() as u32;
    if signed { ((value << unused) as i64 >> unused).to_string() } else { value.to_string() }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:?} got {}, expected {}", self.index, self.got, self.expected)?;
        if let Some(ulp) = self.ulp {
            write!(f, ", {ulp} ulp apart")?;
        }
        match self.allowed {
            Some(allowed) => write!(f, ", at most {allowed:e} allowed"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Type { expected, got } => write!(f, "expected {expected}, got {got}"),
            Mismatch::Shape { expected, got } => write!(f, "expected shape {expected}, got {got}"),
            Mismatch::Unreadable(detail) => write!(f, "cannot be compared: {detail}"),
            Mismatch::Values { total, wrong, first, greatest } => {
                write!(f, "{wrong} of {total} elements are wrong")?;
                first.iter().try_for_each(|difference| write!(f, "; {difference}"))?;
                let [distance, relative] = greatest;
                if let Some((distance, index)) = distance {
                    write!(f, "; largest error {distance:.4e} at {index:?}")?;
                }
                match relative {
                    Some((relative, index)) => {
                        write!(f, ", largest relative error {relative:.4e} at {index:?}")
                    }
                    None => Ok(()),
                }
            }
        }
    }
}
