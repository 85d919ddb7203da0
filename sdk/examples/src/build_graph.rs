//! A graph that the program builds: `y = Relu(x w) + 1`.

use std::error::Error;
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    graph::GraphBuilder,
};

/// Builds the graph and runs one step of it.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    // Rows of three numbers; how many rows, each step says.
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 3])?)?;
    let w = b.constant("w", Tensor::from_slice(&[3, 2], &[1f32, -1.0, 0.5, 0.0, 2.0, 1.0])?)?;
    let product = b.op("MatMul").input(x).input(w).build()?;
    let positive = b.op("Relu").input(product).build()?;
    let one = b.constant("one", Tensor::scalar(1f32)?)?;
    b.op("AddV2").name("y").input(positive).input(one).build()?;

    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_graph(&b.finish())?;
    let x = Tensor::from_slice(&[2, 3], &[1f32, 2.0, 3.0, -1.0, -2.0, -3.0])?;
    let (fetched, _) = session.run(&[("x", x)], &["y"], &[], &RunOptions::default())?;
    println!("{} {:?}", fetched[0].shape(), fetched[0].as_slice::<f32>()?);
    Ok(())
}
