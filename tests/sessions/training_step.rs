//! What is left of a training step after the passes: the nodes of a small network with its gradients and updates, which
//! wait for each other by gates or do not.

use std::collections::BTreeMap;
use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    CallableOptions, RunOptions, Session,
    framework::{DType, PartialShape, Tensor},
};
use tenon_tests::session::{floats, run, runtime_of, session, values};

const PLUGINS: &[&str] = &["tenon_cpu", "tenon_data", "tenon_train"];

/// A network of dense layers of these widths.
struct Network {
    batch: i64,
    widths: &'static [i64],
    activation: &'static str,
    /// Whether the gradients of a node's inputs wait for each other.
    gate: bool,
}

/// A variable with fixed numbers, which `set` gives it; its handle and its value.
fn variable(
    b: &mut GraphBuilder<'_>,
    name: &str,
    dims: &[i64],
    set: &mut Vec<tenon_graph::NodeId>,
) -> Result<(Output, Output), GraphError> {
    let shape = PartialShape::new(dims).expect("a shape");
    let handle = b.op("VarHandleOp").name(name).attr("dtype", DType::FLOAT).attr("shape", shape);
    let handle = handle.build()?;
    let count = dims.iter().product::<i64>();
    let numbers: Vec<f32> = (0..count).map(|at| ((at * 37 % 101) as f32 - 50.0) / 400.0).collect();
    let first = floats(&numbers).reshaped(dims).expect("as many elements");
    let first = b.constant(&format!("{name}/first"), first)?;
    set.push(b.op("AssignVariableOp").input(handle).input(first).build()?);
    let value = b.op("ReadVariableOp").name(&format!("{name}/value")).input(handle);
    let value = value.attr("dtype", DType::FLOAT).build()?;
    Ok((handle.into(), value.into()))
}

/// Adds the network, its loss, and the node `train`, which updates all variables; `set` gives them their values.
fn build(b: &mut GraphBuilder<'_>, network: &Network) -> Result<(), GraphError> {
    let Network { batch, widths, activation, gate } = *network;
    let shape = PartialShape::new(&[batch, widths[0]]).expect("a shape");
    let mut last = b.placeholder("x", DType::FLOAT, shape)?;
    let labels =
        b.placeholder("labels", DType::INT32, PartialShape::new(&[batch]).expect("a shape"))?;
    let (mut set, mut variables) = (Vec::new(), Vec::new());
    let layers = widths.len() - 1;
    for (layer, width) in widths.windows(2).enumerate() {
        let weights = variable(b, &format!("w{layer}"), width, &mut set)?;
        let bias = variable(b, &format!("b{layer}"), &width[1..], &mut set)?;
        let product = b.op("MatMul").input(last).input(weights.1).build()?;
        last = b.op("BiasAdd").input(product).input(bias.1).build()?.into();
        if layer + 1 < layers {
            last = b.op(activation).input(last).build()?.into();
        }
        variables.extend([weights, bias]);
    }
    let losses = b.op("SparseSoftmaxCrossEntropyWithLogits").input(last).input(labels).build()?;
    let axis = b.constant("axis", Tensor::from_slice(&[1], &[0i32]).expect("a vector"))?;
    let loss = b.op("Mean").name("loss").input(losses).input(axis).build()?;
    let xs: Vec<Output> = variables.iter().map(|&(_, value)| value).collect();
    let options = Options { gate, ..Options::default() };
    let made = gradients(b, &[loss.into()], &xs, &options).expect("they exist");
    let rate = b.constant("rate", Tensor::scalar(0.5f32).expect("a scalar"))?;
    let mut updates = Vec::new();
    for (&(handle, _), gradient) in variables.iter().zip(made) {
        let Some(Gradient::Dense(gradient)) = gradient else { panic!("a tensor: {gradient:?}") };
        let update = b.op("ResourceApplyGradientDescent").input(handle).input(rate);
        updates.push(update.input(gradient).build()?);
    }
    let after = |b: &mut GraphBuilder<'_>, name: &str, nodes: Vec<_>| {
        nodes.into_iter().fold(b.op("NoOp").name(name), |end, node| end.control(node)).build()
    };
    after(b, "set", set)?;
    after(b, "train", updates).map(drop)
}

