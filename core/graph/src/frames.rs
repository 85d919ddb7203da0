//! The loop that each node belongs to.
//!
//! A frame is one entry into a `while` loop; frames nest. An `Enter` gives its value to the frame
//! that its `frame_name` names, as a child of the frame of its input. An `Exit` gives its value to
//! the parent frame.

use crate::{ControlFlow, Graph, GraphError, Node, NodeId, Output, Subgraph};
use std::collections::HashMap;

/// Number of a frame in [`Frames`]; 0 is the step itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FrameId(pub u32);

impl FrameId {
    /// The step itself, outside any loop.
    pub const ROOT: FrameId = FrameId(0);
}

/// A frame of a step's graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameInfo {
    /// The name; empty for the step itself.
    pub name: String,
    /// The parent frame; the step itself is its own parent.
    pub parent: FrameId,
    /// The maximum number of iterations that run at once, as the `Enter` nodes state it; 1 for the
    /// step itself.
    pub parallel_iterations: i64,
    /// The number of `Enter` nodes that bring values into the frame.
    pub enters: u32,
}

/// The frames of a step's graph. `frames[0]` is the step itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// The frames; each one follows its parent.
    pub frames: Vec<FrameInfo>,
    /// The frame in which each node runs, by position in [`Subgraph::order`]. An `Enter` runs in
    /// the parent frame, an `Exit` in the frame that it leaves.
    pub runs_in: Vec<FrameId>,
    /// The frame to which each node's outputs belong, by the same position.
    pub gives_to: Vec<FrameId>,
}

impl Frames {
    /// Finds the frames of a subgraph.
    ///
    /// # Errors
    /// A node has inputs from different frames, or an `Exit` or `NextIteration` is outside any
    /// frame.
    pub fn find(graph: &Graph, sub: &Subgraph) -> Result<Frames, GraphError> {
        let root = FrameInfo {
            name: String::new(),
            parent: FrameId::ROOT,
            parallel_iterations: 1,
            enters: 0,
        };
        let mut finder = Finder {
            graph,
            sub,
            by_name: HashMap::new(),
            frames: Frames { frames: vec![root], runs_in: Vec::new(), gives_to: Vec::new() },
        };
        for &id in &sub.order {
            finder.add(id)?;
        }
        finder.check_back_edges()?;
        Ok(finder.frames)
    }

    /// The frame with this number.
    pub fn info(&self, frame: FrameId) -> &FrameInfo {
        &self.frames[frame.0 as usize]
    }

    /// The name of a frame for messages, with the names of its parents.
    pub fn path(&self, mut frame: FrameId) -> String {
        let mut names = Vec::new();
        while frame != FrameId::ROOT {
            names.push(self.info(frame).name.as_str());
            frame = self.info(frame).parent;
        }
        names.reverse();
        names.join("/")
    }
}

struct Finder<'a> {
    graph: &'a Graph,
    sub: &'a Subgraph,
    by_name: HashMap<(FrameId, String), FrameId>,
    frames: Frames,
}

impl Finder<'_> {
    fn add(&mut self, id: NodeId) -> Result<(), GraphError> {
        let node = self.graph.node(id);
        let runs_in = self.common_frame(id)?;
        let gives_to = match node.control_flow() {
            ControlFlow::Enter => self.enter(node, runs_in),
            ControlFlow::Exit => {
                self.check_inside(node, runs_in)?;
                self.frames.info(runs_in).parent
            }
            ControlFlow::NextIteration => {
                self.check_inside(node, runs_in)?;
                runs_in
            }
            _ => runs_in,
        };
        self.frames.runs_in.push(runs_in);
        self.frames.gives_to.push(gives_to);
        Ok(())
    }

    /// The frame that all inputs come from; the step itself for a node without inputs.
    fn common_frame(&self, id: NodeId) -> Result<FrameId, GraphError> {
        let mut common = None;
        let fed = |input: &&Output| self.sub.feed_of(**input).is_some();
        let has_feed = self.graph.node(id).inputs.iter().find(fed).map(|_| FrameId::ROOT);
        let sources = self
            .sub
            .sources(self.graph, id)
            .filter_map(|source| self.sub.position(source).map(|at| self.frames.gives_to[at]));
        for frame in has_feed.into_iter().chain(sources) {
            match common {
                None => common = Some(frame),
                Some(first) if first == frame => {}
                Some(first) => return Err(self.mixed(self.graph.node(id), first, frame)),
            }
        }
        Ok(common.unwrap_or(FrameId::ROOT))
    }

    fn mixed(&self, node: &Node, first: FrameId, second: FrameId) -> GraphError {
        GraphError::FrameMix {
            node: node.name.clone(),
            op: node.op.name.clone(),
            first: self.frames.path(first),
            second: self.frames.path(second),
        }
    }

    fn enter(&mut self, node: &Node, parent: FrameId) -> FrameId {
        let attrs = node.attrs.attrs();
        let text = attrs.get("frame_name").and_then(|value| value.as_text());
        let name = text.unwrap_or_default().to_owned();
        let parallel = attrs.get("parallel_iterations").and_then(|value| value.as_int());
        let next = FrameId(self.frames.frames.len() as u32);
        let frame = *self.by_name.entry((parent, name.clone())).or_insert(next);
        if frame == next {
            self.frames.frames.push(FrameInfo {
                name,
                parent,
                parallel_iterations: parallel.unwrap_or(1).max(1),
                enters: 0,
            });
        }
        self.frames.frames[frame.0 as usize].enters += 1;
        frame
    }

    fn check_inside(&self, node: &Node, frame: FrameId) -> Result<(), GraphError> {
        if frame != FrameId::ROOT {
            return Ok(());
        }
        Err(GraphError::NoFrame { node: node.name.clone(), op: node.op.name.clone() })
    }

    /// Checks that the back edge of each `Merge` comes from its own frame.
    fn check_back_edges(&self) -> Result<(), GraphError> {
        for (at, &id) in self.sub.order.iter().enumerate() {
            let node = self.graph.node(id);
            if node.control_flow() != ControlFlow::Merge {
                continue;
            }
            let sources = node.inputs.iter().filter(|input| self.sub.feed_of(**input).is_none());
            for source in sources.filter_map(|input| self.sub.position(input.node)) {
                if self.frames.gives_to[source] != self.frames.runs_in[at] {
                    let frames = (self.frames.runs_in[at], self.frames.gives_to[source]);
                    return Err(self.mixed(node, frames.0, frames.1));
                }
            }
        }
        Ok(())
    }
}
