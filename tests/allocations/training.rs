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
const BATCH: i64 = 8;

fn numbers(dims: &[i64], scale: f32) -> Tensor {
    let count = dims.iter().product::<i64>() as usize;
    let values: Vec<f32> =
        (0..count).map(|at| ((at * 37 % 101) as f32 / 50.0 - 1.0) * scale).collect();
    floats(&values).reshaped(dims).expect("as many elements")
}

/// Layers with ReLU between them, and the mean cross entropy of classes.
fn loss(b: &mut GraphBuilder<'_>, variables: &mut Variables) -> Result<Output, TrainError> {
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
    let classes: Vec<i32> = (0..BATCH as i32).map(|at| at % SIZES[3] as i32).collect();
    let labels = Tensor::from_slice(&[BATCH], &classes).expect("a vector is a shape");
    let labels = b.constant("labels", labels)?;
    let losses = b.op("SparseSoftmaxCrossEntropyWithLogits").input(x).input(labels).build()?;
    let axis = b.constant("axis", Tensor::from_slice(&[1], &[0i32]).expect("a vector"))?;
    Ok(b.op("Mean").name("loss").input(Output::from(losses)).input(axis).build()?.into())
}

/// The names of the node that starts the variables, and of the one that trains.
fn build(b: &mut GraphBuilder<'_>, by: &dyn Optimizer) -> Result<[String; 2], TrainError> {
    let mut variables = Variables::new();
    let loss = loss(b, &mut variables)?;
    let train = by.minimize(b, &mut variables, loss, &MinimizeOptions::default())?;
    let init = variables.initializer(b, "init")?;
    Ok([init, train].map(|node| b.graph().node(node).name.clone()))
}

#[track_caller]
fn check(optimizer: &dyn Optimizer) {
    let _turn = turn();
    let runtime = runtime_of(1, &["tenon_cpu", "tenon_data", "tenon_train"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let [init, train] = build(&mut b, optimizer).expect("every op has a gradient");
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
    check(&GradientDescent::new(0.05));
}

#[test]
fn steps_of_momentum_allocate_nothing() {
    check(&Momentum::new(0.05));
}

#[test]
fn steps_of_adam_allocate_nothing() {
    check(&Adam::new(0.01));
}
