//! The peak that `explain` reports is what steps really hold: on one thread, the pool's highest figure lies at most
//! the kernels' scratch memory above it, and not far below.

use std::path::PathBuf;
use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{DeviceMemory, GraphBuilder, GraphError, Output};
use tenon_proto::{AttrValue, AttrValueKind, Dim, GraphDef, NodeDef, TensorShapeProto};
use tenon_runtime::{
    Callable, CallableOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    host::memory::HostMemory,
};
use tenon_testkit::graphs::{GraphGolden, RunExpected, read_graphs};
use tenon_tests::session::{floats, runtime_of, session, turn};

/// What a step held at its highest, and what the report says of it.
struct Measured {
    held: u64,
    /// What the first step left behind.
    rest: u64,
    report: DeviceMemory,
}

impl Measured {
    fn of(session: &Session, feeds: &[(&str, Tensor)], fetches: &[&str]) -> Measured {
        let names: Vec<&str> = feeds.iter().map(|(name, _)| *name).collect();
        let feeds: Vec<Tensor> = feeds.iter().map(|(_, tensor)| tensor.clone()).collect();
        let options = CallableOptions::new(&names, fetches);
        let report = session.explain_passes(Some(&options)).expect("the step is right");
        let [report] = &report.memory[..] else { panic!("one device: {:?}", report.memory) };
        assert_eq!(report.unknown, 0, "the shapes are known");
        let callable = session.callable(options).expect("the step is right");
        let memory = HostMemory::shared();
        let before = memory.stats().live_bytes;
        step(&callable, &feeds);
        let after = memory.stats().live_bytes;
        memory.reset_peak();
        step(&callable, &feeds);
        // Kernels may keep things of their own from the first step on; they are no values.
        let held = memory.stats().peak_bytes - after + report.kept;
        println!("held {held}, {} stay, {report:?}", after - before);
        Measured { held, rest: after - before, report: report.clone() }
    }

    /// At most `scratch` bytes more are held than the report says, and at least `least` hundredths of it.
    #[track_caller]
    fn is_as_reported(&self, scratch: u64, least: u64) {
        let Measured { held, report, .. } = self;
        assert!(*held <= report.peak + scratch, "held {held}: {report:?}");
        assert!(*held >= report.peak * least / 100, "held {held}: {report:?}");
    }
}

fn step(callable: &Callable, feeds: &[Tensor]) {
    let mut fetched = Vec::new();
    callable.run(feeds, &mut fetched).expect("the step goes well");
}

/// A side of the squares that the graphs below compute with, and the bytes of one.
const SIDE: i64 = 128;
const SQUARE: u64 = (SIDE * SIDE * 4) as u64;

/// Measures a graph over `x`, as it is written, whose last node is `y`.
fn measured(
    make: impl FnOnce(&mut GraphBuilder<'_>, Output) -> Result<Output, GraphError>,
) -> Measured {
    let _turn = turn();
    let runtime = runtime_of(1, &["tenon_cpu"], &[("graph.optimize", "false")]);
    let session = session(&runtime, |b| {
        let shape = PartialShape::new(&[SIDE, SIDE]).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape)?;
        let last = make(b, x)?;
        b.op("Neg").name("y").input(last).build().map(|_| ())
    });
    let x = floats(&vec![0.25; (SIDE * SIDE) as usize]).reshaped(&[SIDE, SIDE]).expect("a square");
    let found = Measured::of(&session, &[("x", x)], &["y"]);
    assert_eq!(found.rest, found.report.kept, "what stays is what is said to be kept");
    found
}

fn unary(b: &mut GraphBuilder<'_>, op: &str, x: Output) -> Result<Output, GraphError> {
    Ok(b.op(op).input(x).build()?.into())
}

fn transposed(b: &mut GraphBuilder<'_>, x: Output, perm: Output) -> Result<Output, GraphError> {
    Ok(b.op("Transpose").input(x).input(perm).build()?.into())
}

fn perm(b: &mut GraphBuilder<'_>) -> Result<Output, GraphError> {
    b.constant("perm", Tensor::from_slice(&[2], &[1i32, 0]).expect("a vector"))
}

