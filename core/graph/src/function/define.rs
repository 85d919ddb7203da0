//! Functions that are built in code.

use crate::{FunctionError, Graph, GraphBuilder, GraphError, NodeId, Output};
use tenon_framework::op::OpRole;
use tenon_proto::{
    ArgDef, FunctionDef, FunctionDefLibrary, NodeDef, OpDef, convert::dtype_to_proto,
};

impl GraphBuilder<'_> {
    /// Adds a function to the graph's library. Its body is a graph of which a call replaces the
    /// tensors `args`, those of placeholders, by its inputs; `results` are the outputs of a call.
    ///
    /// # Errors
    /// The library has another function of this name, an argument is not a placeholder's tensor, or
    /// an attribute of the body cannot be written.
    ///
    /// ```
    /// use tenon_framework::{DType, PartialShape, op::{OpDef, OpFacts}, registry::*};
    /// use tenon_graph::GraphBuilder;
    ///
    /// let mut plugin = Transaction::new(PluginInfo::linked(PluginId(0), "ops", "0", 0));
    /// let attrs = ["dtype: type", "shape: shape = ?"];
    /// let mut placeholder = OpDef::from_spec("Placeholder", &[], &["output: dtype"], &attrs)?;
    /// placeholder.set_facts(OpFacts { placeholder: true, ..OpFacts::NONE })?;
    /// plugin.add_op(placeholder);
    /// plugin.add_op(OpDef::from_spec("Add", &["x: T", "y: T"], &["z: T"], &["T: type"])?);
    /// # let (registry, _) = commit_all(&Registry::new(), vec![plugin]).unwrap();
    /// let mut body = GraphBuilder::new(&registry);
    /// let x = body.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    /// let y = body.op("Add").name("y").input(x).input(x).build()?;
    ///
    /// let mut b = GraphBuilder::new(&registry);
    /// b.define("twice", &body.finish(), &[x], &[y.into()])?;
    /// assert!(b.graph().function("twice").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn define(
        &mut self,
        name: &str,
        body: &Graph,
        args: &[Output],
        results: &[Output],
    ) -> Result<(), GraphError> {
        self.define_with(name, body, args, results, &[])
    }

    /// As [`GraphBuilder::define`], and a call runs these nodes too, before its readers.
    ///
    /// # Errors
    /// As [`GraphBuilder::define`].
    pub fn define_with(
        &mut self,
        name: &str,
        body: &Graph,
        args: &[Output],
        results: &[Output],
        effects: &[NodeId],
    ) -> Result<(), GraphError> {
        let function = Definition { name, body, args }.write(results, effects)?;
        self.add_library(FunctionDefLibrary { function: vec![function], ..Default::default() })
    }
}

/// A function that is being written.
struct Definition<'d> {
    name: &'d str,
    body: &'d Graph,
    args: &'d [Output],
}

impl Definition<'_> {
    fn write(&self, results: &[Output], effects: &[NodeId]) -> Result<FunctionDef, GraphError> {
        let arg = |at: usize, name: &str, tensor: Output| ArgDef {
            name: format!("{name}_{at}"),
            r#type: dtype_to_proto(self.body.dtype(tensor).base()),
            ..ArgDef::default()
        };
        for &tensor in self.args {
            let node = self.body.node(tensor.node);
            if !(node.op.facts().placeholder || node.op.facts().role == OpRole::Arg) {
                return Err(FunctionError::Definition {
                    function: self.name.to_owned(),
                    what: format!("expected placeholders as arguments, found '{}'", node.name),
                }
                .into());
            }
        }
        let inputs = self.args.iter().enumerate().map(|(at, &tensor)| arg(at, "arg", tensor));
        let outputs = results.iter().enumerate().map(|(at, &tensor)| arg(at, "result", tensor));
        let signature = OpDef {
            name: self.name.to_owned(),
            input_arg: inputs.collect(),
            output_arg: outputs.collect(),
            control_output: effects.iter().map(|&id| self.body.node(id).name.clone()).collect(),
            is_stateful: self.body.nodes().any(|(_, node)| node.op.stateful),
            ..OpDef::default()
        };
        let ret = results.iter().enumerate();
        let ret = ret.map(|(at, &tensor)| (format!("result_{at}"), self.tensor(tensor))).collect();
        let (signature, node_def) = (Some(signature), self.nodes()?);
        let control =
            |&id: &NodeId| (self.body.node(id).name.clone(), self.body.node(id).name.clone());
        let control_ret = effects.iter().map(control).collect();
        Ok(FunctionDef { signature, node_def, ret, control_ret, ..FunctionDef::default() })
    }

    /// The name of a tensor in a definition.
    fn tensor(&self, tensor: Output) -> String {
        if let Some(at) = self.args.iter().position(|&arg| arg == tensor) {
            return format!("arg_{at}");
        }
        let node = self.body.node(tensor.node);
        let ranges = node.signature.output_args.iter().zip(&node.op.outputs);
        let mut found = ranges
            .filter(|(range, _)| (range.start..range.start + range.len).contains(&tensor.output));
        match found.next() {
            Some((range, arg)) => {
                format!("{}:{}:{}", node.name, arg.name, tensor.output - range.start)
            }
            None => self.body.output_name(tensor),
        }
    }

    fn nodes(&self) -> Result<Vec<NodeDef>, GraphError> {
        let def = self.body.to_graph_def()?;
        let is_arg = |id| self.args.iter().any(|arg| arg.node == id);
        // The message has the nodes in the order of the graph.
        let messages = self.body.nodes().zip(def.node).filter(|((id, _), _)| !is_arg(*id));
        let written = messages.map(|((_, node), message)| {
            let data = node.inputs.iter().map(|&input| self.tensor(input));
            let control = node.control_inputs.iter().filter(|&&id| !is_arg(id));
            let control = control.map(|&id| format!("^{}", self.body.node(id).name));
            NodeDef { input: data.chain(control).collect(), ..message }
        });
        Ok(written.collect())
    }
}
