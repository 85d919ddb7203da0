//! Gradients by central differences: the weighted sum of an op's results changes as the gradient says.

use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{GraphBuilder, NodeBuilder, NodeId, Output};
use tenon_runtime::{
    Runtime, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
};
use tenon_tests::session::run;

/// Half the distance of two points of which the slope is taken.
const STEP: f64 = 1e-5;

/// An input of an op.
#[derive(Clone)]
pub enum Input {
    /// Numbers of type double between two bounds, through which the gradient flows.
    Uniform(&'static [i64], f64, f64),
    /// These numbers of type double, through which the gradient flows.
    Doubles(&'static [i64], &'static [f64]),
    /// A constant.
    Constant(Tensor),
}

/// Numbers between -2 and 2.
pub fn any(dims: &'static [i64]) -> Input {
    Input::Uniform(dims, -2.0, 2.0)
}

/// Numbers between 0.5 and 2.
pub fn positive(dims: &'static [i64]) -> Input {
    Input::Uniform(dims, 0.5, 2.0)
}

/// A constant vector of type int32.
pub fn ints(values: &[i32]) -> Input {
    Input::Constant(Tensor::from_slice(&[values.len() as i64], values).unwrap())
}

/// A constant scalar of type int32.
pub fn int(value: i32) -> Input {
    Input::Constant(Tensor::scalar(value).unwrap())
}

/// A constant of type int32.
pub fn int_tensor(dims: &[i64], values: &[i32]) -> Input {
    Input::Constant(Tensor::from_slice(dims, values).unwrap())
}

/// A constant of type bool.
pub fn bools(dims: &[i64], values: &[bool]) -> Input {
    Input::Constant(Tensor::from_slice(dims, values).unwrap())
}

/// Numbers that look random and are the same in each run.
pub struct Numbers(u64);

impl Numbers {
    pub fn of(seed: &str) -> Numbers {
        Numbers(seed.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    /// A number between two bounds.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (high - low) * ((self.0 >> 11) as f64 / (1u64 << 53) as f64)
    }
}

/// A graph with the weighted sum of the results of a node, and its gradients.
struct Checked {
    session: Session,
    names: Vec<String>,
    values: Vec<Tensor>,
    gradients: Vec<String>,
}

/// Adds the weighted sum `loss` of all outputs of type double of a node; returns these outputs, and the weights, which
/// are their gradients.
fn weighted_sum(
    b: &mut GraphBuilder<'_>,
    node: NodeId,
    numbers: &mut Numbers,
) -> Vec<(Output, Output)> {
    let types = b.graph().node(node).outputs().to_vec();
    let (mut sums, mut weighted) = (Vec::new(), Vec::new());
    for (at, _) in types.iter().enumerate().filter(|(_, dtype)| **dtype == DType::DOUBLE) {
        let y = Output::new(node, at as u32);
        // Weights that differ from element to element, whatever the shape: cos(first + index).
        let flat = b.op("Const").attr("dtype", DType::INT32);
        let flat = flat.attr("value", Tensor::from_slice(&[1], &[-1i32]).unwrap()).build().unwrap();
        let flat = b.op("Reshape").input(y).input(flat).build().unwrap();
        let size = b.op("Size").input(flat).build().unwrap();
        let scalar = |b: &mut GraphBuilder<'_>, value: Tensor| {
            let dtype = value.dtype();
            b.op("Const").attr("dtype", dtype).attr("value", value).build().unwrap()
        };
        let zero = scalar(b, Tensor::scalar(0i32).unwrap());
        let one = scalar(b, Tensor::scalar(1i32).unwrap());
        let range = b.op("Range").input(zero).input(size).input(one).build().unwrap();
        let range = b.op("Cast").input(range).attr("DstT", DType::DOUBLE).build().unwrap();
        let first = scalar(b, Tensor::scalar(numbers.between(0.0, 6.0)).unwrap());
        let phase = b.op("AddV2").input(range).input(first).build().unwrap();
        let weights = b.op("Cos").input(phase).build().unwrap();
        let shape = b.op("Shape").input(y).build().unwrap();
        let own = b.op("Reshape").input(weights).input(shape).build().unwrap();
        weighted.push((y, own.into()));
        let product = b.op("Mul").input(flat).input(weights).build().unwrap();
        sums.push(b.op("Sum").input(product).input(zero).build().unwrap().into());
    }
    b.op("AddN").name("loss").inputs(sums).build().unwrap();
    weighted
}

/// The values of an input.
fn value(input: &Input, numbers: &mut Numbers) -> Tensor {
    match input {
        Input::Uniform(dims, low, high) => {
            let count = dims.iter().product::<i64>() as usize;
            let values: Vec<f64> = (0..count).map(|_| numbers.between(*low, *high)).collect();
            Tensor::from_slice(dims, &values).unwrap()
        }
        Input::Doubles(dims, values) => Tensor::from_slice(dims, values).unwrap(),
        Input::Constant(tensor) => tensor.clone(),
    }
}

/// Makes a node of inputs.
type Build<'f> = &'f dyn Fn(&mut GraphBuilder<'_>, &[Output]) -> NodeId;

/// A session over a node of these inputs; `known` says whether the graph knows their shapes.
fn checked(
    runtime: &Runtime,
    op: &str,
    inputs: &[Input],
    known: bool,
    build: Build<'_>,
) -> Checked {
    let mut numbers = Numbers::of(op);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let (mut sources, mut names, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (at, input) in inputs.iter().enumerate() {
        let tensor = value(input, &mut numbers);
        if let Input::Constant(_) = input {
            sources.push(b.constant(&format!("c{at}"), tensor).unwrap());
            continue;
        }
        let shape = match known {
            true => PartialShape::new(tensor.shape().dims()).unwrap(),
            false => PartialShape::UNKNOWN,
        };
        let name = format!("x{at}");
        sources.push(b.placeholder(&name, DType::DOUBLE, shape).unwrap());
        names.push(name);
        values.push(tensor);
    }
    let node = build(&mut b, &sources);
    let weighted = weighted_sum(&mut b, node, &mut numbers);
    let (ys, weights): (Vec<Output>, Vec<Output>) = weighted.into_iter().unzip();
    let xs: Vec<Output> = names.iter().map(|name| b.graph().tensor(name).unwrap()).collect();
    let grad_ys = weights.into_iter().map(|weights| Some(Gradient::Dense(weights))).collect();
    let made = gradients(&mut b, &ys, &xs, &Options { grad_ys, ..Options::default() });
    let made = made.unwrap_or_else(|error| panic!("{op}: {error}"));
    let mut gradients = Vec::new();
    for (at, gradient) in made.into_iter().enumerate() {
        let gradient = gradient.unwrap_or_else(|| panic!("{op}: input {at} has no gradient"));
        let gradient = dense(&mut b, gradient, xs[at]);
        gradients.push(b.graph().output_name(gradient));
    }
    let session = Session::new(runtime, SessionOptions::default()).unwrap();
    session.extend_graph(&b.finish()).unwrap();
    Checked { session, names, values, gradients }
}

/// A gradient as one tensor.
pub fn dense(b: &mut GraphBuilder<'_>, gradient: Gradient, of: Output) -> Output {
    match gradient {
        Gradient::Dense(values) => values,
        Gradient::Slices { values, indices, .. } => {
            let zeros = b.op("ZerosLike").input(of).build().unwrap();
            let column = Tensor::from_slice(&[2], &[-1i32, 1]).unwrap();
            let column = b.op("Const").attr("dtype", DType::INT32).attr("value", column);
            let column = column.build().unwrap();
            let indices = b.op("Reshape").input(indices).input(column).build().unwrap();
            let made = b.op("TensorScatterAdd").input(zeros).input(indices).input(values);
            made.build().unwrap().into()
        }
    }
}

impl Checked {
    fn loss(&self, feeds: &[Tensor]) -> f64 {
        let feeds: Vec<(&str, Tensor)> =
            self.names.iter().map(String::as_str).zip(feeds.iter().cloned()).collect();
        run(&self.session, &feeds, &["loss"]).unwrap()[0].as_slice::<f64>().unwrap()[0]
    }

    fn compare(&self, op: &str) {
        let feeds: Vec<(&str, Tensor)> =
            self.names.iter().map(String::as_str).zip(self.values.iter().cloned()).collect();
        let fetches: Vec<&str> = self.gradients.iter().map(String::as_str).collect();
        let made = run(&self.session, &feeds, &fetches).unwrap_or_else(|e| panic!("{op}: {e}"));
        for (at, gradient) in made.iter().enumerate() {
            assert_eq!(gradient.shape(), self.values[at].shape(), "{op}: gradient of input {at}");
            let gradient = gradient.as_slice::<f64>().unwrap();
            for (element, found) in gradient.iter().enumerate() {
                let expected = self.slope(at, element);
                let near = (found - expected).abs() <= 2e-6 * expected.abs().max(1.0);
                assert!(near, "{op}: input {at}, element {element}: {found}, expected {expected}");
            }
        }
    }

    /// The slope of the loss along one element of an input.
    fn slope(&self, input: usize, element: usize) -> f64 {
        let moved = |by: f64| {
            let tensor = &self.values[input];
            let mut values = tensor.as_slice::<f64>().unwrap().to_vec();
            values[element] += by;
            let mut feeds = self.values.clone();
            feeds[input] = Tensor::from_slice(tensor.shape().dims(), &values).unwrap();
            self.loss(&feeds)
        };
        (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
    }
}

/// Compares the gradients of an op with attributes by central differences, with shapes that the graph knows and with
/// shapes that it does not know.
///
/// # Panics
/// They differ, or an input has no gradient.
pub fn check_with(
    runtime: &Runtime,
    op: &str,
    inputs: &[Input],
    with: impl for<'b, 'r> Fn(NodeBuilder<'b, 'r>) -> NodeBuilder<'b, 'r>,
) {
    check_graph(runtime, op, inputs, |b, sources| {
        with(b.op(op).name("node").inputs(sources.iter().copied())).build().unwrap()
    });
}

/// Compares the gradients of what a graph computes from inputs, as [`check_with`] those of an op.
pub fn check_graph(
    runtime: &Runtime,
    name: &str,
    inputs: &[Input],
    build: impl Fn(&mut GraphBuilder<'_>, &[Output]) -> NodeId,
) {
    for known in [true, false] {
        checked(runtime, name, inputs, known, &build).compare(name);
    }
}

/// As [`check_graph`], with shapes that the graph knows.
pub fn check_known(
    runtime: &Runtime,
    name: &str,
    inputs: &[Input],
    build: impl Fn(&mut GraphBuilder<'_>, &[Output]) -> NodeId,
) {
    checked(runtime, name, inputs, true, &build).compare(name);
}

/// As [`check_with`], of an op without attributes.
pub fn check(runtime: &Runtime, op: &str, inputs: &[Input]) {
    check_with(runtime, op, inputs, |node| node);
}
