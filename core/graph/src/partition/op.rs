//! What a node of a partition has of a node of the graph.

use crate::{Graph, NodeId, Output, Shapes, Subgraph};
use std::sync::Arc;
use tenon_framework::{
    PartialShape, Tensor, attr::AttrValue, attr_view::AttrTable, op::OpDef, registry::KernelChoice,
};

/// What a node that runs an op has of its own.
#[derive(Debug, Clone)]
pub struct PartOp {
    /// The op.
    pub def: Arc<OpDef>,
    /// All attributes of the op, defaults applied, and those that the node has beside them.
    pub attrs: Arc<AttrTable>,
    /// What is known of each input's shape before a step.
    pub input_shapes: Vec<PartialShape>,
    /// The values of inputs that are the same in every step.
    pub constants: Vec<Option<Tensor>>,
    /// The name, for each of these values, under which kernels keep a form that they make of it. The same node and
    /// value have the same name in all steps of a session.
    pub keys: Vec<Option<String>>,
    /// The kernel that was chosen; `None` for what the executor runs itself, and for a constant.
    pub kernel: Option<KernelChoice>,
}

/// The graph from which a step's graph was made, with a number that no other graph made for a step of the session has.
pub type MadeFrom<'a> = Option<(&'a Graph, u64)>;

impl PartOp {
    /// Of a node of a step's graph. No kernel is chosen.
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

    /// The value, of a node that gives the same one in every step.
    pub fn value(&self) -> Option<&Tensor> {
        match self.attrs.get("value") {
            Some(AttrValue::Tensor(value)) if self.def.is_constant() => Some(value),
            _ => None,
        }
    }
}

/// The name of what a kernel makes of a constant input. Steps share it where node and constant are those of the graph
/// from which theirs was made; what was made for this step, under whatever name, has a name of its own.
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
