//! Training on CUDA: variables in a GPU's memory, the updates of optimisers against TensorFlow's results, and a network
//! that learns there as it does on the CPU.

use std::{collections::BTreeMap, path::Path};
use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{GraphBuilder, GraphError, NodeId, Output};
use tenon_runtime::{
    RunOptions, Runtime, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor, attr::AttrValue},
};
use tenon_testkit::{
    compare::{Rule, compare},
    graphs::{GraphGolden, RunExpected, read_sequences},
};
use tenon_tests::{
    cuda::{cuda_runtime_with, take_log},
    session::{floats, run_with, session_with, turn, values},
};

const CUDA: &str = "/device:CUDA:0";

fn training_runtime() -> Runtime {
    cuda_runtime_with(&["tenon_data", "tenon_train"], &[])
}

/// Nodes without a device run on the GPU, where it has kernels for them.
fn on_cuda() -> SessionOptions {
    SessionOptions {
        device: Some(CUDA.to_owned()),
        soft_placement: Some(true),
        isolate_state: true,
        ..SessionOptions::default()
    }
}

/// How near a value of a sequence must be. TensorFlow's packets of 16-bit floats round a reciprocal root once, and
/// elements that are left over twice: here all are rounded once, and the difference goes through twenty steps.
fn rule_of(golden: &GraphGolden, dtype: DType) -> Rule {
    let has_root = ["adagrad_", "adadelta_"].iter().any(|name| golden.name.starts_with(name));
    match dtype {
        _ if !has_root || golden.rule != Rule::Exact => golden.rule.clone(),
        DType::BFLOAT16 => Rule::Close { absolute: 0.04, relative: 0.04 },
        _ => Rule::Close { absolute: 0.004, relative: 0.004 },
    }
}

/// Runs a sequence; the number of updates that were launched, or what is wrong.
fn updates(runtime: &Runtime, golden: &GraphGolden) -> Result<usize, String> {
    let session = Session::new(runtime, on_cuda()).map_err(|error| error.to_string())?;
    session.extend(&golden.graph).map_err(|error| error.to_string())?;
    take_log();
    for run in &golden.runs {
        let RunExpected::Fetches(expected) = &run.expected else {
            return Err(format!("step {}: expected values", run.number));
        };
        let names: Vec<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
        let targets: Vec<&str> = run.targets.iter().map(String::as_str).collect();
        let ran = session.run(&[], &names, &targets, &RunOptions::default());
        let (fetched, _) = ran.map_err(|error| format!("step {}: {error}", run.number))?;
        for ((name, expected), found) in expected.iter().zip(&fetched) {
            compare(found, expected, &rule_of(golden, expected.dtype()))
                .map_err(|mismatch| format!("step {}, {name}: {mismatch}", run.number))?;
        }
    }
    Ok(take_log().lines().filter(|line| line.contains("launch kernel=train")).count())
}

