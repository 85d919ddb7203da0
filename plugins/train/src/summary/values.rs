//! `ScalarSummary`, `HistogramSummary`, `MergeSummary`.

use super::{
    histogram::Histogram,
    message::{Message, fields, give, text},
};
use std::collections::HashSet;
use tenon_sdk::prelude::*;

/// Adds a number under a tag to a summary.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` without memory.
pub fn add_scalar(summary: &mut Message, tag: &[u8], value: f32) -> Result<(), KernelError> {
    let mut entry = Message::default();
    entry.text(1, tag)?;
    entry.chosen_float(2, value)?;
    summary.message(1, &entry)
}

fn scalars<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (tags, values) = (c.strings(0)?, c.input::<T>(1)?);
    if c.dims(0) != values.dims {
        return Err(KernelError::invalid_argument(format!(
            "tags and values are not the same shape: {:?} and {:?}",
            c.dims(0),
            values.dims
        )));
    }
    let mut summary = Message::default();
    for (tag, value) in tags.iter().zip(values.data) {
        add_scalar(&mut summary, tag, value.to_f64() as f32)?;
    }
    give(c, &summary)
}

register_kernel!("ScalarSummary" on "CPU": fn scalars<T> for "T" in
    [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64], numerics = Numerics::EXACT);

/// A summary with a histogram of values; `whose` names them in messages.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not finite; `RESOURCE_EXHAUSTED` without memory.
pub fn histogram_of(
    tag: &[u8],
    values: impl Iterator<Item = f64>,
    whose: &str,
) -> Result<Message, KernelError> {
    let mut histogram = Histogram::new()?;
    for value in values {
        if !value.is_finite() {
            let what = if value.is_nan() { "Nan" } else { "Infinity" };
            return Err(KernelError::invalid_argument(format!(
                "{what} in summary histogram for: {whose}"
            )));
        }
        histogram.add(value);
    }
    let mut entry = Message::default();
    entry.text(1, tag)?;
    entry.message(5, &histogram.message()?)?;
    let mut summary = Message::default();
    summary.message(1, &entry)?;
    Ok(summary)
}

fn histogram<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let values = c.input::<T>(1)?.data.iter().map(|value| value.to_f64());
    give(c, &histogram_of(text(c, 0, "tags")?, values, c.node())?)
}

register_kernel!("HistogramSummary" on "CPU": fn histogram<T> for "T" in
    [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64], numerics = Numerics::EXACT);

fn merge(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let mut summary = Message::default();
    let mut seen = HashSet::new();
    for input in 0..c.input_count() {
        for serialised in c.strings(input)? {
            let unreadable = || {
                KernelError::invalid_argument(format!(
                    "input {input}: could not parse it as a summary: expected a serialised Summary message"
                ))
            };
            for (field, entry) in fields(serialised).ok_or_else(unreadable)? {
                let (1, Some(entry)) = (field, entry) else { continue };
                let of_entry = fields(entry).ok_or_else(unreadable)?;
                let tag = of_entry.iter().rev().find(|(field, _)| *field == 1);
                let tag = tag.and_then(|(_, tag)| *tag).unwrap_or_default();
                if !tag.is_empty() && !seen.insert(tag) {
                    return Err(KernelError::invalid_argument(format!(
                        "Duplicate tag {} found in summary inputs",
                        String::from_utf8_lossy(tag)
                    )));
                }
                summary.bytes(1, entry)?;
            }
        }
    }
    give(c, &summary)
}

register_kernel!("MergeSummary" on "CPU": fn merge, numerics = Numerics::EXACT);
