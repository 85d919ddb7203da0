//! Replicas that train by all-reduce, on two devices and at two tasks, against gradient descent on the whole batch, which is
//! computed here in plain arithmetic.

use super::cluster::Tasks;
use std::time::Duration;
use tenon_graph::GraphBuilder;
use tenon_runtime::framework::{DType, Tensor};
use tenon_tests::session::{runtime, session, turn, values};
use tenon_training::{
    Initial, ReplicaGroup, TrainError, Variables,
    optimizer::{GradientDescent, MinimizeOptions, compute_gradients},
};

const X: [[f32; 2]; 4] = [[1.0, 0.5], [-0.5, 2.0], [0.25, -1.0], [1.5, 1.0]];
const Y: [f32; 4] = [1.0, -0.5, 2.0, 0.25];
const W: [f32; 2] = [0.1, -0.2];
const RATE: f64 = 0.1;
const STEPS: usize = 10;

/// The losses of gradient descent on the whole batch, before each step.
fn expected() -> Vec<f64> {
    let (mut w, mut b) = (W.map(f64::from), 0.0);
    let step = |_| {
        let rows = X.iter().zip(Y).map(|(x, y)| {
            let x = x.map(f64::from);
            (x, x[0] * w[0] + x[1] * w[1] + b - f64::from(y))
        });
        let rows: Vec<([f64; 2], f64)> = rows.collect();
        let loss = rows.iter().map(|(_, error)| error * error).sum::<f64>() / 4.0;
        for (x, error) in rows {
            let slope = 2.0 * error / 4.0 * RATE;
            w = [w[0] - slope * x[0], w[1] - slope * x[1]];
            b -= slope;
        }
        loss
    };
    (0..STEPS).map(step).collect()
}

/// Adds a replica on each device, with half of the batch: `train0`, `loss0`, ... and `init`.
fn replicas(b: &mut GraphBuilder<'_>, devices: &[&str; 2]) -> Result<(), TrainError> {
    let (group, mut all) = (ReplicaGroup::of(2), Variables::new());
    for (at, &device) in devices.iter().enumerate() {
        let mut of_replica = |b: &mut GraphBuilder<'_>| {
            let zero = Initial::Value(Tensor::from_slice(&[1], &[0f32])?);
            let first = Initial::Value(Tensor::from_slice(&[2, 1], &W)?);
            let w = all.add(b, &format!("w{at}"), DType::FLOAT, &[2, 1], &first)?;
            let bias = all.add(b, &format!("b{at}"), DType::FLOAT, &[1], &zero)?;
            let x: Vec<f32> = X[at * 2..at * 2 + 2].iter().flatten().copied().collect();
            let x = b.constant(&format!("x{at}"), Tensor::from_slice(&[2, 2], &x)?)?;
            let y = Tensor::from_slice(&[2, 1], &Y[at * 2..at * 2 + 2])?;
            let y = b.constant(&format!("y{at}"), y)?;
            let product = b.op("MatMul").input(x).input(w.value).build()?;
            let sum = b.op("AddV2").input(product).input(bias.value).build()?;
            let error = b.op("Sub").input(sum).input(y).build()?;
            let square = b.op("Square").input(error).build()?;
            let axes = Tensor::from_slice(&[2], &[0i32, 1])?;
            let axes = b.constant(&format!("axes{at}"), axes)?;
            let loss = b.op("Mean").input(square).input(axes).build()?;
            let options =
                MinimizeOptions { variables: Some(vec![w, bias]), ..MinimizeOptions::default() };
            let gradients = compute_gradients(b, &Variables::new(), loss.into(), &options)?;
            let descent = GradientDescent::new(RATE);
            let replica = (device, loss.into(), gradients.as_slice());
            let (train, mean) = group.synchronous(b, &mut all, &descent, replica, None)?;
            b.op("NoOp").name(&format!("train{at}")).control(train).build()?;
            b.op("Identity").name(&format!("loss{at}")).input(mean).build()?;
            Ok::<_, TrainError>(())
        };
        b.with_device(device, &mut of_replica)??;
    }
    let init = b.op("NoOp").name("init");
    let init = all.all().iter().fold(init, |node, variable| node.control(variable.initializer));
    init.build()?;
    Ok(())
}

/// Trains, and compares the mean loss at both replicas with that of the whole batch.
fn trains(mut run: impl FnMut(&[&str], &[&str]) -> Vec<Tensor>) {
    run(&[], &["init"]);
    for (step, expected) in expected().into_iter().enumerate() {
        let got = run(&["loss0", "loss1"], &["train0", "train1"]);
        let losses: Vec<f32> = got.iter().flat_map(values).collect();
        assert_eq!(losses[0].to_bits(), losses[1].to_bits(), "step {step}");
        let near = (f64::from(losses[0]) - expected).abs() <= 1e-5 * expected.max(1.0);
        assert!(near, "step {step}: expected {expected}, found {}", losses[0]);
    }
    let of = run(&["w0/Read/ReadVariableOp", "w1/Read/ReadVariableOp"], &[]);
    assert_eq!(values(&of[0]), values(&of[1]));
}

#[test]
fn replicas_on_two_devices_train_as_one_device() {
    let _turn = turn();
    let plugins = ["tenon_cpu", "tenon_data", "tenon_train"];
    let runtime = runtime(&plugins, &[("cpu.devices", "2")]);
    let devices = ["/device:CPU:0", "/device:CPU:1"];
    let session = session(&runtime, |b| {
        replicas(b, &devices).expect("the graph is right");
        Ok(())
    });
    trains(|fetches, targets| {
        session.run(&[], fetches, targets, &Default::default()).expect("the step is right").0
    });
}

#[test]
fn replicas_at_two_tasks_train_as_one_device() {
    let _turn = turn();
    let tasks = Tasks::of(&[("worker", 0), ("worker", 1)]);
    let devices = ["/job:worker/task:0/device:CPU:0", "/job:worker/task:1/device:CPU:0"];
    let graph = tasks.graph(|b| {
        replicas(b, &devices).expect("the graph is right");
        Ok(())
    });
    let session = tenon_cluster::Session::connect(&tasks.target("worker/0"), graph).unwrap();
    trains(|fetches, targets| {
        session
            .run(&[], fetches, targets, Some(Duration::from_secs(30)))
            .expect("the step is right")
    });
}
