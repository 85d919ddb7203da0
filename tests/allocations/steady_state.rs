//! A step in steady state takes no memory from the system, but for fetched outputs that the client holds.
//!
//! `malloc` and its kin are defined here, in the executable, so that they serve every library of the process:
//! a Rust global allocator never sees what a plugin allocates. They hand on to glibc's own and count, per
//! thread, while armed.

use crate::interpose::{Counts, counted};
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    Callable, CallableOptions, Session,
    framework::{DType, PartialShape, Tensor},
};
use tenon_tests::session::{floats, runtime, session, turn, values};

/// Steps that are not counted: pools fill, costs are sampled.
const WARM_UP: usize = 200;
const STEPS: usize = 200;

fn matrix(rows: i64, columns: i64, value: impl Fn(usize) -> f32) -> Tensor {
    let all: Vec<f32> = (0..(rows * columns) as usize).map(value).collect();
    floats(&all).reshaped(&[rows, columns]).expect("as many elements")
}

fn x(b: &mut GraphBuilder<'_>, dims: &[i64]) -> Result<Output, GraphError> {
    b.placeholder("x", DType::FLOAT, PartialShape::new(dims).expect("a shape"))
}

fn chain(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let mut value = x(b, &[1])?;
    let c = b.constant("c", floats(&[1.0]))?;
    for _ in 0..999 {
        value = b.op("Add").input(value).input(c).build()?.into();
    }
    b.op("Add").name("last").input(value).input(c).build().map(|_| ())
}

fn wide(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = x(b, &[1])?;
    let c = b.constant("c", floats(&[1.0]))?;
    let adds: Result<Vec<Output>, _> =
        (0..1000).map(|_| b.op("Add").input(x).input(c).build().map(Output::from)).collect();
    b.op("AddN").name("last").inputs(adds?).build().map(|_| ())
}

fn subgraph(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = x(b, &[1, 64])?;
    let w = b.constant("w", matrix(64, 64, |at| ((at % 13) as f32 - 6.0) / 16.0))?;
    let bias = b.constant("b", floats(&[0.5; 64]))?;
    let product = b.op("MatMul").input(x).input(w).build()?;
    let sum = b.op("BiasAdd").input(product).input(bias).build()?;
    b.op("Relu").name("last").input(sum).build().map(|_| ())
}

/// Kernels that work in place over large tensors: one buffer goes through all of them and is fetched.
fn large(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = x(b, &[20, 1000])?;
    let y = b.op("Exp").input(x).build()?;
    let z = b.op("Mul").input(y).input(x).build()?;
    let soft = b.op("Softmax").input(z).build()?;
    b.op("Neg").name("last").input(soft).build().map(|_| ())
}

/// Shapes that are known only when the step runs: the kernels ask for their outputs.
fn unknown_shapes(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let y = b.op("Square").input(x).build()?;
    let z = b.op("Add").input(y).input(x).build()?;
    let shared = b.op("Identity").input(z).build()?;
    b.op("Tanh").name("last").input(shared).build().map(|_| ())
}

fn prepared(session: &Session) -> Callable {
    session.callable(CallableOptions::new(&["x"], &["last"])).expect("the names are right")
}

/// What the steps allocate when the client drops what it fetched before the next one, and what a step does
/// while the client holds the fetches of all before.
fn allocations(
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
    feed: &Tensor,
) -> (Counts, Counts) {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = session(&runtime, make);
    let callable = prepared(&session);
    let feeds = std::slice::from_ref(feed);
    let mut fetched = Vec::with_capacity(1);
    let mut held = Vec::with_capacity(2 * STEPS + WARM_UP);
    for _ in 0..WARM_UP {
        callable.run(feeds, &mut fetched).expect("a step");
        fetched.clear();
    }
    let dropped = counted(|| {
        for _ in 0..STEPS {
            callable.run(feeds, &mut fetched).expect("a step");
            fetched.clear();
        }
    });
    let holding = counted(|| {
        for _ in 0..STEPS {
            callable.run(feeds, &mut fetched).expect("a step");
            held.append(&mut fetched);
        }
    });
    assert_eq!(held.len(), STEPS);
    let first = held[0].as_bytes().expect("host memory");
    assert!(held.iter().all(|tensor| tensor.as_bytes().expect("host memory") == first));
    (dropped, holding)
}

