//! The graph to be quantised, with the readers of its tensors.

use std::collections::HashMap;
use tenon_framework::{DType, Tensor, attr::AttrValue, registry::Registry};
use tenon_graph::{Graph, Node, NodeId, Output, Shapes, Subgraph};
use tenon_runtime::Simplified;

/// A step's graph that passes have simplified, before fusion.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The part of it that runs.
    pub sub: &'a Subgraph,
    /// The inferred shapes and constants.
    pub shapes: &'a Shapes,
    /// The registry.
    pub registry: &'a Registry,
}

/// A node that reads a tensor, with the input index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    pub node: NodeId,
    pub input: usize,
}

/// The readers of each tensor.
pub(super) struct Uses {
    by_tensor: HashMap<Output, Vec<Use>>,
}

impl Uses {
    pub fn of(step: Step<'_>) -> Uses {
        let mut by_tensor: HashMap<Output, Vec<Use>> = HashMap::new();
        for &node in &step.sub.order {
            for (input, &tensor) in step.graph.node(node).inputs.iter().enumerate() {
                by_tensor.entry(tensor).or_default().push(Use { node, input });
            }
        }
        Uses { by_tensor }
    }

    pub fn of_tensor(&self, tensor: Output) -> &[Use] {
        self.by_tensor.get(&tensor).map_or(&[], Vec::as_slice)
    }
}

impl<'a> From<Simplified<'a>> for Step<'a> {
    fn from(simple: Simplified<'a>) -> Step<'a> {
        let Simplified { graph, sub, shapes, registry, .. } = simple;
        Step { graph, sub, shapes, registry }
    }
}

impl<'a> Step<'a> {
    pub(super) fn node(&self, id: NodeId) -> &'a Node {
        self.graph.node(id)
    }

    pub(super) fn op(&self, id: NodeId) -> &'a str {
        &self.node(id).op.name
    }

    pub(super) fn is_fed(&self, tensor: Output) -> bool {
        self.sub.feed_of(tensor).is_some()
    }

    pub(super) fn is_fetched(&self, tensor: Output) -> bool {
        self.sub.fetches.contains(&tensor)
    }

    /// The value of a tensor that is the same in every step.
    pub(super) fn constant(&self, tensor: Output) -> Option<&'a Tensor> {
        if self.is_fed(tensor) { None } else { self.shapes.constant(tensor) }
    }

    /// The float elements of a constant.
    pub(super) fn floats(&self, tensor: Output) -> Option<&'a [f32]> {
        self.constant(tensor)?.as_slice().ok()
    }

    /// The integer elements of a constant.
    pub(super) fn integers(&self, tensor: Output) -> Option<Vec<i64>> {
        let value = self.constant(tensor)?;
        match value.dtype() {
            DType::INT32 => Some(value.as_slice::<i32>().ok()?.iter().map(|&x| x.into()).collect()),
            _ => value.as_slice::<i64>().ok().map(<[i64]>::to_vec),
        }
    }

    /// The dimensions, with -1 for unknown ones; `None` if the rank is unknown.
    pub(super) fn dims(&self, tensor: Output) -> Option<Vec<i64>> {
        self.shapes.seen(self.sub, tensor).dims().map(<[i64]>::to_vec)
    }

    pub(super) fn is_float(&self, tensor: Output) -> bool {
        self.graph.dtype(tensor) == DType::FLOAT
    }

    pub(super) fn text(&self, id: NodeId, attr: &str) -> Option<&'a str> {
        self.node(id).attrs.get(attr)?.as_text()
    }

    pub(super) fn flag(&self, id: NodeId, attr: &str) -> bool {
        matches!(self.node(id).attrs.get(attr), Some(AttrValue::Bool(true)))
    }

    /// Whether a node that computes images has channels last.
    pub(super) fn is_channels_last(&self, id: NodeId) -> bool {
        matches!(self.text(id, "data_format"), None | Some("NHWC"))
    }
}
