//! Updates of variables: whole steps with one update each, on one thread, beside the copy of as many bytes by which
//! they are judged. The names say how many elements are updated, and of what.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tenon_benches::{Failure, filled, plugin};
use tenon_framework::{DType, PartialShape, Tensor};
use tenon_runtime::{
    CallableOptions, RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    graph::{GraphBuilder, GraphError, NodeId, Output},
};

/// Elements of a variable that is updated as a whole.
const ELEMENTS: usize = 1_000_000;
/// Rows of a variable of which some are updated, their elements, and how many a step updates.
const ROWS: [usize; 3] = [1_000_000, 64, 4096];

/// An op with its scalars in the order of its inputs; `grad` and `indices` are where they are.
struct Update {
    id: &'static str,
    op: &'static str,
    variables: usize,
    inputs: &'static [Input],
    is_sparse: bool,
}

enum Input {
    Scalar(f32),
    Gradient,
    Indices,
}

use Input::{Gradient, Indices, Scalar};

const UPDATES: [Update; 4] = [
    Update {
        id: "sgd_1m",
        op: "ResourceApplyGradientDescent",
        variables: 1,
        inputs: &[Scalar(0.01), Gradient],
        is_sparse: false,
    },
    Update {
        id: "momentum_1m",
        op: "ResourceApplyMomentum",
        variables: 2,
        inputs: &[Scalar(0.01), Gradient, Scalar(0.9)],
        is_sparse: false,
    },
    Update {
        id: "adam_1m",
        op: "ResourceApplyAdam",
        variables: 3,
        inputs: &[
            Scalar(0.9),
            Scalar(0.999),
            Scalar(0.001),
            Scalar(0.9),
            Scalar(0.999),
            Scalar(1e-7),
            Gradient,
        ],
        is_sparse: false,
    },
    Update {
        id: "adagrad_sparse_4096x64_of_1m",
        op: "ResourceSparseApplyAdagrad",
        variables: 2,
        inputs: &[Scalar(0.01), Gradient, Indices],
        is_sparse: true,
    },
];

/// A variable of this shape whose elements are all one value.
fn variable(
    b: &mut GraphBuilder<'_>,
    dims: &[i64],
    name: &str,
    value: f32,
) -> Result<(NodeId, NodeId), GraphError> {
    let shape = PartialShape::new(dims).unwrap_or(PartialShape::UNKNOWN);
    let handle = b.op("VarHandleOp").name(name).attr("dtype", DType::FLOAT).attr("shape", shape);
    let handle = handle.build()?;
    let sizes: Vec<i32> = dims.iter().map(|&size| size as i32).collect();
    let sizes = Tensor::from_slice(&[sizes.len() as i64], &sizes).expect("a vector");
    let sizes = b.constant(&format!("{name}_sizes"), sizes)?;
    let value = b.constant(&format!("{name}_value"), Tensor::scalar(value).expect("a scalar"))?;
    let first = b.op("Fill").input(sizes).input(value).build()?;
    let set = b.op("AssignVariableOp").input(handle).input(first).build()?;
    Ok((handle, set))
}

/// Rows all over the variable, each once.
fn indices() -> Tensor {
    let [rows, _, count] = ROWS;
    let indices: Vec<i32> = (0..count).map(|at| (at * 7919 % rows) as i32).collect();
    Tensor::from_slice(&[count as i64], &indices).expect("a vector")
}

/// The nodes `set`, which gives the variables their values, and `last`, which updates them.
fn graph(b: &mut GraphBuilder<'_>, update: &Update) -> Result<(), GraphError> {
    let [rows, columns, count] = ROWS.map(|size| size as i64);
    let (dims, of_gradient) = match update.is_sparse {
        true => (vec![rows, columns], vec![count, columns]),
        false => (vec![ELEMENTS as i64], vec![ELEMENTS as i64]),
    };
    let made = (0..update.variables)
        .map(|at| variable(b, &dims, &format!("v{at}"), 0.5))
        .collect::<Result<Vec<_>, _>>()?;
    let set = made.iter().fold(b.op("NoOp").name("set"), |set, &(_, node)| set.control(node));
    set.build()?;
    let mut nodes: Vec<Output> = made.iter().map(|&(handle, _)| handle.into()).collect();
    for (at, input) in update.inputs.iter().enumerate() {
        let value = match input {
            Scalar(value) => Tensor::scalar(*value).expect("a scalar"),
            Gradient => filled(&of_gradient, |at| (at % 17) as f32 / 16.0 - 0.5),
            Indices => indices(),
        };
        nodes.push(b.constant(&format!("input{at}"), value)?);
    }
    let last = b.op(update.op).name("last");
    nodes.into_iter().fold(last, |last, node| last.input(node)).build().map(|_| ())
}

fn time(c: &mut Criterion, runtime: &Runtime, update: &Update) -> Result<(), Failure> {
    let session = Session::new(runtime, SessionOptions::as_written())?;
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    graph(&mut builder, update)?;
    session.extend(&builder.finish().to_graph_def()?)?;
    session.run(&[], &[], &["set"], &RunOptions::default())?;
    let targets = vec!["last".to_owned()];
    let callable = session.callable(CallableOptions { targets, ..CallableOptions::default() })?;
    let mut fetched = Vec::new();
    callable.run(&[], &mut fetched)?;
    let elements = if update.is_sparse { ROWS[1] * ROWS[2] } else { ELEMENTS };
    let mut group = c.benchmark_group("train");
    // Each variable is read and written, the gradient is read.
    group.throughput(Throughput::Bytes((elements * 4 * (2 * update.variables + 1)) as u64));
    group.bench_function(update.id, |b| {
        b.iter(|| {
            if let Err(error) = callable.run(&[], &mut fetched) {
                panic!("{}: {error}", update.id);
            }
        });
    });
    group.finish();
    Ok(())
}

/// The copy of an array of that many floats, which reads and writes 8 bytes for each.
fn copy(c: &mut Criterion) {
    let from = vec![1.0f32; ELEMENTS];
    let mut to = vec![0.0f32; ELEMENTS];
    let mut group = c.benchmark_group("train");
    group.throughput(Throughput::Bytes(8 * ELEMENTS as u64));
    group.bench_function("copy_1m", |b| {
        b.iter(|| std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from)));
    });
    group.finish();
}

fn run(c: &mut Criterion) -> Result<(), Failure> {
    let plugins = [plugin("cpu")?, plugin("data")?, plugin("train")?];
    let options = RuntimeOptions { threads: Some(1), ..RuntimeOptions::with_plugins(plugins) };
    let (runtime, report) = Runtime::new(options)?;
    report.into_result()?;
    copy(c);
    UPDATES.iter().try_for_each(|update| time(c, &runtime, update))
}

fn benches(c: &mut Criterion) {
    if let Err(error) = run(c) {
        panic!("train: {error}");
    }
}

criterion_group!(train, benches);
criterion_main!(train);
