//! Compiles a partition with control flow to the plans of its frames.

mod items;

use super::{FrameEdge, FrameInput, FrameNode, FramePlan, Role, counts, counts::Arrival};
use crate::{
    error::{RuntimeError, StepError},
    plan::{
        Plan, Span,
        build::Builder,
        node_flags,
        source::{Endpoints, Member, Places, PlanSource},
    },
};
use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicU64},
};
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
        let nodes = described.nodes.iter().zip(&described.counts).enumerate();
        let ready = nodes
            .filter(|(_, (node, count))| counts::is_complete(node.role == Role::Merge, **count));
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

/// Whether a node brings a value into every iteration of a frame.
pub(in crate::plan) fn is_steady(node: &PartNode) -> bool {
    let PartKind::Op(op) = &node.kind else { return false };
    let is_constant = matches!(op.attrs.get("is_constant"), Some(AttrValue::Bool(true)));
    is_constant && role_of(node) == ControlFlow::Enter
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
                let frame = self.position(node.gives_to) as u32;
                Role::Enter { frame, constant: is_steady(node) }
            }
        }
    }

    /// The edges from each node that runs to others that run.
    fn edges(&self) -> Vec<Vec<FrameEdge>> {
        let mut edges = vec![Vec::new(); self.partition.nodes.len()];
        for (at, node) in self.partition.nodes.iter().enumerate() {
            let Some(number) = self.places.number[at] else { continue };
            let is_merge = role_of(node) == ControlFlow::Merge;
            let to = FrameEdge {
                output: FrameEdge::CONTROL,
                node: number,
                input: 0,
                merged: if is_merge { node.inputs.len() as u32 } else { 0 },
                triggers: is_trigger(node),
            };
            for (input, edge) in (0..).zip(&node.inputs) {
                edges[edge.node as usize].push(FrameEdge { output: edge.output, input, ..to });
            }
            for &source in &node.control_inputs {
                edges[source as usize].push(to);
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
        let (mut nodes, mut edges, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        let (mut counts, mut exits) = (Vec::new(), Vec::new());
        let mut writers = vec![FramePlan::NONE; plan.outputs.len()];
        for member in self.members[position].iter().filter(|member| member.runs) {
            let at = member.at as usize;
            let (Some(number), node) = (self.places.number[at], &self.partition.nodes[at]) else {
                continue;
            };
            let role = self.role(at);
            nodes.push(FrameNode {
                role,
                edges: appended(&mut edges, from[at].iter().copied()),
                inputs: appended(&mut inputs, forwarded(plan, number, role)),
                output: self.places.first[at],
            });
            counts.push(self.count(node));
            exits.extend((role == Role::Exit).then_some(number));
            if member.gives && role != Role::NextIteration {
                let first = self.places.first[at] as usize;
                writers[first..first + node.signature.outputs.len()].fill(number);
            }
        }
        let steady = self.steady(position, &counts, from);
        let is_steady = |at: &u32| plan.outputs[*at as usize].steady;
        let calls = |at: &u32| plan.hot[*at as usize].flags & node_flags::FORWARD == 0;
        let info = frames.info(self.present[position]);
        FramePlan {
            name: info.name.clone(),
            digest: counts::digest(info.name.as_bytes()),
            parallel: usize::try_from(info.parallel_iterations).unwrap_or(1).max(1),
            enters: self.enters[position],
            calls: (0..nodes.len() as u32).filter(calls).collect(),
            nodes: nodes.into(),
            edges: edges.into(),
            inputs: inputs.into(),
            counts: counts.into(),
            steady_counts: steady.counts,
            steady_roots: steady.roots,
            steady: (0..plan.outputs.len() as u32).filter(is_steady).collect(),
            exits: exits.into(),
            writers: writers.into(),
            numbers: Arc::clone(numbers),
            program: self.program(position, plan),
        }
    }

    /// The counts in the frame at this position once the values that enter every iteration have
    /// arrived.
    fn steady(&self, position: usize, counts: &[u64], from: &[Vec<FrameEdge>]) -> Steady {
        let counts: Vec<AtomicU64> = counts.iter().map(|&count| AtomicU64::new(count)).collect();
        let mut roots = Vec::new();
        let entering =
            |member: &&Member| !member.runs && is_steady(&self.partition.nodes[member.at as usize]);
        let entering = self.members[position].iter().filter(entering);
        for edge in entering.flat_map(|member| &from[member.at as usize]) {
            let count = &counts[edge.node as usize];
            let arrival =
                if edge.is_control() { Arrival::Control } else { Arrival::Value(edge.input) };
            let runs = match edge.merged {
                0 => counts::arrive(count, false, true),
                inputs => counts::arrive_merge(count, inputs, arrival, true),
            };
            roots.extend(runs.map(|_| edge.node));
        }
        let counts = counts.into_iter().map(AtomicU64::into_inner).collect();
        Steady { counts, roots: roots.into() }
    }
}

/// The state of an iteration in which the values that enter every iteration have arrived.
struct Steady {
    counts: Box<[u64]>,
    roots: Box<[u32]>,
}

/// Appends items; returns their positions.
fn appended<T>(items: &mut Vec<T>, new: impl IntoIterator<Item = T>) -> Span {
    let start = items.len() as u32;
    items.extend(new);
    Span { start, end: items.len() as u32 }
}

/// The inputs of a node that forwards; none of any other node.
fn forwarded(plan: &Plan, number: u32, role: Role) -> Vec<FrameInput> {
    let inputs = &plan.nodes[number as usize].inputs;
    let input =
        |&output: &u32| FrameInput { output, counted: plan.outputs[output as usize].is_counted() };
    match role {
        Role::Plain | Role::Trigger => Vec::new(),
        _ => inputs.iter().map(input).collect(),
    }
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
