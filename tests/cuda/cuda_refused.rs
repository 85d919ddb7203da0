//! Recorded steps that the driver of a GPU refuses to run: the step's commands run as ever then. On the fake CUDA stack.

use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    Runtime, Session,
    framework::{DType, PartialShape},
};
use tenon_tests::{
    cuda::{cuda_runtime, order, take_log},
    session::{floats, run, session, turn, values},
};

const CUDA: &str = "/device:CUDA:0";

fn count(log: &str, call: &str) -> usize {
    log.lines().filter(|line| line.contains(call)).count()
}

fn runtime(record_after: &str) -> Runtime {
    cuda_runtime(&[("runtime.record_after", record_after), ("graph.elementwise_fusion", "false")])
}

/// `y = x^2 * -x` on a GPU, by several streams.
fn cubes(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[500]).expect("a shape"))?;
    let p = b.op("Square").name("p").input(x).device(CUDA).build()?;
    let q = b.op("Neg").name("q").input(x).device(CUDA).build()?;
    b.op("Mul").name("y").input(p).input(q).device(CUDA).build().map(|_| ())
}

fn step(session: &Session, number: usize) {
    let x: Vec<f32> = (0..500).map(|at| ((at + number * 7) % 51) as f32 / 4.0).collect();
    let found = run(session, &[("x", floats(&x))], &["y"]).expect("the step runs");
    let expected: Vec<f32> = x.iter().map(|x| x * x * -x).collect();
    assert_eq!(values(&found[0]), expected, "step {number}");
}

#[test]
fn a_recording_that_cannot_be_launched_gives_way_to_its_commands() {
    let _turn = turn();
    let runtime = runtime("0");
    let session = session(&runtime, cubes);
    take_log();
    // There is no memory for the graph, say.
    order("FAKE_CUDA_FAIL", Some("cuGraphLaunch:1:2"));
    step(&session, 0);
    order("FAKE_CUDA_FAIL", None);
    let log = take_log();
    assert_eq!(count(&log, "capture_begin"), 1, "{log}");
    assert_eq!(count(&log, "launch kernel="), 6, "recorded, and enqueued: {log}");
    (1..4).for_each(|number| step(&session, number));
    let log = take_log();
    assert_eq!((count(&log, "capture_begin"), count(&log, "graph_launch")), (0, 0), "{log}");
}

#[test]
fn a_recording_that_ran_and_then_cannot_be_launched_gives_way_too() {
    let _turn = turn();
    let runtime = runtime("1");
    let session = session(&runtime, cubes);
    (0..4).for_each(|number| step(&session, number));
    take_log();
    order("FAKE_CUDA_FAIL", Some("cuGraphLaunch:1:2"));
    step(&session, 4);
    order("FAKE_CUDA_FAIL", None);
    let log = take_log();
    assert_eq!(count(&log, "launch kernel="), 3, "the commands themselves: {log}");
    (5..8).for_each(|number| step(&session, number));
    let log = take_log();
    assert_eq!(count(&log, "graph_launch"), 0, "{log}");
    assert_eq!(count(&log, "launch kernel="), 9, "{log}");
}
