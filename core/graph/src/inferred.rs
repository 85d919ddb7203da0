//! What is known of the outputs of a graph's nodes, inferred as nodes are added.
//!
//! [`infer_shapes`](crate::infer_shapes) infers a whole graph at once; this is for one that grows.

use crate::{ControlFlow, Graph, GraphError, Node, Output, topological};
use tenon_framework::{
    PartialShape,
    infer::{Symbols, ValueInfo, infer},
};

/// The outputs of a graph's nodes, as far as they are known.
#[derive(Default)]
pub struct Inferred {
    /// By node and output.
    values: Vec<Vec<ValueInfo>>,
    symbols: Symbols,
}

impl Inferred {
    /// The number of nodes.
    #[allow(
        clippy::len_without_is_empty,
        reason = "it is compared with the number of a graph's nodes"
    )]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Forgets all but the first nodes.
    pub fn truncate(&mut self, nodes: usize) {
        self.values.truncate(nodes);
    }

    /// Adds the outputs of the next node.
    pub fn push(&mut self, values: Vec<ValueInfo>) {
        self.values.push(values);
    }

    /// Infers the outputs of a node. An input that is not known yet, as at the back edge of a loop, has any shape.
    ///
    /// # Errors
    /// The shape function of its op refuses it.
    pub fn of_node(&mut self, node: &Node) -> Result<Vec<ValueInfo>, GraphError> {
        let unknown = ValueInfo::default();
        let inputs: Vec<&ValueInfo> = node
            .inputs
            .iter()
            .map(|input| {
                let values = self.values.get(input.node.index());
                values.and_then(|values| values.get(input.output as usize)).unwrap_or(&unknown)
            })
            .collect();
        let outputs = infer(&node.op, &node.attrs, &inputs, &mut self.symbols);
        outputs.map_err(|source| GraphError::Shape {
            node: node.name.clone(),
            op: node.op.name.clone(),
            source,
        })
    }

    /// Infers the outputs of the nodes that a graph has beyond those that are known.
    ///
    /// # Errors
    /// As [`Inferred::of_node`]; some of the new nodes may then be known.
    pub fn follow(&mut self, graph: &Graph) -> Result<(), GraphError> {
        let first = self.len();
        let nodes = &graph.shared_nodes()[first.min(graph.len())..];
        let sources = |at: usize| {
            let node = &nodes[at];
            let is_merge = node.control_flow() == ControlFlow::Merge;
            let data = node.inputs.iter().map(|input| input.node).filter(move |&id| {
                let back = graph.node(id).control_flow() == ControlFlow::NextIteration;
                !(is_merge && back)
            });
            data.filter_map(move |id| id.index().checked_sub(first))
        };
        let order = topological(nodes.len(), sources);
        self.values.resize_with(graph.len(), Vec::new);
        for at in order {
            self.values[first + at] = self.of_node(&nodes[at])?;
        }
        Ok(())
    }

    /// The shape of an output.
    pub fn shape(&self, output: Output) -> PartialShape {
        let value = self.values.get(output.node.index());
        let value = value.and_then(|values| values.get(output.output as usize));
        value.map_or(PartialShape::UNKNOWN, |value| value.shape.partial())
    }

    /// Sets the shape of an output. Nodes that were added before keep what was inferred for them.
    pub fn set_shape(&mut self, output: Output, shape: &PartialShape) {
        let known = ValueInfo::of_shape(shape, &mut self.symbols);
        let value = self.values.get_mut(output.node.index());
        if let Some(value) = value.and_then(|values| values.get_mut(output.output as usize)) {
            value.shape = known.shape;
        }
    }
}
