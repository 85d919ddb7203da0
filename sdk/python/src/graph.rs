//! Graphs, as Python builds them.
//!
//! The graph has one lock ([`Locked`]). Shape functions and gradients that are written in Python run while it is held.

use crate::{
    attrs::{attr_object, attr_value, shape_object},
    blocking::guarded,
    dtypes::dtype_object,
    fail::Fail,
    locked::{Guard, Locked},
    runtime::runtime,
};
use pyo3::{
    prelude::*,
    types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList},
};
use std::collections::HashMap;
use tenon_framework::{
    abi::AttrKind,
    attr::{AttrType, AttrValue},
    registry::Registry,
};
use tenon_gradient::{Gradient, GradientError, Options, Unconnected, dense, gradients};
use tenon_graph::{Graph, GraphBuilder, Inferred, NodeId, Output};
use tenon_proto::{
    GraphDef, decode_graph_def, encode,
    versions::{merged_versions, own_versions},
};
use tenon_training::Variables;

/// An output as Python gives it: the numbers of its node and of the output.
pub(crate) type Pair = (u32, u32);

pub(crate) fn output(pair: Pair) -> Output {
    Output::new(NodeId(pair.0), pair.1)
}

pub(crate) fn pair(output: Output) -> Pair {
    (output.node.0, output.output)
}

/// The contents of a graph.
pub(crate) struct State {
    pub graph: Graph,
    pub variables: Variables,
    /// The next number to try for a name that is taken.
    numbers: HashMap<String, u64>,
    shapes: Inferred,
    /// How often nodes that were there before have changed.
    pub changes: u64,
}

impl State {
    /// This name, or one that begins with it and is free.
    fn free_name(&mut self, wanted: &str) -> String {
        if self.graph.find(wanted).is_none() {
            return wanted.to_owned();
        }
        let number = self.numbers.entry(wanted.to_owned()).or_insert(1);
        loop {
            let name = format!("{wanted}_{number}");
            *number += 1;
            if self.graph.find(&name).is_none() {
                return name;
            }
        }
    }

    /// Changes the graph by a builder. If this fails, the graph stays as it was.
    pub fn build<T>(
        &mut self,
        registry: &Registry,
        build: impl FnOnce(&mut GraphBuilder<'_>, &mut Variables) -> Result<T, Fail>,
    ) -> Result<T, Fail> {
        let (before, variables) = (self.graph.clone(), self.variables.clone());
        let mut builder = GraphBuilder::extending(std::mem::take(&mut self.graph), registry);
        let made = guarded(|| build(&mut builder, &mut self.variables));
        self.graph = builder.finish();
        let made = made.and_then(|made| {
            self.shapes.follow(&self.graph)?;
            Ok(made)
        });
        if made.is_err() {
            self.shapes.truncate(before.len());
            (self.graph, self.variables) = (before, variables);
            return made;
        }
        if (0..before.len() as u32).any(|at| !self.graph.shares(&before, NodeId(at))) {
            self.changes += 1;
        }
        made
    }
}

/// A graph under construction. `tenon.Graph` is the class for programs.
#[pyclass(frozen, name = "Graph", module = "tenon._native")]
pub(crate) struct PyGraph {
    state: Locked<State>,
}

impl PyGraph {
    /// The state.
    ///
    /// # Errors
    /// This thread is changing the graph: a shape function or a gradient in Python uses the graph that calls it.
    pub fn lock(&self) -> Result<Guard<'_, State>, Fail> {
        self.state.lock()
    }
}

/// The attributes of a node, as values. Those that the op does not declare get a type by their value.
fn values(
    registry: &Registry,
    op: &str,
    attrs: Option<&Bound<'_, PyDict>>,
) -> Result<Vec<(String, AttrValue)>, Fail> {
    let Some(attrs) = attrs else { return Ok(Vec::new()) };
    let def = registry.op(op);
    let mut made = Vec::with_capacity(attrs.len());
    for (name, value) in attrs.iter() {
        let name: String = name.extract()?;
        let declared = def.and_then(|def| def.attr(&name)).map(|attr| attr.ty);
        let ty = declared.unwrap_or_else(|| guessed(&value));
        let value = attr_value(&name, ty, &value)?;
        made.push((name, value));
    }
    Ok(made)
}

fn guessed(value: &Bound<'_, PyAny>) -> AttrType {
    if value.is_instance_of::<PyBool>() {
        return AttrType::one(AttrKind::BOOL);
    }
    if value.is_instance_of::<PyInt>() {
        return AttrType::one(AttrKind::INT);
    }
    if value.is_instance_of::<PyFloat>() {
        return AttrType::one(AttrKind::FLOAT);
    }
    match value.is_instance_of::<PyList>() {
        true => AttrType::list(AttrKind::STRING),
        false => AttrType::one(AttrKind::STRING),
    }
}

