//! Values that depend on constants alone.

use crate::{
    fail::Failure,
    graph::{State, TF_Graph, shared},
    operation::TF_Output,
    raw::Out,
    status::TF_Status,
    tensor::TF_Tensor,
};
use std::collections::HashSet;
use tenon_framework::Tensor;
use tenon_graph::{Node, NodeId, Output, required_ops};
use tenon_proto::GraphDef;
use tenon_runtime::{RunOptions, Session, SessionOptions};

/// Whether the value of a node is the same in every step that has the same inputs of it, and needs no feed.
fn is_constant(node: &Node) -> bool {
    let is_source = node.inputs.is_empty();
    let control_flow = [
        required_ops::SWITCH,
        required_ops::MERGE,
        required_ops::ENTER,
        required_ops::EXIT,
        required_ops::NEXT_ITERATION,
        required_ops::LOOP_COND,
    ];
    let name = node.op.name.as_str();
    let is_plain = !node.op.is_missing() && !node.op.stateful && !control_flow.contains(&name);
    is_plain && (!is_source || [required_ops::CONST, required_ops::NO_OP].contains(&name))
}

/// The part of the graph that an output needs, where all of it is constant.
fn constant_part(state: &State, output: Output) -> Result<Option<GraphDef>, Failure> {
    let graph = &state.graph;
    let (mut seen, mut stack) = (HashSet::from([output.node]), vec![output.node]);
    let mut ids: Vec<NodeId> = Vec::new();
    while let Some(id) = stack.pop() {
        let node = graph.node(id);
        if !is_constant(node) {
            return Ok(None);
        }
        ids.push(id);
        let data = node.inputs.iter().map(|input| input.node);
        let before = data.chain(node.control_inputs.iter().copied());
        stack.extend(before.filter(|&id| seen.insert(id)));
    }
    ids.sort_unstable();
    let nodes = ids.into_iter().map(|id| graph.to_node_def(id));
    Ok(Some(GraphDef {
        node: nodes.collect::<Result<_, _>>()?,
        library: graph.library().cloned(),
        versions: graph.versions().cloned(),
        ..GraphDef::default()
    }))
}

fn evaluate(graph: Option<&TF_Graph>, output: &TF_Output) -> Result<Option<Tensor>, Failure> {
    let graph = shared(graph)?;
    let output = output.of(graph, "the output")?;
    let (part, name) = {
        let state = graph.lock();
        (constant_part(&state, output)?, state.graph.output_name(output))
    };
    let Some(part) = part else { return Ok(None) };
    let session = Session::new(graph.runtime()?, SessionOptions::default())?;
    session.extend_owned(part)?;
    let (mut fetched, _) = session.run(&[], &[&name], &[], &RunOptions::default())?;
    Ok(fetched.pop())
}

api! {
    /// Evaluates an output that depends on constants alone: gives 1 and writes its value, which the caller deletes. Otherwise gives
    /// 0, and the status is OK.
    fn TF_TryEvaluateConstant(
        graph: Option<&TF_Graph>,
        output: TF_Output,
        result: Out<'_, Option<Box<TF_Tensor>>>,
        status: Option<&mut TF_Status>,
    ) -> u8 [status] {
        result.set(None);
        if result.is_null() {
            return Err(Failure::null("the place for the result"));
        }
        let Some(value) = evaluate(graph, &output)? else { return Ok(0) };
        result.set(Some(Box::new(TF_Tensor::of(&value)?)));
        Ok(1)
    }
}
