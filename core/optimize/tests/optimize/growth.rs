//! The growth of the passes' work with the graph, counted in nodes and edges that are visited or
//! changed.

use crate::{
    bench::{Case, text},
    support::{floats, x},
};
use tenon_framework::{DType, PartialShape, Tensor};
use tenon_graph::{GraphBuilder, Output};
use tenon_optimize::{Limits, Optimized, Pass, built_in};

type Make = fn(&mut GraphBuilder<'static>, usize) -> Vec<Output>;

fn optimized(make: Make, size: usize, limits: Limits<'_>) -> Optimized {
    let case = Case::new(|b| make(b, size));
    let all = built_in();
    let passes: Vec<&dyn Pass> = all.iter().map(|pass| &**pass).collect();
    case.within(&passes, limits)
}

/// Four times the nodes and edges take about four times the work.
#[track_caller]
fn is_linear(make: Make) {
    let work = |size| {
        let done = optimized(make, size, Limits::default());
        assert_eq!(done.report.failures().count(), 0);
        assert_eq!(done.report.limits, [""; 0]);
        done.report.work
    };
    let (small, large) = (work(500), work(2000));
    assert!(large < 5 * small, "{small} units of work for 500, {large} for 2000");
}

fn op(b: &mut GraphBuilder<'static>, op: &str, name: &str, inputs: &[Output]) -> Output {
    b.op(op).name(name).inputs(inputs.iter().copied()).build().unwrap().into()
}

fn equal_nodes(b: &mut GraphBuilder<'static>, n: usize) -> Vec<Output> {
    let x = x(b);
    let relus: Vec<Output> = (0..n).map(|at| op(b, "Relu", &format!("n{at}"), &[x])).collect();
    vec![op(b, "AddN", "y", &relus)]
}

#[test]
fn equal_nodes_that_one_node_reads_are_merged_edge_by_edge() {
    is_linear(equal_nodes);
    let done = optimized(equal_nodes, 3, Limits::default());
    assert_eq!(text(&done), "n0 = Relu(x)\ny = AddN(n0, n0, n0)");
}

fn identities(b: &mut GraphBuilder<'static>, n: usize) -> Vec<Output> {
    let x = x(b);
    let relu = op(b, "Relu", "relu", &[x]);
    let names: Vec<String> = (0..n).map(|at| format!("n{at}")).collect();
    let waited: Vec<Output> = names.iter().map(|name| op(b, "Identity", name, &[relu])).collect();
    let mut last = b.op("Neg").name("y").input(relu);
    for output in waited {
        last = last.control(output.node);
    }
    vec![last.build().unwrap().into()]
}

#[test]
fn identities_for_which_one_node_waits_are_passed_by_edge_by_edge() {
    is_linear(identities);
    assert_eq!(text(&optimized(identities, 40, Limits::default())), "y = _FusedElementwise(x)");
}

#[test]
fn identities_that_one_node_reads_are_passed_by_edge_by_edge() {
    is_linear(|b, n| {
        let x = x(b);
        let relu = op(b, "Relu", "relu", &[x]);
        let read: Vec<Output> =
            (0..n).map(|at| op(b, "Identity", &format!("n{at}"), &[relu])).collect();
        vec![op(b, "AddN", "y", &read)]
    });
}

#[test]
fn all_values_of_one_node_are_passed_by_value_by_value() {
    is_linear(|b, n| {
        let x = x(b);
        let relus: Vec<Output> = (0..n).map(|at| op(b, "Relu", &format!("n{at}"), &[x])).collect();
        let all = op(b, "IdentityN", "all", &relus).node;
        let passed: Vec<Output> = (0..n).map(|at| Output::new(all, at as u32)).collect();
        vec![op(b, "AddN", "y", &passed)]
    });
}

#[test]
fn constants_that_one_node_reads_are_folded_one_by_one() {
    is_linear(|b, n| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[3]).unwrap()).unwrap();
        let mut read = vec![x];
        for at in 0..n {
            let value = Tensor::from_slice(&[3], &[at as f32; 3]).unwrap();
            let c = b.constant(&format!("c{at}"), value).unwrap();
            read.push(op(b, "Neg", &format!("n{at}"), &[c]));
        }
        vec![op(b, "AddN", "y", &read)]
    });
}

