//! Initial values of variables.

use crate::{
    TrainError,
    nodes::{constant, filled, number, random},
};
use tenon_framework::{DType, Shape, Tensor};
use tenon_graph::{GraphBuilder, Output};

/// What a variable holds before the first step.
#[derive(Debug, Clone)]
pub enum Initial {
    /// These values.
    Value(Tensor),
    /// What a node gives. The shape of the output has to be the variable's.
    Output(Output),
    /// Zeros.
    Zeros,
    /// Ones.
    Ones,
    /// This number everywhere.
    Filled(f64),
    /// Values of a normal distribution, none of which is more than two standard deviations from the mean 0.
    TruncatedNormal {
        /// The standard deviation.
        stddev: f64,
        /// The seed. With `(0, 0)` each run draws others.
        seed: (i64, i64),
    },
    /// Values between `-l` and `l`, where `l = sqrt(6 / (inputs + outputs))` (Glorot and Bengio 2010). The last dimension
    /// counts outputs and the one before it inputs, both times the product of the others; a vector counts itself as both.
    GlorotUniform {
        /// The seed. With `(0, 0)` each run draws others.
        seed: (i64, i64),
    },
}

impl Initial {
    /// Adds the nodes below `scope`, such as `w/Initializer`.
    pub(crate) fn build(
        &self,
        b: &mut GraphBuilder<'_>,
        scope: &str,
        dtype: DType,
        shape: &Shape,
    ) -> Result<Output, TrainError> {
        match self {
            Initial::Output(output) => Ok(*output),
            Initial::Value(value) if value.dtype() != dtype || value.shape() != shape => {
                let expected = format!("{dtype} of shape {shape}");
                let found = format!("{} of shape {}", value.dtype(), value.shape());
                Err(TrainError::argument(format!("the initial value '{scope}'"), expected, found))
            }
            Initial::Value(value) => constant(b, &format!("{scope}/initial_value"), value.clone()),
            Initial::Zeros => filled(b, &format!("{scope}/zeros"), dtype, shape, 0.0),
            Initial::Ones => filled(b, &format!("{scope}/ones"), dtype, shape, 1.0),
            Initial::Filled(value) => filled(b, &format!("{scope}/filled"), dtype, shape, *value),
            Initial::TruncatedNormal { stddev, seed } => {
                let name = format!("{scope}/truncated_normal");
                let drawn = random(
                    b,
                    "TruncatedNormal",
                    &format!("{name}/TruncatedNormal"),
                    dtype,
                    shape,
                    *seed,
                )?;
                let stddev = number(b, &format!("{name}/stddev"), dtype, *stddev)?;
                Ok(b.op("Mul").name(&name).input(drawn).input(stddev).build()?.into())
            }
            Initial::GlorotUniform { seed } => {
                let name = format!("{scope}/random_uniform");
                let limit = (6.0 / fans(shape)).sqrt();
                let drawn = random(
                    b,
                    "RandomUniform",
                    &format!("{name}/RandomUniform"),
                    dtype,
                    shape,
                    *seed,
                )?;
                let width = number(b, &format!("{name}/width"), dtype, 2.0 * limit)?;
                let low = number(b, &format!("{name}/min"), dtype, -limit)?;
                let scaled =
                    b.op("Mul").name(&format!("{name}/mul")).input(drawn).input(width).build()?;
                Ok(b.op("AddV2").name(&name).input(scaled).input(low).build()?.into())
            }
        }
    }
}

/// Inputs and outputs of a layer with weights of this shape, added.
fn fans(shape: &Shape) -> f64 {
    let dims: Vec<f64> = shape.dims().iter().map(|dim| *dim as f64).collect();
    match dims.as_slice() {
        [] => 2.0,
        [one] => 2.0 * one,
        [others @ .., inputs, outputs] => others.iter().product::<f64>() * (inputs + outputs),
    }
    .max(1.0)
}
