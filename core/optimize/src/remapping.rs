//! Remapping to fused ops, by the patterns that plugins declare with `register_fusion!`.
//!
//! A fusion applies if all nodes of its pattern run on one device, if no node outside the pattern
//! reads an inner node, if no inner node is kept, has effects or requests a kernel, and if the
//! device has a kernel for the fused op with these attributes and shapes. The pattern's last node
//! may update a resource if the fused op has state: it is then given the same resources. The fused
//! node replaces the pattern's last node and keeps its name; what waited for an inner node waits for
//! it. A fused node may be fused again: a product with its
//! bias, then both with an activation.
//!
//! Before, the gradients of functions with many forms are fused, see [`backward`].

use crate::{Draft, NewNode, Pass, PassError};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tenon_framework::{
    DType,
    fusion::{FusionDef, Term},
};
use tenon_graph::{NodeId, Output};

mod backward;
mod build;
mod conditions;
mod matcher;
mod numbers;

/// Remapping.
pub(crate) struct Remapping;

/// The maximum number of times that one node is fused; more would be fusions that undo each other.
const MAX_FUSIONS_PER_NODE: usize = 16;

impl Pass for Remapping {
    fn name(&self) -> &str {
        "remapping"
    }

    fn is_late(&self) -> bool {
        true
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        // A fused node reads the inputs of its pattern, which precede it, so one order serves all
        // fusions.
        let order = draft.order()?;
        // While a gradient reads what is inside a function, the function is not fused.
        backward::fuse(draft, &order);
        // The largest patterns are tried first on the whole graph, since smaller ones may be parts
        // of them.
        for fusions in by_size(draft) {
            for &id in &order {
                if draft.is_stopped() {
                    return Ok(());
                }
                for _ in 0..MAX_FUSIONS_PER_NODE {
                    if !draft.is_live(id) || !apply_one(draft, id, &fusions) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

type ByOp = HashMap<String, Vec<Arc<FusionDef>>>;

/// The fusions whose result has a kernel, from the largest patterns to the smallest, each by the
/// last op of its pattern.
fn by_size(draft: &Draft<'_>) -> Vec<ByOp> {
    let mut sizes: BTreeMap<usize, ByOp> = BTreeMap::new();
    for fusion in draft.registry().fusions() {
        let Term::Call(call) = &fusion.pattern.term else { continue };
        if !draft.view().has_any_kernel(&fusion.result.op) {
            continue;
        }
        let fusions = sizes.entry(matcher::size(&fusion.pattern)).or_default();
        for op in &call.ops {
            fusions.entry(op.clone()).or_default().push(Arc::clone(fusion));
        }
    }
    sizes.into_values().rev().collect()
}

fn apply_one(draft: &mut Draft<'_>, id: NodeId, fusions: &ByOp) -> bool {
    let Some(fusions) = fusions.get(&draft.node(id).op.name) else { return false };
    fusions.iter().any(|fusion| apply(draft, id, fusion))
}

/// Whether a new node takes the same resources as the node that it replaces.
fn has_resources_of(draft: &Draft<'_>, id: NodeId, new: &NewNode) -> bool {
    let is_resource = |input: &&Output| draft.dtype(**input) == DType::RESOURCE;
    let old = &draft.node(id).inputs;
    old.iter().filter(is_resource).eq(new.inputs.iter().filter(is_resource))
}

fn apply(draft: &mut Draft<'_>, id: NodeId, fusion: &FusionDef) -> bool {
    let Some(found) = matcher::find(draft, id, fusion) else { return false };
    let holds = |condition| conditions::holds(draft, &found, condition);
    if !fusion.conditions.iter().all(holds) {
        return false;
    }
    let Some(new) = build::node(draft, &found, &fusion.result) else { return false };
    let count = found.nodes.len();
    let done = match draft.is_rewritable(id) {
        true => draft.replace(id, new),
        false if has_resources_of(draft, id, &new) => draft.substitute(id, new),
        false => return false,
    };
    if done.is_err() {
        return false;
    }
    // What waited for a node that is gone waits for the one that computes it now.
    for &inner in found.nodes.iter().filter(|node| **node != id) {
        draft.redirect_control(inner, &[id]);
    }
    let from =
        if fusion.plugin.is_empty() { String::new() } else { format!(" of {}", fusion.plugin) };
    draft.note(
        id,
        format!("is {} now, for {count} nodes (fusion '{}'{from})", fusion.result.op, fusion.name),
    );
    // Remove the fused nodes now, so that users are counted correctly for the next fusion.
    draft.absorb(found.nodes.into_iter().filter(|node| *node != id));
    true
}