/// Each `Switch` reads the dead output of the one before.
fn switches(b: &mut GraphBuilder<'static>, n: usize) -> Vec<Output> {
    let no = b.constant("no", Tensor::scalar(false).unwrap()).unwrap();
    let x = x(b);
    let mut value = x;
    for at in 0..n {
        let switch = op(b, "Switch", &format!("s{at}"), &[value, no]).node;
        value = op(b, "Relu", &format!("n{at}"), &[Output::new(switch, 1)]);
    }
    vec![op(b, "Merge", "y", &[x, value])]
}

#[test]
fn switches_on_a_dead_branch_are_not_looked_through_again() {
    is_linear(switches);
}

#[test]
fn a_merge_of_many_dead_inputs_is_looked_through_once() {
    is_linear(|b, n| {
        let no = b.constant("no", Tensor::scalar(false).unwrap()).unwrap();
        let x = x(b);
        let switch = op(b, "Switch", "s", &[x, no]).node;
        let mut read: Vec<Output> =
            (0..n).map(|at| op(b, "Relu", &format!("n{at}"), &[Output::new(switch, 1)])).collect();
        read.push(Output::new(switch, 0));
        vec![op(b, "Merge", "y", &read)]
    });
}

#[test]
fn what_waits_for_all_that_it_reads_is_looked_at_once() {
    is_linear(|b, n| {
        let x = x(b);
        let relus: Vec<Output> = (0..n)
            .map(|at| {
                let value = Tensor::from_slice(&[3], &[at as f32; 3]).unwrap();
                let c = b.constant(&format!("c{at}"), value).unwrap();
                op(b, "AddV2", &format!("n{at}"), &[x, c])
            })
            .collect();
        let mut last = b.op("AddN").name("y").inputs(relus.iter().copied());
        for output in relus {
            last = last.control(output.node);
        }
        vec![last.build().unwrap().into()]
    });
}

/// A constant with many control inputs and many readers: each folded reader takes over all the
/// control inputs.
fn constants_that_wait(b: &mut GraphBuilder<'static>, n: usize) -> Vec<Output> {
    let variable = |b: &mut GraphBuilder<'static>, at: usize| {
        b.op("TestVariable").name(&format!("v{at}")).attr("dtype", DType::FLOAT).build().unwrap()
    };
    let value = floats(&[3]);
    let waited: Vec<_> = (0..n).map(|at| variable(b, at)).collect();
    let mut c = b.op("Const").name("c").attr("dtype", DType::FLOAT).attr("value", value);
    for id in waited {
        c = c.control(id);
    }
    let c = c.build().unwrap().into();
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[3]).unwrap()).unwrap();
    let mut read = vec![x];
    read.extend((0..n).map(|at| op(b, "Neg", &format!("n{at}"), &[c])));
    vec![op(b, "AddN", "y", &read)]
}

#[test]
fn a_graph_that_grows_by_passes_is_left_as_it_is_from_some_point_on() {
    let done = optimized(constants_that_wait, 600, Limits::default());
    let [limit] = &done.report.limits[..] else { panic!("{:?}", done.report.limits) };
    assert!(limit.contains("more than 8 times as many as before"), "{limit}");
    let edges: usize =
        done.graph.nodes().map(|(_, node)| node.inputs.len() + node.control_inputs.len()).sum();
    assert!(edges < 50_000, "{edges} edges");
}

#[test]
fn the_limit_of_work_leaves_the_rest_of_the_graph_as_it_is() {
    let limits = Limits { work: 2, ..Limits::default() };
    let done = optimized(equal_nodes, 2000, limits);
    let [limit] = &done.report.limits[..] else { panic!("{:?}", done.report.limits) };
    assert!(
        limit.contains("(graph.work_limit=2): the rest of the graph stays as it is"),
        "{limit}"
    );
    assert_eq!(done.report.failures().count(), 0);
    assert!(done.report.after > 2, "it was not done");
    let done = optimized(equal_nodes, 2000, Limits::default());
    assert_eq!((done.report.after, done.report.limits.len()), (2, 0));
}

#[test]
fn a_graph_that_nobody_waits_for_is_given_up() {
    let case = Case::new(|b| equal_nodes(b, 20));
    let all = built_in();
    let passes: Vec<&dyn Pass> = all.iter().map(|pass| &**pass).collect();
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 5
    };
    let limits = Limits { stop: &stop, ..Limits::default() };
    let error = case.try_within(&passes, limits).err().expect("it was given up");
    assert!(error.to_string().contains("the step was cancelled"), "{error}");
    assert!(asked.get() < 30, "asked {} times after it was given up", asked.get());
}
