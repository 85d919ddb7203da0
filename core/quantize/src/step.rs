//! The graph that is quantised, with what its tensors are used for.

use std::collections::HashMap;
use tenon_framework::{DType, Tensor, attr::AttrValue, registry::Registry};
use tenon_graph::{Graph, Node, NodeId, Output, Shapes, Subgraph};
use tenon_runtime::Simplified;

/// A step's graph as passes have simplified it, before any makes fused ops.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// What of it runs.
    pub sub: &'a Subgraph,
    /// Its shapes and constants.
    pub shapes: &'a Shapes,
    /// All registrations.
    pub registry: &'a Registry,
}

/// A node that reads a tensor, and as which of its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    pub node: NodeId,
    pub input: usize,
}

/// Who reads each tensor.
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

    /// The floats of a constant.
    pub(super) fn floats(&self, tensor: Output) -> Option<&'a [f32]> {
        self.constant(tensor)?.as_slice().ok()
    }

    /// The integers of a constant.
    pub(super) fn integers(&self, tensor: Output) -> Option<Vec<i64>> {
        let value = self.constant(tensor)?;
        match value.dtype() {
            DType::INT32 => Some(value.as_slice::<i32>().ok()?.iter().map(|&x| x.into()).collect()),
            _ => value.as_slice::<i64>().ok().map(<[i64]>::to_vec),
        }
    }

    /// Dimensions as they are seen, -1 where one is unknown; none where not even their number is known.
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

    /// Whether a node that computes images has their channels last.
    pub(super) fn is_channels_last(&self, id: NodeId) -> bool {
        matches!(self.text(id, "data_format"), None | Some("NHWC"))
    }
}
