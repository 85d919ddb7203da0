//! What a trace is told of a step: spans, the tensors of each call, which thread is in which kernel.

use crate::sessions::{ZOO, formula};
use std::{
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};
use tenon_runtime::{
    RunOptions,
    framework::{DType, Shape},
    host::call::TraceSink,
};
use tenon_tests::session::{floats, run, run_with, runtime, session, turn};

#[derive(Default)]
struct Spans(Mutex<Vec<(String, String, u64, u64)>>);

impl TraceSink for Spans {
    fn span(&self, node: &str, name: &str, begin_ns: u64, end_ns: u64) {
        let span = (node.to_owned(), name.to_owned(), begin_ns, end_ns);
        self.0.lock().expect("no panic under the lock").push(span);
    }
}

#[test]
fn a_trace_has_a_span_for_every_kernel() {
    let _turn = turn();
    // What is constant would be folded, and what is the same in every step has no span.
    let runtime = runtime(ZOO, &[("graph.optimize", "false")]);
    let session = session(&runtime, |b| {
        formula(b)?;
        let y = b.graph().find("y").expect("it was just built");
        let three = b.graph().find("three").expect("it was just built");
        b.op("Neg").name("planned").input(three).build()?;
        let traced = b.op("ZooTrace").name("traced").input(y).build()?;
        b.op("ZooAsync").name("elsewhere").input(traced).build().map(|_| ())
    });
    let feeds = [("x", floats(&[4.0]))];
    for _ in 0..3 {
        let spans = Arc::new(Spans::default());
        let options = RunOptions { trace: Some(spans.clone()), ..RunOptions::default() };
        run_with(&session, &feeds, &["elsewhere", "planned"], &options).expect("a step");
        let spans = spans.0.lock().expect("no panic under the lock");
        for node in ["product", "difference", "y", "traced", "elsewhere", "planned"] {
            let of_node: Vec<_> =
                spans.iter().filter(|span| span.0 == node && span.1.is_empty()).collect();
            assert_eq!(of_node.len(), 1, "node {node} in {spans:?}");
            assert!(of_node[0].2 <= of_node[0].3);
        }
        let own = spans.iter().find(|span| span.1 == "zoo.double").expect("the kernel's own span");
        assert_eq!(own.0, "traced");
    }
    let spans = Arc::new(Spans::default());
    run(&session, &feeds, &["elsewhere"]).expect("a step without a trace");
    assert!(spans.0.lock().expect("no panic").is_empty());
}

/// A call's node, with the shapes that it took and gave.
type Told = (String, Vec<Shape>, Vec<Shape>);

#[derive(Default)]
struct Tensors(Mutex<Vec<Told>>);

impl TraceSink for Tensors {
    fn span(&self, _node: &str, _name: &str, _begin_ns: u64, _end_ns: u64) {}

    fn tensors(&self, node: &str, inputs: &[(DType, Shape)], outputs: &[(DType, Shape)]) {
        let shapes = |all: &[(DType, Shape)]| all.iter().map(|(_, shape)| *shape).collect();
        let told = (node.to_owned(), shapes(inputs), shapes(outputs));
        self.0.lock().expect("no panic under the lock").push(told);
    }
}

/// Of kernels that return and that complete later; a call that fails has given nothing.
#[test]
fn a_trace_is_told_of_the_tensors_of_each_call() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[("graph.optimize", "false")]);
    let session = session(&runtime, |b| {
        formula(b)?;
        let y = b.graph().find("y").expect("it was just built");
        b.op("ZooAsync").name("late").input(y).build()?;
        b.op("ZooAsync").name("failing").input(y).attr("mode", "error").build().map(|_| ())
    });
    for count in [2usize, 5] {
        let told = |fetch: &str| {
            let told = Arc::new(Tensors::default());
            let options = RunOptions { trace: Some(told.clone()), ..RunOptions::default() };
            let feeds = [("x", floats(&vec![1.0; count]))];
            let _ = run_with(&session, &feeds, &[fetch], &options);
            told.0.lock().expect("no panic under the lock").clone()
        };
        let shape = Shape::new(&[count as i64]).expect("a shape");
        for node in ["y", "late"] {
            let all = told("late");
            let call = all.iter().find(|told| told.0 == node).expect("each call is told");
            assert!(call.1.contains(&shape) && call.2 == [shape], "{call:?}");
        }
        assert!(told("failing").iter().all(|told| told.0 != "failing"));
    }
}

/// Whether a thread enters or leaves, and which node's call.
type Crossing = (ThreadId, bool, String);

#[derive(Default)]
struct Crossings(Mutex<Vec<Crossing>>);

impl Crossings {
    fn note(&self, enters: bool, node: &str) {
        let crossing = (thread::current().id(), enters, node.to_owned());
        self.0.lock().expect("no panic under the lock").push(crossing);
    }
}

impl TraceSink for Crossings {
    fn span(&self, _node: &str, _name: &str, _begin_ns: u64, _end_ns: u64) {}

    fn enters(&self, node: &str) {
        self.note(true, node);
    }

    fn leaves(&self, node: &str) {
        self.note(false, node);
    }
}

/// Of kernels that return, that complete later, and that fail.
#[test]
fn a_trace_is_told_when_a_thread_enters_and_leaves_a_kernel() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[("graph.optimize", "false")]);
    let session = session(&runtime, |b| {
        formula(b)?;
        let y = b.graph().find("y").expect("it was just built");
        let late = b.op("ZooAsync").name("late").input(y).build()?;
        let slow = b.op("ZooSleep").name("slow").input(late).attr("delay_ms", 1i64).build()?;
        b.op("Neg").name("last").input(slow).build()?;
        b.op("ZooAsync").name("failing").input(y).attr("mode", "error").build().map(|_| ())
    });
    let feeds = [("x", floats(&[4.0]))];
    let crossings = |fetch: &str| {
        let told = Arc::new(Crossings::default());
        let options = RunOptions { trace: Some(told.clone()), ..RunOptions::default() };
        let result = run_with(&session, &feeds, &[fetch], &options);
        // A thread may still be on its way out of the kernel whose call it completed.
        let all = || told.0.lock().expect("no panic under the lock").clone();
        let end = Instant::now() + Duration::from_secs(5);
        while all().iter().filter(|it| it.1).count() * 2 != all().len() && Instant::now() < end {
            thread::yield_now();
        }
        (result.is_ok(), all())
    };
    for (fetch, nodes) in [("last", &["y", "late", "slow", "last"][..]), ("failing", &["failing"])]
    {
        let (well, told) = crossings(fetch);
        assert_eq!(well, fetch == "last");
        let mut open: std::collections::HashMap<_, Vec<String>> = std::collections::HashMap::new();
        for (thread, enters, node) in &told {
            let open = open.entry(thread).or_default();
            if *enters {
                open.push(node.clone());
            } else {
                assert_eq!(open.pop().as_ref(), Some(node), "{told:?}");
            }
        }
        assert!(open.values().all(Vec::is_empty), "{told:?}");
        for node in nodes {
            assert_eq!(
                told.iter().filter(|it| it.1 && it.2 == *node).count(),
                1,
                "{node}: {told:?}"
            );
        }
    }
}
