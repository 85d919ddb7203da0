//! A loop in a graph, of the nodes that TensorFlow makes for `while_loop`; and a deadline for one without an end.

use std::{error::Error, time::Duration};
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    graph::{Graph, GraphBuilder, Output},
};

/// `result` is the first power of two that is not below `limit`.
fn powers(runtime: &Runtime) -> Result<Graph, Box<dyn Error>> {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let limit = b.placeholder("limit", DType::FLOAT, PartialShape::new(&[])?)?;
    let one = b.constant("one", Tensor::scalar(1f32)?)?;
    let two = b.constant("two", Tensor::scalar(2f32)?)?;
    // Values enter the loop's frame; those that are constant are there in every iteration.
    let enter = |b: &mut GraphBuilder<'_>, value: Output, constant: bool| {
        let node = b.op("Enter").input(value).attr("frame_name", "loop");
        node.attr("is_constant", constant).build()
    };
    let begin = enter(&mut b, one, false)?;
    let limit = enter(&mut b, limit, true)?;
    let two = enter(&mut b, two, true)?;
    // The second input comes from the iteration before; it is connected below.
    let value = b.op("Merge").inputs([begin.into(), begin.into()]).build()?;
    let less = b.op("Less").input(value).input(limit).build()?;
    let goes_on = b.op("LoopCond").input(less).build()?;
    let switch = b.op("Switch").input(value).input(goes_on).build()?;
    let doubled = b.op("Mul").input(Output::new(switch, 1)).input(two).build()?;
    let next = b.op("NextIteration").input(doubled).build()?;
    b.back_edge(value, 1, next)?;
    b.op("Exit").name("result").input(Output::new(switch, 0)).build()?;
    Ok(b.finish())
}

/// Runs the loop to its end, and once with a limit that no power reaches.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
    let session = Session::new(&runtime, SessionOptions::default())?;
    session.extend_graph(&powers(&runtime)?)?;
    let options = RunOptions { deadline: Some(Duration::from_secs(10)), ..RunOptions::default() };
    for limit in [1f32, 100.0, 1e9] {
        let feeds = [("limit", Tensor::scalar(limit)?)];
        let (fetched, _) = session.run(&feeds, &["result"], &[], &options)?;
        println!("{limit}: {}", fetched[0].as_slice::<f32>()?[0]);
    }
    // A feed takes the place of any tensor, such as a constant: from zero, the value never grows.
    let feeds = [("limit", Tensor::scalar(1f32)?), ("one", Tensor::scalar(0f32)?)];
    let short = RunOptions { deadline: Some(Duration::from_millis(50)), ..RunOptions::default() };
    match session.run(&feeds, &["result"], &[], &short) {
        Ok(_) => println!("it ended"),
        Err(error) => println!("no end: {}", error.code()),
    }
    Ok(())
}
