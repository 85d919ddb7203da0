//! The op of a partition's node.

use crate::{Graph, NodeId, Output, Shapes, Subgraph};
use std::sync::Arc;
use tenon_framework::{
    PartialShape, Tensor, attr::AttrValue, attr_view::AttrTable, op::OpDef, registry::KernelChoice,
};

/// The op of a partition's node, with everything specific to the node.
#[derive(Debug, Clone)]
pub struct PartOp {
    /// The op.
    pub def: Arc<OpDef>,
    /// All attributes of the op, with defaults applied, and further ones of the node.
    pub attrs: Arc<AttrTable>,
    /// The shape of each input, as far as it is known before a step.
    pub input_shapes: Vec<PartialShape>,
    /// The values of the inputs that are the same in every step.
    pub constants: Vec<Option<Tensor>>,
    /// For each of these values, the key under which kernels cache a form that they derive from it.
    /// The same node and value have the same key in all steps of a session.
    pub keys: Vec<Option<String>>,
    /// The chosen kernel; `None` for an op that the executor runs itself, and for a constant.
    pub kernel: Option<KernelChoice>,
}

/// The graph that a step's graph was made from, with a number that is unique among the graphs made
/// for the session's steps.
pub type MadeFrom<'a> = Option<(&'a Graph, u64)>;

impl PartOp {
    /// Creates the op of a node of a step's graph. No kernel is chosen yet.
    pub fn new(
        graph: &Graph,
        sub: &Subgraph,
        shapes: &Shapes,
        id: NodeId,
        made_from: MadeFrom<'_>,
    ) -> PartOp {
        let node = graph.node(id);
        let constant = |&input: &Output| match sub.feed_of(input) {
            Some(_) => None,
            None => shapes.constant(input).cloned(),
        };
        let constants: Vec<Option<Tensor>> = node.inputs.iter().map(constant).collect();
        let named = constants.iter().enumerate();
        let keys = named.map(|(at, value)| value.as_ref().map(|_| key(graph, id, at, made_from)));
        PartOp {
            def: Arc::clone(&node.op),
            attrs: Arc::clone(&node.attrs),
            input_shapes: node.inputs.iter().map(|&input| shapes.seen(sub, input)).collect(),
            keys: keys.collect(),
            constants,
            kernel: None,
        }
    }

    /// The value of a constant node.
    pub fn value(&self) -> Option<&Tensor> {
        match self.attrs.get("value") {
            Some(AttrValue::Tensor(value)) if self.def.is_constant() => Some(value),
            _ => None,
        }
    }
}

/// The cache key of a constant input. Steps share it if node and constant are in the graph that
/// theirs was made from; values made for one step have a key of their own.
fn key(graph: &Graph, id: NodeId, at: usize, made_from: MadeFrom<'_>) -> String {
    let node = graph.node(id);
    let source = node.inputs[at].node;
    match made_from {
        Some((original, number))
            if !graph.shares(original, id) || !graph.shares(original, source) =>
        {
            format!("{}/{at}/{number}", node.name)
        }
        _ => format!("{}/{at}", node.name),
    }
}
