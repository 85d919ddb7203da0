//! Where weights come from.

use safetensors::{Dtype, SafeTensors};
use std::{error::Error, fs, path::Path};
use tenon_runtime::{
    RunOptions, Runtime, Session, SessionOptions,
    framework::{DType, Tensor},
    graph::GraphBuilder,
};

/// Weights by name.
pub enum Weights<'r> {
    /// The bytes of a file in the form of safetensors.
    File(Vec<u8>),
    /// Drawn from a normal distribution, by the plugins' own op.
    Drawn(&'r Runtime),
}

impl<'r> Weights<'r> {
    /// Those of a file, or random ones.
    ///
    /// # Errors
    /// The file cannot be read, or has another form.
    pub fn new(runtime: &'r Runtime, file: Option<&Path>) -> Result<Weights<'r>, Box<dyn Error>> {
        let Some(file) = file else { return Ok(Weights::Drawn(runtime)) };
        let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        SafeTensors::deserialize(&bytes).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Weights::File(bytes))
    }

    /// The weights of this name.
    ///
    /// # Errors
    /// The file has none of this name, or of another type or shape.
    pub fn get(&self, name: &str, dims: &[i64]) -> Result<Tensor, Box<dyn Error>> {
        match self {
            Weights::File(bytes) => {
                let view = SafeTensors::deserialize(bytes)?;
                let view = view.tensor(name).map_err(|error| format!("{name}: {error}"))?;
                let found: Vec<i64> = view.shape().iter().map(|&size| size as i64).collect();
                if view.dtype() != Dtype::F32 || found != dims {
                    let dtype = view.dtype();
                    let expected = format!("expected F32 of shape {dims:?}");
                    return Err(format!("{name}: {expected}, found {dtype:?} of {found:?}").into());
                }
                Ok(Tensor::from_bytes(DType::FLOAT, dims, view.data())?)
            }
            Weights::Drawn(runtime) => drawn(runtime, dims),
        }
    }
}

/// He's initialisation (2015): a variance of 2 over the number of inputs; biases are 0 with it.
fn drawn(runtime: &Runtime, dims: &[i64]) -> Result<Tensor, Box<dyn Error>> {
    let inputs: i64 = dims[1..].iter().product();
    let scale = if dims.len() == 1 { 0.0 } else { (2.0 / inputs as f32).sqrt() };
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let shape = b.constant("shape", Tensor::from_slice(&[dims.len() as i64], dims)?)?;
    let normal = b.op("RandomStandardNormal").input(shape).attr("dtype", DType::FLOAT);
    let normal = normal.attr("seed", 19_i64).attr("seed2", inputs).build()?;
    let scale = b.constant("scale", Tensor::scalar(scale)?)?;
    b.op("Mul").name("weights").input(normal).input(scale).build()?;
    let session = Session::new(runtime, SessionOptions::default())?;
    session.extend(&b.finish().to_graph_def()?)?;
    let (mut fetched, _) = session.run(&[], &["weights"], &[], &RunOptions::default())?;
    Ok(fetched.remove(0))
}
