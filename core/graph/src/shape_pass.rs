//! Infers the shapes and constants of a step's graph, as far as they are known before it runs.

use crate::{ControlFlow, Graph, GraphError, NodeId, Output, Subgraph};
use std::collections::BTreeMap;
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

/// The shapes at the back edges of loops, by the `Merge` and the input that the edge leads to.
type BackEdges = BTreeMap<(NodeId, usize), PartialShape>;

/// The maximum number of passes over a graph with loops.
const MAX_PASSES: usize = 8;

/// Runs the shape functions of the nodes, sources first.
///
/// A value at a back edge of a loop has the shape in which the loop is entered, as far as the body
/// keeps it: the shape is first assumed, then compared with what the body makes of it, and assumed
/// again without the dimensions that changed. Its value is unknown, so that one that changes between
/// iterations is not mistaken for a constant.
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
    let mut assumed = BackEdges::new();
    let edges = back_edges(graph, sub);
    let passes = if edges.is_empty() { 0 } else { MAX_PASSES };
    for pass in 0..passes {
        // An op of a body that never runs may refuse the shape with which the loop is entered.
        let Ok(shapes) = run(graph, sub, feeds, Some(&mut assumed)) else { break };
        let changed = |&(merge, input): &(NodeId, usize)| -> bool {
            let assumed = assumed.entry((merge, input)).or_insert(PartialShape::UNKNOWN);
            let found = shapes.shape(graph.node(merge).inputs[input]);
            let common = in_common(assumed, &found);
            let changed = common != *assumed;
            // A shape that changes again and again is given up, so that others are kept.
            *assumed =
                if changed && pass >= MAX_PASSES / 2 { PartialShape::UNKNOWN } else { common };
            changed
        };
        if edges.iter().map(changed).filter(|changed| *changed).count() == 0 {
            return Ok(shapes);
        }
    }
    run(graph, sub, feeds, None)
}

/// The back edges of the loops of a step.
fn back_edges(graph: &Graph, sub: &Subgraph) -> Vec<(NodeId, usize)> {
    let merges =
        sub.order.iter().filter(|&&id| graph.node(id).control_flow() == ControlFlow::Merge);
    let edges = |&merge: &NodeId| {
        let sources = graph.node(merge).inputs.iter().enumerate();
        let back = sources.filter(|(_, source)| {
            let node = graph.node(source.node);
            node.control_flow() == ControlFlow::NextIteration && sub.feed_of(**source).is_none()
        });
        back.map(move |(input, _)| (merge, input)).collect::<Vec<_>>()
    };
    merges.flat_map(edges).collect()
}

/// What two shapes have in common.
fn in_common(one: &PartialShape, other: &PartialShape) -> PartialShape {
    let (Some(one), Some(other)) = (one.dims(), other.dims()) else { return PartialShape::UNKNOWN };
    if one.len() != other.len() {
        return PartialShape::UNKNOWN;
    }
    let dims: Vec<i64> = one.iter().zip(other).map(|(a, b)| if a == b { *a } else { -1 }).collect();
    PartialShape::new(&dims).unwrap_or(PartialShape::UNKNOWN)
}

/// Runs the shape functions once. At a back edge, the shape is the one in `assumed`, or that of the
/// first input of the `Merge`, which is then added; without `assumed` it is unknown.
fn run(
    graph: &Graph,
    sub: &Subgraph,
    feeds: &[PartialShape],
    mut assumed: Option<&mut BackEdges>,
) -> Result<Shapes, GraphError> {
    let mut symbols = Symbols::default();
    let values = vec![Vec::new(); graph.len()];
    let mut shapes = Shapes { values, feeds: Vec::new(), symbols: Symbols::default() };
    for (at, &feed) in sub.feeds.iter().enumerate() {
        let shape = feeds.get(at).cloned().unwrap_or_else(|| declared(graph, feed));
        shapes.feeds.push(ValueInfo::of_shape(&shape, &mut symbols));
    }
    for &id in &sub.order {
        let node = graph.node(id);
        let is_merge = node.control_flow() == ControlFlow::Merge;
        let assumed = assumed.as_deref_mut().filter(|_| is_merge);
        let back = assumed.map_or_else(Vec::new, |assumed| {
            at_back_edges(graph, sub, &shapes, id, assumed, &mut symbols)
        });
        let unknown = ValueInfo::default();
        let inputs: Vec<&ValueInfo> = (0..node.inputs.len())
            .map(|index| match back.iter().find(|(at, _)| *at == index) {
                Some((_, value)) => value,
                None => shapes.input(graph, sub, id, index).unwrap_or(&unknown),
            })
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

/// The assumed values of the inputs of a `Merge` that back edges lead to.
fn at_back_edges(
    graph: &Graph,
    sub: &Subgraph,
    shapes: &Shapes,
    merge: NodeId,
    assumed: &mut BackEdges,
    symbols: &mut Symbols,
) -> Vec<(usize, ValueInfo)> {
    let known = |index| shapes.input(graph, sub, merge, index);
    let entered = known(0).map_or(PartialShape::UNKNOWN, |value| value.shape.partial());
    let inputs = 0..graph.node(merge).inputs.len();
    let back = inputs.filter(|&index| known(index).is_none());
    back.map(|index| {
        let shape = assumed.entry((merge, index)).or_insert_with(|| entered.clone());
        (index, ValueInfo::of_shape(shape, symbols))
    })
    .collect()
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