#[pymethods]
impl PyGraph {
    #[new]
    fn new() -> PyGraph {
        let mut graph = Graph::new();
        graph.set_versions(own_versions());
        let state = State {
            graph,
            variables: Variables::new(),
            numbers: HashMap::new(),
            shapes: Inferred::default(),
            changes: 0,
        };
        PyGraph { state: Locked::new(state) }
    }

    /// Adds a node, and returns its number. A name that is taken gets a number behind it.
    #[pyo3(signature = (op, inputs, attrs=None, name=None, device="", control=vec![]))]
    #[allow(clippy::too_many_arguments, reason = "the parts of a node")]
    fn add(
        &self,
        py: Python<'_>,
        op: &str,
        inputs: Vec<Pair>,
        attrs: Option<&Bound<'_, PyDict>>,
        name: Option<&str>,
        device: &str,
        control: Vec<u32>,
    ) -> Result<u32, Fail> {
        let registry = runtime(py)?.registry();
        let attrs = values(&registry, op, attrs)?;
        let mut state = self.lock()?;
        let state = &mut *state;
        let name = state.free_name(name.unwrap_or(op));
        let mut builder = GraphBuilder::extending(std::mem::take(&mut state.graph), &registry);
        let made = guarded(|| {
            let mut node = builder.op(op).name(&name).inputs(inputs.into_iter().map(output));
            for (name, value) in attrs {
                node = node.attr(&name, value);
            }
            let node = control.into_iter().fold(node, |node, id| node.control(NodeId(id)));
            let (node, builder) = node.device(device).checked()?;
            let known = state.shapes.of_node(&node)?;
            state.shapes.push(known);
            Ok(builder.append(node).0)
        });
        state.graph = builder.finish();
        made
    }

    fn __len__(&self) -> Result<usize, Fail> {
        Ok(self.lock()?.graph.len())
    }

    /// The number of the node of this name; `None` if there is none.
    fn find(&self, name: &str) -> Result<Option<u32>, Fail> {
        Ok(self.lock()?.graph.find(name).map(|id| id.0))
    }

    /// The output that a name such as `x` or `x:0` means.
    fn tensor(&self, name: &str) -> Result<Pair, Fail> {
        Ok(pair(self.lock()?.graph.tensor(name)?))
    }

    /// The names of all nodes, in the order of addition.
    fn names(&self) -> Result<Vec<String>, Fail> {
        Ok(self.lock()?.graph.nodes().map(|(_, node)| node.name.clone()).collect())
    }

    /// Name, op, device, data inputs, control inputs and number of outputs of a node.
    #[allow(clippy::type_complexity, reason = "the parts of a node, as a tuple of Python's")]
    fn node(&self, id: u32) -> Result<(String, String, String, Vec<Pair>, Vec<u32>, usize), Fail> {
        let state = self.lock()?;
        check(&state.graph, id)?;
        let node = state.graph.node(NodeId(id));
        Ok((
            node.name.clone(),
            node.op.name.clone(),
            node.device.to_string(),
            node.inputs.iter().map(|&input| pair(input)).collect(),
            node.control_inputs.iter().map(|id| id.0).collect(),
            node.outputs().len(),
        ))
    }

