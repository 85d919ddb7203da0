//! Writing a graph as a function.
//!
//! Names of arguments and results are made of those of nodes, in lower case with underscores, as TensorFlow makes them; nodes of
//! the body keep their names where no argument or result has them.

use crate::{
    fail::Failure,
    graph::{Shared, State},
    operation::{OpRef, TF_Output, node_of},
};
use std::collections::{BTreeMap, HashMap, HashSet};
use tenon_framework::Code;
use tenon_graph::{Graph, NodeId, Output};
use tenon_proto::{ArgDef, FunctionDef, NodeDef, OpDef, convert::dtype_to_proto};

/// What a function is made of.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    /// The nodes of the body; `None` for all but those of the inputs.
    pub(crate) nodes: Option<&'a [Option<OpRef>]>,
    pub(crate) inputs: &'a [TF_Output],
    pub(crate) outputs: &'a [TF_Output],
    /// The names of the outputs; empty for names of nodes.
    pub(crate) output_names: Vec<String>,
    pub(crate) effects: &'a [Option<OpRef>],
    pub(crate) effect_names: Vec<String>,
}

/// Gives names that no other has.
#[derive(Default)]
struct Names {
    used: HashMap<String, usize>,
}

impl Names {
    fn unique(&mut self, name: &str) -> String {
        if !self.used.contains_key(name) {
            self.used.insert(name.to_owned(), 0);
            return name.to_owned();
        }
        loop {
            let number = self.used.entry(name.to_owned()).or_default();
            let candidate = format!("{name}_{number}");
            *number += 1;
            if !self.used.contains_key(&candidate) {
                self.used.insert(candidate.clone(), 0);
                return candidate;
            }
        }
    }
}

/// The name of an argument for a node: lower case, with underscores, from the first letter on.
fn normal(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let text: String = name.chars().map(plain).collect();
    match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(first) => text[first..].to_owned(),
        None => "unknown".to_owned(),
    }
}

/// A function that is being written.
struct Writer<'a> {
    graph: &'a Graph,
    name: &'a str,
    names: Names,
    /// What an output of the graph is called in the function.
    tensors: HashMap<Output, String>,
    /// What a node of the body is called.
    nodes: HashMap<NodeId, String>,
}

impl Source<'_> {
    /// The definition of the function.
    ///
    /// # Errors
    /// An input or an output of another graph, or twice; a node of the body whose inputs are neither in the body nor arguments.
    pub(crate) fn write(&self, of: &Shared, state: &State) -> Result<FunctionDef, Failure> {
        let outputs = |outputs: &[TF_Output], what: &str| {
            let output = |output: &TF_Output| match output.of(of, what) {
                Err(failure) if output.is_beyond() => {
                    Err(Failure { code: Code::OUT_OF_RANGE, ..failure })
                }
                found => found,
            };
            outputs.iter().map(output).collect::<Result<Vec<_>, _>>()
        };
        let nodes = |nodes: &[Option<OpRef>], what: &str| {
            nodes.iter().map(|&oper| node_of(oper, of, what)).collect::<Result<Vec<_>, _>>()
        };
        let inputs = outputs(self.inputs, "an input of the function")?;
        let results = outputs(self.outputs, "an output of the function")?;
        let effects = nodes(self.effects, "a control output of the function")?;
        check_once(&state.graph, &inputs)?;
        let body = match self.nodes {
            Some(given) => nodes(given, "a node of the function")?,
            None => self.rest(&state.graph, &inputs)?,
        };
        let mut writer = Writer {
            graph: &state.graph,
            name: self.name,
            names: Names::default(),
            tensors: HashMap::new(),
            nodes: HashMap::new(),
        };
        // An argument gives way to a result of the same name.
        let output_arg = writer.outputs(&results, &self.output_names)?;
        let input_arg = inputs.iter().map(|&input| writer.input(input)).collect();
        writer.name_body(&body, &inputs);
        let node_def = body.iter().map(|&id| writer.node(id)).collect::<Result<Vec<_>, _>>()?;
        let ret = output_arg.iter().zip(&results);
        let ret =
            ret.map(|(arg, &result)| Ok((arg.name.clone(), writer.tensor(result, "an output")?)));
        let ret = ret.collect::<Result<BTreeMap<_, _>, Failure>>()?;
        let control_ret = writer.effects(&effects, &self.effect_names)?;
        let is_stateful = body.iter().any(|&id| state.graph.node(id).op.stateful);
        let signature = OpDef {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            input_arg,
            output_arg,
            control_output: control_ret.keys().cloned().collect(),
            is_stateful,
            ..OpDef::default()
        };
        let signature = Some(signature);
        Ok(FunctionDef { signature, node_def, ret, control_ret, ..FunctionDef::default() })
    }

    /// All nodes but those of the inputs.
    fn rest(&self, graph: &Graph, inputs: &[Output]) -> Result<Vec<NodeId>, Failure> {
        for input in inputs {
            let node = graph.node(input.node);
            if node.outputs().len() != 1 {
                return Err(Failure::invalid(format!(
                    "function '{}': where the nodes of the body are not listed, the node of an input has one output; '{}' has {}",
                    self.name,
                    node.name,
                    node.outputs().len()
                )));
            }
        }
        let arguments: HashSet<NodeId> = inputs.iter().map(|input| input.node).collect();
        Ok(graph.nodes().map(|(id, _)| id).filter(|id| !arguments.contains(id)).collect())
    }
}

