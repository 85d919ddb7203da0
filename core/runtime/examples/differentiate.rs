//! A program that differentiates a graph with an op of a plugin; sdk/docs/gradients.md explains it.
//!
//!     differentiate PLUGIN
//!
//! The plugin registers `CubeOf`. Kernels for the CPU are searched for in the same places as `tenon` does.

use std::{env, error::Error, path::PathBuf, process::ExitCode};
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    gradient::{Gradient, Options, gradients},
    graph::{GraphBuilder, Output},
};

/// The tensor that a gradient is.
fn tensor(gradient: Option<Gradient>) -> Result<Output, Box<dyn Error>> {
    match gradient {
        Some(Gradient::Dense(values)) => Ok(values),
        other => Err(format!("expected a tensor, found {other:?}").into()),
    }
}

/// The first and the second derivative of `CubeOf` at 1, 2 and 3.
///
/// # Errors
/// The plugin is refused, or a step fails.
fn differentiate(plugin: PathBuf) -> Result<[Vec<f64>; 2], Box<dyn Error>> {
    let options = RuntimeOptions { plugins: vec![plugin], ..RuntimeOptions::default() };
    let (runtime, report) = Runtime::new(options)?;
    for refused in &report.rejected {
        println!("refused: {}", refused.error);
    }
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    let x = builder.placeholder("x", DType::DOUBLE, PartialShape::new(&[3])?)?;
    let y = builder.op("CubeOf").name("y").input(x).build()?;

    let first = gradients(&mut builder, &[y.into()], &[x], &Options::default())?;
    let first = tensor(first[0])?;
    let second = gradients(&mut builder, &[first], &[x], &Options::default())?;
    let second = tensor(second[0])?;

    let names = [first, second].map(|output| builder.graph().output_name(output));
    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_graph(&builder.finish())?;
    let x = Tensor::from_slice(&[3], &[1f64, 2.0, 3.0])?;
    let fetches = [names[0].as_str(), names[1].as_str()];
    let (fetched, _) = session.run(&[("x", x)], &fetches, &[], &RunOptions::default())?;
    Ok([fetched[0].as_slice::<f64>()?.to_vec(), fetched[1].as_slice::<f64>()?.to_vec()])
}

fn main() -> ExitCode {
    let Some(plugin) = env::args_os().nth(1) else {
        eprintln!("expected the file of a plugin, such as libcubes.so");
        return ExitCode::FAILURE;
    };
    match differentiate(plugin.into()) {
        Ok([first, second]) => {
            println!("first: {first:?}");
            println!("second: {second:?}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
