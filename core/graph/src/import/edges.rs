//! The inputs of new nodes: what they name, and whether the types fit.

use super::{Named, near_names, parse_tensor_name};
use crate::{Graph, GraphError, Node, NodeId, Output};
use std::collections::{HashMap, HashSet};
use tenon_framework::{DType, op::OpError};
use tenon_proto::NodeDef;

/// The nodes there are and those to be added.
pub(crate) struct Wiring<'a> {
    /// Nodes there are.
    pub graph: &'a Graph,
    /// Names of the new nodes.
    pub names: &'a HashMap<String, NodeId>,
    /// The new nodes; their numbers follow those of the graph.
    pub nodes: &'a [Node],
}

/// The inputs of one node.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// Sources of the data inputs.
    pub data: Vec<Output>,
    /// Control inputs, each once.
    pub control: Vec<NodeId>,
}

impl Wiring<'_> {
    fn node(&self, id: NodeId) -> &Node {
        match self.nodes.get(id.index().wrapping_sub(self.graph.len())) {
            Some(node) => node,
            None => self.graph.node(id),
        }
    }

    /// What the inputs of a new node name.
    pub(super) fn resolve(&self, def: &NodeDef) -> Result<Inputs, GraphError> {
        let mut inputs = Inputs::default();
        let mut seen = HashSet::new();
        for text in &def.input {
            match parse_tensor_name(text) {
                Some(Named::Control { node }) => {
                    let id = self.find(def, text, node)?;
                    if seen.insert(id) {
                        inputs.control.push(id);
                    }
                }
                Some(Named::Data { .. }) if !inputs.control.is_empty() => {
                    return Err(GraphError::ControlOrder {
                        node: def.name.clone(),
                        input: text.clone(),
                    });
                }
                Some(Named::Data { node, output }) => {
                    let id = self.find(def, text, node)?;
                    self.check_output(def, text, id, output)?;
                    inputs.data.push(Output { node: id, output });
                }
                None => {
                    return Err(GraphError::InputName {
                        node: def.name.clone(),
                        input: text.clone(),
                    });
                }
            }
        }
        Ok(inputs)
    }

    fn find(&self, def: &NodeDef, input: &str, name: &str) -> Result<NodeId, GraphError> {
        let found = self.names.get(name).copied().or_else(|| self.graph.find(name));
        found.ok_or_else(|| {
            let new = self.names.keys().map(String::as_str);
            let known = new.chain(self.graph.names.keys().map(String::as_str));
            GraphError::UnknownInput {
                node: def.name.clone(),
                input: input.to_owned(),
                near: near_names(name, known),
            }
        })
    }

    fn check_output(
        &self,
        def: &NodeDef,
        input: &str,
        id: NodeId,
        output: u32,
    ) -> Result<(), GraphError> {
        let source = self.node(id);
        if (output as usize) < source.outputs().len() {
            return Ok(());
        }
        Err(GraphError::OutputRange {
            node: def.name.clone(),
            input: input.to_owned(),
            op: source.op.name.clone(),
            outputs: source.outputs().len(),
        })
    }
}

/// Checks number and types of a node's data inputs.
pub(crate) fn check_types(
    wiring: &Wiring<'_>,
    node: &Node,
    inputs: &[Output],
) -> Result<(), GraphError> {
    let types: Vec<DType> = inputs
        .iter()
        .map(|input| wiring.node(input.node).signature.outputs[input.output as usize])
        .collect();
    match node.signature.check_inputs(&node.op, &types) {
        Ok(()) => Ok(()),
        Err(OpError::InputType { op, arg, index, expected, found }) => {
            let input = inputs[index];
            let source = wiring.node(input.node);
            Err(GraphError::InputType {
                node: node.name.clone(),
                op,
                arg,
                index,
                expected,
                found,
                from: format!("'{}:{}' (op '{}')", source.name, input.output, source.op.name),
            })
        }
        Err(error) => Err(GraphError::Op { node: node.name.clone(), source: Box::new(error) }),
    }
}