/// How many nodes of each op a step has after the passes; constants and what takes feeds and fetches aside.
fn counted(session: &Session) -> BTreeMap<String, usize> {
    let options = CallableOptions {
        targets: vec!["train".to_owned()],
        ..CallableOptions::new(&["x", "labels"], &["loss"])
    };
    let mut counts = BTreeMap::new();
    for node in session.partitions(&options).expect("it compiles").iter().flat_map(|p| &p.node) {
        println!("{} = {}({})", node.name, node.op, node.input.join(", "));
        if !matches!(node.op.as_str(), "Const" | "NoOp" | "_Arg" | "_Retval" | "Placeholder") {
            *counts.entry(node.op.clone()).or_insert(0) += 1;
        }
    }
    counts
}

fn losses(session: &Session, network: &Network, steps: usize) -> Vec<f32> {
    let count = network.batch * network.widths[0];
    let x: Vec<f32> = (0..count).map(|at| (at * 13 % 29) as f32 / 29.0).collect();
    let x = floats(&x).reshaped(&[network.batch, network.widths[0]]).expect("as many elements");
    let classes = network.widths[network.widths.len() - 1] as i32;
    let labels: Vec<i32> = (0..network.batch as i32).map(|at| at % classes).collect();
    let labels = Tensor::from_slice(&[network.batch], &labels).expect("a vector");
    let feeds = [("x", x), ("labels", labels)];
    session.run(&[], &[], &["set"], &RunOptions::default()).expect("they are set");
    let step = |_| {
        let loss = run(session, &feeds, &["loss"]).expect("it runs");
        session.run(&feeds, &[], &["train"], &RunOptions::default()).expect("it trains");
        values(&loss[0])[0]
    };
    (0..steps).map(step).collect()
}

#[test]
fn a_step_has_no_more_nodes_than_it_needs() {
    for gate in [false, true] {
        let widths = &[784, 512, 512, 10];
        let network = Network { batch: 32, widths, activation: "Relu", gate };
        let session = session(&runtime_of(1, PLUGINS, &[]), |b| build(b, &network));
        let found = counted(&session);
        let expected = [
            // The layers, and two products by the activations before, each with the gradient of
            // Relu.
            ("_FusedMatMul", 5),
            // By the weights, with their updates.
            ("_FusedMatMulDescent", 3),
            ("BiasAddGrad", 3),
            ("Mean", 1),
            // The gradient of the loss by the number of examples.
            ("Mul", 1),
            ("ReadVariableOp", 6),
            ("ResourceApplyGradientDescent", 3),
            ("SparseSoftmaxCrossEntropyWithLogits", 1),
            ("VarHandleOp", 6),
        ];
        let expected = expected.iter().map(|&(op, count)| (op.to_owned(), count)).collect();
        assert_eq!(found, expected, "gate: {gate}");
    }
}

#[test]
fn fused_gradients_train_as_the_graph_is_written() {
    for (activation, gate) in [("Relu", false), ("Relu", true), ("Tanh", true), ("Sigmoid", true)] {
        let network = Network { batch: 8, widths: &[20, 16, 12, 10], activation, gate };
        let trained = |optimize| {
            let runtime = runtime_of(1, PLUGINS, &[("graph.optimize", optimize)]);
            losses(&session(&runtime, |b| build(b, &network)), &network, 20)
        };
        let (found, expected) = (trained("true"), trained("false"));
        let differ = found.iter().zip(&expected).any(|(a, b)| (a - b).abs() > 1e-5 * b.abs());
        assert!(!differ, "{activation}: {found:?}, as written {expected:?}");
        assert!(found[19] < found[0], "{activation}: {found:?}");
    }
}
