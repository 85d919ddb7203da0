//! What is known of the outputs of a graph's nodes, inferred as nodes are added.

use crate::fail::Failure;
use tenon_framework::{
    PartialShape,
    infer::{Symbols, ValueInfo, infer},
};
use tenon_graph::{ControlFlow, Graph, GraphError, Node, Output, topological};

/// The outputs of the nodes, as far as they are known.
#[derive(Default)]
pub(crate) struct Inferred {
    /// By node and output.
    values: Vec<Vec<ValueInfo>>,
    symbols: Symbols,
}

impl Inferred {
    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Forgets all but the first nodes.
    pub(crate) fn truncate(&mut self, nodes: usize) {
        self.values.truncate(nodes);
    }

    /// Adds the outputs of the next node.
    pub(crate) fn push(&mut self, values: Vec<ValueInfo>) {
        self.values.push(values);
    }

    /// Infers the outputs of a node. An input that is not known yet, as at the back edge of a loop, has any shape.
    ///
    /// # Errors
    /// The shape function of its op refuses it.
    pub(crate) fn of_node(&mut self, node: &Node) -> Result<Vec<ValueInfo>, Failure> {
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
        let outputs = outputs.map_err(|source| GraphError::Shape {
            node: node.name.clone(),
            op: node.op.name.clone(),
            source,
        });
        Ok(outputs?)
    }

    /// Infers the outputs of the nodes that a graph has beyond those that are known.
    ///
    /// # Errors
    /// As [`Inferred::of_node`]; some of the new nodes may then be known.
    pub(crate) fn follow(&mut self, graph: &Graph) -> Result<(), Failure> {
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
    pub(crate) fn shape(&self, output: Output) -> PartialShape {
        let value = self.values.get(output.node.index());
        let value = value.and_then(|values| values.get(output.output as usize));
        value.map_or(PartialShape::UNKNOWN, |value| value.shape.partial())
    }

    /// Makes the shape of an output more exact. Nodes that were added before keep what was inferred for them.
    ///
    /// # Errors
    /// The shape contradicts the one that is known.
    pub(crate) fn refine(&mut self, output: Output, shape: &PartialShape) -> Result<(), Failure> {
        let merged = merged(&self.shape(output), shape)?;
        let known = ValueInfo::of_shape(&merged, &mut self.symbols);
        let value = self.values.get_mut(output.node.index());
        if let Some(value) = value.and_then(|values| values.get_mut(output.output as usize)) {
            value.shape = known.shape;
        }
        Ok(())
    }
}

/// What two descriptions of one shape say together.
fn merged(one: &PartialShape, other: &PartialShape) -> Result<PartialShape, Failure> {
    let (Some(a), Some(b)) = (one.dims(), other.dims()) else {
        return Ok(if one.dims().is_some() { one.clone() } else { other.clone() });
    };
    let fits = |(&a, &b): (&i64, &i64)| a < 0 || b < 0 || a == b;
    if a.len() != b.len() || !a.iter().zip(b).all(fits) {
        return Err(Failure::invalid(format!("the shape is {one}, found {other}")));
    }
    let dims: Vec<i64> = a.iter().zip(b).map(|(&a, &b)| if a < 0 { b } else { a }).collect();
    Ok(PartialShape::new(&dims)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_descriptions_of_a_shape_say_more_than_one() {
        let shape = |dims: &[i64]| PartialShape::new(dims).unwrap();
        assert_eq!(merged(&shape(&[2, -1]), &shape(&[-1, 3])).unwrap(), shape(&[2, 3]));
        assert_eq!(merged(&PartialShape::UNKNOWN, &shape(&[-1])).unwrap(), shape(&[-1]));
        assert_eq!(merged(&shape(&[4]), &PartialShape::UNKNOWN).unwrap(), shape(&[4]));
        assert!(merged(&shape(&[2]), &shape(&[3])).is_err());
        assert!(merged(&shape(&[2]), &shape(&[2, 2])).is_err());
    }
}
