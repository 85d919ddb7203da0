//! From a partition with control flow to the plans of its frames.

use super::{FrameEdge, FrameNode, FramePlan, Role, counts};
use crate::{
    error::{RuntimeError, StepError},
    plan::{
        Plan, Span,
        build::{Builder, PlanSource, Sites},
    },
};
use std::{collections::BTreeSet, sync::Arc};
use tenon_framework::{Tensor, device::base::LocalDevice};
use tenon_graph::{ControlFlow, FrameId, Frames, PartKind, PartNode, Partition};

/// Compiles a partition with control flow: gives the plan of the step itself, with the others in it.
pub(crate) fn build(
    partition: &Partition,
    frames: &Frames,
    device: &Arc<dyn LocalDevice>,
    source: &dyn PlanSource,
) -> Result<(Plan, Sites), RuntimeError> {
    let mut wiring = Wiring::new(partition, source);
    let mut plans = Vec::new();
    let mut sites = Sites::default();
    for (at, &frame) in wiring.present.clone().iter().enumerate() {
        let mut builder = Builder::new(partition, device, source);
        builder.runs = wiring.runs_in.iter().map(|&runs| runs == frame).collect();
        builder.gives = wiring.gives_to.iter().map(|&gives| gives == frame).collect();
        builder.outputs()?;
        builder.nodes()?;
        wiring.take(&builder);
        let count = builder.number.iter().flatten().count();
        builder.hot_nodes(&vec![BTreeSet::new(); count]);
        let (plan, found) = builder.finish();
        if at == 0 {
            sites = found;
        }
        plans.push(plan);
    }
    let numbers = numbers(partition)?;
    for (plan, &frame) in plans.iter_mut().zip(&wiring.present) {
        let described = wiring.frame_plan(frame, plan, frames, &numbers);
        let nodes = described.nodes.iter().enumerate();
        let ready =
            nodes.filter(|(_, node)| counts::is_complete(node.role == Role::Merge, node.count));
        let mut roots: Vec<u32> = ready.map(|(at, _)| at as u32).collect();
        roots.reverse();
        plan.roots = roots.into();
        plan.frame = Some(Arc::new(described));
    }
    // The step itself is always there, and first.
    let mut root = plans.remove(0);
    root.inner = plans.into_iter().map(Arc::new).collect();
    Ok((root, sites))
}

/// Scalars that a `Merge` gives as its second output.
fn numbers(partition: &Partition) -> Result<Arc<[Tensor]>, RuntimeError> {
    let merges = partition.nodes.iter().filter(|node| role_of(node) == ControlFlow::Merge);
    let most = merges.map(|node| node.inputs.len()).max().unwrap_or(0);
    let made: Result<Arc<[Tensor]>, _> = (0..most as i32).map(Tensor::scalar).collect();
    made.map_err(|error| StepError::step(error.code(), error.to_string()).into())
}

fn role_of(node: &PartNode) -> ControlFlow {
    ControlFlow::of(&node.op)
}

/// Where each node of the partition is in the plans of the frames.
struct Wiring<'p> {
    partition: &'p Partition,
    source: &'p dyn PlanSource,
    /// The frames of this partition, the step itself first.
    present: Vec<FrameId>,
    runs_in: Vec<FrameId>,
    gives_to: Vec<FrameId>,
    /// Number of each node that runs, in the plan of the frame in which it runs.
    number: Vec<Option<u32>>,
    /// First output of each node, in the plan of the frame to which it belongs.
    first: Vec<u32>,
}

