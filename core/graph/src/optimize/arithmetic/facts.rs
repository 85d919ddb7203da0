//! What rules ask about operands.

use crate::{NodeId, Output, optimize::Draft};
use tenon_framework::{DType, PartialShape, Tensor};

/// Whether an element type is of this kind.
pub(super) fn is_integer(dtype: DType) -> bool {
    let types = [
        DType::INT8,
        DType::INT16,
        DType::INT32,
        DType::INT64,
        DType::UINT8,
        DType::UINT16,
        DType::UINT32,
        DType::UINT64,
    ];
    types.contains(&dtype)
}

/// As [`is_integer`].
pub(super) fn is_float(dtype: DType) -> bool {
    [DType::HALF, DType::BFLOAT16, DType::FLOAT, DType::DOUBLE].contains(&dtype)
}

/// A number that rules know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// 0; of floating-point numbers that without sign.
    Zero,
    /// -0; of integers 0.
    MinusZero,
    One,
}

/// The bits of a number, in native order.
fn bits(dtype: DType, number: Number) -> Option<Vec<u8>> {
    let size = dtype.size()?;
    let float = |one: u64, sign: u64| match number {
        Number::Zero => 0,
        Number::MinusZero => sign,
        Number::One => one,
    };
    let value: u64 = match dtype {
        DType::HALF => float(0x3c00, 1 << 15),
        DType::BFLOAT16 => float(0x3f80, 1 << 15),
        DType::FLOAT => float(0x3f80_0000, 1 << 31),
        DType::DOUBLE => float(0x3ff0_0000_0000_0000, 1 << 63),
        DType::BOOL => float(1, 0),
        _ if is_integer(dtype) => float(1, 0),
        _ => return None,
    };
    let bytes = value.to_ne_bytes();
    Some(if cfg!(target_endian = "little") {
        bytes[..size].to_vec()
    } else {
        bytes[8 - size..].to_vec()
    })
}

/// Whether every element of a constant is this number.
pub(super) fn is_all(tensor: &Tensor, number: Number) -> bool {
    let Some(one) = bits(tensor.dtype(), number) else { return false };
    tensor.elements() > 0
        && tensor
            .as_bytes()
            .is_ok_and(|bytes| bytes.chunks_exact(one.len()).all(|found| found == one))
}

/// Bytes that are looked at in the time of a unit of work.
const BYTES_A_UNIT: usize = 64;

/// Whether an input of a node is constant, and each of its elements this number.
pub(super) fn input_is_all(draft: &Draft<'_>, id: NodeId, index: usize, number: Number) -> bool {
    let input = draft.node(id).inputs[index];
    let Some(constant) = draft.constant(input) else { return false };
    draft.spend(constant.byte_len() / BYTES_A_UNIT);
    is_all(constant, number)
}

/// Whether the node's output has the shape of its input `index`, whatever is fed.
pub(super) fn keeps_shape(draft: &Draft<'_>, id: NodeId, index: usize) -> bool {
    let input = draft.node(id).inputs[index];
    if draft.same_shape(input, id.into()) {
        return true;
    }
    // Elementwise: an operand of one element and no greater rank broadcasts to the other.
    let others = draft.node(id).inputs.iter().enumerate().filter(|(at, _)| *at != index);
    let shape = draft.shape(input);
    let adds_nothing = |other: &PartialShape| match (other.dims(), shape.rank()) {
        (Some([]), _) => true,
        (Some(dims), Some(rank)) => dims.len() <= rank && dims.iter().all(|dim| *dim == 1),
        _ => false,
    };
    is_elementwise(&draft.node(id).op.name)
        && others.into_iter().all(|(_, other)| adds_nothing(&draft.shape(*other)))
}

fn is_elementwise(op: &str) -> bool {
    matches!(
        op,
        "Add"
            | "AddV2"
            | "Sub"
            | "Mul"
            | "Div"
            | "RealDiv"
            | "FloorDiv"
            | "TruncateDiv"
            | "LogicalAnd"
            | "LogicalOr"
            | "BitwiseAnd"
            | "BitwiseOr"
            | "BitwiseXor"
            | "Maximum"
            | "Minimum"
            | "Pow"
    )
}

/// The node that makes an input, where it is of this op and may be read through.
pub(super) fn source_of_op(
    draft: &Draft<'_>,
    id: NodeId,
    index: usize,
    op: &str,
) -> Option<NodeId> {
    let source = draft.source_of(id, index)?;
    (draft.node(source).op.name == op && draft.is_rewritable(source)).then_some(source)
}

/// The first input of a node.
pub(super) fn first_input(draft: &Draft<'_>, id: NodeId) -> Output {
    draft.node(id).inputs[0]
}

/// An attribute that is a list of integers.
pub(super) fn integers_attr(draft: &Draft<'_>, id: NodeId, name: &str) -> Option<Vec<i64>> {
    use tenon_framework::attr::{AttrList, AttrValue};
    match draft.attr(id, name) {
        Some(AttrValue::List(AttrList::Int(values))) => Some(values.clone()),
        _ => None,
    }
}

/// Whether a boolean attribute is set.
pub(super) fn flag(draft: &Draft<'_>, id: NodeId, name: &str) -> bool {
    matches!(draft.attr(id, name), Some(tenon_framework::attr::AttrValue::Bool(true)))
}
