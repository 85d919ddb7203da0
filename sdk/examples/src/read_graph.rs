//! A graph from a file, as TensorFlow writes them.

use std::{error::Error, fs::File, io::BufReader, path::Path};
use tenon_proto::read_graph_def;
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    graph::GraphBuilder,
};

/// Writes a file in place of one that comes from elsewhere.
fn write_graph(runtime: &Runtime, file: &Path) -> Result<(), Box<dyn Error>> {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[2])?)?;
    b.op("Square").name("y").input(x).build()?;
    let message = b.finish().to_graph_def()?;
    std::fs::write(file, tenon_proto::encode(&message)?)?;
    Ok(())
}

/// Reads the file, prints its nodes and runs it.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("graph.pb");
    write_graph(&runtime, &file)?;

    let graph = read_graph_def(BufReader::new(File::open(&file)?))??;
    for node in &graph.node {
        println!("{}: {}({})", node.name, node.op, node.input.join(", "));
    }
    let session = Session::new(&runtime, SessionOptions::default())?;
    // An op that no plugin has, or a node that does not fit, is an error here.
    session.extend_owned(graph)?;
    let x = Tensor::from_slice(&[2], &[3f32, -4.0])?;
    let (fetched, _) = session.run(&[("x", x)], &["y"], &[], &RunOptions::default())?;
    println!("y = {:?}", fetched[0].as_slice::<f32>()?);
    Ok(())
}