impl<'p> Wiring<'p> {
    fn new(partition: &'p Partition, source: &'p dyn PlanSource) -> Wiring<'p> {
        let nodes = &partition.nodes;
        let runs_in: Vec<FrameId> = nodes.iter().map(|node| node.frame).collect();
        let gives = |node: &PartNode| match node.kind {
            PartKind::Node(id) => source.gives_to(id),
            _ => node.frame,
        };
        let gives_to: Vec<FrameId> = nodes.iter().map(gives).collect();
        let mut present: BTreeSet<FrameId> = runs_in.iter().chain(&gives_to).copied().collect();
        present.insert(FrameId::ROOT);
        Wiring {
            partition,
            source,
            present: present.into_iter().collect(),
            runs_in,
            gives_to,
            number: vec![None; nodes.len()],
            first: vec![0; nodes.len()],
        }
    }

    /// Keeps where the nodes of one frame are.
    fn take(&mut self, builder: &Builder<'_>) {
        for at in 0..self.partition.nodes.len() {
            self.number[at] = self.number[at].or(builder.number[at]);
            if builder.gives[at] {
                self.first[at] = builder.first[at];
            }
        }
    }

    fn position(&self, frame: FrameId) -> u32 {
        self.present.iter().position(|&other| other == frame).unwrap_or(0) as u32
    }

    fn role(&self, at: usize) -> Role {
        let node = &self.partition.nodes[at];
        match role_of(node) {
            ControlFlow::No if node.op == "ControlTrigger" => Role::Trigger,
            ControlFlow::No => Role::Plain,
            ControlFlow::Switch => Role::Switch,
            ControlFlow::Merge => Role::Merge,
            ControlFlow::LoopCond => Role::LoopCond,
            ControlFlow::Exit => Role::Exit,
            ControlFlow::NextIteration => Role::NextIteration,
            ControlFlow::Enter => {
                let constant = match node.kind {
                    PartKind::Node(id) => self.source.is_loop_constant(id),
                    _ => false,
                };
                Role::Enter { frame: self.position(self.gives_to[at]), constant }
            }
        }
    }

    /// The edges that lead from each node that runs to others that run.
    fn edges(&self) -> Vec<Vec<FrameEdge>> {
        let mut edges = vec![Vec::new(); self.partition.nodes.len()];
        for (at, node) in self.partition.nodes.iter().enumerate() {
            let Some(number) = self.number[at] else { continue };
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

    /// The count of a node before anything has arrived: sources that do not run are there already.
    fn count(&self, node: &PartNode) -> u64 {
        let runs = |source: u32| self.number[source as usize].is_some();
        let controls = node.control_inputs.iter().filter(|&&source| runs(source)).count();
        if role_of(node) != ControlFlow::Merge {
            let inputs = node.inputs.iter().filter(|edge| runs(edge.node)).count();
            return (controls + inputs) as u64;
        }
        let known = node.inputs.iter().position(|edge| !runs(edge.node));
        counts::merge(controls as u32, known.map(|input| input as u32))
    }

    fn frame_plan(
        &self,
        frame: FrameId,
        plan: &Plan,
        frames: &Frames,
        numbers: &Arc<[Tensor]>,
    ) -> FramePlan {
        let from = self.edges();
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        let mut writers = vec![FramePlan::NOBODY; plan.outputs.len()];
        for (at, node) in self.partition.nodes.iter().enumerate() {
            let (Some(number), true) = (self.number[at], self.runs_in[at] == frame) else {
                continue;
            };
            let start = edges.len() as u32;
            edges.extend_from_slice(&from[at]);
            let role = self.role(at);
            nodes.push(FrameNode {
                role,
                edges: Span { start, end: edges.len() as u32 },
                inputs: node.inputs.len() as u32,
                output: self.first[at],
                count: self.count(node),
            });
            if self.gives_to[at] == frame && role != Role::NextIteration {
                let first = self.first[at] as usize;
                writers[first..first + node.output_types.len()].fill(number);
            }
        }
        let info = frames.info(frame);
        FramePlan {
            name: info.name.clone(),
            digest: counts::digest(info.name.bytes()),
            parallel: usize::try_from(info.parallel_iterations).unwrap_or(1).max(1),
            enters: self.enters(frame),
            nodes: nodes.into(),
            edges: edges.into(),
            writers: writers.into(),
            numbers: Arc::clone(numbers),
        }
    }

    fn enters(&self, frame: FrameId) -> u32 {
        let enters = |at: &usize| {
            self.gives_to[*at] == frame && role_of(&self.partition.nodes[*at]) == ControlFlow::Enter
        };
        (0..self.partition.nodes.len()).filter(enters).count() as u32
    }
}
