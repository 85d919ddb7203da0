//! Operands that leave a value unchanged or determine it.

use super::{
    Simpler,
    facts::{input_is_all, keeps_shape},
};
use crate::{Draft, NewNode, elements::Number, fallible::may_fail};
use tenon_framework::{DType, Tensor};
use tenon_graph::NodeId;

/// `x + 0`, `x * 1` and the like.
pub(super) fn neutral(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    let [_, _] = node.inputs[..] else { return None };
    let dtype = node.signature.inputs[0];
    let (right, left) = neutral_of(&node.op.name, dtype)?;
    if input_is_all(draft, id, 1, right) && keeps_shape(draft, id, 0) {
        return Some(Simpler::Input(0));
    }
    let fits = left && input_is_all(draft, id, 0, right) && keeps_shape(draft, id, 1);
    fits.then_some(Simpler::Input(1))
}

/// The neutral right operand of an op, and whether it is neutral on the left too.
fn neutral_of(op: &str, dtype: DType) -> Option<(Number, bool)> {
    let (integer, float, truth) = (dtype.is_integer(), dtype.is_floating(), dtype == DType::BOOL);
    Some(match op {
        "Add" | "AddV2" if integer => (Number::Zero, true),
        "Add" | "AddV2" if float => (Number::MinusZero, true),
        "Sub" if integer || float => (Number::Zero, false),
        "Mul" if integer || float => (Number::One, true),
        "Div" | "RealDiv" if integer || float => (Number::One, false),
        "FloorDiv" | "TruncateDiv" if integer => (Number::One, false),
        "BitwiseOr" | "BitwiseXor" if integer => (Number::Zero, true),
        "LeftShift" | "RightShift" if integer => (Number::Zero, false),
        "LogicalAnd" if truth => (Number::One, true),
        "LogicalOr" if truth => (Number::Zero, true),
        _ => return None,
    })
}

/// Sums, products and concatenations of one value.
pub(super) fn single(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    let one = match node.op.name.as_str() {
        "AddN" => node.inputs.len() == 1,
        "ConcatV2" => node.inputs.len() == 2,
        "Concat" => return (node.inputs.len() == 2).then_some(Simpler::Input(1)),
        _ => false,
    };
    one.then_some(Simpler::Input(0))
}

/// A sum of two terms of one shape is an addition, which other nodes absorb.
pub(super) fn two_terms(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    let [a, b] = node.inputs[..] else { return None };
    let dtype = *node.outputs().first()?;
    let is_number = dtype.is_integer() || dtype.is_floating() || dtype.is_complex();
    let is_sum = node.op.name == "AddN" && is_number && draft.same_shape(a, b);
    is_sum.then(|| Simpler::Node(NewNode::new("AddV2").input(a).input(b)))
}

/// `max(x, x)`, `x and x` and the like give `x`.
pub(super) fn equal_operands(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    let [a, b] = node.inputs[..] else { return None };
    let same = match node.op.name.as_str() {
        // Given two zeros of different sign, a floating-point kernel may return either.
        "Maximum" | "Minimum" => node.signature.inputs[0].is_integer(),
        "LogicalAnd" | "LogicalOr" | "BitwiseAnd" | "BitwiseOr" => true,
        _ => false,
    };
    (a == b && same).then_some(Simpler::Input(0))
}

/// For integers: `x - x`, `x ^ x`, `x * 0`, if the shape is known and the constant is small enough.
pub(super) fn zero(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    let [a, b] = node.inputs[..] else { return None };
    let dtype = *node.outputs().first()?;
    let is_zero = |index| input_is_all(draft, id, index, Number::Zero);
    let vanishes = match node.op.name.as_str() {
        "Sub" | "BitwiseXor" => a == b,
        "Mul" => is_zero(0) || is_zero(1),
        _ => false,
    };
    if !dtype.is_integer() || !vanishes || may_fail(draft, id) {
        return None;
    }
    let shape = draft.shape(id.into()).full()?;
    let bytes = shape.elements().checked_mul(dtype.size()?)?;
    if bytes > draft.folding_limit() || !draft.may_fold(bytes) {
        return None;
    }
    draft.budget().folded(bytes);
    let zeros = Tensor::from_bytes(dtype, shape.dims(), &vec![0; bytes]).ok()?;
    Some(Simpler::Value(zeros))
}

/// `SelectV2` and `Select` with a constant condition that is all true or all false.
pub(super) fn constant_choice(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    if !matches!(node.op.name.as_str(), "Select" | "SelectV2") {
        return None;
    }
    let chosen = [(Number::One, 1), (Number::Zero, 2)];
    let (_, index) = chosen.into_iter().find(|(number, _)| input_is_all(draft, id, 0, *number))?;
    let same = draft.same_shape(node.inputs[index], id.into()) && !may_fail(draft, id);
    same.then_some(Simpler::Input(index))
}