/// No allocation in a step whose fetches are dropped; at most a block and its record in one whose fetches
/// are held.
#[track_caller]
fn check(make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>, feed: &Tensor) {
    let (dropped, holding) = allocations(make, feed);
    assert_eq!(dropped, Counts::default(), "with the fetches dropped");
    let most = 2 * STEPS as u64;
    assert!(holding.allocated <= most, "with the fetches held: {holding:?}, at most {most}");
}

#[test]
fn the_interposer_counts_what_a_library_allocates() {
    let _turn = turn();
    let counts = counted(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(100))));
    assert_eq!(counts, Counts { allocated: 1, freed: 1 });
    // A plugin's own allocator is another copy of Rust's, which ends at the same malloc: making a kernel
    // allocates its state there, and much in the host.
    let runtime = runtime(&["tenon_cpu"], &[]);
    let counts = counted(|| drop(session(&runtime, subgraph)));
    assert!(counts.allocated > 20 && counts.freed > 20, "{counts:?}");
}

#[test]
fn a_chain_of_a_thousand_adds_allocates_nothing() {
    check(chain, &floats(&[1.0]));
}

#[test]
fn a_thousand_independent_adds_allocate_nothing() {
    check(wide, &floats(&[1.0]));
}

#[test]
fn a_small_layer_allocates_nothing() {
    check(subgraph, &matrix(1, 64, |at| at as f32 / 64.0));
}

/// Here the fetched output is no node's own buffer: each step takes a record for it, and its block, both of them
/// kept from those that were dropped.
#[test]
fn kernels_in_place_allocate_nothing() {
    check(large, &matrix(20, 1000, |at| (at % 97) as f32 / 97.0));
}

#[test]
fn outputs_of_unknown_shape_come_from_the_pool() {
    check(unknown_shapes, &floats(&[1.0, 2.0, 3.0]));
}

/// Kernels that are chosen by shapes: those of a shape that was seen are there, also where two take turns.
#[test]
fn kernels_chosen_per_shape_allocate_nothing() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "zoo_rust"], &[]);
    let session = session(&runtime, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let node = b.op("ZooSupports").name("node").input(x).attr("limit", 2i64).build()?;
        let small = b.op("Cast").input(node).attr("DstT", DType::FLOAT).build()?;
        b.op("Neg").name("last").input(small).build().map(|_| ())
    });
    let callable = prepared(&session);
    let feeds = [floats(&[1.0]), floats(&[1.0, 2.0, 3.0])];
    let mut fetched = Vec::with_capacity(1);
    let mut step = |at: usize| {
        callable.run(std::slice::from_ref(&feeds[at % 2]), &mut fetched).expect("a step");
        assert_eq!(fetched[0].as_slice::<f32>().expect("floats"), [[-1.0], [0.0]][at % 2]);
        fetched.clear();
    };
    (0..WARM_UP).for_each(&mut step);
    assert_eq!(counted(|| (0..STEPS).for_each(&mut step)), Counts::default(), "in turns");
    assert_eq!(counted(|| (0..STEPS).for_each(|_| step(1))), Counts::default(), "one shape");
}

/// The steps that were counted did what they should.
#[test]
fn counted_steps_compute() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = session(&runtime, chain);
    let callable = prepared(&session);
    let mut fetched = Vec::new();
    for start in 0..70 {
        callable.run(&[floats(&[start as f32])], &mut fetched).expect("a step");
        assert_eq!(values(&fetched[0]), [start as f32 + 1000.0]);
    }
}