#[test]
fn a_chain_in_place_needs_one_buffer() {
    let found = measured(|b, mut x| {
        for _ in 0..20 {
            x = unary(b, "Tanh", x)?;
        }
        Ok(x)
    });
    assert_eq!((found.report.peak, found.report.without_reuse), (SQUARE, 21 * SQUARE));
    assert_eq!(found.held, SQUARE);
}

#[test]
fn a_chain_that_cannot_work_in_place_needs_two() {
    let found = measured(|b, mut x| {
        let perm = perm(b)?;
        for _ in 0..10 {
            x = transposed(b, x, perm)?;
            x = unary(b, "Identity", x)?;
        }
        Ok(x)
    });
    assert_eq!((found.report.peak, found.report.passed_on), (2 * SQUARE, 10));
    assert_eq!(found.held, 2 * SQUARE);
}

#[test]
fn a_diamond_needs_both_of_its_sides() {
    let found = measured(|b, mut x| {
        let perm = perm(b)?;
        for _ in 0..8 {
            let (left, right) = (transposed(b, x, perm)?, unary(b, "Tanh", x)?);
            x = b.op("AddV2").input(left).input(right).build()?.into();
        }
        Ok(x)
    });
    assert!(found.held * 8 <= found.report.without_reuse, "{} bytes", found.held);
    found.is_as_reported(0, 100);
}

/// Written level by level; a thread follows a branch to its end before it begins the next.
#[test]
fn branches_are_not_all_alive_at_once() {
    let found = measured(|b, x| {
        let (perm, mut ends) = (perm(b)?, vec![x; 12]);
        for _ in 0..4 {
            let next = ends.iter().map(|&end| transposed(b, end, perm));
            ends = next.collect::<Result<_, _>>()?;
        }
        let mut sum = ends[0];
        for &end in &ends[1..] {
            sum = b.op("AddV2").input(sum).input(end).build()?.into();
        }
        Ok(sum)
    });
    assert!(found.held <= 4 * SQUARE, "{} bytes", found.held);
    found.is_as_reported(0, 100);
}

/// Parts that nobody reads go back as soon as they are made.
#[test]
fn what_nobody_reads_is_not_held() {
    let found = measured(|b, mut x| {
        let axis = b.constant("axis", Tensor::from_slice(&[], &[0i32]).expect("a scalar"))?;
        for _ in 0..6 {
            let parts = b.op("Split").input(axis).input(x).attr("num_split", 2i64).build()?;
            let first = Output::new(parts, 0);
            let both = b.op("ConcatV2").inputs([first, first]).input(axis);
            x = both.attr("N", 2i64).build()?.into();
        }
        Ok(x)
    });
    assert!(found.held * 4 <= found.report.without_reuse, "{} bytes", found.held);
    found.is_as_reported(0, 100);
}

#[test]
fn small_values_keep_their_buffers() {
    let _turn = turn();
    let runtime = runtime_of(1, &["tenon_cpu"], &[("graph.optimize", "false")]);
    let session = session(&runtime, |b| {
        let mut x =
            b.placeholder("x", DType::FLOAT, PartialShape::new(&[1000]).expect("a shape"))?;
        for _ in 0..9 {
            x = unary(b, "Tanh", x)?;
        }
        b.op("Neg").name("y").input(x).build().map(|_| ())
    });
    let found = Measured::of(&session, &[("x", floats(&[0.5; 1000]))], &["y"]);
    assert_eq!((found.report.kept, found.report.peak), (40_000, 40_000));
    assert_eq!((found.rest, found.held), (40_000, 40_000));
}

/// Images that the models below are given at once, so that most of their values are large.
const BATCH: i64 = 16;
/// What the model's largest convolution takes beside its output, for each processor: a block of patches, 7 x 7 x 3 for
/// each of 32 x 32 pixels; and a little for the others.
const SCRATCH: u64 = 7 * 7 * 3 * 32 * 32 * 4 + 4096;

