//! Shapes and constants of a step's graph, as far as they are known before it runs.

use crate::{Graph, GraphError, NodeId, Output, Subgraph};
use tenon_framework::{
    PartialShape, Tensor,
    attr::AttrValue,
    infer::{Symbols, ValueInfo, infer},
};

/// What is known of the values of a step's graph.
#[derive(Debug, Clone)]
pub struct Shapes {
    /// By node; empty for nodes that do not run.
    values: Vec<Vec<ValueInfo>>,
    /// By position among the feeds.
    feeds: Vec<ValueInfo>,
    /// Where unknown dimensions that are added later come from.
    pub(crate) symbols: Symbols,
}

/// What passes change.
impl Shapes {
    /// What is known of the outputs of a node.
    pub(crate) fn of_node(&self, id: NodeId) -> &[ValueInfo] {
        &self.values[id.index()]
    }

    /// Sets what is known of them; gives what was known.
    pub(crate) fn replace(&mut self, id: NodeId, values: Vec<ValueInfo>) -> Vec<ValueInfo> {
        std::mem::replace(&mut self.values[id.index()], values)
    }

    /// Adds a node.
    pub(crate) fn push(&mut self, values: Vec<ValueInfo>) {
        self.values.push(values);
    }

    /// Drops the last node.
    pub(crate) fn pop(&mut self) {
        self.values.pop();
    }
}

impl Shapes {
    /// What is known of an output, as its node makes it.
    pub fn value(&self, output: Output) -> Option<&ValueInfo> {
        self.values.get(output.node.index())?.get(output.output as usize)
    }

    /// What is known of a fed tensor.
    pub fn feed(&self, index: usize) -> Option<&ValueInfo> {
        self.feeds.get(index)
    }

    /// The shape of an output, unknown where nothing is known of it.
    pub fn shape(&self, output: Output) -> PartialShape {
        self.value(output).map_or(PartialShape::UNKNOWN, |value| value.shape.partial())
    }

    /// The shape under which an output is seen by those that use it: that of the feed where it is fed.
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

    /// What is known of input `index` of a node, feeds included.
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

/// Runs the shape functions of the nodes, sources first. In a loop what comes back to a `Merge` is unknown,
/// as in TensorFlow, so that nothing that changes from one iteration to the next is taken for constant.
///
/// `feeds` gives the shapes of the feeds by position, and may be shorter; what is fed besides has the shape
/// that a placeholder declares, and is unknown where another node is fed.
///
/// # Errors
/// An op that nobody registered; a shape function refuses its inputs. Names node and op.
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
