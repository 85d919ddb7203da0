//! How long it takes until a training graph runs: differentiating it, extending a session with it, and compiling its
//! first step. The time that each of them takes per node shows what grows faster than the graph.
//!
//!     cargo run --release -p tenon-benches --example training -- [LAYERS]...
//!
//! Prints a JSON line per number of layers, with the median of five runs in milliseconds. A layer is a dense one of 8
//! units with its update, about 15 nodes with their gradients; with `--calls` it is a call of a function of its own.

use std::time::Instant;
use tenon_benches::{Failure, plugin};
use tenon_runtime::{
    CallableOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{
        DType, PartialShape, Tensor,
        attr::{AttrList, AttrValue},
        registry::Registry,
    },
    gradient::{Gradient, Options, gradients},
    graph::{GraphBuilder, NodeId, Output},
};

/// Units of a layer.
const UNITS: i64 = 8;
/// Runs of which the median counts.
const RUNS: usize = 5;

fn shape(dims: &[i64]) -> PartialShape {
    PartialShape::new(dims).unwrap_or_default()
}

/// A variable: its handle and its value.
fn variable(
    b: &mut GraphBuilder<'_>,
    name: &str,
    dims: &[i64],
) -> Result<(Output, Output), Failure> {
    let handle = b.op("VarHandleOp").name(name).attr("dtype", DType::FLOAT);
    let handle = handle.attr("shape", shape(dims)).attr("shared_name", name).build()?;
    let value = b.op("ReadVariableOp").input(handle).attr("dtype", DType::FLOAT).build()?;
    Ok((handle.into(), value.into()))
}

/// `relu(x w + b)`.
fn dense(b: &mut GraphBuilder<'_>, [x, w, bias]: [Output; 3]) -> Result<Output, Failure> {
    let product = b.op("MatMul").input(x).input(w).build()?;
    let sum = b.op("BiasAdd").input(product).input(bias).build()?;
    Ok(b.op("Relu").input(sum).build()?.into())
}

/// The same by a function that only this layer calls.
fn called(b: &mut GraphBuilder<'_>, layer: usize, inputs: [Output; 3]) -> Result<Output, Failure> {
    let name = format!("layer_{layer}");
    let mut body = GraphBuilder::new(b.registry());
    let dims: [&[i64]; 3] = [&[1, UNITS], &[UNITS, UNITS], &[UNITS]];
    let mut args = [inputs[0]; 3];
    for (at, arg) in args.iter_mut().enumerate() {
        *arg = body.placeholder(&format!("a{at}"), DType::FLOAT, shape(dims[at]))?;
    }
    let result = dense(&mut body, args)?;
    b.define(&name, &body.finish(), &args, &[result])?;
    let node = b.op("PartitionedCall").inputs(inputs).attr("f", AttrValue::function(&name));
    let types = AttrValue::List(AttrList::Type(vec![DType::FLOAT]));
    Ok(node.attr("Tout", types).build()?.into())
}

/// A network of these layers: its loss, and the variables with their values.
fn network(
    b: &mut GraphBuilder<'_>,
    layers: usize,
    calls: bool,
) -> Result<(Output, Vec<(Output, Output)>), Failure> {
    let mut last = b.placeholder("x", DType::FLOAT, shape(&[1, UNITS]))?;
    let mut variables = Vec::new();
    for layer in 0..layers {
        let w = variable(b, &format!("w{layer}"), &[UNITS, UNITS])?;
        let bias = variable(b, &format!("b{layer}"), &[UNITS])?;
        let inputs = [last, w.1, bias.1];
        last = if calls { called(b, layer, inputs)? } else { dense(b, inputs)? };
        variables.extend([w, bias]);
    }
    let loss = b.op("L2Loss").name("loss").input(last).build()?;
    Ok((loss.into(), variables))
}

/// Adds the updates of the variables by their gradients, and the node `train`, which waits for them.
fn train(
    b: &mut GraphBuilder<'_>,
    loss: Output,
    variables: &[(Output, Output)],
) -> Result<(), Failure> {
    let xs: Vec<Output> = variables.iter().map(|&(_, value)| value).collect();
    let made = gradients(b, &[loss], &xs, &Options::default())?;
    let rate = b.constant("rate", Tensor::scalar(0.5f32)?)?;
    let mut updates: Vec<NodeId> = Vec::new();
    for (&(handle, _), gradient) in variables.iter().zip(made) {
        let Some(Gradient::Dense(gradient)) = gradient else {
            return Err(format!("expected a tensor, found {gradient:?}").into());
        };
        let update = b.op("ResourceApplyGradientDescent").input(handle).input(rate);
        updates.push(update.input(gradient).build()?);
    }
    updates.into_iter().fold(b.op("NoOp").name("train"), |end, node| end.control(node)).build()?;
    Ok(())
}

/// Milliseconds of differentiating, extending and compiling, and the number of nodes.
fn measured(
    runtime: &Runtime,
    registry: &Registry,
    layers: usize,
    calls: bool,
) -> Result<([f64; 3], usize), Failure> {
    let mut b = GraphBuilder::new(registry);
    let (loss, variables) = network(&mut b, layers, calls)?;
    let ms = |since: Instant| since.elapsed().as_secs_f64() * 1e3;
    let begin = Instant::now();
    train(&mut b, loss, &variables)?;
    let differentiated = ms(begin);
    let graph = b.finish();
    let session = Session::new(runtime, SessionOptions::default())?;
    let begin = Instant::now();
    session.extend_graph(&graph)?;
    let extended = ms(begin);
    let begin = Instant::now();
    let options = CallableOptions {
        targets: vec!["train".to_owned()],
        ..CallableOptions::new(&["x"], &["loss"])
    };
    session.callable(options)?;
    Ok(([differentiated, extended, ms(begin)], graph.len()))
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let calls = words.iter().any(|word| word == "--calls");
    let mut layers: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if layers.is_empty() {
        layers = vec![85, 170, 340];
    }
    let plugins = [plugin("cpu")?, plugin("data")?, plugin("train")?];
    let options = RuntimeOptions { threads: Some(1), ..RuntimeOptions::with_plugins(plugins) };
    let (runtime, report) = Runtime::new(options)?;
    report.into_result()?;
    let registry = runtime.registry();
    // The first run pays for what a process does once.
    measured(&runtime, &registry, 10, calls)?;
    for layers in layers {
        let mut runs = Vec::new();
        let mut nodes = 0;
        for _ in 0..RUNS {
            let (times, found) = measured(&runtime, &registry, layers, calls)?;
            (nodes, _) = (found, runs.push(times));
        }
        let median = |at: usize| {
            let mut times: Vec<f64> = runs.iter().map(|run| run[at]).collect();
            times.sort_by(f64::total_cmp);
            times[RUNS / 2]
        };
        let [differentiate, extend, compile] = [median(0), median(1), median(2)];
        println!(
            "{{\"layers\": {layers}, \"calls\": {calls}, \"nodes\": {nodes}, \"differentiate_ms\": {differentiate:.2}, \
             \"extend_ms\": {extend:.2}, \"compile_ms\": {compile:.2}}}"
        );
    }
    Ok(())
}
