//! A call that is prepared once and then run by several threads at a time.

use std::{error::Error, thread};
use tenon_runtime::{
    Callable, CallableOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    graph::GraphBuilder,
};

/// An error that a thread can hand over.
type Failure = Box<dyn Error + Send + Sync>;

/// The sum of the squares of `0..n`, by a step for each.
fn squares(call: &Callable, n: i64) -> Result<i64, Failure> {
    let mut fetched = Vec::new();
    let mut sum = 0;
    for k in 0..n {
        call.run(&[Tensor::scalar(k)?], &mut fetched)?;
        sum += fetched[0].as_slice::<i64>()?[0];
    }
    Ok(sum)
}

/// Runs a hundred steps on each of four threads.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = b.placeholder("x", DType::INT64, PartialShape::new(&[])?)?;
    b.op("Mul").name("y").input(x).input(x).build()?;
    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_graph(&b.finish())?;

    // Names are resolved, nodes placed and kernels chosen here, not in each step.
    let call = session.callable(CallableOptions::new(&["x"], &["y"]))?;
    let sums = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| squares(&call, 100))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no step panics")).collect()
    });
    let sums: Result<Vec<i64>, Failure> = sums;
    println!("{:?}", sums.map_err(|failure| -> Box<dyn Error> { failure })?);
    Ok(())
}
