//! Fuses chains and trees of elementwise ops into one `_FusedElementwise`, which makes one pass
//! over memory.
//!
//! A tree grows from a node upwards, through inputs that have no other users and have its shape.
//! Constants, scalars and vectors along the last dimensions become inputs of the fused node. A
//! chain of fewer than two ops is left alone; a chain longer than the longest program is split.

use crate::{Draft, NewNode, Pass, PassError};
use std::collections::HashMap;
use tenon_geometry::fused::{Instruction, MAX_INSTRUCTIONS, Operand, Program, ProgramOp};
use tenon_graph::{NodeId, Output, topological};

/// The fused op.
const FUSED: &str = "_FusedElementwise";
/// The maximum number of inputs of one node: each is a stream of memory.
const MAX_INPUTS: usize = 8;

/// Elementwise fusion.
pub(crate) struct ElementwiseFusion;

impl Pass for ElementwiseFusion {
    fn name(&self) -> &str {
        "elementwise_fusion"
    }

    fn is_late(&self) -> bool {
        true
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        if !draft.view().has_any_kernel(FUSED) {
            return Ok(());
        }
        // The nodes are visited from the last to the first, so that each tree is as large as
        // possible.
        for id in draft.order()?.into_iter().rev() {
            if draft.is_stopped() {
                break;
            }
            if draft.is_live(id) && !draft.users(id).is_empty() | draft.is_kept(id) {
                fuse(draft, id);
            }
        }
        Ok(())
    }
}

/// The program op of a node.
fn op_of(draft: &Draft<'_>, id: NodeId) -> Option<ProgramOp> {
    let op = ProgramOp::named(&draft.node(id).op.name)?;
    draft.is_rewritable(id).then_some(op)
}

fn fuse(draft: &mut Draft<'_>, root: NodeId) {
    if op_of(draft, root).is_none() || draft.shape(root.into()).rank().is_none() {
        return;
    }
    let mut tree =
        Tree { draft, root, inputs: Vec::new(), inside: Vec::new(), done: HashMap::new() };
    tree.grow();
    let Some((program, inputs, count)) = tree.program() else { return };
    let mut control = Vec::new();
    for &id in &tree.inside {
        control.extend(tree.draft.node(id).control_inputs.iter().copied());
    }
    let inside = std::mem::take(&mut tree.inside);
    let new = NewNode::new(FUSED).inputs(inputs).attr("program", program.as_str()).after(control);
    if draft.replace(root, new).is_ok() {
        draft.note(root, format!("is {FUSED} now, for {count} nodes: {program}"));
        draft.absorb(inside.into_iter().filter(|id| *id != root));
    }
}

struct Tree<'d, 'a> {
    draft: &'d Draft<'a>,
    root: NodeId,
    inputs: Vec<Output>,
    /// The nodes of the tree, users first.
    inside: Vec<NodeId>,
    /// The instruction number of each node.
    done: HashMap<NodeId, usize>,
}

impl Tree<'_, '_> {
    fn grow(&mut self) {
        self.inside.push(self.root);
        let mut next = 0;
        while let Some(&id) = self.inside.get(next) {
            next += 1;
            for &input in &self.draft.node(id).inputs {
                let room = self.inside.len() < MAX_INSTRUCTIONS;
                match self.draft.source(input).filter(|source| room && self.may_join(*source)) {
                    Some(source) if !self.inside.contains(&source) => self.inside.push(source),
                    _ => {}
                }
            }
        }
    }

    /// Whether a node has no users outside the tree, and has the shape of the tree.
    fn may_join(&self, id: NodeId) -> bool {
        let draft = self.draft;
        op_of(draft, id).is_some()
            && !draft.is_kept(id)
            && draft.devices[id.index()] == draft.devices[self.root.index()]
            && draft.dtype(id.into()) == draft.dtype(self.root.into())
            && draft.same_shape(id.into(), self.root.into())
            && !draft.is_waited_for(id)
            && draft.users(id).iter().all(|user| self.inside.contains(user))
    }

    /// The program text, its inputs, and its number of nodes.
    fn program(&mut self) -> Option<(String, Vec<Output>, usize)> {
        if self.inside.len() < 2 {
            return None;
        }
        // Users come first in `inside`, so the reverse order has sources first.
        let mut instructions = Vec::new();
        for id in self.sources_first() {
            let op = op_of(self.draft, id)?;
            let inputs = self.draft.node(id).inputs.clone();
            let first = self.operand(*inputs.first()?)?;
            let second = match inputs.get(1) {
                Some(&input) => self.operand(input)?,
                None => first,
            };
            self.done.insert(id, instructions.len());
            instructions.push(Instruction { op, operands: [first, second] });
        }
        let count = instructions.len();
        let program = Program::new(instructions, self.inputs.len()).ok()?;
        Some((program.to_string(), std::mem::take(&mut self.inputs), count))
    }

    /// The nodes of the tree, each after its inputs.
    fn sources_first(&self) -> Vec<NodeId> {
        let at = |id: NodeId| self.inside.iter().position(|inside| *inside == id);
        let sources = |number: usize| {
            let inputs = self.draft.node(self.inside[number]).inputs.iter();
            inputs
                .filter_map(|&input| at(self.draft.source(input)?))
                .collect::<Vec<_>>()
                .into_iter()
        };
        let order = topological(self.inside.len(), sources);
        order.into_iter().map(|number| self.inside[number]).collect()
    }

    fn operand(&mut self, output: Output) -> Option<Operand> {
        if let Some(source) = self.draft.source(output)
            && let Some(&number) = self.done.get(&source)
        {
            return Some(Operand::Result(number));
        }
        if let Some(at) = self.inputs.iter().position(|input| *input == output) {
            return Some(Operand::Input(at));
        }
        if self.inputs.len() == MAX_INPUTS || !self.fits(output) {
            return None;
        }
        self.inputs.push(output);
        Some(Operand::Input(self.inputs.len() - 1))
    }

    /// Whether a tensor has the shape of the tree, or that of its last dimensions.
    fn fits(&self, output: Output) -> bool {
        let dims = |output| self.draft.value(output).and_then(|value| value.shape.dims());
        match (dims(output), dims(self.root.into())) {
            (Some(own), Some(whole)) => whole.ends_with(own),
            _ => false,
        }
    }
}
