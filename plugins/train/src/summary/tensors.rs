//! `TensorSummary`, `TensorSummaryV2`.

use super::message::{Message, fields, give, text};
use tenon_sdk::prelude::*;

/// The message `TensorProto` of an input: strings one by one, other elements as their bytes.
fn tensor(c: &ComputeContext<'_>, input: usize) -> Result<Message, KernelError> {
    let dtype = c.slot(input)?.dtype;
    let mut shape = Message::default();
    for &size in c.dims(input) {
        let mut dim = Message::default();
        dim.number(1, size as u64)?;
        shape.message(2, &dim)?;
    }
    let mut tensor = Message::default();
    tensor.number(1, u64::from(dtype.0))?;
    tensor.message(2, &shape)?;
    if dtype == DType::STRING {
        c.strings(input)?.iter().try_for_each(|value| tensor.bytes(8, value))?;
    } else {
        tensor.text(4, c.input_bytes(input)?)?;
    }
    Ok(tensor)
}

fn by_node(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let mut entry = Message::default();
    entry.text(7, c.node().as_bytes())?;
    entry.message(8, &tensor(c, 0)?)?;
    let mut summary = Message::default();
    summary.message(1, &entry)?;
    give(c, &summary)
}

fn by_tag(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let metadata = text(c, 2, "serialized_summary_metadata")?;
    if fields(metadata).is_none() {
        return Err(KernelError::invalid_argument(
            "serialized_summary_metadata: expected a serialised SummaryMetadata message, found bytes that are not one",
        ));
    }
    let mut entry = Message::default();
    entry.text(1, text(c, 0, "tag")?)?;
    entry.message(8, &tensor(c, 1)?)?;
    entry.bytes(9, metadata)?;
    let mut summary = Message::default();
    summary.message(1, &entry)?;
    give(c, &summary)
}

const TYPES: &[DType] = &[
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

register_kernel!("TensorSummary" on "CPU": fn by_node, types = ("T", TYPES), numerics = Numerics::EXACT);
register_kernel!("TensorSummaryV2" on "CPU": fn by_tag, types = ("T", TYPES), numerics = Numerics::EXACT);
