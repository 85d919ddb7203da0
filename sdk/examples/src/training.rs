//! An optimiser finds the line through points, `y = 2 x + 1`.

use std::error::Error;
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, Tensor},
    graph::{GraphBuilder, Output},
};
use tenon_training::{
    Initial, Variables,
    optimizer::{Adam, MinimizeOptions, Optimizer},
};

/// Trains for 500 steps.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let mut variables = Variables::new();
    let slope = variables.add(&mut b, "slope", DType::FLOAT, &[], &Initial::Zeros)?;
    let offset = variables.add(&mut b, "offset", DType::FLOAT, &[], &Initial::Zeros)?;
    let x = b.constant("x", Tensor::from_slice(&[4], &[0f32, 1.0, 2.0, 3.0])?)?;
    let y = b.constant("y", Tensor::from_slice(&[4], &[1f32, 3.0, 5.0, 7.0])?)?;
    let scaled = b.op("Mul").input(slope.value).input(x).build()?;
    let found = b.op("AddV2").input(scaled).input(offset.value).build()?;
    let error = b.op("SquaredDifference").input(found).input(y).build()?;
    let axes = b.constant("axes", Tensor::from_slice(&[1], &[0i32])?)?;
    let loss: Output = b.op("Mean").name("loss").input(error).input(axes).build()?.into();
    let adam = Adam { name: "train".to_owned(), ..Adam::new(0.1) };
    adam.minimize(&mut b, &mut variables, loss, &MinimizeOptions::default())?;
    // After the optimiser, which has variables of its own.
    variables.initializer(&mut b, "start")?;

    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_graph(&b.finish())?;
    let options = RunOptions::default();
    session.run(&[], &[], &["start"], &options)?;
    for _ in 0..500 {
        session.run(&[], &[], &["train"], &options)?;
    }
    let names = ["slope/Read/ReadVariableOp", "offset/Read/ReadVariableOp", "loss"];
    let (fetched, _) = session.run(&[], &names, &[], &options)?;
    let [slope, offset, loss] = [0, 1, 2].map(|k| fetched[k].as_slice::<f32>().map(|v| v[0]));
    println!("y = {:.2} x + {:.2}, loss below 0.001: {}", slope?, offset?, loss? < 0.001);
    Ok(())
}
