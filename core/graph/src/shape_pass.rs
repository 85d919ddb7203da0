//! Infers the shapes and constants of a step's graph, as far as they are known before it runs.

use crate::{Graph, GraphError, NodeId, Output, Subgraph};
use tenon_framework::{
    PartialShape, Tensor,
    attr::AttrValue,
    infer::{Symbols, ValueInfo, infer},
};

/// The known shapes and constants of a step's graph.
#[derive(Debug, Clone)]
pub struct Shapes {
    /// The values by node; empty for nodes that do not run.
    values: Vec<Vec<ValueInfo>>,
    /// The values by position among the feeds.
    feeds: Vec<ValueInfo>,
    /// The source of new unknown dimensions.
    symbols: Symbols,
}

/// Access for passes, which change and add nodes.
impl Shapes {
    /// The inferred values of a node's outputs.
    ///
    /// # Panics
    /// Panics if there is no node with this number.
    pub fn of_node(&self, id: NodeId) -> &[ValueInfo] {
        &self.values[id.index()]
    }

    /// Replaces the inferred values of a node's outputs, and returns the former ones.
    ///
    /// # Panics
    /// Panics if there is no node with this number.
    pub fn replace(&mut self, id: NodeId, values: Vec<ValueInfo>) -> Vec<ValueInfo> {
        std::mem::replace(&mut self.values[id.index()], values)
    }

    /// Appends a node with these output values.
    pub fn push(&mut self, values: Vec<ValueInfo>) {
        self.values.push(values);
    }

    /// Removes the last node.
    pub fn pop(&mut self) {
        self.values.pop();
    }

    /// The source of new unknown dimensions, for inferring the outputs of changed and added nodes.
    pub fn symbols_mut(&mut self) -> &mut Symbols {
        &mut self.symbols
    }
}

impl Shapes {
    /// The inferred value of an output, as its node computes it.
    pub fn value(&self, output: Output) -> Option<&ValueInfo> {
        self.values.get(output.node.index())?.get(output.output as usize)
    }

    /// The inferred value of a fed tensor.
    pub fn feed(&self, index: usize) -> Option<&ValueInfo> {
        self.feeds.get(index)
    }

    /// The shape of an output; unknown if nothing was inferred.
    pub fn shape(&self, output: Output) -> PartialShape {
        self.value(output).map_or(PartialShape::UNKNOWN, |value| value.shape.partial())
    }

    /// The shape of an output as its readers see it: that of the feed if the output is fed.
    pub fn seen(&self, sub: &Subgraph, output: Output) -> PartialShape {
        match sub.feed_of(output) {
            Some(feed) => {
                self.feed(feed).map_or(PartialShape::UNKNOWN, |value| value.shape.partial())
            }
            None => self.shape(output),
        }
    }

    /// The value of an output that is the same in every step.
    pub fn constant(&self, output: Output) -> Option<&Tensor> {
        self.value(output)?.constant.as_ref()
    }

    /// The inferred value of input `index` of a node, feeds included.
    pub fn input(
        &self,
        graph: &Graph,
        sub: &Subgraph,
        node: NodeId,
        index: usize,
    ) -> Option<&ValueInfo> {
        let source = *graph.node(node).inputs.get(index)?;
        match sub.feed_of(source) {
            Some(feed) => self.feed(feed),
            None => self.value(source),
        }
    }
}

/// Runs the shape functions of the nodes, sources first. As in TensorFlow, the value at a back edge
/// of a loop is unknown, so that a value that changes between iterations is not mistaken for a
/// constant.
///
/// `feeds` has the shapes of the feeds by position, and may be shorter. Each further feed has the
/// shape that its placeholder declares, or is unknown if its node is not a placeholder.
///
/// # Errors
/// An op is unregistered, or a shape function refuses its inputs. The error names node and op.
pub fn infer_shapes(
    graph: &Graph,
    sub: &Subgraph,
    feeds: &[PartialShape],
) -> Result<Shapes, GraphError> {
    graph.check_ops_of(&sub.order, None)?;
    let mut symbols = Symbols::default();
    let values = vec![Vec::new(); graph.len()];
    let mut shapes = Shapes { values, feeds: Vec::new(), symbols: Symbols::default() };
    for (at, &feed) in sub.feeds.iter().enumerate() {
        let shape = feeds.get(at).cloned().unwrap_or_else(|| declared(graph, feed));
        shapes.feeds.push(ValueInfo::of_shape(&shape, &mut symbols));
    }
    let unknown = ValueInfo::default();
    for &id in &sub.order {
        let node = graph.node(id);
        let inputs: Vec<&ValueInfo> = (0..node.inputs.len())
            .map(|index| shapes.input(graph, sub, id, index).unwrap_or(&unknown))
            .collect();
        let outputs = infer(&node.op, &node.attrs, &inputs, &mut symbols);
        shapes.values[id.index()] = outputs.map_err(|source| GraphError::Shape {
            node: node.name.clone(),
            op: node.op.name.clone(),
            source,
        })?;
    }
    shapes.symbols = symbols;
    Ok(shapes)
}

/// The shape that a placeholder declares.
fn declared(graph: &Graph, feed: Output) -> PartialShape {
    let node = graph.node(feed.node);
    if !node.op.facts().declares_shape {
        return PartialShape::UNKNOWN;
    }
    match node.attrs.get("shape") {
        Some(AttrValue::Shape(shape)) => shape.clone(),
        _ => PartialShape::UNKNOWN,
    }
}
