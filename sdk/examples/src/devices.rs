//! Nodes on two devices: the CPU, and a simulated accelerator with memory of its own.

use std::error::Error;
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    graph::GraphBuilder,
};

/// Runs a product on the accelerator, between two nodes on the CPU.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = b.with_device("/device:CPU:0", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[2, 2])?)?;
        Ok::<_, Box<dyn Error>>(b.op("Neg").name("negative").input(x).build()?)
    })??;
    let product = b.op("MatMul").name("product").input(x).input(x).device("/device:ACCEL:0");
    let product = product.build()?;
    b.op("Exp").name("y").input(product).device("/device:CPU:0").build()?;

    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_graph(&b.finish())?;
    let x = Tensor::from_slice(&[2, 2], &[0f32, 1.0, 0.0, 2.0])?;
    let (fetched, metadata) = session.run(&[("x", x)], &["y"], &[], &RunOptions::default())?;
    for node in metadata.nodes.iter() {
        let device = node.device.rsplit("device:").next().unwrap_or_default();
        println!("{} on {device} by {}", node.name, node.plugin);
    }
    // The copies between the devices are part of the step.
    println!("{:.2?}", fetched[0].as_slice::<f32>()?);
    Ok(())
}
