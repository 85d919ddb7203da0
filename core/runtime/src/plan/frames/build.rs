//! Compiles a partition with control flow to the plans of its frames.

use super::{FrameEdge, FrameNode, FramePlan, Role, counts};
use crate::{
    error::{RuntimeError, StepError},
    plan::{
        Plan, Span,
        build::Builder,
        source::{Endpoints, Member, Places, PlanSource},
    },
};
use std::{collections::BTreeSet, sync::Arc};
use tenon_framework::{Tensor, attr::AttrValue, device::base::LocalDevice, op::OpRole};
use tenon_graph::{ControlFlow, FrameId, Frames, PartKind, PartNode, Partition};

/// Compiles a partition with control flow; returns the plan of the root frame, which contains the
/// others.
pub(crate) fn build(
    partition: &Partition,
    frames: &Frames,
    device: &Arc<dyn LocalDevice>,
    source: &dyn PlanSource,
) -> Result<(Plan, Endpoints), RuntimeError> {
    let mut wiring = Wiring::new(partition);
    let mut plans = Vec::new();
    let mut endpoints = Endpoints::default();
    for (at, members) in wiring.members.iter().enumerate() {
        let places = std::mem::take(&mut wiring.places);
        let mut builder = Builder::new(partition, device, source, members.clone(), places);
        builder.outputs()?;
        builder.nodes()?;
        builder.hot_nodes(&vec![BTreeSet::new(); builder.len()]);
        let (plan, found, places) = builder.finish();
        wiring.places = places;
        if at == 0 {
            endpoints = found;
        }
        plans.push(plan);
    }
    let numbers = numbers(partition)?;
    let edges = wiring.edges();
    for (at, plan) in plans.iter_mut().enumerate() {
        let described = wiring.frame_plan(at, plan, &edges, frames, &numbers);
        let nodes = described.nodes.iter().enumerate();
        let ready =
            nodes.filter(|(_, node)| counts::is_complete(node.role == Role::Merge, node.count));
        let mut roots: Vec<u32> = ready.map(|(at, _)| at as u32).collect();
        roots.reverse();
        plan.roots = roots.into();
        plan.frame = Some(Arc::new(described));
    }
    // The root frame always exists, and is the first.
    let mut root = plans.remove(0);
    root.inner = plans.into_iter().map(Arc::new).collect();
    Ok((root, endpoints))
}

/// The scalars that a `Merge` gives as its second output.
fn numbers(partition: &Partition) -> Result<Arc<[Tensor]>, RuntimeError> {
    let merges = partition.nodes.iter().filter(|node| role_of(node) == ControlFlow::Merge);
    let most = merges.map(|node| node.inputs.len()).max().unwrap_or(0);
    let made: Result<Arc<[Tensor]>, _> = (0..most as i32).map(Tensor::scalar).collect();
    made.map_err(|error| StepError::step(error.code(), error.to_string()).into())
}

fn role_of(node: &PartNode) -> ControlFlow {
    node.control_flow()
}

/// Whether a node runs even if everything that it waits for is dead.
fn is_trigger(node: &PartNode) -> bool {
    matches!(&node.kind, PartKind::Op(op) if op.def.facts().role == OpRole::Trigger)
}

/// The places of the partition's nodes in the plans of the frames.
struct Wiring<'p> {
    partition: &'p Partition,
    /// The frames of this partition in order; the root frame is the first.
    present: Vec<FrameId>,
    /// The nodes of each of these frames.
    members: Vec<Vec<Member>>,
    places: Places,
    /// The number of nodes that bring values into each frame.
    enters: Vec<u32>,
}

