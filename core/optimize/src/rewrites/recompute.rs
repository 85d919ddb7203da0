//! Recomputation: cheap values are computed again for the gradients that read them, so that they take no memory in between.
//!
//! A value qualifies if its op is elementwise, a cast, a bias or a broadcast, if the rest of the graph reads it besides
//! gradients, and if what it is computed from is there when the gradients run: constants, variables, feeds, values that
//! gradients read anyway, or values that qualify themselves. The copy waits for a gradient that its first reader reads,
//! so that it runs late. Gradients are recognised by their names, which begin with `gradients/` or `gradients_1/`.
//!
//! The pass is off by default: it saves memory and costs time.

use crate::{Draft, NewNode, Pass, PassError};
use std::collections::HashMap;
use tenon_graph::{ControlFlow, NodeId, Output};

/// Recomputation.
pub(crate) struct Recompute;

/// Ops besides elementwise ones that are cheap to run again.
const CHEAP: &[&str] = &["Cast", "BiasAdd", "BroadcastTo", "_FusedElementwise"];
/// The number of nodes, one before the other, that are run again for one value.
const MAX_CHAIN: usize = 4;
/// Bytes of a value below which its memory does not matter.
const SMALL: usize = 1024;

impl Pass for Recompute {
    fn name(&self) -> &str {
        "recompute"
    }

    fn is_late(&self) -> bool {
        true
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        let order = draft.order()?;
        if order.iter().any(|&id| draft.node(id).control_flow() != ControlFlow::No) {
            return Ok(());
        }
        let mut place = vec![usize::MAX; draft.nodes.len()];
        for (at, id) in order.iter().enumerate() {
            place[id.index()] = at;
        }
        for &id in &order {
            if draft.is_stopped() {
                break;
            }
            if let Some(trigger) = trigger(draft, id, &place) {
                recompute(draft, id, &trigger)?;
            }
        }
        Ok(())
    }
}

/// Whether a node belongs to gradients.
fn is_gradient(draft: &Draft<'_>, id: NodeId) -> bool {
    let scope = draft.node(id).name.split_once('/').map_or("", |(scope, _)| scope);
    let number = scope.strip_prefix("gradients").map(|rest| rest.strip_prefix('_').unwrap_or(rest));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_cheap(draft: &Draft<'_>, id: NodeId) -> bool {
    let node = draft.node(id);
    let cheap = node.op.facts().elementwise || CHEAP.contains(&node.op.name.as_str());
    cheap && node.outputs().len() == 1 && !node.inputs.is_empty() && draft.is_rewritable(id)
}

fn is_small(draft: &Draft<'_>, output: Output) -> bool {
    let shape = draft.shape(output);
    let elements = shape.full().map(|shape| shape.elements());
    let bytes = elements.and_then(|elements| elements.checked_mul(draft.dtype(output).size()?));
    bytes.is_some_and(|bytes| bytes < SMALL)
}

/// The gradients for which a copy of the node waits; `None` if it is not run again.
fn trigger(draft: &Draft<'_>, id: NodeId, place: &[usize]) -> Option<Vec<NodeId>> {
    let output = Output::from(id);
    let qualifies = is_cheap(draft, id)
        && !draft.is_kept(id)
        && !is_gradient(draft, id)
        && !is_small(draft, output);
    if !qualifies || !draft.readers(output).any(|reader| !is_gradient(draft, reader)) {
        return None;
    }
    let gradients = draft.readers(output).filter(|&reader| is_gradient(draft, reader));
    let first = gradients.min_by_key(|reader| place[reader.index()])?;
    let incoming = draft.sources(first).filter(|&source| is_gradient(draft, source));
    // A constant is there from the start.
    let incoming = incoming.filter(|&source| !draft.node(source).op.is_constant());
    let incoming: Vec<NodeId> = incoming.collect();
    let there = !incoming.is_empty() && inputs_last(draft, id, MAX_CHAIN);
    there.then_some(incoming)
}

/// Whether all inputs of a node are there when gradients run, or are run again by at most `depth` nodes.
fn inputs_last(draft: &Draft<'_>, id: NodeId, depth: usize) -> bool {
    let inputs = &draft.node(id).inputs;
    inputs.iter().all(|&input| {
        lasts(draft, input)
            || (depth > 1
                && is_cheap(draft, input.node)
                && inputs_last(draft, input.node, depth - 1))
    })
}

/// Whether a tensor is in memory until gradients run, whatever this pass does.
fn lasts(draft: &Draft<'_>, tensor: Output) -> bool {
    let Some(id) = draft.source(tensor) else { return true };
    let node = draft.node(id);
    let is_source = node.inputs.is_empty() || node.op.name == "ReadVariableOp";
    is_source
        || draft.is_kept(id)
        || is_small(draft, tensor)
        || (!is_cheap(draft, id) && draft.readers(tensor).any(|reader| is_gradient(draft, reader)))
}

/// Lets the gradients read a copy of a node.
fn recompute(draft: &mut Draft<'_>, id: NodeId, trigger: &[NodeId]) -> Result<(), PassError> {
    let copy = copied(draft, id, trigger, &mut HashMap::new())?;
    let output = Output::from(id);
    let readers: Vec<NodeId> =
        draft.readers(output).filter(|&reader| is_gradient(draft, reader)).collect();
    draft.redirect_of(output, copy, |reader| readers.contains(&reader))?;
    draft.note(id, "is computed again for gradients");
    Ok(())
}

/// A copy of a node that runs after the trigger, with copies of the inputs that do not last.
fn copied(
    draft: &mut Draft<'_>,
    id: NodeId,
    trigger: &[NodeId],
    done: &mut HashMap<NodeId, NodeId>,
) -> Result<Output, PassError> {
    if let Some(&copy) = done.get(&id) {
        return Ok(copy.into());
    }
    let mut new = NewNode::new(&draft.node(id).op.name);
    new.attrs = draft.attrs(id).clone();
    for input in draft.node(id).inputs.clone() {
        let input = match lasts(draft, input) {
            true => input,
            false => copied(draft, input.node, trigger, done)?,
        };
        new.inputs.push(input);
    }
    let control = draft.node(id).control_inputs.clone();
    let copy =
        draft.add(id, "again", new.after(control.into_iter().chain(trigger.iter().copied())))?;
    done.insert(id, copy);
    Ok(copy.into())
}
