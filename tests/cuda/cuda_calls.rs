//! How often a step calls the driver of a GPU: for each node as little as can be, and nothing for a node of a recorded
//! step. On the fake CUDA stack, which writes every call down.

use std::collections::BTreeMap;
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    Session,
    framework::{DType, PartialShape},
};
use tenon_tests::{
    cuda::{cuda_runtime, order, take_log},
    session::{floats, run, session_as_written, turn, values},
};

const CUDA: &str = "/device:CUDA:0";

/// `x + x + x ...`, with so many additions of one element.
fn chain(b: &mut GraphBuilder<'_>, nodes: usize) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[1]).expect("a shape"))?;
    let mut y: Output = x;
    for node in 0..nodes {
        let name = if node + 1 == nodes { "y".to_owned() } else { format!("n{node}") };
        y = b.op("AddV2").name(&name).input(y).input(x).device(CUDA).build()?.into();
    }
    Ok(())
}

/// Calls of one step by name.
fn calls(session: &Session, nodes: usize) -> BTreeMap<String, i64> {
    take_log();
    let found = run(session, &[("x", floats(&[0.5]))], &["y"]).expect("the step runs");
    assert_eq!(values(&found[0]), [0.5 * (nodes + 1) as f32]);
    let mut calls = BTreeMap::new();
    for line in take_log().lines() {
        if let Some(name) = line.strip_prefix("call ") {
            *calls.entry(name.to_owned()).or_default() += 1;
        }
    }
    // How often the device's own thread looks is a matter of time; it makes the context its own before.
    let looks = calls.remove("cuStreamQuery").unwrap_or(0);
    *calls.entry("cuCtxSetCurrent".to_owned()).or_default() -= looks;
    calls
}

/// Calls that each of 100 nodes more adds to a step, by name, in hundredths.
fn calls_of_a_node(record_after: &str, warm_up: usize) -> BTreeMap<String, i64> {
    let knobs = [("runtime.record_after", record_after), ("graph.elementwise_fusion", "false")];
    let runtime = cuda_runtime(&knobs);
    let of = |nodes: usize| {
        let session = session_as_written(&runtime, |b| chain(b, nodes));
        (0..warm_up).for_each(|_| drop(calls(&session, nodes)));
        order("FAKE_CUDA_CALLS", Some("1"));
        // A stage may not be back when the next step wants one, and another is made then: a few times at most.
        let mut steps = std::iter::repeat_with(|| calls(&session, nodes)).take(50);
        let counted = steps.find(|calls| !calls.contains_key("cuMemHostAlloc"));
        order("FAKE_CUDA_CALLS", None);
        counted.expect("a step that has all the pinned memory that it wants")
    };
    let (few, many) = (of(50), of(150));
    println!("a step of 50 nodes: {few:?}");
    let mut more = many;
    for (name, count) in few {
        *more.entry(name).or_default() -= count;
    }
    more.retain(|_, count| *count != 0);
    more
}

#[test]
fn a_node_is_one_launch_and_nothing_else_that_costs() {
    let _turn = turn();
    let mut more = calls_of_a_node("-1", 3);
    assert_eq!(more.remove("cuLaunchKernelEx"), Some(100), "{more:?}");
    // The context is made the thread's own: some tens of nanoseconds.
    let entered = more.remove("cuCtxSetCurrent").unwrap_or(0);
    // A look that had only begun when the log was taken counts half.
    assert!((99..=101).contains(&entered), "{entered} {more:?}");
    assert!(more.is_empty(), "{more:?}");
}

#[test]
fn a_node_of_a_recorded_step_is_no_call_at_all() {
    let _turn = turn();
    let mut more = calls_of_a_node("1", 4);
    assert!(more.remove("cuCtxSetCurrent").unwrap_or(0).abs() <= 1, "{more:?}");
    assert!(more.is_empty(), "{more:?}");
}