impl<'p> Wiring<'p> {
    fn new(partition: &'p Partition) -> Wiring<'p> {
        let nodes = &partition.nodes;
        let mut present: BTreeSet<FrameId> =
            nodes.iter().flat_map(|node| [node.frame, node.gives_to]).collect();
        present.insert(FrameId::ROOT);
        let mut wiring = Wiring {
            partition,
            members: vec![Vec::new(); present.len()],
            enters: vec![0; present.len()],
            present: present.into_iter().collect(),
            places: Places::new(nodes.len()),
        };
        wiring.group();
        wiring
    }

    /// Adds each node to the frame in which it runs, and to the frame to which its outputs belong.
    fn group(&mut self) {
        for (node, at) in self.partition.nodes.iter().zip(0u32..) {
            let (inside, outside) = (self.position(node.frame), self.position(node.gives_to));
            let gives = inside == outside;
            self.members[inside].push(Member { at, runs: true, gives });
            if !gives {
                self.members[outside].push(Member { at, runs: false, gives: true });
            }
            if role_of(node) == ControlFlow::Enter {
                self.enters[outside] += 1;
            }
        }
    }

    fn position(&self, frame: FrameId) -> usize {
        self.present.binary_search(&frame).unwrap_or(0)
    }

    fn role(&self, at: usize) -> Role {
        let node = &self.partition.nodes[at];
        match role_of(node) {
            ControlFlow::No if is_trigger(node) => Role::Trigger,
            ControlFlow::No => Role::Plain,
            ControlFlow::Switch => Role::Switch,
            ControlFlow::Merge => Role::Merge,
            ControlFlow::LoopCond => Role::LoopCond,
            ControlFlow::Exit => Role::Exit,
            ControlFlow::NextIteration => Role::NextIteration,
            ControlFlow::Enter => {
                let constant = match &node.kind {
                    PartKind::Op(op) => {
                        matches!(op.attrs.get("is_constant"), Some(AttrValue::Bool(true)))
                    }
                    _ => false,
                };
                Role::Enter { frame: self.position(node.gives_to) as u32, constant }
            }
        }
    }

    /// The edges from each node that runs to others that run.
    fn edges(&self) -> Vec<Vec<FrameEdge>> {
        let mut edges = vec![Vec::new(); self.partition.nodes.len()];
        for (at, node) in self.partition.nodes.iter().enumerate() {
            let Some(number) = self.places.number[at] else { continue };
            for (input, edge) in node.inputs.iter().enumerate() {
                let input = input as u32;
                edges[edge.node as usize].push(FrameEdge {
                    output: edge.output,
                    node: number,
                    input,
                });
            }
            for &source in &node.control_inputs {
                let edge = FrameEdge { output: FrameEdge::CONTROL, node: number, input: 0 };
                edges[source as usize].push(edge);
            }
        }
        edges
    }

    /// The initial count of a node; sources that do not run have already arrived.
    fn count(&self, node: &PartNode) -> u64 {
        let runs = |source: u32| self.places.number[source as usize].is_some();
        let controls = node.control_inputs.iter().filter(|&&source| runs(source)).count();
        if role_of(node) != ControlFlow::Merge {
            let inputs = node.inputs.iter().filter(|edge| runs(edge.node)).count();
            return (controls + inputs) as u64;
        }
        let known = node.inputs.iter().position(|edge| !runs(edge.node));
        counts::merge(controls as u32, known.map(|input| input as u32))
    }

    /// The additional plan data of the frame at this position.
    fn frame_plan(
        &self,
        position: usize,
        plan: &Plan,
        from: &[Vec<FrameEdge>],
        frames: &Frames,
        numbers: &Arc<[Tensor]>,
    ) -> FramePlan {
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        let mut writers = vec![FramePlan::NONE; plan.outputs.len()];
        for member in self.members[position].iter().filter(|member| member.runs) {
            let at = member.at as usize;
            let (Some(number), node) = (self.places.number[at], &self.partition.nodes[at]) else {
                continue;
            };
            let start = edges.len() as u32;
            edges.extend_from_slice(&from[at]);
            let role = self.role(at);
            nodes.push(FrameNode {
                role,
                edges: Span { start, end: edges.len() as u32 },
                inputs: node.inputs.len() as u32,
                output: self.places.first[at],
                count: self.count(node),
            });
            if member.gives && role != Role::NextIteration {
                let first = self.places.first[at] as usize;
                writers[first..first + node.signature.outputs.len()].fill(number);
            }
        }
        let info = frames.info(self.present[position]);
        FramePlan {
            name: info.name.clone(),
            digest: counts::digest(info.name.as_bytes()),
            parallel: usize::try_from(info.parallel_iterations).unwrap_or(1).max(1),
            enters: self.enters[position],
            nodes: nodes.into(),
            edges: edges.into(),
            writers: writers.into(),
            numbers: Arc::clone(numbers),
        }
    }
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
