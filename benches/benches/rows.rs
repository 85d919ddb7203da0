//! The rows of elementwise ops, reductions, transposition, pooling and depthwise convolution that peers are
//! measured on: one op, or the graph that a client writes for it, in a session with all passes on, on one thread
//! and on two. `record.py` prints the lines beside the peers'.

use criterion::{Criterion, criterion_group, criterion_main};
use short::short;
use std::hint::black_box;
use tenon_benches::{Failure, filled, runtime_of};
use tenon_framework::{
    DType, PartialShape, Shape, Tensor,
    attr::{AttrList, AttrValue},
};
use tenon_runtime::{
    CallableOptions, Runtime, Session, SessionOptions,
    graph::{GraphBuilder, GraphError, NodeId, Output},
};

#[path = "shared/short.rs"]
mod short;

/// Element counts of the elementwise rows.
const SIZES: [(&str, i64); 3] = [("1e3", 1_000), ("1e5", 100_000), ("1e7", 10_000_000)];
const THREADS: [usize; 2] = [1, 2];

type Made = Result<NodeId, GraphError>;
/// Builds the op's graph from its inputs, all of these dimensions; the node's first output is fetched.
type Make = fn(&mut GraphBuilder<'_>, &[Output], &[i64]) -> Made;

/// An op of the elementwise rows: name, shape of an input of so many elements, number of inputs.
struct Row {
    name: &'static str,
    dims: fn(i64) -> Vec<i64>,
    inputs: usize,
    make: Make,
}

fn flat(n: i64) -> Vec<i64> {
    vec![n]
}

/// Rows of 1024, as the peers' scripts cut them.
fn rows(n: i64) -> Vec<i64> {
    if n >= 2000 { vec![n / 1024, 1024] } else { vec![1, n] }
}

/// The matrices that the peers' scripts transpose.
fn matrix(n: i64) -> Vec<i64> {
    match n {
        1_000 => vec![25, 40],
        100_000 => vec![250, 400],
        _ => vec![2500, 4000],
    }
}

const ROWS: [Row; 10] = [
    Row {
        name: "add",
        dims: flat,
        inputs: 2,
        make: |b, x, _| b.op("AddV2").input(x[0]).input(x[1]).build(),
    },
    Row { name: "relu", dims: flat, inputs: 1, make: |b, x, _| b.op("Relu").input(x[0]).build() },
    Row { name: "exp", dims: flat, inputs: 1, make: |b, x, _| b.op("Exp").input(x[0]).build() },
    Row { name: "tanh", dims: flat, inputs: 1, make: |b, x, _| b.op("Tanh").input(x[0]).build() },
    Row { name: "gelu", dims: flat, inputs: 1, make: gelu },
    Row {
        name: "softmax",
        dims: rows,
        inputs: 1,
        make: |b, x, _| b.op("Softmax").input(x[0]).build(),
    },
    Row { name: "layernorm", dims: rows, inputs: 1, make: layer_norm },
    Row { name: "sum_all", dims: flat, inputs: 1, make: |b, x, _| sum(b, x[0], &[0]) },
    Row { name: "sum_rows", dims: rows, inputs: 1, make: |b, x, _| sum(b, x[0], &[1]) },
    Row { name: "transpose", dims: matrix, inputs: 1, make: transpose },
];

fn integers(b: &mut GraphBuilder<'_>, name: &str, values: &[i32]) -> Result<Output, GraphError> {
    b.constant(name, vector(values))
}

fn vector(values: &[i32]) -> Tensor {
    Tensor::from_slice(&[values.len() as i64], values).unwrap_or_else(|error| panic!("{error}"))
}

fn scalar(b: &mut GraphBuilder<'_>, name: &str, value: f32) -> Result<Output, GraphError> {
    b.constant(name, filled(&[], |_| value))
}

fn sum(b: &mut GraphBuilder<'_>, x: Output, axes: &[i32]) -> Made {
    let axes = integers(b, "axes", axes)?;
    b.op("Sum").input(x).input(axes).build()
}

fn transpose(b: &mut GraphBuilder<'_>, x: &[Output], _: &[i64]) -> Made {
    let perm = integers(b, "perm", &[1, 0])?;
    b.op("Transpose").input(x[0]).input(perm).build()
}

/// `x / 2 * (1 + erf(x / sqrt(2)))`, op by op.
fn gelu(b: &mut GraphBuilder<'_>, x: &[Output], _: &[i64]) -> Made {
    let root = scalar(b, "root", std::f32::consts::SQRT_2)?;
    let (half, one) = (scalar(b, "half", 0.5)?, scalar(b, "one", 1.0)?);
    let scaled = b.op("RealDiv").input(x[0]).input(root).build()?;
    let erf = b.op("Erf").input(scaled).build()?;
    let sum = b.op("AddV2").input(one).input(erf).build()?;
    let half_x = b.op("Mul").input(half).input(x[0]).build()?;
    b.op("Mul").input(half_x).input(sum).build()
}

/// Mean and variance over the last dimension, then scale and offset, op by op.
fn layer_norm(b: &mut GraphBuilder<'_>, x: &[Output], dims: &[i64]) -> Made {
    let len = dims[1];
    let axes = integers(b, "axes", &[-1])?;
    let (scale, offset) = (filled(&[len], |_| 1.0), filled(&[len], |_| 0.0));
    let (scale, offset) = (b.constant("scale", scale)?, b.constant("offset", offset)?);
    let epsilon = scalar(b, "epsilon", 1e-5)?;
    let mean = b.op("Mean").input(x[0]).input(axes).attr("keep_dims", true).build()?;
    let squares = b.op("SquaredDifference").input(x[0]).input(mean).build()?;
    let variance = b.op("Mean").input(squares).input(axes).attr("keep_dims", true).build()?;
    let stable = b.op("AddV2").input(variance).input(epsilon).build()?;
    let rsqrt = b.op("Rsqrt").input(stable).build()?;
    let factor = b.op("Mul").input(rsqrt).input(scale).build()?;
    let scaled = b.op("Mul").input(x[0]).input(factor).build()?;
    let shift = b.op("Mul").input(mean).input(factor).build()?;
    let rest = b.op("Sub").input(offset).input(shift).build()?;
    b.op("AddV2").input(scaled).input(rest).build()
}

/// A layer over an image: name as the peers' scripts have it, channels, size, kernel, stride.
struct Layer {
    name: &'static str,
    channels: i64,
    size: i64,
    kernel: i64,
    stride: i64,
}

const LAYERS: [Layer; 5] = [
    Layer { name: "depthwise_c32-32_112x112_k3s1", channels: 32, size: 112, kernel: 3, stride: 1 },
    Layer { name: "depthwise_c128-128_56x56_k3s1", channels: 128, size: 56, kernel: 3, stride: 1 },
    Layer { name: "depthwise_c512-512_14x14_k3s1", channels: 512, size: 14, kernel: 3, stride: 1 },
    Layer { name: "maxpool_c64-64_112x112_k3s2", channels: 64, size: 112, kernel: 3, stride: 2 },
    Layer { name: "maxpool_c64-64_224x224_k2s2", channels: 64, size: 224, kernel: 2, stride: 2 },
];

fn list(values: &[i64]) -> AttrValue {
    AttrValue::List(AttrList::Int(values.to_vec()))
}

fn layer(b: &mut GraphBuilder<'_>, layer: &Layer, x: Output) -> Made {
    let (kernel, stride, channels) = (layer.kernel, layer.stride, layer.channels);
    let strides = list(&[1, stride, stride, 1]);
    let padding = if kernel == 2 { "VALID" } else { "SAME" };
    if layer.name.starts_with("maxpool") {
        let window = list(&[1, kernel, kernel, 1]);
        let pool = b.op("MaxPool").input(x).attr("ksize", window).attr("strides", strides);
        return pool.attr("padding", padding).build();
    }
    let weights = filled(&[kernel, kernel, channels, 1], |at| at as f32 % 7.0 - 3.0);
    let filter = b.constant("filter", weights)?;
    let bias = b.constant("bias", filled(&[channels], |at| at as f32))?;
    let conv = b.op("DepthwiseConv2dNative").input(x).input(filter);
    let conv = conv.attr("strides", strides).attr("padding", padding).build()?;
    b.op("BiasAdd").input(conv).input(bias).build()
}

/// Times the graph that `make` builds over inputs of one shape.
fn time(
    c: &mut Criterion,
    runtime: &Runtime,
    id: &str,
    (dims, inputs): (&[i64], usize),
    make: impl FnOnce(&mut GraphBuilder<'_>, &[Output], &[i64]) -> Made,
) -> Result<(), Failure> {
    let session = Session::new(runtime, SessionOptions::default())?;
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    let names: Vec<String> = (0..inputs).map(|at| format!("x{at}")).collect();
    let mut outputs = Vec::new();
    for name in &names {
        let shape = PartialShape::from(Shape::new(dims)?);
        outputs.push(builder.placeholder(name, DType::FLOAT, shape)?);
    }
    let last = make(&mut builder, &outputs, dims)?;
    builder.op("Identity").name("y").input(last).build()?;
    session.extend(&builder.finish().to_graph_def()?)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let feeds: Vec<Tensor> =
        (0..inputs).map(|_| filled(dims, |at| (at % 1013) as f32 / 253.0 - 2.0)).collect();
    let callable = session.callable(CallableOptions::new(&names, &["y"]))?;
    let mut fetched = Vec::new();
    callable.run(&feeds, &mut fetched)?;
    c.bench_function(id, |b| {
        b.iter(|| {
            let result = callable.run(black_box(&feeds), &mut fetched);
            if let Err(error) = result {
                panic!("{id}: {error}");
            }
        });
    });
    Ok(())
}

fn run(c: &mut Criterion) -> Result<(), Failure> {
    for threads in THREADS {
        let runtime = runtime_of("cpu", threads)?;
        for row in ROWS {
            for (size, n) in SIZES {
                let id = format!("elementwise/{}_{size}/{threads}", row.name);
                let dims = (row.dims)(n);
                time(c, &runtime, &id, (&dims, row.inputs), row.make)?;
            }
        }
        for shape in &LAYERS {
            let id = format!("conv/{}/{threads}", shape.name);
            let dims = [1, shape.size, shape.size, shape.channels];
            time(c, &runtime, &id, (&dims, 1), |b, x, _| layer(b, shape, x[0]))?;
        }
    }
    Ok(())
}

fn benches(c: &mut Criterion) {
    if let Err(error) = run(c) {
        panic!("{error}");
    }
}

criterion_group! {
    name = each;
    config = short();
    targets = benches
}
criterion_main!(each);
