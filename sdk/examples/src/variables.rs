//! A variable: state that steps change, and that the sessions of one worker share.

use std::error::Error;
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions, Worker,
    framework::{DType, PartialShape, Tensor},
    graph::{Graph, GraphBuilder},
};

/// A counter with the targets `start` and `count` and the tensor `value`.
fn counter(runtime: &Runtime) -> Result<Graph, Box<dyn Error>> {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let handle = b.op("VarHandleOp").name("counter").attr("dtype", DType::INT64);
    let handle = handle.attr("shape", PartialShape::new(&[])?).attr("shared_name", "counter");
    let handle = handle.build()?;
    let zero = b.constant("zero", Tensor::scalar(0i64)?)?;
    b.op("AssignVariableOp").name("start").input(handle).input(zero).build()?;
    let one = b.constant("one", Tensor::scalar(1i64)?)?;
    b.op("AssignAddVariableOp").name("count").input(handle).input(one).build()?;
    b.op("ReadVariableOp").name("value").attr("dtype", DType::INT64).input(handle).build()?;
    Ok(b.finish())
}

/// Counts in one session and reads in another.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let graph = counter(&runtime)?;
    let worker = Worker::new(&runtime);
    let open = || -> Result<Session, Box<dyn Error>> {
        let session = Session::on(&worker, SessionOptions::default())?;
        session.extend_graph(&graph)?;
        Ok(session)
    };
    let (first, second) = (open()?, open()?);
    let early = first.run(&[], &["value"], &[], &RunOptions::default());
    println!(
        "before its first value: {}",
        early.map_err(|error| error.code().to_string()).err().unwrap_or_default()
    );
    first.run(&[], &[], &["start"], &RunOptions::default())?;
    first.run(&[], &[], &["count"], &RunOptions::default())?;
    let (fetched, _) = second.run(&[], &["value"], &[], &RunOptions::default())?;
    println!("counter = {}", fetched[0].as_slice::<i64>()?[0]);
    Ok(())
}
