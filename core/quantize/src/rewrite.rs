//! Writes the quantised graph, node by node, in the order of the given graph.
//!
//! A node keeps its name if it still gives the same float tensor. The 8-bit tensor of node `x` is
//! `x/quantized`, and further nodes for it have names under that one.

use super::{
    QuantizeError,
    plan::{Plan, Role},
    scales::{BYTES, Range, Scales},
    step::Step,
};
use std::collections::HashMap;
use tenon_framework::{Tensor, tensor::TensorError};
use tenon_geometry::fixed_point::Affine;
use tenon_graph::{Evaluate, Graph, GraphBuilder, GraphError, NodeId, Output};

mod between;
mod layer;

/// The scale and zero point as tensors.
pub(super) type Parameters = [Output; 2];

/// A node that computes on 8 bits.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizedNode {
    /// The node of the float graph that it replaces.
    pub name: String,
    /// The op.
    pub op: String,
    /// The tensor of the float graph that it computes.
    pub float: String,
    /// That tensor in the quantised graph: in 8 bits if it has a scale, otherwise in float.
    pub tensor: String,
    /// The scale and zero point of that tensor, if it is in 8 bits.
    pub affine: Option<Affine>,
    /// Whether the node multiplies by weights.
    pub is_layer: bool,
}

/// The quantised graph.
#[derive(Debug)]
pub struct Rewritten {
    /// The graph.
    pub graph: Graph,
    /// The nodes that compute on 8 bits, in order.
    pub nodes: Vec<QuantizedNode>,
    /// The products that stay in float, each with the reason.
    pub left: Vec<(String, String)>,
}

impl Plan<'_> {
    /// Writes the graph quantised according to this plan. `ranges` has the ranges of the observed
    /// tensors; `evaluate` computes the tables of functions.
    ///
    /// # Errors
    /// A tensor has no range, or a table cannot be computed.
    pub fn rewrite(
        &self,
        ranges: &HashMap<Output, Range>,
        evaluate: &dyn Evaluate,
    ) -> Result<Rewritten, QuantizeError> {
        let scales = Scales::new(self, ranges)?;
        let mut writer = Writer::new(self, &scales, evaluate);
        writer.write()?;
        let left = self.left.iter();
        let left = left.map(|(id, reason)| (self.step.node(*id).name.clone(), reason.clone()));
        Ok(Rewritten { left: left.collect(), nodes: writer.nodes, graph: writer.builder.finish() })
    }

    /// The graph before quantisation: the part that runs, with its placeholders.
    ///
    /// # Errors
    /// A node cannot be added to a graph.
    pub fn float_graph(step: Step<'_>) -> Result<Graph, GraphError> {
        let mut copy = Copy { builder: GraphBuilder::new(step.registry), made: HashMap::new() };
        let fed = step.sub.feeds.iter().map(|feed| feed.node);
        for id in fed.chain(step.sub.order.iter().copied()) {
            copy.node(step, id)?;
        }
        Ok(copy.builder.finish())
    }
}

/// Copies nodes to another graph.
struct Copy<'r> {
    builder: GraphBuilder<'r>,
    made: HashMap<NodeId, NodeId>,
}

impl Copy<'_> {
    fn node(&mut self, step: Step<'_>, id: NodeId) -> Result<(), GraphError> {
        if self.made.contains_key(&id) {
            return Ok(());
        }
        let inputs = |output: &Output| Output::new(self.made[&output.node], output.output);
        let inputs: Vec<Output> = step.node(id).inputs.iter().map(inputs).collect();
        let made = copied(&mut self.builder, step, id, inputs, &self.made)?;
        self.made.insert(id, made);
        Ok(())
    }
}

/// Adds an unchanged node with new inputs. Only those of its control inputs that were copied are
/// kept.
fn copied(
    builder: &mut GraphBuilder<'_>,
    step: Step<'_>,
    id: NodeId,
    inputs: Vec<Output>,
    made: &HashMap<NodeId, NodeId>,
) -> Result<NodeId, GraphError> {
    let node = step.node(id);
    let mut copy = builder.op(&node.op.name).name(&node.name).inputs(inputs);
    for (name, value) in node.attrs.attrs() {
        copy = copy.attr(name, value.clone());
    }
    for control in node.control_inputs.iter().filter_map(|control| made.get(control)) {
        copy = copy.control(*control);
    }
    copy.device(&node.device.to_string()).build()
}

