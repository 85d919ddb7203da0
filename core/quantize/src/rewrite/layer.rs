//! Layers in the quantised graph.

use super::{Parameters, Writer};
use crate::{
    QuantizeError,
    layers::{Layer, LayerKind},
    scales::BYTES,
    weights::Quantized,
};
use tenon_framework::{DType, Tensor, attr::AttrValue};
use tenon_graph::{NodeId, Output};

/// The result type and parameters of a product.
struct Product {
    name: String,
    input: Output,
    input_parameters: Parameters,
    out: DType,
    out_parameters: Parameters,
}

impl Writer<'_, '_> {
    pub(super) fn layer(&mut self, layer: &Layer) -> Result<(), QuantizeError> {
        if self.plan.dynamic { self.dynamic_layer(layer) } else { self.static_layer(layer) }
    }

    fn static_layer(&mut self, layer: &Layer) -> Result<(), QuantizeError> {
        let (input, input_parameters) = self.parameters(layer.input)?;
        let tensor = layer.output;
        let x = self.bytes.get(&layer.input).copied().unwrap_or(layer.input);
        // If the output is not read in 8 bits, the sums become floats without rounding to 8 bits.
        let output = match self.plan.bytes.contains(&tensor) {
            true => Some(self.parameters(tensor)?),
            false => None,
        };
        let affine = output.map(|(affine, _)| affine);
        let weights = Quantized::new(layer, self.weights(layer), Some(input), affine);
        let product = Product {
            name: match affine {
                Some(_) => self.free_name(format!("{}/quantized", self.name(tensor))),
                None => self.name(tensor),
            },
            input: x,
            input_parameters,
            out: if affine.is_some() { BYTES } else { DType::FLOAT },
            out_parameters: match output {
                Some((_, parameters)) => parameters,
                None => self.neutral()?,
            },
        };
        let made = self.product(layer, weights, &product, layer.activation)?;
        match affine {
            Some(_) => self.give_bytes(tensor, made, product.out_parameters)?,
            None => drop(self.floats.insert(tensor, made.into())),
        }
        self.note(tensor, made.into(), affine, true);
        Ok(())
    }

    /// Adds the product of inputs quantised at run time, as floats; bias and activation follow in
    /// float.
    fn dynamic_layer(&mut self, layer: &Layer) -> Result<(), QuantizeError> {
        let (input, input_parameters) = self.at_run_time(layer.input)?;
        let weights = Quantized::new(layer, self.weights(layer), None, None);
        let name = self.name(layer.output);
        let (shifts, bounded) = (layer.fold.shifts.clone(), layer.activation != "NONE");
        let is_all = shifts.is_none() && !bounded;
        let product = Product {
            name: if is_all { name.clone() } else { self.free_name(format!("{name}/product")) },
            input,
            input_parameters,
            out: DType::FLOAT,
            out_parameters: self.neutral()?,
        };
        let mut made = self.product(layer, weights, &product, "NONE")?;
        if let Some(shifts) = shifts {
            let values: Vec<f32> = shifts.iter().map(|&shift| shift as f32).collect();
            let bias = Tensor::from_slice(&[values.len() as i64], &values);
            let bias = self.constant(format!("{name}/bias"), bias)?;
            let biased =
                if bounded { self.free_name(format!("{name}/biased")) } else { name.clone() };
            made = self.builder.op("BiasAdd").name(&biased).input(made).input(bias).build()?;
        }
        if bounded {
            let op = self.step().op(layer.output.node);
            made = self.builder.op(op).name(&name).input(made).build()?;
        }
        self.floats.insert(layer.output, made.into());
        self.note(layer.output, made.into(), None, true);
        Ok(())
    }

    /// Quantises a float tensor by its range in each step.
    fn at_run_time(&mut self, tensor: Output) -> Result<(Output, Parameters), QuantizeError> {
        if let Some(&known) = self.dynamic.get(&tensor) {
            return Ok(known);
        }
        let (name, x) = (self.name(tensor), self.any_form(tensor));
        let range = self.free_name(format!("{name}/range"));
        let range = self.builder.op("_AffineRange").name(&range).attr("T", BYTES);
        let range = range.input(x).build()?;
        let parameters = [Output::new(range, 0), Output::new(range, 1)];
        let quantized = self.free_name(format!("{name}/quantized"));
        let node = self.builder.op("_AffineQuantize").name(&quantized).attr("T", BYTES);
        let made: Output = node.input(x).inputs(parameters).build()?.into();
        self.dynamic.insert(tensor, (made, parameters));
        Ok((made, parameters))
    }

    fn weights(&self, layer: &Layer) -> &[f32] {
        let weights = self.step().node(layer.anchor).inputs[1];
        self.step().floats(weights).unwrap_or_default()
    }

    /// Adds the op with its weights, under the product's name.
    fn product(
        &mut self,
        layer: &Layer,
        weights: Quantized,
        product: &Product,
        activation: &str,
    ) -> Result<NodeId, QuantizeError> {
        let step = self.step();
        let stem = self.name(step.node(layer.anchor).inputs[1]);
        let dims = step.dims(step.node(layer.anchor).inputs[1]).unwrap_or_default();
        let bytes: Vec<u8> = weights.weights.iter().map(|weight| weight.cast_unsigned()).collect();
        let values = Tensor::from_bytes(DType::QINT8, &dims, &bytes);
        let values = self.constant(format!("{stem}/quantized"), values)?;
        let channels = weights.scales.len() as i64;
        let scales = Tensor::from_slice(&[channels], &weights.scales);
        let scales = self.constant(format!("{stem}/quantized/scale"), scales)?;
        let [_, zero] = self.neutral()?;
        let bias = match weights.bias {
            Some(bias) => {
                let bias = Tensor::from_slice(&[channels], &bias);
                Some(self.constant(format!("{}/bias", product.name), bias)?)
            }
            None => None,
        };
        let mut node = self.builder.op(layer.kind.quantized_op()).name(&product.name);
        node = node.input(product.input).input(values).inputs(product.input_parameters);
        node = node.input(scales).input(zero).inputs(product.out_parameters).inputs(bias);
        node = node.attr("Tout", product.out).attr("activation", activation);
        for (name, value) in attributes(layer, step.node(layer.anchor).attrs.attrs()) {
            node = node.attr(&name, value);
        }
        Ok(node.attr("num_bias", i64::from(bias.is_some())).build()?)
    }
}

/// The attributes that a product keeps.
fn attributes(layer: &Layer, own: &tenon_framework::attr::AttrMap) -> Vec<(String, AttrValue)> {
    let names: &[&str] = match layer.kind {
        LayerKind::MatMul => &["transpose_a", "transpose_b"],
        _ => &["strides", "padding", "explicit_paddings", "dilations"],
    };
    let kept = names.iter().filter_map(|&name| Some((name.to_owned(), own.get(name)?.clone())));
    let mut kept: Vec<(String, AttrValue)> = kept.collect();
    if let Some(pads) = &layer.pads {
        kept.retain(|(name, _)| name != "padding" && name != "explicit_paddings");
        kept.push(("padding".to_owned(), "EXPLICIT".into()));
        kept.push(("explicit_paddings".to_owned(), pads.clone().into()));
    }
    kept
}
