//! The loops of a graph.

use crate::GradientError;
use std::collections::HashMap;
use tenon_framework::attr::AttrValue;
use tenon_graph::{ControlFlow, FrameId, Frames, Graph, NodeId, Output, prune};

/// A variable of a loop.
#[derive(Debug, Clone)]
pub(crate) struct LoopVar {
    pub enter: NodeId,
    pub switch: NodeId,
    pub next: NodeId,
    /// The nodes that give its last value to the frame around.
    pub exits: Vec<NodeId>,
}

/// A loop.
#[derive(Debug, Clone)]
pub(crate) struct LoopFrame {
    pub name: String,
    pub parent: FrameId,
    pub parallel: i64,
    /// The truth of the condition.
    pub cond: Option<Output>,
    pub vars: Vec<LoopVar>,
    /// The nodes that bring in values which stay.
    pub constants: Vec<NodeId>,
}

/// The loops of a graph, and the frame of each value.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    frames: HashMap<FrameId, LoopFrame>,
    of: HashMap<NodeId, FrameId>,
    /// The frame that each `Exit` leaves.
    exits: HashMap<NodeId, FrameId>,
    /// The switches and merges of variables.
    headers: HashMap<NodeId, FrameId>,
}

impl Loops {
    /// The loops that these tensors depend on.
    pub fn find(graph: &Graph, ys: &[Output]) -> Result<Loops, GradientError> {
        let mut loops = Loops::default();
        if !graph.nodes().any(|(_, node)| node.control_flow() == ControlFlow::Enter) {
            return Ok(loops);
        }
        let sub = prune(graph, &[], ys, &[])?;
        let frames = Frames::find(graph, &sub)?;
        for (at, info) in frames.frames.iter().enumerate().skip(1) {
            let frame = LoopFrame {
                name: info.name.clone(),
                parent: info.parent,
                parallel: info.parallel_iterations,
                cond: None,
                vars: Vec::new(),
                constants: Vec::new(),
            };
            loops.frames.insert(FrameId(at as u32), frame);
        }
        for (at, &id) in sub.order.iter().enumerate() {
            let (runs, gives) = (frames.runs_in[at], frames.gives_to[at]);
            if gives != FrameId::ROOT {
                loops.of.insert(id, gives);
            }
            if graph.node(id).control_flow() == ControlFlow::Exit {
                loops.exits.insert(id, runs);
            }
        }
        for &id in &sub.order {
            loops.add(graph, id);
        }
        loops.find_constants(graph, &sub.order);
        Ok(loops)
    }

    fn add(&mut self, graph: &Graph, id: NodeId) {
        let node = graph.node(id);
        let frame = self.frame(id);
        let flow = |id: NodeId| graph.node(id).control_flow();
        match node.control_flow() {
            ControlFlow::LoopCond => {
                if let Some(info) = self.frames.get_mut(&frame) {
                    info.cond = Some(id.into());
                }
            }
            ControlFlow::Switch => {
                let Some(&merge) = node.inputs.first() else { return };
                let Some(&pred) = node.inputs.get(1) else { return };
                let inputs = &graph.node(merge.node).inputs;
                let next = inputs.iter().find(|i| flow(i.node) == ControlFlow::NextIteration);
                let enter = inputs.iter().find(|i| flow(i.node) == ControlFlow::Enter);
                let header = flow(merge.node) == ControlFlow::Merge
                    && flow(pred.node) == ControlFlow::LoopCond;
                if let (Some(next), Some(enter), true) = (next, enter, header) {
                    let exits = self.exits.keys().copied();
                    let last = Output::new(id, 0);
                    let mut exits: Vec<NodeId> =
                        exits.filter(|&exit| graph.node(exit).inputs[0] == last).collect();
                    exits.sort_unstable();
                    let (enter, next) = (enter.node, next.node);
                    let var = LoopVar { enter, switch: id, next, exits };
                    self.headers.insert(id, frame);
                    self.headers.insert(merge.node, frame);
                    if let Some(info) = self.frames.get_mut(&frame) {
                        info.vars.push(var);
                    }
                }
            }
            _ => {}
        }
    }

    /// Values that stay come in through the nodes whose attribute says so.
    fn find_constants(&mut self, graph: &Graph, order: &[NodeId]) {
        for &id in order {
            let node = graph.node(id);
            let stays = matches!(node.attrs.get("is_constant"), Some(AttrValue::Bool(true)));
            if node.control_flow() == ControlFlow::Enter && stays {
                let frame = self.frame(id);
                if let Some(info) = self.frames.get_mut(&frame) {
                    info.constants.push(id);
                }
            }
        }
    }

    /// The frame of the values of a node.
    pub fn frame(&self, id: NodeId) -> FrameId {
        self.of.get(&id).copied().unwrap_or(FrameId::ROOT)
    }

    /// Notes the frame of a node that was added.
    pub fn put(&mut self, id: NodeId, frame: FrameId) {
        if frame != FrameId::ROOT {
            self.of.insert(id, frame);
        }
    }

    /// A loop.
    pub fn info(&self, frame: FrameId) -> Option<&LoopFrame> {
        self.frames.get(&frame)
    }

    /// The frame that an `Exit` leaves.
    pub fn left_by(&self, id: NodeId) -> Option<FrameId> {
        self.exits.get(&id).copied()
    }

    /// The tensors on which the values of a node depend within a frame. An `Exit` of an inner loop depends on all that
    /// goes into the loop; what begins an iteration depends on nothing.
    pub fn sources(&self, graph: &Graph, id: NodeId, frame: FrameId) -> Vec<Output> {
        if let Some(inner) = self.left_by(id).filter(|inner| *inner != frame)
            && let Some(info) = self.info(inner)
        {
            let enters =
                info.vars.iter().map(|var| var.enter).chain(info.constants.iter().copied());
            return enters.map(|enter| graph.node(enter).inputs[0]).collect();
        }
        if self.begins(graph, id, frame) { Vec::new() } else { graph.node(id).inputs.clone() }
    }

    /// As [`Loops::sources`], with the nodes that run before the node.
    pub fn sources_and_control(&self, graph: &Graph, id: NodeId, frame: FrameId) -> Vec<Output> {
        let mut sources = self.sources(graph, id, frame);
        if !self.begins(graph, id, frame) {
            sources.extend(graph.node(id).control_inputs.iter().map(|&id| Output::new(id, 0)));
        }
        sources
    }

    /// Whether a node begins an iteration of a frame.
    fn begins(&self, graph: &Graph, id: NodeId, frame: FrameId) -> bool {
        self.headers.get(&id) == Some(&frame)
            || (frame != FrameId::ROOT
                && self.frame(id) == frame
                && graph.node(id).control_flow() == ControlFlow::Enter)
    }
}
