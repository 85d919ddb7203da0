//! Common subexpression elimination: of equal nodes, one computes.
//!
//! Nodes are equal if they are pure nodes of one op on one device with equal attributes (tensors
//! bit by bit), equal inputs and equal control inputs. The order of the inputs does not matter if
//! the op states that swapping its two inputs gives the same bits.

use crate::{
    Draft, Pass, PassError,
    attrs::{hash_attrs, same_attrs},
};
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};
use tenon_framework::{DType, op::Symmetry};
use tenon_graph::{NodeId, Output};

/// The maximum number of nodes with one hash that are compared. Further ones, as in a graph built
/// to collide, count as different.
const MAX_COMPARED: usize = 16;

/// Common subexpression elimination.
pub(crate) struct CommonSubexpressions;

impl Pass for CommonSubexpressions {
    fn name(&self) -> &str {
        "common_subexpressions"
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        let mut first: HashMap<u64, Vec<NodeId>> = HashMap::new();
        for id in draft.order()? {
            if draft.is_stopped() {
                break;
            }
            if !is_candidate(draft, id) {
                continue;
            }
            let same = first.entry(hash(draft, id)).or_default();
            match same.iter().position(|&other| is_same(draft, id, other)) {
                None if same.len() < MAX_COMPARED => same.push(id),
                None => {}
                Some(at) if draft.is_kept(id) && !draft.is_kept(same[at]) => {
                    // The node that must keep its name computes, and the earlier node is merged
                    // into it. Both have the same inputs, so this delays nothing.
                    let other = std::mem::replace(&mut same[at], id);
                    merge(draft, other, id);
                }
                Some(at) => merge(draft, id, same[at]),
            }
        }
        Ok(())
    }
}

fn is_candidate(draft: &Draft<'_>, id: NodeId) -> bool {
    let node = draft.node(id);
    let has_value = !node.inputs.is_empty() || node.op.is_constant();
    has_value && draft.is_rewritable(id) && !node.outputs().is_empty()
}

/// Replaces the outputs of `id` by those of `other`.
fn merge(draft: &mut Draft<'_>, id: NodeId, other: NodeId) {
    if draft.is_kept(id) {
        return;
    }
    let count = draft.node(id).outputs().len() as u32;
    let moved =
        (0..count).all(|at| draft.redirect(Output::new(id, at), Output::new(other, at)).is_ok());
    if moved {
        draft.redirect_control(id, &[other]);
        let what = format!("is the same as '{}'", draft.node(other).name);
        draft.note(id, what);
        draft.give_up_effects(id);
    }
}

/// The inputs; sorted for a commutative node.
fn inputs_of(draft: &Draft<'_>, id: NodeId) -> Vec<Output> {
    let node = draft.node(id);
    draft.spend(node.inputs.len() + node.control_inputs.len());
    let mut inputs = node.inputs.clone();
    let commutes = node.op.facts().symmetry == Symmetry::Bits && inputs.len() == 2;
    // Addition of strings is concatenation, which is not commutative.
    if commutes && node.signature.inputs.first() != Some(&DType::STRING) {
        inputs.sort_unstable();
    }
    inputs
}

fn controls_of(draft: &Draft<'_>, id: NodeId) -> Vec<NodeId> {
    let mut controls = draft.node(id).control_inputs.clone();
    controls.sort_unstable();
    controls
}

fn hash(draft: &Draft<'_>, id: NodeId) -> u64 {
    let mut state = DefaultHasher::new();
    draft.node(id).op.name.hash(&mut state);
    draft.devices[id.index()].hash(&mut state);
    inputs_of(draft, id).hash(&mut state);
    controls_of(draft, id).hash(&mut state);
    hash_attrs(draft.attrs(id), &mut state);
    state.finish()
}

fn is_same(draft: &Draft<'_>, a: NodeId, b: NodeId) -> bool {
    let (x, y) = (draft.node(a), draft.node(b));
    x.op.name == y.op.name
        && draft.devices[a.index()] == draft.devices[b.index()]
        && inputs_of(draft, a) == inputs_of(draft, b)
        && controls_of(draft, a) == controls_of(draft, b)
        && same_attrs(draft.attrs(a), draft.attrs(b))
}
