//! Nodes between layers in the quantised graph.

use super::{Parameters, Writer, as_byte};
use crate::{
    QuantizeError,
    between::{Between, Candidate},
    scales::BYTES,
};
use tenon_framework::Tensor;
use tenon_geometry::fixed_point::Affine;
use tenon_graph::{NodeBuilder, NodeId, Output};

/// The number of 8-bit values.
const VALUES: i64 = 256;

impl Writer<'_, '_> {
    pub(super) fn between(&mut self, between: &Candidate) -> Result<(), QuantizeError> {
        let tensor = between.output;
        let (affine, parameters) = self.parameters(tensor)?;
        let name = self.free_name(format!("{}/quantized", self.name(tensor)));
        let made = match &between.what {
            Between::Moved | Between::Joined(_) => self.moved(between, &name)?,
            Between::Padded => self.padded(between, &name, affine)?,
            Between::MaxPool => self.max_pool(between, &name, affine)?,
            Between::AvgPool => {
                self.rescaled(between, &name, parameters, "_QuantizedFusedAvgPool")?
            }
            Between::Mean => self.rescaled(between, &name, parameters, "_QuantizedFusedMean")?,
            Between::Add(activation) => self.sum(between, &name, parameters, activation)?,
            Between::Lookup => self.lookup(between, &name, affine)?,
        };
        self.give_bytes(tensor, made, parameters)?;
        if between.rescales() {
            self.note(tensor, made.into(), Some(affine), false);
        }
        Ok(())
    }

    /// The inputs of the node; those that it reads as values are in 8 bits.
    fn inputs(&self, between: &Candidate) -> Vec<Output> {
        let form = |&input: &Output| match between.inputs.contains(&input) {
            true => self.bytes.get(&input).copied().unwrap_or(input),
            false => self.any_form(input),
        };
        self.step().node(between.id).inputs.iter().map(form).collect()
    }

    /// Adds the op on bytes; its type attributes follow from its inputs.
    fn moved(&mut self, between: &Candidate, name: &str) -> Result<NodeId, QuantizeError> {
        let (inputs, node) = (self.inputs(between), self.step().node(between.id));
        let mut moved = self.builder.op(&node.op.name).name(name).inputs(inputs);
        for (attr, value) in node.attrs.attrs().iter().filter(|(attr, _)| *attr != "T") {
            moved = moved.attr(attr, value.clone());
        }
        Ok(moved.build()?)
    }

    fn padded(
        &mut self,
        between: &Candidate,
        name: &str,
        affine: Affine,
    ) -> Result<NodeId, QuantizeError> {
        let zero = Tensor::from_bytes(BYTES, &[], &[as_byte(affine, 0.0)]);
        let zero = self.constant(format!("{name}/zero"), zero)?;
        let inputs = self.inputs(between);
        Ok(self.builder.op("PadV2").name(name).inputs(inputs).input(zero).build()?)
    }

    /// Adds TensorFlow's op with ranges, which it passes through.
    fn max_pool(
        &mut self,
        between: &Candidate,
        name: &str,
        affine: Affine,
    ) -> Result<NodeId, QuantizeError> {
        let ends = [0, 255].map(|value| Tensor::scalar(affine.real(value)));
        let [min, max] = ends;
        let min = self.constant(format!("{name}/min"), min)?;
        let max = self.constant(format!("{name}/max"), max)?;
        let inputs = self.inputs(between);
        let node = self.builder.op("QuantizedMaxPool").name(name).inputs(inputs);
        let node = with_attrs(node, self.plan.step, between.id, &["ksize", "strides", "padding"]);
        Ok(node.input(min).input(max).build()?)
    }

    /// Adds an op with the parameters of its inputs and its output.
    fn rescaled(
        &mut self,
        between: &Candidate,
        name: &str,
        out: Parameters,
        op: &str,
    ) -> Result<NodeId, QuantizeError> {
        let inputs = self.inputs(between);
        let (_, own) = self.parameters(between.inputs[0])?;
        let node = self.builder.op(op).name(name).inputs(inputs).inputs(own).inputs(out);
        let names = ["ksize", "strides", "padding", "keep_dims"];
        Ok(with_attrs(node, self.plan.step, between.id, &names).build()?)
    }

    fn sum(
        &mut self,
        between: &Candidate,
        name: &str,
        out: Parameters,
        activation: &str,
    ) -> Result<NodeId, QuantizeError> {
        let inputs = self.inputs(between);
        let (_, a) = self.parameters(between.inputs[0])?;
        let (_, b) = self.parameters(between.inputs[1])?;
        let node = self.builder.op("_QuantizedFusedAdd").name(name).inputs(inputs);
        let node = node.inputs(a).inputs(b).inputs(out).attr("activation", activation);
        Ok(node.build()?)
    }

    /// Adds a function as a table of its values for all 8-bit numbers.
    fn lookup(
        &mut self,
        between: &Candidate,
        name: &str,
        affine: Affine,
    ) -> Result<NodeId, QuantizeError> {
        let (input, _) = self.parameters(between.inputs[0])?;
        let table = self.table(between.id, input, affine).map_err(|reason| {
            QuantizeError::Table { node: self.step().node(between.id).name.clone(), reason }
        })?;
        let table = Tensor::from_bytes(BYTES, &[VALUES], &table);
        let table = self.constant(format!("{name}/table"), table)?;
        let inputs = self.inputs(between);
        Ok(self.builder.op("_QuantizedLookup").name(name).inputs(inputs).input(table).build()?)
    }

    fn table(&self, id: NodeId, input: Affine, output: Affine) -> Result<Vec<u8>, String> {
        let reals: Vec<f32> = (0..VALUES as i32).map(|value| input.real(value)).collect();
        let reals = Tensor::from_slice(&[VALUES], &reals).map_err(|error| error.to_string())?;
        let values = self.evaluate.evaluate(self.step().node(id), &[reals]);
        let values = values.map_err(|error| error.message)?;
        let values = values.first().ok_or("its kernel returned nothing")?;
        let values = values.as_slice::<f32>().map_err(|error| error.to_string())?;
        if values.len() != VALUES as usize {
            return Err(format!("its kernel returned {} values", values.len()));
        }
        Ok(values.iter().map(|&value| as_byte(output, value)).collect())
    }
}

/// Sets those of these attributes that the node of the float graph has.
fn with_attrs<'b, 'r>(
    mut node: NodeBuilder<'b, 'r>,
    step: crate::Step<'_>,
    id: NodeId,
    names: &[&str],
) -> NodeBuilder<'b, 'r> {
    for &name in names {
        if let Some(value) = step.node(id).attrs.get(name) {
            node = node.attr(name, value.clone());
        }
    }
    node
}