/// The sequences of these optimisers, by the beginnings of their names, of whole resource variables.
fn as_tensorflow_gave(optimisers: &[&str]) {
    let _turn = turn();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/sequences");
    let goldens = read_sequences(&folder).expect("golden data");
    let runtime = training_runtime();
    let mut wrong = Vec::new();
    for optimiser in optimisers {
        let start = format!("{optimiser}_dense_resource_");
        let named = goldens.iter().filter(|golden| golden.name.starts_with(&start));
        let named: Vec<_> = named.filter(|golden| !golden.name.ends_with("_complex")).collect();
        assert!(!named.is_empty(), "{optimiser} has sequences");
        for golden in named {
            match updates(&runtime, golden) {
                // A launch for each variable in each of some twenty steps.
                Ok(launches) if launches >= 20 => {}
                Ok(launches) => wrong.push(format!("{}: {launches} launches", golden.name)),
                Err(error) => wrong.push(format!("{}: {error}", golden.name)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn descent_and_momentum_give_what_tensorflow_gave() {
    as_tensorflow_gave(&["gradientdescent", "momentum", "kerasmomentum", "addsign", "powersign"]);
}

#[test]
fn adagrad_and_its_kin_give_what_tensorflow_gave() {
    as_tensorflow_gave(&["adagrad", "adagradv2", "adadelta", "rmsprop", "centeredrmsprop"]);
}

#[test]
fn rules_that_shrink_weights_give_what_tensorflow_gave() {
    as_tensorflow_gave(&["adagradda", "proximaladagrad", "proximalgradientdescent"]);
}

#[test]
fn adam_and_ftrl_give_what_tensorflow_gave() {
    as_tensorflow_gave(&["adam", "adamwithamsgrad", "adamax", "ftrl", "ftrlv2", "ftrlpowered"]);
}

/// An optimiser: its op, the first value of each slot, its scalars before and after the gradient, and an attribute.
struct Optimiser {
    op: &'static str,
    slots: &'static [f32],
    before: &'static [f32],
    after: &'static [f32],
    flag: Option<&'static str>,
}

const OPTIMISERS: &[Optimiser] = &[
    Optimiser {
        op: "ResourceApplyGradientDescent",
        slots: &[],
        before: &[0.5],
        after: &[],
        flag: None,
    },
    Optimiser {
        op: "ResourceApplyKerasMomentum",
        slots: &[0.0],
        before: &[0.1],
        after: &[0.9],
        flag: Some("use_nesterov"),
    },
    Optimiser {
        op: "ResourceApplyRMSProp",
        slots: &[1.0, 0.0],
        before: &[0.05, 0.9, 0.5, 1e-7],
        after: &[],
        flag: None,
    },
    Optimiser {
        op: "ResourceApplyAdam",
        slots: &[0.0, 0.0],
        before: &[0.9, 0.999, 0.01, 0.9, 0.999, 1e-7],
        after: &[],
        flag: None,
    },
];

struct Model<'b, 'r> {
    b: &'b mut GraphBuilder<'r>,
    /// The nodes that give variables their first values.
    set: Vec<NodeId>,
    /// The trained variables: name, dimensions, handle, value.
    trained: Vec<(String, Vec<i64>, Output, Output)>,
}

impl Model<'_, '_> {
    fn handle(&mut self, name: &str, first: Tensor) -> Result<Output, GraphError> {
        let shape = PartialShape::new(first.shape().dims()).expect("a shape");
        let handle = self.b.op("VarHandleOp").name(name).attr("dtype", DType::FLOAT);
        let handle = handle.attr("shape", shape).build()?;
        let first = self.b.constant(&format!("{name}/first"), first)?;
        self.set.push(self.b.op("AssignVariableOp").input(handle).input(first).build()?);
        Ok(handle.into())
    }

    fn weights(&mut self, name: &str, dims: &[i64]) -> Result<Output, GraphError> {
        let count = dims.iter().product::<i64>();
        let numbers: Vec<f32> =
            (0..count).map(|at| ((at * 37 % 101) as f32 - 50.0) / 200.0).collect();
        let first = floats(&numbers).reshaped(dims).expect("as many elements");
        let handle = self.handle(name, first)?;
        let value = self.b.op("ReadVariableOp").name(&format!("{name}/value")).input(handle);
        let value: Output = value.attr("dtype", DType::FLOAT).build()?.into();
        self.trained.push((name.to_owned(), dims.to_vec(), handle, value));
        Ok(value)
    }

    fn scalars(&mut self, name: &str, values: &[f32]) -> Result<Vec<Output>, GraphError> {
        let scalar = |(at, value): (usize, &f32)| {
            let value = Tensor::scalar(*value).expect("a scalar");
            self.b.constant(&format!("{name}{at}"), value)
        };
        values.iter().enumerate().map(scalar).collect()
    }

    fn update(
        &mut self,
        by: &Optimiser,
        at: usize,
        gradient: Output,
    ) -> Result<NodeId, GraphError> {
        let (name, dims, handle, _) = self.trained[at].clone();
        let count = dims.iter().product::<i64>() as usize;
        let mut inputs = vec![handle];
        for (slot, &value) in by.slots.iter().enumerate() {
            let first = floats(&vec![value; count]).reshaped(&dims).expect("as many elements");
            inputs.push(self.handle(&format!("{name}/slot{slot}"), first)?);
        }
        inputs.extend(self.scalars(&format!("{name}/before"), by.before)?);
        inputs.push(gradient);
        inputs.extend(self.scalars(&format!("{name}/after"), by.after)?);
        let node = self.b.op(by.op).name(&format!("{name}/update")).inputs(inputs);
        by.flag.into_iter().fold(node, |node, flag| node.attr(flag, true)).build()
    }
}

const BATCH: i64 = 8;
const WIDTHS: [i64; 3] = [20, 16, 10];

/// A network of two dense layers, `loss`, and the node `train`, which updates its variables; `set` gives them their
/// values.
fn network(b: &mut GraphBuilder<'_>, by: &Optimiser) -> Result<(), GraphError> {
    let shape = |dims: &[i64]| PartialShape::new(dims).expect("a shape");
    let x = b.placeholder("x", DType::FLOAT, shape(&[BATCH, WIDTHS[0]]))?;
    let labels = b.placeholder("labels", DType::INT32, shape(&[BATCH]))?;
    let mut model = Model { b, set: Vec::new(), trained: Vec::new() };
    let mut last = x;
    for (layer, width) in WIDTHS.windows(2).enumerate() {
        let weights = model.weights(&format!("w{layer}"), width)?;
        let bias = model.weights(&format!("b{layer}"), &width[1..])?;
        let product = model.b.op("MatMul").input(last).input(weights).build()?;
        last = model.b.op("BiasAdd").input(product).input(bias).build()?.into();
        if layer == 0 {
            last = model.b.op("Tanh").input(last).build()?.into();
        }
    }
    let losses = model.b.op("SparseSoftmaxCrossEntropyWithLogits").input(last).input(labels);
    let losses = losses.build()?;
    let axis = model.b.constant("axis", Tensor::from_slice(&[1], &[0i32]).expect("a vector"))?;
    let loss = model.b.op("Mean").name("loss").input(losses).input(axis).build()?;
    let xs: Vec<Output> = model.trained.iter().map(|(.., value)| *value).collect();
    let made = gradients(model.b, &[loss.into()], &xs, &Options::default()).expect("they exist");
    let mut updates = Vec::new();
    for (at, gradient) in made.into_iter().enumerate() {
        let Some(Gradient::Dense(gradient)) = gradient else { panic!("a tensor: {gradient:?}") };
        updates.push(model.update(by, at, gradient)?);
    }
    let Model { b, set, .. } = model;
    for (name, nodes) in [("set", set), ("train", updates)] {
        nodes.into_iter().fold(b.op("NoOp").name(name), |end, node| end.control(node)).build()?;
    }
    Ok(())
}

fn feeds() -> [(&'static str, Tensor); 2] {
    let x: Vec<f32> = (0..BATCH * WIDTHS[0]).map(|at| (at * 13 % 29) as f32 / 29.0).collect();
    let x = floats(&x).reshaped(&[BATCH, WIDTHS[0]]).expect("as many elements");
    let labels: Vec<i32> = (0..BATCH as i32).map(|at| at * 3 % WIDTHS[2] as i32).collect();
    [("x", x), ("labels", Tensor::from_slice(&[BATCH], &labels).expect("a vector"))]
}

/// The losses of 20 steps, and where nodes ran, by op.
fn losses(
    runtime: &Runtime,
    options: SessionOptions,
    by: &Optimiser,
) -> (Vec<f32>, BTreeMap<String, String>) {
    let session = session_with(runtime, options, |b| network(b, by));
    session.run(&[], &[], &["set"], &RunOptions::default()).expect("they are set");
    let (feeds, mut devices) = (feeds(), BTreeMap::new());
    let step = |_| {
        let ran = session.run(&feeds, &["loss"], &["train"], &RunOptions::default());
        let (fetched, metadata) = ran.expect("it trains");
        let device = |name: &str| name.rsplit_once("device:").map_or("", |(_, it)| it).to_owned();
        devices.extend(metadata.nodes.iter().map(|node| (node.op.clone(), device(&node.device))));
        values(&fetched[0])[0]
    };
    ((0..20).map(step).collect(), devices)
}

#[test]
fn a_network_learns_as_on_the_cpu() {
    let _turn = turn();
    let runtime = training_runtime();
    for by in OPTIMISERS {
        let on_cpu = SessionOptions {
            device: Some("/device:CPU:0".to_owned()),
            isolate_state: true,
            ..SessionOptions::default()
        };
        let (expected, _) = losses(&runtime, on_cpu, by);
        let (found, devices) = losses(&runtime, on_cuda(), by);
        for op in ["VarHandleOp", "ReadVariableOp", by.op] {
            assert_eq!(devices.get(op).map(String::as_str), Some("CUDA:0"), "{op}: {devices:?}");
        }
        let differ = found.iter().zip(&expected).any(|(a, b)| (a - b).abs() > 1e-5 * b.abs());
        assert!(!differ, "{}: {found:?}, on the CPU {expected:?}", by.op);
        assert!(found[19] < 0.9 * found[0], "{}: {found:?}", by.op);
    }
}

/// `v -= v^2 - v` on the GPU, where two streams read `v`.
fn decay(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[LENGTH as i64]).expect("a shape");
    let x = b.placeholder("x", DType::FLOAT, shape.clone())?;
    let handle = b.op("VarHandleOp").name("v").attr("dtype", DType::FLOAT).attr("shape", shape);
    let handle = handle.device(CUDA).build()?;
    b.op("AssignVariableOp").name("set").input(handle).input(x).device(CUDA).build()?;
    let value = b.op("ReadVariableOp").name("value").input(handle).attr("dtype", DType::FLOAT);
    let value = value.device(CUDA).build()?;
    let square = b.op("Square").input(value).device(CUDA).build()?;
    let same = b.op("Relu").input(value).device(CUDA).build()?;
    let change = b.op("Sub").input(square).input(same).device(CUDA).build()?;
    let update = b.op("AssignSubVariableOp").name("update").input(handle).input(change);
    update.device(CUDA).build().map(drop)
}

/// Elements of a tensor that a step does not keep.
const LENGTH: usize = 5000;

#[test]
fn a_value_that_the_step_has_read_is_updated_in_place() {
    let _turn = turn();
    let runtime = training_runtime();
    let options = SessionOptions { isolate_state: true, ..SessionOptions::as_written() };
    let session = session_with(&runtime, options, decay);
    let first: Vec<f32> = (0..LENGTH).map(|at| (at % 7) as f32 / 8.0 + 0.5).collect();
    session
        .run(&[("x", floats(&first))], &[], &["set"], &RunOptions::default())
        .expect("it is set");
    take_log();
    for _ in 0..3 {
        session.run(&[], &[], &["update"], &RunOptions::default()).expect("it is updated");
    }
    let log = take_log();
    assert!(!log.contains("copy kind="), "nothing is copied: {log}");
    let (found, _) = run_with(&session, &[], &["value"], &RunOptions::default()).expect("it runs");
    let mut expected = first;
    for x in &mut expected {
        (0..3).for_each(|_| *x -= *x * *x - x.max(0.0));
    }
    assert_eq!(values(&found[0]), expected);
}

/// A variable of whole numbers on the GPU: `set`, `add` and `sub` change it, `value`, `shape` and `is_set` show it.
fn counters(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[3]).expect("a shape");
    let x = b.placeholder("x", DType::INT64, PartialShape::UNKNOWN)?;
    let handle = b.op("VarHandleOp").name("v").attr("dtype", DType::INT64).attr("shape", shape);
    let handle = handle.device(CUDA).build()?;
    for (op, name) in [
        ("AssignVariableOp", "set"),
        ("AssignAddVariableOp", "add"),
        ("AssignSubVariableOp", "sub"),
    ] {
        b.op(op).name(name).input(handle).input(x).device(CUDA).build()?;
    }
    let int64 = AttrValue::Type(DType::INT64);
    for (op, name, attr) in [
        ("ReadVariableOp", "value", Some("dtype")),
        ("VariableShape", "shape", Some("out_type")),
        ("VarIsInitializedOp", "is_set", None),
        ("DestroyResourceOp", "destroy", None),
    ] {
        let node = b.op(op).name(name).input(handle).device(CUDA);
        attr.into_iter().fold(node, |node, attr| node.attr(attr, int64.clone())).build()?;
    }
    Ok(())
}

fn numbers(values: &[i64]) -> Tensor {
    Tensor::from_slice(&[values.len() as i64], values).expect("a vector")
}

#[test]
fn a_variable_lives_on_the_gpu() {
    let _turn = turn();
    let runtime = training_runtime();
    let session = session_with(&runtime, SessionOptions::default(), counters);
    let change = |node: &str, by: &[i64]| {
        let ran = session.run(&[("x", numbers(by))], &[], &[node], &RunOptions::default());
        ran.map(|(_, metadata)| metadata.nodes.len()).map_err(|error| error.to_string())
    };
    let fetch = |name: &str| {
        run_with(&session, &[], &[name], &RunOptions::default()).expect("it runs").0.remove(0)
    };
    let is_set = |found: &Tensor| found.as_slice::<bool>().expect("a bool")[0];
    assert!(!is_set(&fetch("is_set")));
    let error = change("add", &[1, 1, 1]).expect_err("it has no value");
    assert!(error.contains("does not exist"), "{error}");
    change("set", &[10, 20, 30]).expect("it is set");
    let before = fetch("value");
    change("add", &[1, 2, 3]).expect("numbers are added");
    change("sub", &[5, 5, 5]).expect("numbers are subtracted");
    assert_eq!(before.as_slice::<i64>().expect("numbers"), [10, 20, 30], "what was read stays");
    assert_eq!(fetch("value").as_slice::<i64>().expect("numbers"), [6, 17, 28]);
    assert_eq!(fetch("shape").as_slice::<i64>().expect("numbers"), [3]);
    assert!(is_set(&fetch("is_set")));
    let error = change("add", &[1, 1]).expect_err("it is too short");
    assert!(error.contains("expected the shape of the variable, [3], found [2]"), "{error}");
    session.run(&[], &[], &["destroy"], &RunOptions::default()).expect("it is there");
    assert!(!is_set(&fetch("is_set")));
}
