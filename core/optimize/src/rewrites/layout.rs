//! Image layout: ops that support both formats use the one in which their device computes.
//!
//! The device states the format ([`DeviceView::image_format`](tenon_graph::DeviceView::image_format)). A
//! convolution, pooling, normalisation or bias of the other format is computed in the device's
//! format, between two transpositions. Then transpositions sink: an elementwise op whose images are
//! all transposed alike is computed before the transposition. Arithmetic simplification removes
//! adjacent transpositions that undo each other.
//!
//! A node of the original name still gives the same values in the same order; the computation in
//! the other format is a node of its own.

use crate::{Draft, NewNode, Pass, PassError};
use tenon_framework::{
    Tensor,
    attr::{AttrList, AttrMap, AttrValue},
};
use tenon_graph::{Node, NodeId, Output};

/// Layout.
pub(crate) struct Layout;

/// The permutation from channels last to channels first: output dimension `at` is input dimension
/// `TO_FIRST[at]`.
const TO_FIRST: [i32; 4] = [0, 3, 1, 2];
/// The permutation from channels first to channels last.
const TO_LAST: [i32; 4] = [0, 2, 3, 1];

impl Pass for Layout {
    fn name(&self) -> &str {
        "layout"
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        let mut changed = false;
        for id in draft.order()? {
            if draft.is_stopped() {
                break;
            }
            changed |= convert(draft, id);
        }
        // Only transpositions that this pass added are moved: the others stay where their author
        // put them.
        if changed {
            for id in draft.order()? {
                if draft.is_stopped() {
                    break;
                }
                sink(draft, id);
            }
        }
        Ok(())
    }
}

/// Computes a node in its device's format if that differs; returns whether it did.
fn convert(draft: &mut Draft<'_>, id: NodeId) -> bool {
    let node = draft.node(id);
    if !node.op.facts().images || !draft.is_rewritable(id) {
        return false;
    }
    let own = draft.attr(id, "data_format").and_then(|value| value.as_text()).map(str::to_owned);
    let wanted = draft.devices[id.index()].and_then(|device| draft.view().image_format(device));
    let wanted = wanted.map(str::to_owned);
    let (Some(own), Some(wanted)) = (own, wanted) else { return false };
    let perms = match (own.as_str(), wanted.as_str()) {
        ("NCHW", "NHWC") => (TO_LAST, TO_FIRST),
        ("NHWC", "NCHW") => (TO_FIRST, TO_LAST),
        _ => return false,
    };
    // Outputs other than the first must be unused.
    let others = 1..node.outputs().len() as u32;
    let used = |at| draft.uses(Output::new(id, at)) > 0 || draft.is_fetched(Output::new(id, at));
    if draft.shape(node.inputs[0]).rank() != Some(4) || others.into_iter().any(used) {
        return false;
    }
    let made = between(draft, id, &wanted, perms).is_ok();
    if made {
        draft.note(id, format!("is computed in {wanted}, as its device does"));
    }
    made
}

/// Puts the node in the wanted format between two transpositions. Nodes left over from a failed
/// attempt have no readers.
fn between(
    draft: &mut Draft<'_>,
    id: NodeId,
    wanted: &str,
    (to, back): ([i32; 4], [i32; 4]),
) -> Result<(), PassError> {
    let node = draft.node(id);
    let (op, inputs, control) =
        (node.op.name.clone(), node.inputs.clone(), node.control_inputs.clone());
    let attrs = permuted(draft.attrs(id), wanted, to);
    let image = transposed(draft, id, inputs[0], to, "to")?;
    let rest = inputs[1..].iter().copied();
    let new =
        NewNode { attrs, ..NewNode::new(&op).input(image).inputs(rest).after(control.clone()) };
    let inner = draft.add(id, "in_format", new)?;
    let perm = permutation(draft, id, back, "from")?;
    draft.replace(id, NewNode::new("Transpose").input(inner).input(perm).after(control))
}