    /// The attributes of a node.
    fn attrs<'py>(&self, py: Python<'py>, id: u32) -> Result<Bound<'py, PyDict>, Fail> {
        let table = {
            let state = self.lock()?;
            check(&state.graph, id)?;
            state.graph.node(NodeId(id)).attrs.clone()
        };
        let made = PyDict::new(py);
        for (name, value) in table.attrs() {
            made.set_item(name, attr_object(py, value)?)?;
        }
        Ok(made)
    }

    /// The element type of an output.
    fn dtype<'py>(&self, py: Python<'py>, id: u32, index: u32) -> Result<Bound<'py, PyAny>, Fail> {
        let dtype = {
            let state = self.lock()?;
            check_output(&state.graph, id, index)?;
            state.graph.dtype(output((id, index)))
        };
        Ok(dtype_object(py, dtype.base())?)
    }

    /// The shape of an output as far as it is known.
    fn shape(&self, id: u32, index: u32) -> Result<Option<Vec<Option<i64>>>, Fail> {
        let state = self.lock()?;
        check_output(&state.graph, id, index)?;
        Ok(shape_object(&state.shapes.shape(output((id, index)))))
    }

    /// The graph as the bytes of a `GraphDef`.
    fn to_graph_def<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Fail> {
        let bytes = py.detach(|| {
            let def = self.lock()?.graph.to_graph_def()?;
            Ok::<_, Fail>(encode(&def)?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Appends the nodes of a `GraphDef`, given as bytes, below a prefix. Returns the number of nodes.
    #[pyo3(signature = (bytes, prefix=""))]
    fn import_graph_def(&self, py: Python<'_>, bytes: &[u8], prefix: &str) -> Result<usize, Fail> {
        let registry = runtime(py)?.registry();
        py.detach(|| {
            let mut def = guarded(|| Ok(decode_graph_def(bytes)?))?;
            if !prefix.is_empty() {
                put_below(&mut def, prefix);
            }
            let mut state = self.lock()?;
            let mut graph = state.graph.clone();
            let count = def.node.len();
            // The nodes are read as their producer wrote them; then the graph is as old as its oldest part.
            let found = def.versions.get_or_insert_default().clone();
            let versions = match graph.is_empty() {
                true => found.clone(),
                false => merged_versions(graph.versions(), &found),
            };
            graph.set_versions(found);
            guarded(|| Ok(graph.extend_owned(def, &registry)?))?;
            graph.set_versions(versions);
            let before = state.shapes.len();
            if let Err(error) = state.shapes.follow(&graph) {
                state.shapes.truncate(before);
                return Err(error.into());
            }
            state.graph = graph;
            Ok(count)
        })
    }

    /// Adds the gradients of the sum of `ys` with respect to each of `xs`; `None` where no path leads to an x.
    #[pyo3(signature = (ys, xs, grad_ys=vec![], stop=vec![], zeros=false, name="gradients"))]
    #[allow(clippy::too_many_arguments, reason = "the options of TensorFlow's function")]
    fn gradients(
        &self,
        py: Python<'_>,
        ys: Vec<Pair>,
        xs: Vec<Pair>,
        grad_ys: Vec<Option<Pair>>,
        stop: Vec<Pair>,
        zeros: bool,
        name: &str,
    ) -> Result<Vec<Option<Pair>>, Fail> {
        let registry = runtime(py)?.registry();
        let outputs = |pairs: Vec<Pair>| pairs.into_iter().map(output).collect::<Vec<_>>();
        let (ys, xs) = (outputs(ys), outputs(xs));
        let given = grad_ys.into_iter().map(|pair| Some(Gradient::Dense(output(pair?))));
        let options = Options {
            prefix: format!("{}/", name.trim_end_matches('/')),
            grad_ys: given.collect(),
            stop_gradients: outputs(stop),
            unconnected: if zeros { Unconnected::Zero } else { Unconnected::None },
            ..Options::default()
        };
        py.detach(|| {
            self.lock()?.build(&registry, |builder, _| {
                let made = gradients(builder, &ys, &xs, &options)?;
                let made = made.into_iter().zip(&xs);
                let made =
                    made.map(|(made, &x)| made.map(|made| dense(builder, x, made)).transpose());
                let made = made.collect::<Result<Vec<_>, GradientError>>()?;
                Ok(made.into_iter().map(|made| made.map(pair)).collect())
            })
        })
    }
}

/// Refuses a number that no node has.
pub(crate) fn check(graph: &Graph, id: u32) -> Result<(), Fail> {
    match (id as usize) < graph.len() {
        true => Ok(()),
        false => {
            Err(Fail::invalid(format!("there is no node {id}: the graph has {}", graph.len())))
        }
    }
}

/// Refuses numbers that no output has.
pub(crate) fn check_output(graph: &Graph, id: u32, index: u32) -> Result<(), Fail> {
    check(graph, id)?;
    let node = graph.node(NodeId(id));
    match (index as usize) < node.outputs().len() {
        true => Ok(()),
        false => Err(Fail::invalid(format!(
            "node '{}' has {} outputs, numbered from 0: there is no output {index}",
            node.name,
            node.outputs().len()
        ))),
    }
}

/// Puts all nodes of a message below a prefix.
fn put_below(def: &mut GraphDef, prefix: &str) {
    let prefix = prefix.trim_end_matches('/');
    let below = |name: &str| match name.strip_prefix('^') {
        Some(name) => format!("^{prefix}/{name}"),
        None => format!("{prefix}/{name}"),
    };
    for node in &mut def.node {
        node.name = below(&node.name);
        for input in &mut node.input {
            *input = below(input);
        }
        let Some(class) = node.attr.get_mut("_class") else { continue };
        if let Some(tenon_proto::AttrValueKind::List(list)) = &mut class.value {
            for item in &mut list.s {
                let text = String::from_utf8_lossy(item).into_owned();
                if let Some(name) = text.strip_prefix("loc:@") {
                    *item = format!("loc:@{}", below(name)).into_bytes();
                }
            }
        }
    }
}
