//! Remapping to fused ops: patterns that libraries declare with `register_fusion!`.
//!
//! A fusion applies where all nodes of its pattern run on one device, where nothing but the pattern uses what is
//! inside it, where none of them is kept, has an effect or asks for a kernel, and where the device has a kernel
//! for the fused op that takes these attributes and shapes. The fused node stands in the place of the pattern's
//! last one, under its name. What was fused may be fused on: a product with its bias, that with its activation.

use super::{Draft, Pass, PassError};
use crate::NodeId;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tenon_framework::fusion::{FusionDef, Term};

mod build;
mod conditions;
mod matcher;
mod numbers;

/// Remapping.
pub(super) struct Remapping;

/// How often one node may be fused on: more are taken for fusions that undo each other.
const MOST: usize = 16;

impl Pass for Remapping {
    fn name(&self) -> &str {
        "remapping"
    }

    fn is_late(&self) -> bool {
        true
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        // A fused node reads what its pattern read, which stands before it: one order holds for all.
        let order = draft.order()?;
        // The largest patterns first, over the whole graph: a small one may be a part of them.
        for fusions in by_size(draft) {
            for &id in &order {
                if draft.is_stopped() {
                    return Ok(());
                }
                for _ in 0..MOST {
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

/// The fusions whose result some kernel computes, from the largest patterns to the smallest, each by the ops that
/// end its pattern.
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

fn apply(draft: &mut Draft<'_>, id: NodeId, fusion: &FusionDef) -> bool {
    let Some(found) = matcher::find(draft, id, fusion) else { return false };
    let holds = |condition| conditions::holds(draft, &found, condition);
    if !fusion.conditions.iter().all(holds) {
        return false;
    }
    let Some(new) = build::node(draft, &found, &fusion.result) else { return false };
    let count = found.nodes.len();
    if draft.replace(id, new).is_err() {
        return false;
    }
    let from =
        if fusion.plugin.is_empty() { String::new() } else { format!(" of {}", fusion.plugin) };
    draft.note(
        id,
        format!("is {} now, for {count} nodes (fusion '{}'{from})", fusion.result.op, fusion.name),
    );
    // What it was made of goes, so that users are counted right for what is fused next.
    draft.absorb(found.nodes.into_iter().filter(|node| *node != id));
    true
}