fn permutation(
    draft: &mut Draft<'_>,
    near: NodeId,
    perm: [i32; 4],
    suffix: &str,
) -> Result<NodeId, PassError> {
    let value = Tensor::from_slice(&[4], &perm);
    let value = value.map_err(|error| PassError::Failed(error.to_string()))?;
    // The control inputs tie the constant to the loop iteration or branch of the node.
    let control = draft.node(near).control_inputs.clone();
    draft.add(near, &format!("perm_{suffix}"), NewNode::constant(value).after(control))
}

fn transposed(
    draft: &mut Draft<'_>,
    near: NodeId,
    image: Output,
    perm: [i32; 4],
    suffix: &str,
) -> Result<NodeId, PassError> {
    let perm = permutation(draft, near, perm, suffix)?;
    draft.add(near, "in_format_of", NewNode::new("Transpose").input(image).input(perm))
}

/// The attributes for the wanted format: lists with one integer per dimension are permuted, and
/// paddings in pairs.
fn permuted(attrs: &AttrMap, wanted: &str, to: [i32; 4]) -> AttrMap {
    let at = |items: &[i64], index: i32| items[index as usize];
    let mut attrs = attrs.clone();
    for (name, value) in &mut attrs {
        match (name.as_str(), value) {
            ("data_format", value) => *value = wanted.into(),
            ("strides" | "dilations" | "ksize", AttrValue::List(AttrList::Int(items)))
                if items.len() == 4 =>
            {
                *items = to.iter().map(|&from| at(items, from)).collect();
            }
            ("explicit_paddings", AttrValue::List(AttrList::Int(items))) if items.len() == 8 => {
                *items = to
                    .iter()
                    .flat_map(|&from| [at(items, 2 * from), at(items, 2 * from + 1)])
                    .collect();
            }
            _ => {}
        }
    }
    attrs
}

/// The input and the permutation of a transposition whose permutation is one that this pass uses.
fn source_of_transpose(draft: &Draft<'_>, output: Output) -> Option<(Output, Output, Vec<i64>)> {
    let id = draft.source(output)?;
    let node = draft.node(id);
    if node.op.name != "Transpose" || !draft.is_rewritable(id) || !node.control_inputs.is_empty() {
        return None;
    }
    let perm = draft.integers(node.inputs[1])?;
    let known = [TO_FIRST, TO_LAST].iter().any(|known| perm.iter().eq(known.map(i64::from).iter()));
    known.then(|| (node.inputs[0], node.inputs[1], perm))
}

/// Whether a node computes the same in any order of dimensions.
fn computes_in_any_order(node: &Node) -> bool {
    let facts = node.op.facts();
    facts.elementwise || (facts.is_identity() && node.inputs.len() == 1)
}

/// Computes an elementwise node before the transposition that all its images share.
fn sink(draft: &mut Draft<'_>, id: NodeId) {
    let node = draft.node(id);
    if !computes_in_any_order(node) || !draft.is_rewritable(id) || draft.users(id).is_empty() {
        return;
    }
    let mut inputs = Vec::new();
    let mut common: Option<(Output, Vec<i64>)> = None;
    for &input in &node.inputs {
        if draft.shape(input).dims() == Some(&[]) {
            inputs.push(input);
            continue;
        }
        let Some((source, by, perm)) = source_of_transpose(draft, input) else { return };
        // With another rank, other dimensions would be aligned.
        if draft.shape(source).rank() != Some(4)
            || common.as_ref().is_some_and(|(_, known)| *known != perm)
        {
            return;
        }
        common.get_or_insert((by, perm));
        inputs.push(source);
    }
    let Some((by, _)) = common else { return };
    let (op, control) = (node.op.name.clone(), node.control_inputs.clone());
    let new = NewNode {
        attrs: draft.attrs(id).clone(),
        ..NewNode::new(&op).inputs(inputs).after(control)
    };
    let Ok(inner) = draft.add(id, "in_format", new) else { return };
    let control = draft.node(id).control_inputs.clone();
    if draft.replace(id, NewNode::new("Transpose").input(inner).input(by).after(control)).is_ok() {
        draft.note(id, "is computed before its images are transposed");
    }
}
