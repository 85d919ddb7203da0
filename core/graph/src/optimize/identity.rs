//! Nodes whose op passes an input on as it is: those who read them read the input itself.
//!
//! A node of several inputs is passed by where its users wait for the other values anyway. One that is kept
//! stays for its name; one by which others order themselves stays for them, unless they may as well wait for the input's
//! own node.

use super::{Draft, Pass, PassError};
use crate::{ControlFlow, NodeId, Output};
use std::collections::{HashMap, HashSet};

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
            let node = draft.node(id);
            if !node.op.facts().is_identity() {
                continue;
            }
            match (node.inputs.len(), node.outputs().len()) {
                (1, 1) => one(draft, id),
                _ => several(draft, id),
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
    let node = draft.node(id);
    let mut awaited = Awaited::of(draft, &node.inputs);
    let flat = node.op.facts().passed_on(&node.signature);
    let passed: Vec<(Output, usize)> = flat.map(|(from, to)| (node.inputs[from], to)).collect();
    let mut any = false;
    for (input, at) in passed {
        if awaited.by(draft, input) {
            let output = Output::new(id, at as u32);
            any |= draft.redirect(output, input).is_ok_and(|edges| edges > 0);
        }
    }
    if any {
        draft.note(id, "is passed by");
    }
}

/// The inputs of a node of several that its users wait for: their values may be dead, or come of an effect. All of what it
/// gives is dead where one of its inputs is.
struct Awaited {
    /// Each once.
    inputs: Vec<Output>,
    /// Whether a node that makes an input waits for those that it does not make itself.
    known: HashMap<NodeId, bool>,
}

impl Awaited {
    fn of(draft: &Draft<'_>, inputs: &[Output]) -> Awaited {
        let is_awaited =
            |input: &&Output| draft.source(**input).is_some_and(|up| !draft.is_clean(up));
        let inputs: HashSet<Output> = inputs.iter().filter(is_awaited).copied().collect();
        Awaited { inputs: inputs.into_iter().collect(), known: HashMap::new() }
    }

    /// Whether a node that waits for `input` thereby waits for all of these.
    fn by(&mut self, draft: &Draft<'_>, input: Output) -> bool {
        let Awaited { inputs, known } = self;
        match draft.source(input) {
            Some(up) if draft.node(up).control_flow() == ControlFlow::No => {
                *known.entry(up).or_insert_with(|| waits_for(draft, up, inputs))
            }
            _ => inputs.iter().all(|other| *other == input),
        }
    }
}

/// Whether a node reads all of these that it does not make.
fn waits_for(draft: &Draft<'_>, id: NodeId, inputs: &[Output]) -> bool {
    let mut others = inputs.iter().filter(|input| draft.source(**input) != Some(id)).peekable();
    if others.peek().is_none() {
        return true;
    }
    let read: HashSet<&Output> = draft.node(id).inputs.iter().collect();
    others.all(|other| read.contains(other))
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