/// Writes the quantised graph.
struct Writer<'w, 'a> {
    plan: &'w Plan<'a>,
    scales: &'w Scales,
    evaluate: &'w dyn Evaluate,
    builder: GraphBuilder<'a>,
    /// The unchanged nodes.
    made: HashMap<NodeId, NodeId>,
    /// The float tensors that are not outputs of unchanged nodes.
    floats: HashMap<Output, Output>,
    /// The 8-bit tensors.
    bytes: HashMap<Output, Output>,
    /// The scales written so far, by the tensor that they are named after.
    parameters: HashMap<Output, Parameters>,
    /// The tensors that are quantised at run time, with their scales.
    dynamic: HashMap<Output, (Output, Parameters)>,
    /// The scale and zero point for tensors without their own.
    neutral: Option<Parameters>,
    nodes: Vec<QuantizedNode>,
}

impl<'w, 'a> Writer<'w, 'a> {
    fn new(plan: &'w Plan<'a>, scales: &'w Scales, evaluate: &'w dyn Evaluate) -> Writer<'w, 'a> {
        Writer {
            plan,
            scales,
            evaluate,
            builder: GraphBuilder::new(plan.step.registry),
            made: HashMap::new(),
            floats: HashMap::new(),
            bytes: HashMap::new(),
            parameters: HashMap::new(),
            dynamic: HashMap::new(),
            neutral: None,
            nodes: Vec::new(),
        }
    }

    fn write(&mut self) -> Result<(), QuantizeError> {
        let plan = self.plan;
        for feed in &plan.step.sub.feeds {
            self.copy(feed.node)?;
        }
        for &id in &plan.step.sub.order {
            let outputs = plan.step.node(id).outputs().len() as u32;
            let in_bytes = (0..outputs).any(|at| plan.bytes.contains(&Output::new(id, at)));
            match plan.role(id) {
                _ if !in_bytes && !plan.floats.contains(&id) => {}
                Role::Part => {}
                Role::Layer(at) => self.layer(&plan.layers[at])?,
                Role::Between(at) => self.between(&plan.between[at])?,
                Role::Float => self.copy(id)?,
            }
        }
        Ok(())
    }

