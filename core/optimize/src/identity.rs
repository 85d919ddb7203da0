//! Identity removal: readers of an op that forwards its input read the input itself.
//!
//! A node with several inputs is bypassed if its readers wait for the other values anyway. A kept
//! node stays for its name. A node with outgoing control edges stays too, unless these can start at
//! the input's own node.

use crate::{Draft, Pass, PassError};
use std::collections::{HashMap, HashSet};
use tenon_graph::{ControlFlow, NodeId, Output};

/// Identity removal.
pub(crate) struct Identities;

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
        let ordered = move_control_edges(draft, id, input);
        if passed || ordered {
            draft.note(id, "is bypassed");
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
        draft.note(id, "is bypassed");
    }
}

/// The inputs of a node with several inputs that its readers wait for, because the values may be
/// dead or depend on an effect. All outputs of the node are dead if one of its inputs is.
struct Awaited {
    /// The inputs, without duplicates.
    inputs: Vec<Output>,
    /// Whether the node that computes an input waits for the other inputs.
    known: HashMap<NodeId, bool>,
}

impl Awaited {
    fn of(draft: &Draft<'_>, inputs: &[Output]) -> Awaited {
        let is_awaited =
            |input: &&Output| draft.source(**input).is_some_and(|up| !draft.is_clean(up));
        let inputs: HashSet<Output> = inputs.iter().filter(is_awaited).copied().collect();
        Awaited { inputs: inputs.into_iter().collect(), known: HashMap::new() }
    }

    /// Whether a node that waits for `input` also waits for all these inputs.
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

/// Whether a node reads all these inputs, except those that it computes.
fn waits_for(draft: &Draft<'_>, id: NodeId, inputs: &[Output]) -> bool {
    let mut others = inputs.iter().filter(|input| draft.source(**input) != Some(id)).peekable();
    if others.peek().is_none() {
        return true;
    }
    let read: HashSet<&Output> = draft.node(id).inputs.iter().collect();
    others.all(|other| read.contains(other))
}

/// Whether it has control inputs that are not clean.
fn waits_for_effects(draft: &Draft<'_>, id: NodeId) -> bool {
    draft.control_sources(id).any(|source| !draft.is_clean(source))
}

/// Moves the outgoing control edges of a node to its input's node. This is not done for a
/// control-flow node such as `Switch`, where one output is dead, nor if the input is fed.
fn move_control_edges(draft: &mut Draft<'_>, id: NodeId, input: Output) -> bool {
    let Some(source) = draft.source(input) else { return false };
    let steers = draft.node(source).control_flow() != ControlFlow::No;
    if !draft.is_waited_for(id) || steers || draft.is_kept(id) {
        return false;
    }
    draft.redirect_control(id, &[source]);
    true
}
