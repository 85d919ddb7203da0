//! What is ordered stays ordered, what is independent runs side by side, and buffers stay until their readers
//! are done.

use super::support::*;
use std::{collections::BTreeSet, sync::Arc, thread, time::Duration};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::framework::Tensor;
use tenon_tests::session::{
    good_nodes, run, run_with, runtime, session_as_written as session, turn, values,
};

#[test]
fn a_diamond_is_right_in_whatever_order_streams_run() {
    let _turn = turn();
    for seed in ["0", "1", "2", "3", "4", "5"] {
        let runtime = runtime(BOTH, &[("accel.reorder_seed", seed)]);
        for length in [3, LARGE] {
            let session = session(&runtime, diamond(ACCEL, vector(length)));
            for step in 0..20 {
                let x = feed(length, step);
                let fetched = run(&session, &[("x", x.clone())], &["z"]).expect("a step");
                assert_eq!(values(&fetched[0]), expected(&x), "seed {seed}, step {step}");
            }
        }
    }
}

/// One side of the diamond stands still while the other is done: the join waits.
fn join_waits(held: &str, side: &str, length: i64) {
    let runtime = runtime(BOTH, &[]);
    let session = session(&runtime, diamond(ACCEL, vector(length)));
    for step in 0..4 {
        let (x, trace) = (feed(length, step), Arc::new(Streams::default()));
        let fetched = thread::scope(|scope| {
            let back = Held::back(&runtime, held);
            let feeds = [("x", x.clone())];
            let (session, options) = (&session, trace.options());
            let step = scope.spawn(move || run_with(session, &feeds, &["z"], &options));
            trace.wait_for(side);
            // Long enough for a join that does not wait.
            thread::sleep(Duration::from_millis(10));
            assert_eq!((trace.of("y"), trace.of("z")), (None, None), "{held} is held");
            drop(back);
            step.join().expect("no panic").expect("a step").0
        });
        assert_eq!(values(&fetched[0]), expected(&x), "{held} was held in step {step}");
        assert_ne!(trace.of("a"), trace.of("c"), "the sides have streams of their own");
    }
}

#[test]
fn a_join_waits_for_the_stream_that_stands_still() {
    let _turn = turn();
    for length in [3, LARGE] {
        join_waits("square", "c", length);
        join_waits("relu", "a", length);
    }
}

/// Two chains from two inputs.
fn chains(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    good_nodes(b)?;
    for (name, op) in [("a", "Square"), ("b", "Neg")] {
        let mut value = input(b, &format!("{name}_x"), vector(4))?;
        for at in 0..3 {
            let node = b.op(op).name(&format!("{name}{at}")).input(value).device(ACCEL);
            value = node.build()?.into();
        }
    }
    Ok(())
}

fn chain_feeds() -> [(&'static str, Tensor); 2] {
    [("a_x", feed(4, 1)), ("b_x", feed(4, 2))]
}

#[test]
fn independent_chains_run_on_streams_of_their_own() {
    let _turn = turn();
    for (knob, count) in [("1", 1), ("4", 2)] {
        let runtime = runtime(BOTH, &[("runtime.streams_per_device", knob)]);
        let (session, trace) = (session(&runtime, chains), Arc::new(Streams::default()));
        run_with(&session, &chain_feeds(), &["a2", "b2"], &trace.options()).expect("a step");
        let of = |name: &str| {
            let streams = (0..3).map(|at| trace.of(&format!("{name}{at}")).expect("it ran"));
            let streams: BTreeSet<String> = streams.collect();
            assert_eq!(streams.len(), 1, "a chain stays on one stream: {streams:?}");
            streams
        };
        let all: BTreeSet<String> = of("a").union(&of("b")).cloned().collect();
        assert_eq!(all.len(), count, "{knob} streams asked for: {all:?}");
        assert!(all.iter().all(|stream| stream.starts_with("ACCEL:0 stream ")), "{all:?}");
    }
    // A device that says that one is enough gets one.
    let runtime = runtime(BOTH, &[("accel.streams", "1")]);
    let (session, trace) = (session(&runtime, chains), Arc::new(Streams::default()));
    run_with(&session, &chain_feeds(), &["a2", "b2"], &trace.options()).expect("a step");
    assert_eq!(trace.of("a0"), trace.of("b0"));
}

/// A chain that stands still keeps no other back, and the step does not end without it, though nobody fetches
/// what it computes.
#[test]
fn a_stream_that_stands_still_holds_no_other_and_the_step_waits_for_it() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let session = session(&runtime, chains);
    for (held, still, other) in [("square", "a", "b"), ("neg", "b", "a")] {
        let trace = Arc::new(Streams::default());
        let last = |chain: &str| format!("{chain}2");
        thread::scope(|scope| {
            let back = Held::back(&runtime, held);
            let (session, options) = (&session, trace.options());
            let step = scope.spawn(move || {
                session.run(&chain_feeds(), &[&last(other)], &[&last(still)], &options)
            });
            trace.wait_for(&last(other));
            thread::sleep(Duration::from_millis(20));
            assert_eq!(trace.of(&format!("{still}0")), None);
            assert!(!step.is_finished(), "the step has a stream that still runs");
            drop(back);
            step.join().expect("no panic").expect("a step");
        });
        assert!(trace.of(&last(still)).is_some());
    }
}

/// `p` is read by a kernel that stands still, while a row of others on another stream takes buffers of the same
/// size: none may get that of `p`.
#[test]
fn a_buffer_is_not_used_again_before_its_reader_on_another_stream_is_done() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let session = session(&runtime, |b| {
        let x = input(b, "x", vector(LARGE))?;
        let p = b.op("Neg").name("p").input(x).device(ACCEL).build()?;
        b.op("Square").name("r").input(p).device(ACCEL).build()?;
        let mut value = x;
        for at in 0..12 {
            let node = b.op("Relu").name(&format!("q{at}")).input(value).device(ACCEL);
            value = node.build()?.into();
        }
        Ok(())
    });
    for step in 0..4 {
        let (x, trace) = (feed(LARGE, step), Arc::new(Streams::default()));
        let fetched = thread::scope(|scope| {
            let back = Held::back(&runtime, "square");
            let feeds = [("x", x.clone())];
            let (session, options) = (&session, trace.options());
            let step = scope.spawn(move || run_with(session, &feeds, &["r", "q11"], &options));
            trace.wait_for("q11");
            assert_eq!(trace.of("r"), None);
            drop(back);
            step.join().expect("no panic").expect("a step").0
        });
        let squares: Vec<f32> = values(&x).iter().map(|x| x * x).collect();
        assert_eq!(values(&fetched[0]), squares, "step {step}");
        let positive: Vec<f32> = values(&x).iter().map(|x| x.max(0.0)).collect();
        assert_eq!(values(&fetched[1]), positive, "step {step}");
    }
}
