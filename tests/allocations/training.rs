//! Steps of a training in steady state take no memory from the system: gradients, updates in place, and the memory between
//! them come from what the first steps took.

use crate::interpose::{Counts, counted};
use tenon_graph::{GraphBuilder, Output};
use tenon_runtime::{
    CallableOptions, RunOptions, Session, SessionOptions,
    framework::{DType, Tensor},
};
use tenon_tests::session::{floats, runtime_of, turn};
use tenon_training::{
    Initial, TrainError, Variables,
    optimizer::{Adam, GradientDescent, MinimizeOptions, Momentum, Optimizer},
};

/// Steps that are not counted: pools fill, costs are sampled.
const WARM_UP: usize = 200;
const STEPS: usize = 100;
/// Features, units of each layer, classes.
const SIZES: [i64; 4] = [20, 33, 17, 10];
/// Rows and columns of an image, its channels, and those of the convolution.
const IMAGE: [i64; 3] = [8, 3, 6];
const BATCH: i64 = 8;

fn numbers(dims: &[i64], scale: f32) -> Tensor {
    let count = dims.iter().product::<i64>() as usize;
    let values: Vec<f32> =
        (0..count).map(|at| ((at * 37 % 101) as f32 / 50.0 - 1.0) * scale).collect();
    floats(&values).reshaped(dims).expect("as many elements")
}

type Made = Result<Output, TrainError>;

/// The mean cross entropy of classes.
fn loss_of(b: &mut GraphBuilder<'_>, logits: Output) -> Made {
    let classes: Vec<i32> = (0..BATCH as i32).map(|at| at % SIZES[3] as i32).collect();
    let labels = Tensor::from_slice(&[BATCH], &classes).expect("a vector is a shape");
    let labels = b.constant("labels", labels)?;
    let losses = b.op("SparseSoftmaxCrossEntropyWithLogits").input(logits).input(labels).build()?;
    let axis = b.constant("axis", Tensor::from_slice(&[1], &[0i32]).expect("a vector"))?;
    Ok(b.op("Mean").name("loss").input(Output::from(losses)).input(axis).build()?.into())
}

/// A convolution with ReLU, a pooling, and a layer.
fn convolutional(b: &mut GraphBuilder<'_>, variables: &mut Variables) -> Made {
    let [side, channels, units] = IMAGE;
    let x = b.constant("x", numbers(&[BATCH, side, side, channels], 1.0))?;
    let features = side / 2 * (side / 2) * units;
    let mut variable = |b: &mut GraphBuilder<'_>, name: &str, dims: &[i64], scale| {
        variables.add(b, name, DType::FLOAT, dims, &Initial::Value(numbers(dims, scale)))
    };
    let filter = variable(b, "filter", &[3, 3, channels, units], 0.3)?;
    let shift = variable(b, "shift", &[units], 0.0)?;
    let weights = variable(b, "weights", &[features, SIZES[3]], 0.1)?;
    let conv = b.op("Conv2D").input(x).input(filter.value).attr("padding", "SAME");
    let conv = conv.attr("strides", vec![1i64, 1, 1, 1]).build()?;
    let sum = b.op("BiasAdd").input(conv).input(shift.value).build()?;
    let active = b.op("Relu").input(sum).build()?;
    let window = vec![1i64, 2, 2, 1];
    let pool = b.op("MaxPool").input(active).attr("padding", "VALID");
    let pool = pool.attr("ksize", window.clone()).attr("strides", window).build()?;
    let shape = b.constant("flat", Tensor::from_slice(&[2], &[BATCH, features]).expect("two"))?;
    let flat = b.op("Reshape").input(pool).input(shape).build()?;
    let logits = b.op("MatMul").input(flat).input(weights.value).build()?;
    loss_of(b, logits.into())
}

/// Layers with ReLU between them.
fn dense(b: &mut GraphBuilder<'_>, variables: &mut Variables) -> Made {
    let mut x = b.constant("x", numbers(&[BATCH, SIZES[0]], 1.0))?;
    for (at, pair) in SIZES.windows(2).enumerate() {
        let mut variable = |name: &str, dims: &[i64], scale| {
            let first = Initial::Value(numbers(dims, scale));
            variables.add(b, &format!("{name}{at}"), DType::FLOAT, dims, &first)
        };
        let (weights, bias) = (variable("w", pair, 0.4)?, variable("b", &pair[1..], 0.0)?);
        let product = b.op("MatMul").input(x).input(weights.value).build()?;
        x = b.op("BiasAdd").input(product).input(bias.value).build()?.into();
        if at + 2 < SIZES.len() {
            x = b.op("Relu").input(x).build()?.into();
        }
    }
    loss_of(b, x)
}

type Loss = fn(&mut GraphBuilder<'_>, &mut Variables) -> Made;

/// The names of the node that starts the variables, and of the one that trains.
fn build(
    b: &mut GraphBuilder<'_>,
    loss: Loss,
    by: &dyn Optimizer,
) -> Result<[String; 2], TrainError> {
    let mut variables = Variables::new();
    let loss = loss(b, &mut variables)?;
    let train = by.minimize(b, &mut variables, loss, &MinimizeOptions::default())?;
    let init = variables.initializer(b, "init")?;
    Ok([init, train].map(|node| b.graph().node(node).name.clone()))
}

#[track_caller]
fn check(loss: Loss, optimizer: &dyn Optimizer) {
    let _turn = turn();
    let runtime = runtime_of(1, &["tenon_cpu", "tenon_data", "tenon_train"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let [init, train] = build(&mut b, loss, optimizer).expect("every op has a gradient");
    let session = Session::new(&runtime, SessionOptions::default()).expect("the options are right");
    session.extend_graph(&b.finish()).expect("a built graph can be read");
    session.run(&[], &[], &[&init], &RunOptions::default()).expect("variables start");
    let options = CallableOptions {
        fetches: vec!["loss".to_owned()],
        targets: vec![train],
        ..CallableOptions::default()
    };
    let callable = session.callable(options).expect("the names are right");
    let mut fetched = Vec::with_capacity(1);
    let mut losses = [0.0f32; WARM_UP + STEPS];
    let mut step = |loss: &mut f32| {
        callable.run(&[], &mut fetched).expect("a step");
        *loss = fetched[0].as_slice::<f32>().expect("a float")[0];
        fetched.clear();
    };
    losses[..WARM_UP].iter_mut().for_each(&mut step);
    let counts = counted(|| losses[WARM_UP..].iter_mut().for_each(&mut step));
    assert_eq!(counts, Counts::default(), "of {STEPS} steps");
    assert!(losses[WARM_UP + STEPS - 1] < 0.9 * losses[0], "it trains: {losses:?}");
}

#[test]
fn steps_of_descent_allocate_nothing() {
    check(dense, &GradientDescent::new(0.05));
}

#[test]
fn steps_of_momentum_allocate_nothing() {
    check(dense, &Momentum::new(0.05));
}

#[test]
fn steps_of_adam_allocate_nothing() {
    check(dense, &Adam::new(0.01));
}

#[test]
fn steps_with_a_convolution_and_a_pooling_allocate_nothing() {
    check(convolutional, &GradientDescent::new(0.05));
    check(convolutional, &Adam::new(0.01));
}
