//! Devices with a thread for each stream: streams really run at once. The zoo has them, in both languages.

use super::support::*;
use std::sync::Arc;
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions,
    framework::{Code, Tensor},
};
use tenon_tests::{
    session::{Account, good_nodes, good_step, library, run, run_with, session, turn, values},
    zoo::Language,
};

fn zoo(language: Language) -> Runtime {
    let libraries = [library("tenon_cpu"), language.device_zoo()];
    let options = RuntimeOptions { threads: Some(2), ..RuntimeOptions::with_plugins(libraries) };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("both are plugins");
    runtime
}

/// Three branches behind one node, each of which turns its vector round by way of scratch memory. The node
/// completes later, on the device's thread, which is where its event is recorded.
fn turned(language: Language, b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    good_nodes(b)?;
    let device = &format!("/device:{}:0", language.device_type());
    let op = |name: &str| language.op(&format!("Device{name}"));
    let x = input(b, "x", vector(64))?;
    let three = b.constant("three", Tensor::scalar(3i32).expect("a scalar"))?;
    let p = b.op(&op("Scale")).name("p").input(x).input(three).device(device).build()?;
    let p = b.op(&op("Async")).name("later").input(p).device(device).build()?;
    let mut ends: Vec<Output> = Vec::new();
    for side in 0..3 {
        let name = format!("s{side}");
        let turned = b.op(&op("Scratch")).name(&name).input(p).device(device).build()?;
        let node = b.op(&op("Scale")).input(turned).input(three).device(device).build()?;
        ends.push(node.into());
    }
    let lose = b.op(&op("Lose")).name("lose").input(ends[2]).device(device);
    match language {
        Language::Rust => lose.attr("reason", "zoo device lost").build()?,
        Language::C => lose.build()?,
    };
    b.op("AddN").name("y").inputs(ends).build().map(|_| ())
}

#[test]
fn streams_with_threads_of_their_own_agree() {
    let _turn = turn();
    for language in Language::ALL {
        let runtime = zoo(language);
        let session = session(&runtime, |b| turned(language, b));
        let trace = Arc::new(Streams::default());
        for step in 0..200 {
            let feeds = [("x", feed(64, step))];
            let options = if step == 0 { trace.options() } else { RunOptions::default() };
            let (fetched, _) = run_with(&session, &feeds, &["y"], &options).expect("a step");
            let found = values(&fetched[0]);
            let x = values(&feeds[0].1);
            let expected: Vec<f32> = x.into_iter().rev().map(|x| x * 18.0 * 3.0).collect();
            assert_eq!(found, expected, "{language:?}, step {step}");
        }
        assert_ne!(trace.of("s0"), trace.of("s1"), "{language:?}: two streams are worth it");
    }
}

/// A kernel of one branch finds that the device is gone, while the others are enqueued or run.
#[test]
fn a_kernel_that_loses_its_device_fails_the_step() {
    let _turn = turn();
    for language in Language::ALL {
        // A library stays mapped once it was opened.
        drop(zoo(language));
        let before = Account::now();
        for _ in 0..20 {
            let runtime = zoo(language);
            let session = session(&runtime, |b| turned(language, b));
            let feeds = [("x", feed(64, 1))];
            for _ in 0..2 {
                let error = run(&session, &feeds, &["y", "lose"]).expect_err("it is lost");
                assert_eq!(error.code(), Code::UNAVAILABLE, "{language:?}: {error}");
                assert!(error.to_string().contains("zoo device lost"), "{language:?}: {error}");
                good_step(&session);
            }
        }
        before.check(&format!("{language:?}, after the devices are closed"));
    }
}
