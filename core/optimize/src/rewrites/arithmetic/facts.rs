//! Properties of operands that rules check.

use crate::{
    Draft,
    broadcast::leaves_shape,
    elements::{Number, is_all},
};
use tenon_graph::{NodeId, Output};

/// The number of bytes that are compared in one unit of work.
const BYTES_A_UNIT: usize = 64;

/// Whether an input of a node is a constant with only this number as elements.
pub(super) fn input_is_all(draft: &Draft<'_>, id: NodeId, index: usize, number: Number) -> bool {
    let input = draft.node(id).inputs[index];
    let Some(constant) = draft.constant(input) else { return false };
    draft.spend(constant.byte_len() / BYTES_A_UNIT);
    is_all(constant, number)
}

/// Whether the node's output is certain to have the shape of its input `index`.
pub(super) fn keeps_shape(draft: &Draft<'_>, id: NodeId, index: usize) -> bool {
    let input = draft.node(id).inputs[index];
    if draft.same_shape(input, id.into()) {
        return true;
    }
    let mut others = draft.node(id).inputs.iter().enumerate().filter(|(at, _)| *at != index);
    draft.node(id).op.facts().elementwise
        && others.all(|(_, other)| leaves_shape(draft, *other, input))
}

/// The node of an input, if it has this op and is rewritable.
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

/// The value of an attribute that is a list of integers.
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
