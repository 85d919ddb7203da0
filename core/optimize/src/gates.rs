//! Removal of gates: a `NoOp` that waits for the gradients of all inputs of a node, and an
//! `Identity` of each gradient that waits for the `NoOp`.
//!
//! A gate keeps effects in order: an update of a variable comes after the reads of it that lead to
//! any of these gradients. Where the effects that lead to each gradient are the same, the gate
//! orders nothing that the data does not, and the identities only stand between a gradient and the
//! ops that could be fused with it. They are bypassed then. Readers with effects wait for the
//! gradients themselves, so that a variable is not updated while its old value is still read, which
//! would copy it.

use crate::{Draft, PassError};
use tenon_graph::{ControlFlow, NodeId, Output, required_ops};

/// The most words of memory for sets of effects.
const MOST_WORDS: usize = 1 << 21;

/// For each node, the nodes with effects on which it depends, itself included.
struct Effects {
    words: usize,
    /// By the number of a node, the beginning of its set.
    rows: Vec<usize>,
    bits: Vec<u64>,
}

impl Effects {
    /// `None` if there is control flow, which may leave some gradients without a value, or if there
    /// are too many nodes and effects.
    fn new(draft: &Draft<'_>, order: &[NodeId]) -> Option<Effects> {
        if order.iter().any(|&id| draft.node(id).control_flow() != ControlFlow::No) {
            return None;
        }
        let has_effect = |id: NodeId| !draft.is_rewritable(id) && !is_gate(draft, id);
        let count = order.iter().filter(|id| has_effect(**id)).count();
        let words = count.div_ceil(64);
        if words.checked_mul(order.len())? > MOST_WORDS {
            return None;
        }
        let last = order.iter().map(|id| id.index()).max()?;
        let rows = vec![usize::MAX; last + 1];
        let mut made = Effects { words, rows, bits: vec![0; words * order.len()] };
        for (row, id) in order.iter().enumerate() {
            made.rows[id.index()] = row * words;
        }
        let mut next = 0;
        for &id in order {
            let row = made.rows[id.index()];
            for source in draft.sources(id) {
                draft.spend(1);
                let from = *made.rows.get(source.index()).filter(|row| **row != usize::MAX)?;
                for word in 0..words {
                    made.bits[row + word] |= made.bits[from + word];
                }
            }
            if has_effect(id) {
                made.bits[row + next / 64] |= 1 << (next % 64);
                next += 1;
            }
        }
        Some(made)
    }

    fn of(&self, id: NodeId) -> &[u64] {
        &self.bits[self.rows[id.index()]..][..self.words]
    }

    /// Whether all effects that lead to `a` lead to `b` too.
    fn are_among(&self, a: NodeId, b: NodeId) -> bool {
        self.of(a).iter().zip(self.of(b)).all(|(a, b)| a & !b == 0)
    }
}

/// Whether a node only waits for others.
fn is_gate(draft: &Draft<'_>, id: NodeId) -> bool {
    let node = draft.node(id);
    node.op.name == required_ops::NO_OP && !draft.is_kept(id) && !node.control_inputs.is_empty()
}

/// What an identity waits for, if all of it are gates, and its input is behind each gate too.
fn gated(draft: &Draft<'_>, id: NodeId) -> Option<(Output, NodeId, Vec<NodeId>)> {
    let node = draft.node(id);
    let &[value] = &node.inputs[..] else { return None };
    let source = draft.source(value)?;
    let is_free = draft.is_rewritable(id) && !draft.is_kept(id) && !node.control_inputs.is_empty();
    if node.op.name != required_ops::IDENTITY || !is_free {
        return None;
    }
    let mut behind = Vec::new();
    for &gate in &node.control_inputs {
        let waits = &draft.node(gate).control_inputs;
        if !is_gate(draft, gate) || !waits.contains(&source) {
            return None;
        }
        behind.extend(waits.iter().copied().filter(|&other| other != source));
    }
    Some((value, source, behind))
}

/// Bypasses the identities behind gates that order no effects; `order` has the nodes in an order of
/// their dependencies.
///
/// # Errors
/// An identity has another type than its input.
pub(crate) fn open(draft: &mut Draft<'_>, order: &[NodeId]) -> Result<(), PassError> {
    if !order.iter().any(|&id| gated(draft, id).is_some()) {
        return Ok(());
    }
    let Some(effects) = Effects::new(draft, order) else { return Ok(()) };
    for &id in order {
        let Some((value, source, behind)) = gated(draft, id) else { continue };
        if !behind.iter().all(|&other| effects.are_among(other, source)) {
            continue;
        }
        // Readers and nodes that wait, with effects.
        let users = draft.users(id).iter().copied().filter(|&user| !draft.is_rewritable(user));
        for user in users.collect::<Vec<NodeId>>() {
            let control = draft.node(user).control_inputs.iter().chain(&behind);
            let control = control.copied().collect();
            draft.set_control(user, control);
        }
        draft.redirect_control(id, &[source]);
        draft.set_control(id, Vec::new());
        draft.redirect(Output::new(id, 0), value)?;
        draft.note(id, "is bypassed: its gate orders no effects");
    }
    Ok(())
}
