//! Variables that one session saves and another one restores. The files are TensorFlow's.

use std::error::Error;
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, Tensor},
    graph::{Graph, GraphBuilder},
};
use tenon_training::{Initial, Saver, SaverOptions, TrainError, Variables};

/// A graph with one variable, and the nodes that save it.
fn model(runtime: &Runtime) -> Result<(Graph, Saver), TrainError> {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let mut variables = Variables::new();
    let weights = Initial::Value(Tensor::from_slice(&[3], &[1f32, 2.0, 3.0])?);
    variables.add(&mut b, "weights", DType::FLOAT, &[3], &weights)?;
    variables.initializer(&mut b, "start")?;
    let saver = Saver::build(&mut b, variables.all(), SaverOptions::default())?;
    Ok((b.finish(), saver))
}

/// Saves in a session and restores in another.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let (graph, saver) = model(&runtime)?;
    let folder = tempfile::tempdir()?;

    let first = Session::new(&runtime, SessionOptions::default())?;
    first.extend_graph(&graph)?;
    first.run(&[], &[], &["start"], &RunOptions::default())?;
    let saved = saver.save(&first, folder.path().join("model"), Some(100))?;
    first.close();
    println!("saved: {}", saved.file_name().unwrap_or_default().display());

    let second = Session::new(&runtime, SessionOptions::default())?;
    second.extend_graph(&graph)?;
    let latest = saver.latest(folder.path())?.ok_or("there is no checkpoint")?;
    saver.restore(&second, latest)?;
    let name = "weights/Read/ReadVariableOp";
    let (fetched, _) = second.run(&[], &[name], &[], &RunOptions::default())?;
    println!("restored: {:?}", fetched[0].as_slice::<f32>()?);
    Ok(())
}
