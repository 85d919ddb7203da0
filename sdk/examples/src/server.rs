//! A server of TensorFlow's protocol in this process, and a session on it over the network.

use std::{error::Error, time::Duration};
use tenon_cluster::{Server, ServerOptions, Session};
use tenon_runtime::{
    Runtime, RuntimeOptions, Worker,
    framework::{DType, PartialShape, Tensor},
    graph::GraphBuilder,
};

/// Runs a step on the server.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    // Without an address it listens on a free port of the loopback interface.
    let server = Server::start(Worker::new(&runtime), &ServerOptions::default())?;

    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[2])?)?;
    b.op("Tanh").name("y").input(x).build()?;
    let graph = b.finish().to_graph_def()?;

    // TensorFlow's own client takes the same target: tf.compat.v1.Session("grpc://...").
    let session = Session::connect(&format!("grpc://{}", server.address()), graph)?;
    for device in session.devices()?.iter().filter(|device| device.device_type == "CPU") {
        println!("a device of the server: {}", device.name);
    }
    let x = Tensor::from_slice(&[2], &[0f32, 1.0])?;
    let fetched = session.run(&[("x", x)], &["y"], &[], Some(Duration::from_secs(10)))?;
    println!("{:.4?}", fetched[0].as_slice::<f32>()?);
    session.close()?;
    server.stop(Duration::from_secs(1));
    Ok(())
}
