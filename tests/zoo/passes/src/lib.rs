//! Passes and a fusion that a plugin brings.
//!
//! What it is: one pass that uses every entry of the graph, one that fails after it has changed
//! much, one that panics, and a fusion with a kernel of the plugin's own.
//!
//! What it is not: an optimiser. The passes look only at nodes whose names begin with `zoo/`, so
//! that other graphs stay as they are.

use tenon_sdk::{
    author::{NewNode, NodeNumber, PassContext},
    prelude::*,
};

tenon_sdk::export_plugin!();

/// Nodes that the passes here are meant for.
fn own(graph: &PassContext<'_>, prefix: &str) -> Vec<NodeNumber> {
    let mut nodes = graph.nodes();
    nodes.retain(|node| graph.name(*node).starts_with(prefix) && graph.is_rewritable(*node));
    nodes
}

/// `2 x` becomes `x + x`, the negative of a negative is passed by, and `x + x` of a matrix is computed as
/// `0 - (0 - x - x)`, which only shows how nodes are added.
fn rewrite(graph: &PassContext<'_>) -> Result<(), KernelError> {
    for node in own(graph, "zoo/twice") {
        let inputs = graph.inputs(node);
        if graph.op(node) == "Mul" && graph.is_constant(inputs[1], 2f32) {
            let new = NewNode::new("AddV2").like(node).input(inputs[0]).input(inputs[0]);
            graph.replace(node, &new)?;
            graph.note(node, "is a sum now");
        }
    }
    for node in own(graph, "zoo/negative") {
        let Some(inner) = graph.source(node, 0) else { continue };
        let input = graph.inputs(inner)[0];
        if graph.op(inner) == "Neg" && graph.dtype(input) == graph.type_of(node, "T")? {
            graph.redirect((node, 0), input)?;
            graph.note(node, "is passed by");
        }
    }
    for node in own(graph, "zoo/matrix") {
        let input = graph.inputs(node)[0];
        if graph.op(node) != "Square" || graph.shape(input).rank() != Some(2) || graph.is_kept(node)
        {
            continue;
        }
        let product = NewNode::new("Mul").input(input).input(input);
        let product = graph.add(node, "product", &product)?;
        assert_eq!(graph.output_count(product), 1);
        assert!(graph.device(product) == graph.device(node) && graph.uses((node, 0)) > 0);
        graph.redirect((node, 0), (product, 0))?;
        graph.note(product, "stands for a square");
    }
    refused_edits(graph)
}

/// What the host refuses changes nothing, and the pass goes on.
fn refused_edits(graph: &PassContext<'_>) -> Result<(), KernelError> {
    for node in own(graph, "zoo/twice") {
        let input = graph.inputs(node)[0];
        let wrong = [
            NewNode::new("NoSuchOp").input(input),
            NewNode::new("Shape").input(input),
            NewNode::new("AddV2").input(input),
            NewNode::new("AddV2").input(input).input((u32::MAX - 1, 0)),
            NewNode::new("Relu").input(input).attr("no_such_attr", 1i64),
            NewNode::new("Relu").input((node, 7)),
        ];
        if wrong.iter().any(|new| graph.replace(node, new).is_ok()) {
            return Err(KernelError::internal("expected a refusal, found none"));
        }
        let nowhere = graph.bypass(u32::MAX - 1, 0).is_err() && graph.bypass(node, 9).is_err();
        let nothing = graph.op(u32::MAX - 1).is_empty() && graph.inputs(u32::MAX - 1).is_empty();
        if !nowhere || !nothing || graph.redirect((node, 0), (node, 3)).is_ok() {
            return Err(KernelError::internal("expected nothing of a node that is not there"));
        }
    }
    Ok(())
}

/// Turns every square into something else, and then fails.
fn fail(graph: &PassContext<'_>) -> Result<(), KernelError> {
    let nodes = own(graph, "zoo/fails");
    for &node in &nodes {
        let input = graph.inputs(node)[0];
        let added = graph.add(node, "negative", &NewNode::new("Neg").input(input))?;
        graph.replace(node, &NewNode::new("Neg").input((added, 0)))?;
        graph.note(node, "is nonsense");
    }
    match nodes.len() {
        0 => Ok(()),
        count => Err(KernelError::invalid_argument(format!("{count} nodes are too many"))),
    }
}

fn panic(graph: &PassContext<'_>) -> Result<(), KernelError> {
    let Some(&node) = own(graph, "zoo/panics").first() else { return Ok(()) };
    let input = graph.inputs(node)[0];
    graph.replace(node, &NewNode::new("Neg").input(input))?;
    panic!("at node {}", graph.name(node))
}

register_pass!("rewrite": rewrite, "Rewrites the zoo's own nodes.");
register_pass!("fail": fail, "Changes the graph and fails.");
register_pass!(late "panic": panic, "Changes the graph and panics.");

register_op!(
    "ZooSumOfSquares",
    inputs = &["x: float", "y: float"],
    outputs = &["z: float"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "x x + y y, of one shape.",
);

fn sum_of_squares(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x, y) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    let z = c.output::<f32>(0, x.dims)?;
    let pairs = x.data.iter().zip(y.data);
    z.data.iter_mut().zip(pairs).for_each(|(z, (x, y))| *z = x * x + y * y);
    Ok(())
}

register_kernel!("ZooSumOfSquares" on "CPU": fn sum_of_squares);

register_fusion!(
    "sum_of_squares": "AddV2(a@Square(x), Square(y))" => "ZooSumOfSquares(x, y)",
    where = ["same_shape(x, y)", "same_shape(a, x)"],
);
