//! Ops that undo or repeat each other, and signs that move into sums and products.

use super::{
    Simpler,
    facts::{first_input, source_of_op},
};
use crate::{Draft, NewNode};
use tenon_graph::{NodeId, Output};

/// Ops that are their own inverse for every value.
const INVOLUTIONS: &[&str] = &["Neg", "LogicalNot", "Invert", "Conj"];
/// Ops that change nothing when applied again.
const IDEMPOTENT: &[&str] = &["Relu", "Relu6", "Abs", "Floor", "Ceil", "Rint", "Round", "Sign"];

/// `-(-x)` is `x`.
pub(super) fn undone(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let op = draft.node(id).op.name.as_str();
    let inner = source_of_op(draft, id, 0, op).filter(|_| INVOLUTIONS.contains(&op))?;
    Some(Simpler::Other(first_input(draft, inner)))
}

/// `relu(relu(x))` is `relu(x)`; `abs(-x)` is `abs(x)`.
pub(super) fn again(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    let op = node.op.name.as_str();
    if IDEMPOTENT.contains(&op)
        && node.inputs.len() == 1
        && source_of_op(draft, id, 0, op).is_some()
    {
        return Some(Simpler::Input(0));
    }
    let negated = (op == "Abs").then(|| source_of_op(draft, id, 0, "Neg")).flatten()?;
    Some(Simpler::Node(like(draft, id, "Abs", &[first_input(draft, negated)])))
}

/// `x + -y`, `x - -y`, `-x * -y`, `-x / -y`; for integers also `-(x - y)`.
pub(super) fn signs(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    let dtype = *node.signature.inputs.first()?;
    if !dtype.is_integer() && !dtype.is_floating() {
        return None;
    }
    let negated = |index| Some(first_input(draft, source_of_op(draft, id, index, "Neg")?));
    let input = |index: usize| node.inputs[index];
    let (op, inputs) = match node.op.name.as_str() {
        "Add" | "AddV2" => match (negated(0), negated(1)) {
            (_, Some(y)) => ("Sub", [input(0), y]),
            (Some(x), None) => ("Sub", [input(1), x]),
            _ => return None,
        },
        "Sub" => ("AddV2", [input(0), negated(1)?]),
        "Mul" => ("Mul", [negated(0)?, negated(1)?]),
        "RealDiv" | "Div" if dtype.is_floating() => {
            (node.op.name.as_str(), [negated(0)?, negated(1)?])
        }
        "Neg" if dtype.is_integer() => {
            let inner =
                source_of_op(draft, id, 0, "Sub").filter(|inner| draft.users(*inner).len() == 1)?;
            let inner = draft.node(inner);
            ("Sub", [inner.inputs[1], inner.inputs[0]])
        }
        _ => return None,
    };
    Some(Simpler::Node(like(draft, id, op, &inputs)))
}

/// A node of another op with the same element type.
fn like(draft: &Draft<'_>, id: NodeId, op: &str, inputs: &[Output]) -> NewNode {
    let mut new = NewNode::new(op).inputs(inputs.iter().copied());
    if let Some(dtype) = draft.attr(id, "T") {
        new.attrs.insert("T".to_owned(), dtype.clone());
    }
    new
}
