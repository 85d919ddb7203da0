//! The part of a graph that a step needs.

use crate::support::*;
use tenon_graph::{Graph, NodeId, Output, prune};

fn diamond() -> (Graph, [Output; 4]) {
    let mut b = builder();
    let x = x(&mut b);
    let left = b.op("Relu").name("left").input(x).build().unwrap();
    let right = b.op("Neg").name("right").input(x).build().unwrap();
    let y = b.op("Add").name("y").input(left).input(right).build().unwrap();
    b.op("NoOp").name("effect").control(left).build().unwrap();
    (b.finish(), [x, left.into(), right.into(), y.into()])
}

fn names(graph: &Graph, order: &[NodeId]) -> Vec<String> {
    order.iter().map(|&id| graph.node(id).name.clone()).collect()
}

#[test]
fn only_what_leads_to_fetches_and_targets_runs() {
    let (graph, [_, left, ..]) = diamond();
    let sub = prune(&graph, &[], &[left, left], &[]).unwrap();
    assert_eq!(names(&graph, &sub.order), ["x", "left"]);
    let target = graph.target("effect").unwrap();
    let sub = prune(&graph, &[], &[], &[target]).unwrap();
    assert_eq!(names(&graph, &sub.order), ["x", "left", "effect"]);
    assert!(sub.contains(target) && !sub.contains(graph.target("y").unwrap()));
}

#[test]
fn a_feed_cuts_what_makes_it() {
    let (graph, [x, left, right, y]) = diamond();
    let sub = prune(&graph, &[left, right], &[y], &[]).unwrap();
    assert_eq!(names(&graph, &sub.order), ["y"]);
    assert_eq!(sub.feed_of(right), Some(1));
    let sub = prune(&graph, &[left], &[y, x], &[]).unwrap();
    assert_eq!(names(&graph, &sub.order), ["x", "right", "y"]);
    let sub = prune(&graph, &[y], &[y], &[]).unwrap();
    assert!(sub.order.is_empty(), "a fed tensor is fetched as it was fed");
    let error = prune(&graph, &[x, x], &[y], &[]).unwrap_err();
    assert_eq!(error.to_string(), "'x:0' is fed twice: feed it once");
}

#[test]
fn a_control_edge_from_a_fed_placeholder_waits_for_nothing() {
    let mut b = builder();
    let x = x(&mut b);
    let relu = b.op("Relu").name("r").input(x).build().unwrap();
    let end = b.op("NoOp").name("end").control(x.node).control(relu).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x, relu.into()], &[], &[end]).unwrap();
    // The other fed node is not a placeholder: it runs, and is waited for.
    assert_eq!(names(&graph, &sub.order), ["r", "end"]);
    assert_eq!(sub.control_inputs(&graph, end).collect::<Vec<_>>(), [relu]);
}

#[test]
fn loops_come_out_in_order() {
    let mut b = builder();
    let exit = count_to_ten(&mut b, "loop");
    let graph = b.finish();
    let sub = sub(&graph, &[exit]);
    assert_eq!(sub.order.len(), graph.len());
    let place = |name: &str| sub.position(graph.target(name).unwrap()).unwrap();
    assert!(
        place("loop/merge") < place("loop/switch") && place("loop/switch") < place("loop/next")
    );
}
