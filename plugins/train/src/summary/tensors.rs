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

/// A summary with the tensor that is an input, under a tag, with metadata for viewers.
///
/// # Errors
/// `INVALID_ARGUMENT` for metadata that is not a message; `RESOURCE_EXHAUSTED` without memory.
pub fn tagged(
    c: &ComputeContext<'_>,
    input: usize,
    tag: &[u8],
    metadata: Option<&[u8]>,
) -> Result<Message, KernelError> {
    let mut entry = Message::default();
    entry.text(1, tag)?;
    entry.message(8, &tensor(c, input)?)?;
    if let Some(metadata) = metadata {
        if fields(metadata).is_none() {
            return Err(KernelError::invalid_argument(
                "the metadata: expected a serialised SummaryMetadata message, found bytes that are not one",
            ));
        }
        entry.bytes(9, metadata)?;
    }
    let mut summary = Message::default();
    summary.message(1, &entry)?;
    Ok(summary)
}

fn by_tag(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let metadata = text(c, 2, "serialized_summary_metadata")?;
    give(c, &tagged(c, 1, text(c, 0, "tag")?, Some(metadata))?)
}

/// The types of tensors that summaries have.
pub const TYPES: &[DType] = &[
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
