//! Nodes that pass their input on: those who read them read the input itself.
//!
//! `Identity`, `Snapshot`, `StopGradient`, and `IdentityN` where the other values say nothing. One that is kept stays for its name; one by which
//! others order themselves stays for them, unless they may as well wait for the input's own node.

use super::{Draft, Pass, PassError};
use crate::{ControlFlow, NodeId, Output};

/// Identity removal.
pub(super) struct Identities;

impl Pass for Identities {
    fn name(&self) -> &str {
        "identity"
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        for id in draft.order()? {
            if draft.is_stopped() {
                break;
            }
            if !draft.is_rewritable(id) || draft.users(id).is_empty() {
                continue;
            }
            match draft.node(id).op.name.as_str() {
                "Identity" | "Snapshot" | "StopGradient" => one(draft, id),
                "IdentityN" => several(draft, id),
                _ => {}
            }
        }
        Ok(())
    }
}

fn one(draft: &mut Draft<'_>, id: NodeId) {
    if !waits_for_effects(draft, id) {
        let input = draft.node(id).inputs[0];
        let passed = draft.uses(Output::new(id, 0)) > 0 && draft.redirect(id.into(), input).is_ok();
        let ordered = pass_order_on(draft, id, input);
        if passed || ordered {
            draft.note(id, "is passed by");
        }
    }
}

fn several(draft: &mut Draft<'_>, id: NodeId) {
    if waits_for_effects(draft, id) {
        return;
    }
    let inputs = draft.node(id).inputs.clone();
    let mut any = false;
    for (at, &input) in inputs.iter().enumerate() {
        let output = Output::new(id, at as u32);
        if inputs.iter().all(|&other| says_nothing(draft, other, input)) {
            any |= draft.redirect(output, input).is_ok_and(|edges| edges > 0);
        }
    }
    if any {
        draft.note(id, "is passed by");
    }
}

/// Whether who waits for `input` need not wait for `other` too: `other` is there in every step and comes of no
/// effect, or what makes `input` waits for it. All of what `IdentityN` gives is dead where one of its inputs is.
fn says_nothing(draft: &Draft<'_>, other: Output, input: Output) -> bool {
    let Some(up) = draft.source(other).filter(|_| other != input) else { return true };
    let waits = |id: NodeId| {
        let node = draft.node(id);
        let plain = node.control_flow() == ControlFlow::No;
        plain && (id == up || node.inputs.contains(&other))
    };
    draft.is_clean(up) || draft.source(input).is_some_and(waits)
}

/// Whether it waits for more than its inputs.
fn waits_for_effects(draft: &Draft<'_>, id: NodeId) -> bool {
    draft.control_sources(id).any(|source| !draft.is_clean(source))
}

/// Whoever waits for the node waits for its input's node. Not where that is a `Switch`, of which one output is
/// dead, nor where it is fed.
fn pass_order_on(draft: &mut Draft<'_>, id: NodeId, input: Output) -> bool {
    let Some(source) = draft.source(input) else { return false };
    let steers = draft.node(source).control_flow() != ControlFlow::No;
    if !draft.is_waited_for(id) || steers || draft.is_kept(id) {
        return false;
    }
    draft.redirect_control(id, &[source]);
    true
}