/// The model with a batch of images as its input, which is of a known shape then.
fn batched(golden: &GraphGolden) -> (GraphDef, String, Tensor) {
    let mut graph = golden.graph.clone();
    let (name, image) = golden.runs[0].feeds.first().expect("it is fed an image").clone();
    let mut dims = image.shape().dims().to_vec();
    dims[0] = BATCH;
    let is_fed = |node: &&mut NodeDef| name.split(':').next() == Some(node.name.as_str());
    let node = graph.node.iter_mut().find(is_fed).expect("feeds are placeholders");
    let dim = dims.iter().map(|&size| Dim { size, ..Dim::default() }).collect();
    let shape = AttrValueKind::Shape(TensorShapeProto { dim, unknown_rank: false });
    node.attr.insert("shape".to_owned(), AttrValue { value: Some(shape) });
    let count: i64 = dims.iter().product();
    let images = floats(&vec![0.5; count as usize]).reshaped(&dims).expect("as many elements");
    (graph, name, images)
}

fn frozen(name: &str, knobs: &[(&str, &str)]) -> Measured {
    let _turn = turn();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("goldens/frozen");
    let goldens = read_graphs(&folder).expect("the models are there");
    let golden = goldens.iter().find(|golden| golden.name == name).expect("it is one of them");
    let RunExpected::Fetches(expected) = &golden.runs[0].expected else {
        panic!("{name} gives results")
    };
    let fetches: Vec<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
    let (graph, input, images) = batched(golden);
    let runtime = runtime_of(1, &["tenon_cpu"], knobs);
    let session = Session::new(&runtime, SessionOptions::default()).expect("it begins");
    session.extend(&graph).expect("the model is right");
    Measured::of(&session, &[(input.as_str(), images)], &fetches)
}

#[test]
fn a_frozen_model_holds_what_is_reported() {
    let found = frozen("resnet50", &[]);
    assert!(found.report.peak * 3 <= found.report.without_reuse, "{:?}", found.report);
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    found.is_as_reported(processors * SCRATCH, 90);
}

/// The gradient by `x` of eight products, each of which multiplies by a function of `u` of its own before.
fn trained(recompute: &str) -> (Measured, Vec<f32>) {
    let _turn = turn();
    let runtime = runtime_of(1, &["tenon_cpu"], &[("graph.recompute", recompute)]);
    let session = session(&runtime, |b| {
        let shape = || PartialShape::new(&[SIDE, SIDE]).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape())?;
        let u = b.placeholder("u", DType::FLOAT, shape())?;
        let w = vec![0.125; (SIDE * SIDE) as usize];
        let w = floats(&w).reshaped(&[SIDE, SIDE]).expect("a square");
        let w = b.constant("w", w)?;
        let mut last = x;
        for layer in 0..8 {
            let factor = Tensor::scalar(0.125 * (layer + 1) as f32).expect("a scalar");
            let factor = b.constant(&format!("factor_{layer}"), factor)?;
            let scaled = b.op("Mul").input(u).input(factor).build()?.into();
            let mask = unary(b, "Exp", scaled)?;
            let masked = b.op("Mul").input(last).input(mask).build()?;
            last = b.op("MatMul").input(masked).input(w).build()?.into();
        }
        let loss = unary(b, "Square", last)?;
        let made = gradients(b, &[loss], &[x], &Options::default()).expect("it has a gradient");
        let Some(Gradient::Dense(by_x)) = made[0] else { panic!("a tensor: {made:?}") };
        b.op("Identity").name("by_x").input(by_x).build().map(|_| ())
    });
    let square = |value: f32| {
        let all = vec![value; (SIDE * SIDE) as usize];
        floats(&all).reshaped(&[SIDE, SIDE]).expect("a square")
    };
    let feeds = [("x", square(0.25)), ("u", square(-0.5))];
    let found = Measured::of(&session, &feeds, &["by_x"]);
    let fetched = tenon_tests::session::run(&session, &feeds, &["by_x"]).expect("it runs");
    (found, tenon_tests::session::values(&fetched[0]))
}

#[test]
fn values_that_are_computed_again_take_no_memory_in_between() {
    let (kept, expected) = trained("false");
    let (again, found) = trained("true");
    assert_eq!(found, expected);
    assert!(kept.report.peak >= 8 * SQUARE, "{:?}", kept.report);
    assert!(again.report.peak <= 5 * SQUARE, "{:?}", again.report);
    assert!(again.held <= kept.held - 3 * SQUARE, "{} and {}", again.held, kept.held);
}
