//! Dead branch removal: a `Switch` whose predicate is the same in every step has one live output.
//!
//! Readers of the live output read the input instead. Nodes that depend on the dead output never
//! run and are removed, up to the `Merge` where the branches meet, which forwards its live input. A
//! `Switch` is left alone if a fetch or target depends on the dead branch (the step reports that at
//! run time), if a `Merge` keeps several live inputs, and in graphs with loops.

use crate::{Draft, NewNode, Pass, PassError};
use std::collections::{HashMap, HashSet};
use tenon_framework::Tensor;
use tenon_graph::{ControlFlow, NodeId, Output, required_ops};

/// Dead branch removal.
pub(crate) struct DeadBranches;

impl Pass for DeadBranches {
    fn name(&self) -> &str {
        "dead_branches"
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        let order = draft.order()?;
        let role = |id: &NodeId| draft.node(*id).control_flow();
        let loops = |id: &NodeId| {
            let role = role(id);
            !matches!(role, ControlFlow::No | ControlFlow::Switch | ControlFlow::Merge)
        };
        if order.iter().any(loops) {
            return Ok(());
        }
        let switches: Vec<NodeId> =
            order.iter().copied().filter(|id| role(id) == ControlFlow::Switch).collect();
        for id in switches {
            if draft.is_stopped() {
                break;
            }
            if !draft.is_live(id) || draft.users(id).is_empty() {
                continue;
            }
            if let Some(taken) = taken(draft, id)
                && let Some(plan) = Plan::new(draft, id, 1 - taken)
            {
                plan.carry_out(draft, id, taken)?;
            }
        }
        Ok(())
    }
}

/// The output of a `Switch` that is live in every step.
fn taken(draft: &Draft<'_>, id: NodeId) -> Option<u32> {
    let node = draft.node(id);
    if draft.is_kept(id) || node.signature.inputs[0].is_ref() {
        return None;
    }
    let predicate = draft.constant(*node.inputs.get(1)?)?;
    match predicate.as_slice::<bool>() {
        Ok([taken]) => Some(u32::from(*taken)),
        _ => None,
    }
}

/// The consequences of a dead output.
struct Plan {
    /// Nodes that never run.
    dead: HashSet<NodeId>,
    /// The `Merge` nodes with one live input, and its position.
    merges: Vec<(NodeId, usize)>,
}

impl Plan {
    fn new(draft: &Draft<'_>, switch: NodeId, output: u32) -> Option<Plan> {
        let mut plan = Plan { dead: HashSet::new(), merges: Vec::new() };
        let root = Output::new(switch, output);
        let mut stack: Vec<NodeId> = reading(draft, root);
        let mut merges: Vec<NodeId> = Vec::new();
        let mut reached: HashMap<NodeId, usize> = HashMap::new();
        while let Some(id) = stack.pop() {
            if plan.dead.contains(&id) {
                continue;
            }
            if draft.node(id).control_flow() == ControlFlow::Merge {
                let times = reached.entry(id).or_default();
                *times += 1;
                // All inputs can be dead only if the node was reached from each of them.
                let few = *times < draft.node(id).inputs.len();
                if few || !plan.all_dead(draft, id, root) {
                    merges.push(id);
                    continue;
                }
            }
            if draft.is_kept(id) {
                return None;
            }
            plan.dead.insert(id);
            draft.spend(draft.users(id).len());
            stack.extend(draft.users(id).iter());
        }
        merges.sort_unstable();
        merges.dedup();
        for id in merges.into_iter().filter(|id| !plan.dead.contains(id)).collect::<Vec<_>>() {
            let live = plan.only_live(draft, id, root)?;
            plan.merges.push((id, live));
        }
        Some(plan)
    }

    fn is_dead(&self, draft: &Draft<'_>, input: Output, root: Output) -> bool {
        let from_dead = draft.source(input).is_some_and(|source| self.dead.contains(&source));
        input == root || from_dead
    }

    fn all_dead(&self, draft: &Draft<'_>, merge: NodeId, root: Output) -> bool {
        draft.spend(draft.node(merge).inputs.len());
        draft.node(merge).inputs.iter().all(|&input| self.is_dead(draft, input, root))
    }

    /// The only input of a `Merge` that may be live, if the `Merge` can be removed.
    fn only_live(&self, draft: &Draft<'_>, merge: NodeId, root: Output) -> Option<usize> {
        let node = draft.node(merge);
        let inputs = node.inputs.iter().enumerate();
        let mut live = inputs.filter(|(_, input)| !self.is_dead(draft, **input, root));
        let (at, _) = live.next()?;
        let plain = !node.signature.inputs[0].is_ref()
            && node.control_inputs.is_empty()
            && !draft.is_fetched(Output::new(merge, 1))
            && !draft.is_fed(Output::new(merge, 0))
            && !draft.is_fed(Output::new(merge, 1));
        (live.next().is_none() && plain).then_some(at)
    }

    fn carry_out(self, draft: &mut Draft<'_>, switch: NodeId, taken: u32) -> Result<(), PassError> {
        for (merge, live) in &self.merges {
            replace_merge(draft, *merge, *live)?;
        }
        for &id in &self.dead {
            draft.give_up_effects(id);
        }
        let [data, predicate] = draft.node(switch).inputs[..] else { return Ok(()) };
        let mut control: Vec<NodeId> = draft.control_sources(switch).collect();
        control.extend(draft.anchors(predicate).unwrap_or_default());
        let value = if control.is_empty() {
            data
        } else {
            let new = NewNode::new(required_ops::IDENTITY).input(data).after(control);
            draft.add(switch, "taken", new)?.into()
        };
        draft.redirect(Output::new(switch, taken), value)?;
        draft.note(
            switch,
            format!("has one live output, {taken}: its branch is taken in every step"),
        );
        // Remove the dead nodes now, so that the pass does not visit the next `Switch` among them.
        let mut dead: Vec<NodeId> = self.dead.into_iter().collect();
        dead.sort_unstable();
        draft.sweep_from(dead);
        Ok(())
    }
}

/// Turns a `Merge` into an `Identity`.
fn replace_merge(draft: &mut Draft<'_>, merge: NodeId, live: usize) -> Result<(), PassError> {
    let input = draft.node(merge).inputs[live];
    let index = Output::new(merge, 1);
    if draft.uses(index) > 0 {
        let value = Tensor::scalar(live as i32);
        let value = value.map_err(|error| PassError::Failed(error.to_string()))?;
        let made = draft.add(merge, "value_index", NewNode::constant(value).after([merge]))?;
        draft.redirect(index, made.into())?;
    }
    draft.substitute(merge, NewNode::new(required_ops::IDENTITY).input(input))?;
    draft.note(merge, "passes its only live input on");
    Ok(())
}

/// The nodes that read an output, once for each edge.
fn reading(draft: &Draft<'_>, output: Output) -> Vec<NodeId> {
    draft.readers(output).collect()
}
