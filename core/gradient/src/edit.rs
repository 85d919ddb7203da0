//! A node as the gradient of its op sees it.

use crate::{engine::Engine, options::Gradient};
use tenon_framework::{
    DType, KernelError, Tensor,
    attr_view::AttrTable,
    gradient::{Gradient as Form, GradientEdit},
    pass::{Edge, NodeSpec},
};
use tenon_graph::{Node, NodeId, Output};

/// One run of the gradient of a node.
pub(crate) struct NodeEdit<'e, 'b, 'r> {
    engine: &'e mut Engine<'b, 'r>,
    id: NodeId,
    node: &'e Node,
    gradients: Vec<Option<Gradient>>,
    wanted: Vec<bool>,
    set: Vec<Option<Gradient>>,
    /// Gradients of outputs that were asked for as tensors.
    dense: Vec<Option<Output>>,
}

impl<'e, 'b, 'r> NodeEdit<'e, 'b, 'r> {
    pub fn new(
        engine: &'e mut Engine<'b, 'r>,
        id: NodeId,
        node: &'e Node,
        gradients: Vec<Option<Gradient>>,
        wanted: Vec<bool>,
    ) -> NodeEdit<'e, 'b, 'r> {
        let set = vec![None; node.inputs.len()];
        let dense = vec![None; node.outputs().len()];
        NodeEdit { engine, id, node, gradients, wanted, set, dense }
    }

    /// The gradients of the inputs.
    pub fn into_set(self) -> Vec<Option<Gradient>> {
        self.set
    }

    fn exists(&self, tensor: Edge) -> Option<Output> {
        let graph = self.engine.b.graph();
        let output = output(tensor);
        let node = (output.node.index() < graph.len()).then(|| graph.node(output.node))?;
        ((output.output as usize) < node.outputs().len()).then_some(output)
    }

    /// The node in the place of one in the frame in which nodes are added.
    fn here(&mut self, node: u32) -> Result<NodeId, KernelError> {
        let Some(value) = self.exists((node, 0)) else {
            let what = "expected a node of the graph with an output";
            return Err(KernelError::invalid_argument(what));
        };
        let depth = self.engine.depth();
        let here = self.engine.at(value, depth);
        let here = here.map_err(|error| KernelError::new(error.code(), error.to_string()))?;
        Ok(here.node)
    }

    fn check_type(&self, input: usize, values: Output) -> Result<(), KernelError> {
        let graph = self.engine.b.graph();
        let expected = self.node.signature.inputs[input].base();
        let found = graph.dtype(values).base();
        // The gradient of a resource has the type of what is behind it.
        if expected == found || expected == DType::RESOURCE {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "the gradient of input {input} is of type {found}: expected {expected}, the type of the input"
        )))
    }
}

fn output(tensor: Edge) -> Output {
    Output::new(NodeId(tensor.0), tensor.1)
}

fn edge(output: Output) -> Edge {
    (output.node.0, output.output)
}

fn mapped<A, B, E>(gradient: Form<A>, map: impl Fn(A) -> Result<B, E>) -> Result<Form<B>, E> {
    Ok(match gradient {
        Form::Dense(values) => Form::Dense(map(values)?),
        Form::Slices { values, indices, dense_shape } => Form::Slices {
            values: map(values)?,
            indices: map(indices)?,
            dense_shape: dense_shape.map(map).transpose()?,
        },
    })
}

