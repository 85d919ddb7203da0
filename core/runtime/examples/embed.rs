//! A program that runs a graph with the kernels of plugins; sdk/docs/embed.md explains it.
//!
//!     embed [PLUGIN]... [--replace NEWER]
//!
//! Plugins named on the command line are loaded first; others are searched for in the same places
//! as `tenon` does.

use std::{env, error::Error, path::PathBuf, process::ExitCode};
use tenon_runtime::{
    CallableOptions, RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor, device::base::DeviceBase},
    graph::GraphBuilder,
};

/// Runs `y = Relu(x) + 1` twice, and a third time after a plugin was replaced by a newer build;
/// returns the values of `y`.
///
/// # Errors
/// There is no device, a plugin is not a build of a loaded one, or a step fails.
pub fn embed(
    plugins: Vec<PathBuf>,
    newer: Option<PathBuf>,
) -> Result<Vec<Vec<f32>>, Box<dyn Error>> {
    // A refused plugin does not affect the others: the report names it, with the reason.
    let options = RuntimeOptions { plugins, ..RuntimeOptions::default() };
    let (runtime, report) = Runtime::new(options)?;
    for refused in &report.rejected {
        println!("refused: {}", refused.error);
    }
    for device in runtime.devices().devices() {
        println!("device: {}", device.name());
    }

    // The callback runs on the thread that caused the event, until the subscription is dropped.
    let _told = runtime.plugins().subscribe(|event| println!("event: {event:?}"));

    // A TensorFlow graph is read by `proto::read_graph_def` and passed to `Session::extend_owned`
    // instead.
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    let x = builder.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let positive = builder.op("Relu").input(x).build()?;
    let one = builder.constant("one", Tensor::scalar(1f32)?)?;
    builder.op("AddV2").name("y").input(positive).input(one).build()?;

    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_graph(&builder.finish())?;

    let x = Tensor::from_slice(&[3], &[-2f32, 0.5, 3.0])?;
    let (fetched, metadata) =
        session.run(&[("x", x.clone())], &["y"], &[], &RunOptions::default())?;
    for node in metadata.nodes.iter() {
        println!("node: {} ({}) by {} on {}", node.name, node.op, node.plugin, node.device);
    }
    let mut results = vec![fetched[0].as_slice::<f32>()?.to_vec()];

    // A repeated call is prepared once.
    let call = session.callable(CallableOptions::new(&["x"], &["y"]))?;
    let mut fetched = Vec::new();
    call.run(std::slice::from_ref(&x), &mut fetched)?;
    results.push(fetched[0].as_slice::<f32>()?.to_vec());

    // Steps in flight end with the old build; the session and its callables use the new one after
    // `refresh`.
    if let Some(file) = newer {
        let (info, _) = runtime.replace(file)?;
        session.refresh()?;
        println!("replaced: {} {}", info.name, info.version);
        call.run(&[x], &mut fetched)?;
        results.push(fetched[0].as_slice::<f32>()?.to_vec());
    }
    Ok(results)
}

/// The text of an error for people, followed by its causes if they say more.
pub fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text.push_str(&format!("\n  since {words}"));
        }
        cause = error.source();
    }
    text
}

// The main function is unused if the tests of the tree include this file as a module.
#[allow(dead_code, reason = "a module has no main")]
fn main() -> ExitCode {
    let mut words = env::args_os().skip(1);
    let (mut plugins, mut newer) = (Vec::new(), None);
    while let Some(word) = words.next() {
        match word == "--replace" {
            true => newer = words.next().map(PathBuf::from),
            false => plugins.push(PathBuf::from(word)),
        }
    }
    match embed(plugins, newer) {
        Ok(results) => {
            results.iter().for_each(|y| println!("y = {y:?}"));
            ExitCode::SUCCESS
        }
        // A `main` that returns an error would print its fields, which are for programs.
        Err(error) => {
            eprintln!("error: {}", told(&*error));
            ExitCode::FAILURE
        }
    }
}
