//! Resolves the inputs of new nodes and checks their types.

use super::Readings;
use crate::names::{ParsedName, near_names, parse_tensor_name};
use crate::{Graph, GraphError, Node, NodeId, Output};
use std::collections::{HashMap, HashSet};
use tenon_framework::{
    DType,
    op::{MAX_VALUES, OpError},
    text::cut,
};
use tenon_proto::NodeDef;

/// The existing nodes and the new ones.
pub(crate) struct Wiring<'a> {
    /// The graph with the existing nodes.
    pub graph: &'a Graph,
    /// The names of the new nodes.
    pub names: &'a HashMap<String, NodeId>,
    /// The new nodes; their numbers follow those of the graph.
    pub nodes: &'a [Node],
}

/// The inputs of one node.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// The sources of the data inputs.
    pub data: Vec<Output>,
    /// The control inputs, without duplicates.
    pub control: Vec<NodeId>,
}

impl Wiring<'_> {
    fn node(&self, id: NodeId) -> &Node {
        match self.nodes.get(id.index().wrapping_sub(self.graph.len())) {
            Some(node) => node,
            None => self.graph.node(id),
        }
    }

    /// Resolves the inputs that a new node names.
    pub(super) fn resolve(&self, def: &NodeDef) -> Result<Inputs, GraphError> {
        let mut inputs = Inputs::default();
        let mut seen = HashSet::new();
        for text in &def.input {
            match parse_tensor_name(text) {
                Some(ParsedName::Control { node }) => {
                    let id = self.find(def, text, node)?;
                    if seen.insert(id) {
                        inputs.control.push(id);
                    }
                }
                Some(ParsedName::Data { .. }) if !inputs.control.is_empty() => {
                    return Err(GraphError::ControlOrder {
                        node: def.name.clone(),
                        input: text.clone(),
                    });
                }
                Some(ParsedName::Data { node, output }) => {
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
        // An unregistered op may have any output.
        let outputs = if source.op.is_missing() { MAX_VALUES } else { source.outputs().len() };
        if (output as usize) < outputs {
            return Ok(());
        }
        Err(GraphError::OutputRange {
            node: def.name.clone(),
            input: input.to_owned(),
            op: source.op.name.clone(),
            outputs,
        })
    }
}

/// Checks the number and the types of a node's data inputs. The inputs of an unregistered op are
/// not checked, and its outputs have the type that their first reader expects.
pub(crate) fn check_types(
    wiring: &Wiring<'_>,
    node: &Node,
    inputs: &[Output],
    readings: &mut Readings,
) -> Result<(), GraphError> {
    if node.op.is_missing() {
        return Ok(());
    }
    let dtype = |(at, &input): (usize, &Output)| {
        let source = wiring.node(input.node);
        match node.signature.inputs.get(at) {
            Some(&expected) if source.op.is_missing() => readings.read(source, input, expected),
            _ => source.outputs().get(input.output as usize).copied().unwrap_or(DType::INVALID),
        }
    };
    let types: Vec<DType> = inputs.iter().enumerate().map(dtype).collect();
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
                from: from(source, input),
            })
        }
        Err(error) => Err(GraphError::Op { node: node.name.clone(), source: Box::new(error) }),
    }
}

/// A description of the output that an input comes from.
fn from(source: &Node, input: Output) -> String {
    let (name, op) = (cut(&source.name), cut(&source.op.name));
    let note = match source.op.is_missing() {
        true => ", which is not registered; the type is that of another reader",
        false => "",
    };
    format!("'{name}:{}' (op '{op}'{note})", input.output)
}
