//! Training steps: the network with variables, its loss, and updates by the gradients.

use crate::{
    network::{Built, Network, Parameters},
    weights::Weights,
};
use std::time::Instant;
use tenon_runtime::{
    CallableOptions, RunOptions, Runtime, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    graph::{GraphBuilder, Output},
};
use tenon_training::{
    Initial, Variables,
    optimizer::{MinimizeOptions, Momentum, Optimizer},
};

/// Weights that training changes.
impl Parameters for Variables {
    fn parameter(
        &mut self,
        b: &mut GraphBuilder<'_>,
        name: &str,
        value: Output,
        dims: &[i64],
    ) -> Built<Output> {
        let name = format!("trained/{name}");
        Ok(self.add(b, &name, DType::FLOAT, dims, &Initial::Output(value))?.value)
    }
}

/// Adds the mean loss of images with their classes, `labels`, and the node `train`. Returns the name of the loss.
fn build(b: &mut GraphBuilder<'_>, network: &Network, weights: &Weights<'_>) -> Built<String> {
    let mut variables = Variables::new();
    let logits = network.build(b, weights, &mut variables)?;
    let labels = b.placeholder("labels", DType::INT32, PartialShape::new(&[-1])?)?;
    let losses = b.op("SparseSoftmaxCrossEntropyWithLogits").input(logits).input(labels).build()?;
    let axes = b.constant("axes", Tensor::from_slice(&[1], &[0i32])?)?;
    let loss = b.op("Mean").name("loss").input(losses).input(axes).build()?.into();
    let optimizer = Momentum { momentum: 0.9, name: "train".to_owned(), ..Momentum::new(0.001) };
    optimizer.minimize(b, &mut variables, loss, &MinimizeOptions::default())?;
    variables.initializer(b, "init")?;
    Ok(b.graph().output_name(loss))
}

/// Trains on one image, and prints the loss and the time of each step.
///
/// # Errors
/// The weights do not fit, or a step fails.
pub fn train(
    runtime: &Runtime,
    network: &Network,
    weights: &Weights<'_>,
    image: &Tensor,
    steps: u32,
) -> Built<()> {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let loss = build(&mut b, network, weights)?;
    let session = Session::new(runtime, SessionOptions::default())?;
    session.extend_graph(&b.finish())?;
    session.run(&[], &[], &["init"], &RunOptions::default())?;
    let step = CallableOptions {
        targets: vec!["train".to_owned()],
        ..CallableOptions::new(&["image", "labels"], &[&loss])
    };
    let step = session.callable(step)?;
    let labels = Tensor::from_slice(&[1], &[0i32])?;
    let mut fetched = Vec::new();
    for at in 1..=steps {
        let began = Instant::now();
        step.run(&[image.clone(), labels.clone()], &mut fetched)?;
        let time = 1e3 * began.elapsed().as_secs_f64();
        println!("training step {at}: loss {:.4}, {time:.1} ms", fetched[0].as_slice::<f32>()?[0]);
    }
    Ok(())
}