impl GradientEdit for NodeEdit<'_, '_, '_> {
    fn name(&self) -> &str {
        &self.node.name
    }

    fn op(&self) -> &str {
        &self.node.op.name
    }

    fn scope(&self) -> &str {
        &self.engine.scope
    }

    fn attrs(&self) -> &AttrTable {
        &self.node.attrs
    }

    fn input_count(&self) -> usize {
        self.node.inputs.len()
    }

    fn output_count(&self) -> usize {
        self.node.outputs().len()
    }

    fn input(&self, index: usize) -> Option<Edge> {
        self.node.inputs.get(index).copied().map(edge)
    }

    fn output(&self, index: usize) -> Option<Edge> {
        (index < self.node.outputs().len()).then_some((self.id.0, index as u32))
    }

    fn is_wanted(&self, input: usize) -> bool {
        self.wanted.get(input).copied().unwrap_or(false)
    }

    fn gradient(&self, output: usize) -> Option<Form<Edge>> {
        let gradient = self.gradients.get(output).copied().flatten()?;
        mapped(gradient, |tensor| Ok::<_, ()>(edge(tensor))).ok()
    }

    fn dense_gradient(&mut self, output: usize) -> Result<Edge, KernelError> {
        let of = Output::new(self.id, output as u32);
        let found = self.gradients.get(output).copied().ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "output {output}: expected one of the {} outputs of the node",
                self.node.outputs().len()
            ))
        })?;
        if let Some(dense) = self.dense[output] {
            return Ok(edge(dense));
        }
        let dense = match found {
            Some(Form::Dense(values)) => values,
            Some(slices) => self.engine.dense(of, slices)?,
            None => {
                let near = self.engine.name_in(&self.node.name, "");
                self.engine.zeros(of, &near)?
            }
        };
        self.dense[output] = Some(dense);
        Ok(edge(dense))
    }

    fn dtype(&self, tensor: Edge) -> DType {
        let found = self.exists(tensor);
        found.map_or(DType::INVALID, |tensor| self.engine.b.graph().dtype(tensor).base())
    }

    fn dims(&self, tensor: Edge) -> Option<Vec<i64>> {
        self.engine.known.dims(self.exists(tensor)?)
    }

    fn constant(&self, tensor: Edge) -> Option<&Tensor> {
        self.engine.known.constant(self.exists(tensor)?)
    }

    fn same_shape(&self, a: Edge, b: Edge) -> bool {
        match (self.exists(a), self.exists(b)) {
            (Some(a), Some(b)) => self.engine.known.same_shape(a, b),
            _ => false,
        }
    }

    fn add(&mut self, name: &str, new: NodeSpec) -> Result<(u32, usize), KernelError> {
        let NodeSpec { op, mut attrs, inputs, control } = new;
        let mut sources = Vec::with_capacity(inputs.len());
        for (at, input) in inputs.into_iter().enumerate() {
            sources.push(self.exists(input).ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "input {at} of a node of op '{op}': expected a value of the graph"
                ))
            })?);
        }
        let mut before = Vec::with_capacity(control.len());
        for (at, node) in control.into_iter().enumerate() {
            before.push(self.here(node).map_err(|error| KernelError {
                message: format!("control input {at} of a node of op '{op}': {}", error.message),
                ..error
            })?);
        }
        if self.engine.options.colocate {
            let (key, value) = Engine::colocated(&self.node.name);
            attrs.entry(key).or_insert(value);
        }
        let name = self.engine.name_in(&self.node.name, name);
        let id = self.engine.add_after(&name, &op, &sources, &before, attrs)?;
        Ok((id.0, self.engine.b.graph().node(id).outputs().len()))
    }

    fn set(&mut self, input: usize, gradient: Option<Form<Edge>>) -> Result<(), KernelError> {
        if input >= self.set.len() {
            return Err(KernelError::invalid_argument(format!(
                "input {input}: expected one of the {} inputs of the node",
                self.set.len()
            )));
        }
        let known = |tensor: Edge| {
            self.exists(tensor).ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "the gradient of input {input}: expected a value of the graph"
                ))
            })
        };
        let gradient = gradient.map(|gradient| mapped(gradient, known)).transpose()?;
        match gradient {
            Some(Form::Dense(values)) => {
                self.check_type(input, values)?;
                let of = self.node.inputs[input];
                let resource = self.node.signature.inputs[input].base() == DType::RESOURCE;
                if !resource && !self.engine.known.may_agree(values, of) {
                    let dims = |tensor| self.engine.known.dims(tensor).unwrap_or_default();
                    return Err(KernelError::invalid_argument(format!(
                        "the gradient of input {input} has shape {:?}: expected {:?}, the shape of the input",
                        dims(values),
                        dims(of)
                    )));
                }
            }
            Some(Form::Slices { values, indices, .. }) => {
                self.check_type(input, values)?;
                let found = self.engine.b.graph().dtype(indices).base();
                if !matches!(found, DType::INT32 | DType::INT64) {
                    return Err(KernelError::invalid_argument(format!(
                        "the gradient of input {input} has indices of type {found}: expected int32 or int64"
                    )));
                }
            }
            None => {}
        }
        self.set[input] = gradient;
        Ok(())
    }
}