fn check_once(graph: &Graph, inputs: &[Output]) -> Result<(), Failure> {
    let mut seen = HashSet::new();
    match inputs.iter().find(|input| !seen.insert(**input)) {
        None => Ok(()),
        Some(twice) => Err(Failure::invalid(format!(
            "'{}' is among the inputs of the function twice",
            graph.output_name(*twice)
        ))),
    }
}

impl Writer<'_> {
    fn arg(&self, name: &str, output: Output) -> ArgDef {
        let r#type = dtype_to_proto(self.graph.dtype(output).base());
        ArgDef { name: name.to_owned(), r#type, ..ArgDef::default() }
    }

    fn input(&mut self, input: Output) -> ArgDef {
        let name = self.names.unique(&normal(&self.graph.node(input.node).name));
        self.tensors.insert(input, name.clone());
        self.arg(&name, input)
    }

    fn outputs(&mut self, results: &[Output], names: &[String]) -> Result<Vec<ArgDef>, Failure> {
        let given = names.iter().map(Some).chain(std::iter::repeat(None));
        let mut args = Vec::with_capacity(results.len());
        for (&result, given) in results.iter().zip(given) {
            let name = match given {
                None => self.names.unique(&normal(&self.graph.node(result.node).name)),
                Some(given) if self.names.used.insert(given.clone(), 0).is_none() => given.clone(),
                Some(given) => {
                    return Err(Failure::invalid(format!(
                        "function '{}': two arguments or results are named '{given}'",
                        self.name
                    )));
                }
            };
            args.push(self.arg(&name, result));
        }
        Ok(args)
    }

    /// Names the nodes of the body, and their outputs.
    fn name_body(&mut self, body: &[NodeId], inputs: &[Output]) {
        for &id in body {
            let node = self.graph.node(id);
            let name = self.names.unique(&node.name);
            for (range, arg) in node.signature.output_args.iter().zip(&node.op.outputs) {
                for at in 0..range.len {
                    let output = Output::new(id, range.start + at);
                    if !inputs.contains(&output) {
                        self.tensors.insert(output, format!("{name}:{}:{at}", arg.name));
                    }
                }
            }
            self.nodes.insert(id, name);
        }
    }

    fn tensor(&self, output: Output, reader: &str) -> Result<String, Failure> {
        self.tensors.get(&output).cloned().ok_or_else(|| {
            Failure::invalid(format!(
                "function '{}': '{}', which {reader} reads, is neither an input nor of a node of the body; add it to one of them",
                self.name,
                self.graph.output_name(output)
            ))
        })
    }

    fn node(&self, id: NodeId) -> Result<NodeDef, Failure> {
        let node = self.graph.node(id);
        let reader = format!("node '{}'", node.name);
        let data = node.inputs.iter().map(|&input| self.tensor(input, &reader));
        let mut input = data.collect::<Result<Vec<_>, _>>()?;
        for &source in &node.control_inputs {
            let known = self.nodes.get(&source).or_else(|| self.argument(source));
            let known = known.ok_or_else(|| {
                Failure::invalid(format!(
                    "function '{}': {reader} waits for '{}', which is not in the body",
                    self.name,
                    self.graph.node(source).name
                ))
            })?;
            input.push(format!("^{known}"));
        }
        let name = self.nodes.get(&id).cloned().unwrap_or_default();
        Ok(NodeDef { name, input, ..self.graph.to_node_def(id)? })
    }

    /// The argument that stands for a node.
    fn argument(&self, id: NodeId) -> Option<&String> {
        self.tensors.get(&Output::new(id, 0))
    }

    fn effects(
        &self,
        effects: &[NodeId],
        names: &[String],
    ) -> Result<BTreeMap<String, String>, Failure> {
        let mut control = BTreeMap::new();
        for (at, id) in effects.iter().enumerate() {
            let node = &self.graph.node(*id).name;
            let inside = self.nodes.get(id).ok_or_else(|| {
                Failure::invalid(format!(
                    "function '{}': control output '{node}' is not in the body",
                    self.name
                ))
            })?;
            let name = names.get(at).unwrap_or(node).clone();
            if control.insert(name.clone(), inside.clone()).is_some() {
                return Err(Failure::invalid(format!(
                    "function '{}': two control outputs are named '{name}'",
                    self.name
                )));
            }
        }
        Ok(control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_arguments_are_those_of_tensorflow() {
        for (name, expected) in [
            ("Feed-1", "feed_1"),
            ("a/b:0", "a_b_0"),
            ("_9X", "x"),
            ("123", "unknown"),
            ("", "unknown"),
        ] {
            assert_eq!(normal(name), expected);
        }
    }

    #[test]
    fn a_name_that_is_used_gets_a_number() {
        let mut names = Names::default();
        let found = ["x", "x", "x", "x_0", "y"].map(|name| names.unique(name));
        assert_eq!(found, ["x", "x_0", "x_1", "x_0_0", "y"]);
    }
}
