use crate::support::*;
use tenon_framework::{DType, PartialShape};
use tenon_graph::{
    BufferRules, DeviceMemory, Graph, Output, PlacerOptions, infer_shapes, place, plan_memory,
    prune,
};

fn planned(graph: &Graph, fetches: &[Output], in_place: bool) -> DeviceMemory {
    planned_by(graph, fetches, in_place, (0, false))
}

fn planned_by(
    graph: &Graph,
    fetches: &[Output],
    in_place: bool,
    (kept_bytes, holds_all): (u64, bool),
) -> DeviceMemory {
    let mut devices = Devices::new();
    devices.entries.truncate(1);
    let feeds: Vec<Output> = graph
        .nodes()
        .filter(|(_, node)| node.op.name == "Placeholder")
        .map(|(id, _)| id.into())
        .collect();
    let sub = prune(graph, &feeds, fetches, &[]).unwrap();
    let shapes = infer_shapes(graph, &sub, &[]).unwrap();
    let placement = place(graph, &sub, &devices, &PlacerOptions::default()).unwrap();
    let pairs = |_| if in_place { vec![(0, 0)] } else { Vec::new() };
    let rules = BufferRules { in_place: &pairs, kept_bytes, holds_all: &|_| holds_all };
    let all = plan_memory(graph, &sub, &shapes, &placement, &devices, rules);
    assert_eq!(all.len(), 1);
    all[0].clone()
}

/// A chain of `depth` `Relu` nodes of 1000 bytes each; if `forked`, followed by the sum of the last
/// and the first.
fn chain(depth: usize, forked: bool) -> (Graph, Output) {
    let mut b = builder();
    let shape = PartialShape::new(&[250]).unwrap();
    let mut value = b.placeholder("x", DType::FLOAT, shape).unwrap();
    let mut first = None;
    for at in 0..depth {
        value = b.op("Relu").name(&format!("n{at}")).input(value).build().unwrap().into();
        first.get_or_insert(value);
    }
    if let Some(first) = first.filter(|_| forked) {
        value = b.op("AddV2").name("sum").input(value).input(first).build().unwrap().into();
    }
    (b.finish(), value)
}

#[test]
fn a_chain_needs_two_buffers_and_in_place_one() {
    let (graph, last) = chain(10, false);
    let memory = planned(&graph, &[last], false);
    assert_eq!((memory.without_reuse, memory.peak, memory.in_place), (10_000, 2_000, 0));
    let memory = planned(&graph, &[last], true);
    // The input is fed: the first one needs a buffer.
    assert_eq!((memory.peak, memory.in_place, memory.peak_at.as_str()), (1_000, 9, "n0"));
}

#[test]
fn what_is_read_later_is_kept() {
    let (graph, last) = chain(10, true);
    let memory = planned(&graph, &[last], true);
    // The first one and the chain's, which the sum takes over.
    assert_eq!((memory.without_reuse, memory.peak), (11_000, 2_000));
}

#[test]
fn what_is_passed_on_and_what_nobody_reads_cost_nothing_lasting() {
    let mut b = builder();
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[250]).unwrap()).unwrap();
    let c = b.constant("c", floats(&[250])).unwrap();
    let sum = b.op("AddV2").name("sum").input(x).input(c).build().unwrap();
    let passed = b.op("Identity").name("passed").input(sum).build().unwrap();
    let parts = b.op("Split3").name("parts").input(passed).build().unwrap();
    let y = b.op("Relu").name("y").input(passed).control(parts).build().unwrap();
    let graph = b.finish();
    let memory = planned(&graph, &[y.into()], false);
    assert_eq!((memory.values, memory.unknown, memory.passed_on), (4, 3, 1));
    assert_eq!((memory.constants, memory.without_reuse, memory.peak), (1_000, 3_000, 2_000));
}

#[test]
fn small_values_keep_their_buffers_and_a_device_may_hold_all() {
    let (graph, last) = chain(10, false);
    let memory = planned_by(&graph, &[last], true, (1000, false));
    assert_eq!((memory.kept, memory.peak, memory.in_place), (10_000, 10_000, 0));
    let memory = planned_by(&graph, &[last], true, (999, false));
    assert_eq!((memory.kept, memory.peak), (0, 1_000));
    let memory = planned_by(&graph, &[last], true, (0, true));
    assert_eq!((memory.kept, memory.peak, memory.in_place), (0, 10_000, 0));
}

/// One thread follows a branch to its end before it begins the next.
#[test]
fn branches_are_run_one_after_the_other() {
    let mut b = builder();
    let shape = PartialShape::new(&[250]).unwrap();
    let x = b.placeholder("x", DType::FLOAT, shape).unwrap();
    let root = b.op("Relu").name("root").input(x).build().unwrap();
    let level = |b: &mut tenon_graph::GraphBuilder<'_>, at: usize, from: Vec<Output>| {
        let one = |(branch, from): (usize, Output)| -> Output {
            b.op("Relu").name(&format!("b{branch}_{at}")).input(from).build().unwrap().into()
        };
        from.into_iter().enumerate().map(one).collect::<Vec<Output>>()
    };
    // Written level by level: in that order all branches would be alive at once.
    let mut ends = vec![Output::new(root, 0); 4];
    for at in 0..3 {
        ends = level(&mut b, at, ends);
    }
    let mut sum = ends[0];
    for (at, end) in ends.into_iter().enumerate().skip(1) {
        sum = b.op("AddV2").name(&format!("s{at}")).input(sum).input(end).build().unwrap().into();
    }
    let graph = b.finish();
    let memory = planned(&graph, &[sum], false);
    // The root, the sum so far, and two of a branch.
    assert_eq!((memory.without_reuse, memory.peak), (16_000, 4_000));
}
