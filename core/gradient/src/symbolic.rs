//! The op `SymbolicGradient`, which computes the gradients of a function's arguments.
//!
//! Its inputs are the arguments and the gradients of all results. [`lower`] replaces such nodes by calls of functions that
//! compute the body and its gradient.

use crate::{
    GradientError, Options,
    body::{Body, Flow},
    calls::{CallSite, call_op, renamed},
    engine::Engine,
};
use tenon_framework::{
    attr::{AttrValue, FuncValue},
    registry::Registry,
};
use tenon_graph::{Graph, GraphBuilder, Node, NodeId, Output};

const OP: &str = tenon_graph::required_ops::SYMBOLIC_GRADIENT;

/// The graph with calls in the place of the `SymbolicGradient` nodes among `order`, the nodes of a step; `None` if there
/// are no such nodes. Nodes keep their numbers. Those in functions of the library stay.
///
/// # Errors
/// The function of a node is not there or cannot be differentiated, or does not fit the node.
pub fn lower(
    graph: &Graph,
    order: &[NodeId],
    registry: &Registry,
) -> Result<Option<Graph>, GradientError> {
    let ids: Vec<NodeId> =
        order.iter().copied().filter(|&id| graph.node(id).op.name == OP).collect();
    if ids.is_empty() {
        return Ok(None);
    }
    let mut builder = GraphBuilder::extending(graph.clone(), registry);
    let options = Options::default();
    let mut engine = Engine::new(&mut builder, &options);
    for id in ids {
        let node = graph.node(id).clone();
        let site = CallSite { id, node: &node, gradients: Vec::new(), wanted: Vec::new() };
        let function = site.function("f");
        let function = function.ok_or_else(|| site.unsupported("expected a function"))?;
        let called = match engine.own_gradient(&function.name) {
            Some(own) => {
                renamed(&function, &own).map_err(|error| site.unsupported(&error.to_string()))?
            }
            None => engine.whole_gradient(&node, &site, &function)?,
        };
        let mut attrs = node.attrs.attrs().clone();
        attrs.insert("f".to_owned(), AttrValue::Func(called));
        engine.replace(id, call_op(&node), &node.inputs, attrs)?;
    }
    Ok(Some(builder.finish()))
}

impl<'r> Engine<'_, 'r> {
    /// Defines a function of the arguments and the gradients of the results of another one, which gives the gradients of
    /// the arguments.
    fn whole_gradient(
        &mut self,
        node: &Node,
        site: &CallSite<'_>,
        function: &FuncValue,
    ) -> Result<FuncValue, GradientError> {
        let callee = crate::body::open(self, node, function)?;
        let (args, results) = (callee.args.len(), callee.returns.len());
        if node.inputs.len() != args + results || node.outputs().len() != args {
            return Err(site.unsupported(&format!(
                "expected {} inputs and {args} outputs for function '{}', found {} and {}",
                args + results,
                function.name,
                node.inputs.len(),
                node.outputs().len()
            )));
        }
        let flow = Flow { results: vec![true; results], args: vec![true; args] };
        let shapes = self.shapes(&node.inputs[..args]);
        let mut body = Body::differentiate(self, node, function, &flow, &shapes)?;
        let mut inputs = body.args.clone();
        for (at, incoming) in body.incoming.iter().enumerate() {
            inputs.push(match incoming {
                Some(incoming) => *incoming,
                None => {
                    let dtype = body.builder.graph().dtype(body.returns[at]).base();
                    let name = body.builder.unused_name(&format!("unread_gradient_{at}"));
                    body.builder.placeholder(&name, dtype, Default::default())?
                }
            });
        }
        let mut gradients: Vec<Output> = Vec::with_capacity(args);
        for (arg, gradient) in body.args.iter().zip(&body.gradients) {
            gradients.push(match gradient {
                Some(gradient) => *gradient,
                None => body.builder.op("ZerosLike").input(*arg).build()?.into(),
            });
        }
        let name = self.function_name(&function.name, "symbolic_gradient");
        self.b.define(&name, body.builder.graph(), &inputs, &gradients)?;
        Ok(FuncValue { name, ..FuncValue::default() })
    }
}
