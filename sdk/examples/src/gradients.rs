//! Derivatives of a graph, which are nodes of the same graph.

use std::error::Error;
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    gradient::{Gradient, Options, gradients},
    graph::{GraphBuilder, Output},
};

/// The derivative of the sum of `y` by `x`, as a tensor.
fn derivative(b: &mut GraphBuilder<'_>, y: Output, x: Output) -> Result<Output, Box<dyn Error>> {
    match gradients(b, &[y], &[x], &Options::default())?[0] {
        Some(Gradient::Dense(values)) => Ok(values),
        other => Err(format!("expected a tensor, found {other:?}").into()),
    }
}

/// The first and the second derivative of the sigmoid at three points.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = b.placeholder("x", DType::DOUBLE, PartialShape::new(&[3])?)?;
    let y = b.op("Sigmoid").name("y").input(x).build()?;
    let first = derivative(&mut b, y.into(), x)?;
    let second = derivative(&mut b, first, x)?;
    let names = [first, second].map(|output| b.graph().output_name(output));

    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_graph(&b.finish())?;
    let x = Tensor::from_slice(&[3], &[-1f64, 0.0, 1.0])?;
    let fetches = [names[0].as_str(), names[1].as_str()];
    let (fetched, _) = session.run(&[("x", x)], &fetches, &[], &RunOptions::default())?;
    println!("first:  {:.4?}", fetched[0].as_slice::<f64>()?);
    println!("second: {:.4?}", fetched[1].as_slice::<f64>()?);
    Ok(())
}