    fn step(&self) -> Step<'a> {
        self.plan.step
    }

    fn name(&self, tensor: Output) -> String {
        let name = &self.step().node(tensor.node).name;
        if tensor.output == 0 { name.clone() } else { format!("{name}/{}", tensor.output) }
    }

    /// The given name, with a suffix if it is in use in either graph.
    fn free_name(&self, name: String) -> String {
        let is_taken = |name: &str| {
            self.step().graph.find(name).is_some() || self.builder.graph().find(name).is_some()
        };
        if !is_taken(&name) {
            return name;
        }
        let numbered = (1u64..).map(|number| format!("{name}_{number}"));
        numbered.into_iter().find(|name| !is_taken(name)).unwrap_or(name)
    }

    /// Adds a constant under a free name.
    fn constant(
        &mut self,
        name: String,
        value: Result<Tensor, TensorError>,
    ) -> Result<Output, QuantizeError> {
        let name = self.free_name(name);
        let value = value.map_err(|source| QuantizeError::Tensor { node: name.clone(), source })?;
        Ok(self.builder.constant(&name, value)?)
    }

    /// Adds an unchanged node, and quantises its outputs that are needed in 8 bits.
    fn copy(&mut self, id: NodeId) -> Result<(), QuantizeError> {
        let step = self.step();
        if self.plan.floats.contains(&id) && !self.made.contains_key(&id) {
            let inputs: Vec<Output> = if step.sub.feeds.contains(&id.into()) {
                Vec::new()
            } else {
                step.node(id).inputs.iter().map(|&input| self.any_form(input)).collect()
            };
            let made = copied(&mut self.builder, step, id, inputs, &self.made)?;
            self.made.insert(id, made);
        }
        for at in 0..step.node(id).outputs().len() as u32 {
            let tensor = Output::new(id, at);
            if self.plan.bytes.contains(&tensor) && !self.bytes.contains_key(&tensor) {
                self.quantize(tensor)?;
            }
        }
        Ok(())
    }

    /// The float form of a tensor, or else its 8-bit form.
    fn any_form(&self, tensor: Output) -> Output {
        self.float(tensor).or_else(|| self.bytes.get(&tensor).copied()).unwrap_or(tensor)
    }

    fn float(&self, tensor: Output) -> Option<Output> {
        let made = || Some(Output::new(*self.made.get(&tensor.node)?, tensor.output));
        self.floats.get(&tensor).copied().or_else(made)
    }

    /// The scale and zero point of an 8-bit tensor.
    fn parameters(&mut self, tensor: Output) -> Result<(Affine, Parameters), QuantizeError> {
        let (first, affine) = self.scales.of(self.plan, tensor)?;
        if let Some(&known) = self.parameters.get(&first) {
            return Ok((affine, known));
        }
        let stem = format!("{}/quantized", self.name(first));
        let scale = self.constant(format!("{stem}/scale"), Tensor::scalar(affine.scale))?;
        let zero = Tensor::scalar(affine.zero_point);
        let zero = self.constant(format!("{stem}/zero_point"), zero)?;
        self.parameters.insert(first, [scale, zero]);
        Ok((affine, [scale, zero]))
    }

    /// Scale 1 and zero point 0.
    fn neutral(&mut self) -> Result<Parameters, QuantizeError> {
        if let Some(neutral) = self.neutral {
            return Ok(neutral);
        }
        let scale = self.constant("quantized/scale".to_owned(), Tensor::scalar(1f32))?;
        let zero = self.constant("quantized/zero_point".to_owned(), Tensor::scalar(0i32))?;
        self.neutral = Some([scale, zero]);
        Ok([scale, zero])
    }

    /// Quantises a float tensor: a constant immediately, any other at run time.
    fn quantize(&mut self, tensor: Output) -> Result<(), QuantizeError> {
        let (affine, [scale, zero]) = self.parameters(tensor)?;
        let name = self.free_name(format!("{}/quantized", self.name(tensor)));
        let made = match self.step().floats(tensor) {
            Some(values) => {
                let dims = self.step().dims(tensor).unwrap_or_default();
                let bytes: Vec<u8> = values.iter().map(|&x| as_byte(affine, x)).collect();
                self.constant(name, Tensor::from_bytes(BYTES, &dims, &bytes))?
            }
            None => {
                let x = self.any_form(tensor);
                let node = self.builder.op("_AffineQuantize").name(&name).attr("T", BYTES);
                node.input(x).input(scale).input(zero).build()?.into()
            }
        };
        self.bytes.insert(tensor, made);
        Ok(())
    }

    /// Registers the node of an 8-bit tensor, and adds the float form under the tensor's name if it
    /// is needed too.
    fn give_bytes(
        &mut self,
        tensor: Output,
        made: NodeId,
        [scale, zero]: Parameters,
    ) -> Result<(), QuantizeError> {
        self.bytes.insert(tensor, made.into());
        if self.plan.floats.contains(&tensor.node) {
            let name = self.name(tensor);
            let node = self.builder.op("_AffineDequantize").name(&name);
            let float = node.input(made).input(scale).input(zero).build()?;
            self.floats.insert(tensor, float.into());
        }
        Ok(())
    }

    fn note(&mut self, tensor: Output, made: Output, affine: Option<Affine>, is_layer: bool) {
        let graph = self.builder.graph();
        let node = QuantizedNode {
            name: self.step().node(tensor.node).name.clone(),
            op: graph.node(made.node).op.name.clone(),
            float: self.step().graph.output_name(tensor),
            tensor: graph.output_name(made),
            affine,
            is_layer,
        };
        self.nodes.push(node);
    }
}

/// The byte that represents a number, as `_AffineQuantize` computes it.
pub(super) fn as_byte(Affine { scale, zero_point }: Affine, x: f32) -> u8 {
    ((x / scale).round_ties_even() as i32).saturating_add(zero_point).clamp(0, 255) as u8
}
