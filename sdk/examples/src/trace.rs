//! When each node of a step ran, as a file for chrome://tracing or Perfetto.

use std::{error::Error, fs::File, io::BufWriter, sync::Arc};
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    graph::GraphBuilder,
    trace::ChromeTrace,
};

/// Traces one step.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[256, 256])?)?;
    let product = b.op("MatMul").name("product").input(x).input(x).build()?;
    b.op("Softmax").name("y").input(product).build()?;
    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_graph(&b.finish())?;

    let trace = Arc::new(ChromeTrace::new());
    let sink = Arc::clone(&trace);
    let options = RunOptions { trace: Some(sink), ..RunOptions::default() };
    let x = Tensor::from_slice(&[256, 256], &vec![0.01f32; 256 * 256])?;
    let (_, metadata) = session.run(&[("x", x)], &["y"], &[], &options)?;
    trace.describe(&metadata.nodes);

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("trace.json");
    trace.write(BufWriter::new(File::create(&file)?))?;
    let written = std::fs::read_to_string(&file)?;
    for name in ["product", "y"] {
        println!("{name}: {}", if written.contains(name) { "traced" } else { "missing" });
    }
    Ok(())
}
