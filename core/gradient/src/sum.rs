//! Gradients to begin with, zeros, and sums.

use crate::{GradientError, engine::Engine, known::is_trainable, options::Gradient};
use tenon_framework::{
    DType, KernelError, Tensor,
    attr::{AttrMap, AttrValue},
};
use tenon_graph::Output;

/// A scalar of a type through which gradients flow.
fn scalar(dtype: DType, value: f64) -> Option<Tensor> {
    Tensor::number(dtype, value).ok().filter(|_| is_trainable(dtype))
}

fn attrs<const N: usize>(attrs: [(&str, AttrValue); N]) -> AttrMap {
    attrs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Engine<'_, '_> {
    /// Whether these tensors exist.
    pub fn check(&self, what: &'static str, tensors: &[Output]) -> Result<(), GradientError> {
        let graph = self.b.graph();
        let exists = |tensor: &Output| {
            let node = tensor.node.index() < graph.len();
            node && (tensor.output as usize) < graph.node(tensor.node).outputs().len()
        };
        match tensors.iter().position(|tensor| !exists(tensor)) {
            None => Ok(()),
            Some(index) => {
                let Output { node, output } = tensors[index];
                Err(GradientError::NoTensor { what, index, node: node.0, output })
            }
        }
    }

    /// Whether the given gradients fit `ys`.
    pub fn check_given(&self, ys: &[Output]) -> Result<(), GradientError> {
        let given = &self.options.grad_ys;
        if !given.is_empty() && given.len() != ys.len() {
            return Err(GradientError::GradYCount { expected: ys.len(), found: given.len() });
        }
        for (index, (&y, gradient)) in ys.iter().zip(given).enumerate() {
            let Some(gradient) = gradient else { continue };
            let (values, dense) = match *gradient {
                Gradient::Dense(values) => (vec![values], Some(values)),
                Gradient::Slices { values, indices, dense_shape } => {
                    let parts = [Some(values), Some(indices), dense_shape];
                    (parts.into_iter().flatten().collect(), None)
                }
            };
            self.check("grad_y", &values)?;
            let graph = self.b.graph();
            let (expected, found) = (graph.dtype(y).base(), graph.dtype(values[0]).base());
            let y_name = graph.output_name(y);
            if expected != found && expected != DType::RESOURCE {
                return Err(GradientError::GradY {
                    index,
                    y: y_name,
                    what: "type",
                    expected: expected.to_string(),
                    found: found.to_string(),
                });
            }
            let shape = |tensor| {
                let shape = self.known.value(tensor).map(|value| value.shape.partial());
                shape.unwrap_or_default().to_string()
            };
            if let Some(dense) = dense.filter(|dense| !self.known.may_agree(*dense, y)) {
                let (expected, found) = (shape(y), shape(dense));
                return Err(GradientError::GradY {
                    index,
                    y: y_name,
                    what: "shape",
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    /// The gradient of `y` with which a walk begins.
    pub fn first(&mut self, index: usize, y: Output) -> Result<Gradient, GradientError> {
        if let Some(Some(given)) = self.options.grad_ys.get(index) {
            return Ok(*given);
        }
        let dtype = self.b.graph().dtype(y);
        if dtype.base().is_complex() {
            let y = self.b.graph().output_name(y);
            return Err(GradientError::ComplexY { y, dtype: dtype.to_string() });
        }
        let name = format!("{}grad_ys_{index}", self.prefix);
        if !dtype.base().is_floating() {
            let name = self.b.unused_name(&name);
            let made = self.add(&name, "ZerosLike", &[y], AttrMap::new())?;
            return Ok(Gradient::Dense(made.into()));
        }
        Ok(Gradient::Dense(self.filled(&name, y, 1.0, "OnesLike")?))
    }

    /// A tensor of the shape of `like` with one value: without reading `like` where its shape is known.
    fn filled(
        &mut self,
        name: &str,
        like: Output,
        value: f64,
        otherwise: &str,
    ) -> Result<Output, KernelError> {
        let dtype = self.b.graph().dtype(like).base();
        let scalar = scalar(dtype, value);
        // Where nodes run under a condition, a constant would run although what it stands for does not.
        let dims = self.known.known_dims(like).filter(|_| !self.conditional || value != 0.0);
        if let (Some(dims), Some(scalar)) = (dims, scalar) {
            if dims.is_empty() {
                return self.constant(name, scalar);
            }
            if let Some(shape) = self.ints(&format!("{name}/shape"), &dims)? {
                let value = self.constant(&format!("{name}/value"), scalar)?;
                let name = self.b.unused_name(name);
                return Ok(self.add(&name, "Fill", &[shape, value], AttrMap::new())?.into());
            }
        }
        let name = self.b.unused_name(name);
        Ok(self.add(&name, otherwise, &[like], AttrMap::new())?.into())
    }

    /// Zeros of the type and shape of a tensor; `near` begins their name.
    pub fn zeros(&mut self, like: Output, near: &str) -> Result<Output, KernelError> {
        let dtype = self.b.graph().dtype(like).base();
        if !is_trainable(dtype) && !dtype.is_integer() {
            return Err(KernelError::unimplemented(format!(
                "a gradient of type {dtype}: expected a number type"
            )));
        }
        self.filled(&format!("{near}zeros"), like, 0.0, "ZerosLike")
    }

    /// Zeros of this type and of the shape of the variable behind a handle; `near` begins their names.
    pub fn zeros_of_variable(
        &mut self,
        handle: Output,
        dtype: DType,
        near: &str,
    ) -> Result<Output, GradientError> {
        let Some(zero) = scalar(dtype, 0.0) else {
            let what =
                format!("a gradient of a variable of type {dtype}: expected a floating type");
            return Err(KernelError::unimplemented(what).into());
        };
        let name = self.b.unused_name(&format!("{near}VariableShape"));
        let shape = self.add(&name, "VariableShape", &[handle], AttrMap::new())?.into();
        let zero = self.constant(&format!("{near}zero"), zero)?;
        let name = self.b.unused_name(&format!("{near}zeros"));
        Ok(self.add(&name, "Fill", &[shape, zero], AttrMap::new())?.into())
    }

    /// The sum of gradients of one tensor.
    pub fn sum(&mut self, of: Output, parts: &[Gradient]) -> Result<Gradient, GradientError> {
        let near = self.b.graph().node(of.node).name.clone();
        let sparse = parts.iter().all(|part| matches!(part, Gradient::Slices { .. }));
        if sparse {
            return self.join(&near, parts);
        }
        let mut tensors = Vec::with_capacity(parts.len());
        for part in parts {
            tensors.push(self.dense(of, *part)?);
        }
        let name = self.name_in(&near, "AddN");
        Ok(Gradient::Dense(self.add(&name, "AddN", &tensors, AttrMap::new())?.into()))
    }

    /// Slices, one after the other.
    fn join(&mut self, near: &str, parts: &[Gradient]) -> Result<Gradient, GradientError> {
        let (mut all_values, mut all_indices, mut shape) = (Vec::new(), Vec::new(), None);
        for part in parts {
            if let Gradient::Slices { values, indices, dense_shape } = *part {
                all_values.push(values);
                all_indices.push(indices);
                shape = shape.or(dense_shape);
            }
        }
        let name = self.name_in(near, "axis");
        let axis = self.constant(&name, zero_axis()?)?;
        let dtype = |engine: &Self, tensor| engine.b.graph().dtype(tensor).base();
        if all_indices.iter().any(|&indices| dtype(self, indices) != dtype(self, all_indices[0])) {
            for indices in &mut all_indices {
                if dtype(self, *indices) != DType::INT64 {
                    let name = self.name_in(near, "Cast");
                    let wide = attrs([("DstT", AttrValue::Type(DType::INT64))]);
                    *indices = self.add(&name, "Cast", &[*indices], wide)?.into();
                }
            }
        }
        all_values.push(axis);
        all_indices.push(axis);
        let name = self.name_in(near, "values");
        let values = self.add(&name, "ConcatV2", &all_values, AttrMap::new())?.into();
        let name = self.name_in(near, "indices");
        let indices = self.add(&name, "ConcatV2", &all_indices, AttrMap::new())?.into();
        Ok(Gradient::Slices { values, indices, dense_shape: shape })
    }

    /// The gradient of a tensor as one tensor.
    pub fn dense(&mut self, of: Output, gradient: Gradient) -> Result<Output, KernelError> {
        let (values, indices, dense_shape) = match gradient {
            Gradient::Dense(values) => return Ok(values),
            Gradient::Slices { values, indices, dense_shape } => (values, indices, dense_shape),
        };
        let near = self.b.graph().node(of.node).name.clone();
        let shape = match dense_shape {
            Some(shape) => shape,
            None => {
                let name = self.name_in(&near, "Shape");
                self.add(&name, "Shape", &[of], AttrMap::new())?.into()
            }
        };
        let name = self.name_in(&near, "axis");
        let (first, axis) = (zero_axis()?, zero_axis()?);
        let first = self.constant(&name, first)?;
        let axis = self.constant(&name, axis)?;
        let name = self.name_in(&near, "slices");
        let rows = self.add(&name, "GatherV2", &[shape, first, axis], AttrMap::new())?.into();
        let name = self.name_in(&near, "dense");
        let inputs = [values, indices, rows];
        Ok(self.add(&name, "UnsortedSegmentSum", &inputs, AttrMap::new())?.into())
    }
}

/// The number of the first axis.
fn zero_axis() -> Result<Tensor, KernelError> {
    Tensor::scalar(0i32).map_err(|error| KernelError::new(error.code(), error.to_string()))
}
