//! A program that trains a model and goes on where it stopped; sdk/docs/train.md explains it.
//!
//!     train_line FOLDER STEPS
//!
//! The model is a line through points, `y = 2 x + 1`. Checkpoints go to the folder. Plugins are searched for in the same
//! places as `tenon` does.

use std::{env, error::Error, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};
use tenon_runtime::{
    Runtime, RuntimeOptions, SessionOptions,
    framework::{DType, Tensor},
    graph::{GraphBuilder, Output},
};
use tenon_training::{
    CheckpointSaver, Every, Hook, Initial, LocalTarget, LoopOptions, ManagerOptions,
    MonitoredSession, NanTensor, Progress, SaverOptions, Scaffold, StopAtStep, TrainError,
    Variables, global_step,
    optimizer::{GradientDescent, MinimizeOptions, Optimizer},
    read_step,
};

/// The tensor with the number of steps.
const STEP: &str = "global_step/Read/ReadVariableOp";

/// A binary op of two outputs.
fn binary(
    b: &mut GraphBuilder<'_>,
    op: &str,
    name: &str,
    x: Output,
    y: Output,
) -> Result<Output, TrainError> {
    Ok(b.op(op).name(name).input(x).input(y).build()?.into())
}

/// The variables, and the loss of the line over all points.
fn model(b: &mut GraphBuilder<'_>, variables: &mut Variables) -> Result<Output, TrainError> {
    let slope = variables.add(b, "slope", DType::FLOAT, &[], &Initial::Zeros)?;
    let offset = variables.add(b, "offset", DType::FLOAT, &[], &Initial::Zeros)?;
    let x = b.constant("x", Tensor::from_slice(&[4], &[0f32, 1.0, 2.0, 3.0])?)?;
    let y = b.constant("y", Tensor::from_slice(&[4], &[1f32, 3.0, 5.0, 7.0])?)?;
    let scaled = binary(b, "Mul", "scaled", slope.value, x)?;
    let found = binary(b, "AddV2", "found", scaled, offset.value)?;
    let error = binary(b, "SquaredDifference", "error", found, y)?;
    let axes = b.constant("axes", Tensor::from_slice(&[1], &[0i32])?)?;
    Ok(b.op("Mean").name("loss").input(error).input(axes).build()?.into())
}

/// The graph, ready to be trained.
fn scaffold(runtime: &Runtime) -> Result<Scaffold, TrainError> {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let mut variables = Variables::new();
    let loss = model(&mut b, &mut variables)?;
    let step = global_step(&mut b, &mut variables)?;
    let options = MinimizeOptions { global_step: Some(step), ..MinimizeOptions::default() };
    let optimizer = GradientDescent { name: "train".to_owned(), ..GradientDescent::new(0.1) };
    optimizer.minimize(&mut b, &mut variables, loss, &options)?;
    Scaffold::build(&mut b, &variables, SaverOptions::default())
}

/// Trains up to this step.
fn train(folder: PathBuf, steps: i64) -> Result<(), Box<dyn Error>> {
    let (runtime, report) = Runtime::new(RuntimeOptions::default())?;
    for refused in &report.rejected {
        eprintln!("refused: {}", refused.error);
    }
    let hooks: Vec<Box<dyn Hook>> = vec![
        Box::new(CheckpointSaver::new(&folder, Every::Steps(100))),
        Box::new(NanTensor::new(&["loss"])),
        Box::new(StopAtStep::last(steps)),
        Box::new(Progress::new().loss("loss").last_step(steps).interval(Duration::from_secs(1))),
    ];
    let target = Arc::new(LocalTarget::new(&runtime, SessionOptions::default()));
    let manager = ManagerOptions { checkpoint_folder: Some(folder), ..ManagerOptions::default() };
    let options = LoopOptions { manager, ..LoopOptions::default() };
    let mut training = MonitoredSession::open(target, scaffold(&runtime)?, hooks, options)?;
    if let Some(session) = training.session() {
        println!("begins at step {}", read_step(&**session, STEP)?);
    }
    while !training.should_stop() {
        training.run(&[], &[], &["train"])?;
    }
    if let Some(session) = training.session() {
        let names = ["slope/Read/ReadVariableOp", "offset/Read/ReadVariableOp"];
        let found = session.run_step(&[], &names, &[], None)?;
        let [slope, offset] = [found[0].as_slice::<f32>()?[0], found[1].as_slice::<f32>()?[0]];
        println!("y = {slope:.2} x + {offset:.2}");
    }
    training.close()?;
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let steps = arguments.get(1).and_then(|steps| steps.parse().ok());
    let (Some(folder), Some(steps)) = (arguments.first(), steps) else {
        eprintln!("usage: train_line FOLDER STEPS");
        return ExitCode::from(2);
    };
    match train(folder.into(), steps) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
