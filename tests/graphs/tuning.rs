//! Policy `measured`: the fastest kernel that promises enough, by times that outlive the process.

use std::{collections::BTreeMap, fs, path::Path, thread, time::Duration};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape},
    host::Settings,
};
use tenon_tests::session::{floats, library, session_with, values};

/// Long enough for any machine: what is waited for comes much earlier.
const PATIENCE: (&str, &str) = ("runtime.tune_budget_ms", "120000");
const NO_TIME: (&str, &str) = ("runtime.tune_budget_ms", "0");

fn runtime_of(file: &Path, cache: &Path) -> Runtime {
    let cache = ("runtime.tune_cache".to_owned(), cache.display().to_string());
    let options = RuntimeOptions {
        threads: Some(2),
        settings: Settings { set: vec![cache], ..Settings::default() },
        ..RuntimeOptions::with_plugins([library("tenon_cpu"), file.to_owned()])
    };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    runtime
}

fn runtime(cache: &Path) -> Runtime {
    runtime_of(&library("zoo_tuned"), cache)
}

/// A session under policy `measured` with 'y' = 2 'x', x of this shape.
fn session(runtime: &Runtime, knobs: &[(&str, &str)], gate: &str, dims: &[i64]) -> Session {
    let policy = ("runtime.policy", "measured");
    let knobs = knobs.iter().copied().chain([policy]);
    let knobs: BTreeMap<String, String> =
        knobs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let options = SessionOptions { knobs, ..SessionOptions::as_written() };
    let build = |b: &mut GraphBuilder<'_>| -> Result<(), GraphError> {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(dims).unwrap())?;
        b.op("TunedTwice").name("y").input(x).attr("gate", gate).build()?;
        Ok(())
    };
    session_with(runtime, options, build)
}

/// Runs a step; label of the kernel that ran.
fn label(session: &Session) -> String {
    let feeds = [("x", floats(&[1.0, -2.5]))];
    let (fetched, report) = session.run(&feeds, &["y"], &[], &RunOptions::default()).unwrap();
    assert_eq!(values(&fetched[0]), [2.0, -5.0]);
    let node = report.nodes.iter().find(|node| node.name == "y").expect("the node ran");
    node.label.clone()
}

#[test]
fn the_fastest_kernel_runs_that_promises_enough() {
    let cache = tempfile::tempdir().unwrap();
    let runtime = runtime(cache.path());
    let measured = session(&runtime, &[PATIENCE], "", &[2]);
    assert_eq!(label(&measured), "fast");
    let asked = [
        ("any", "loose"),
        ("relative:0,1e-5", "near"),
        ("relative:0,1e-7", "fast"),
        ("ulps:1", "fast"),
        ("exact", "fast"),
        ("priority", "fast"),
    ];
    for (contract, chosen) in asked {
        let knobs = [PATIENCE, ("runtime.tune_contract", contract)];
        assert_eq!(label(&session(&runtime, &knobs, "", &[2])), chosen, "{contract}");
    }
    let by_priority = session_with(&runtime, SessionOptions::as_written(), |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[2]).unwrap())?;
        b.op("TunedTwice").name("y").input(x).build()?;
        Ok(())
    });
    assert_eq!(label(&by_priority), "", "policy priority is the default");
}

#[test]
fn a_policy_or_a_contract_that_there_is_not_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let runtime = runtime(cache.path());
    let wrong = [
        ("runtime.policy", "mesured", "expected 'priority' or 'measured', found 'mesured'"),
        ("runtime.tune_contract", "ulps", "'ulps' is not a numerics contract"),
        ("runtime.tune_contract", "relative:1e-3", "relative:ABSOLUTE,RELATIVE"),
    ];
    for (knob, value, message) in wrong {
        let knobs = BTreeMap::from([(knob.to_owned(), value.to_owned())]);
        let options = SessionOptions { knobs, ..SessionOptions::default() };
        let error = Session::new(&runtime, options).err().expect("it is refused");
        let told = error.to_string();
        assert!(told.contains(&format!("knob {knob}: ")) && told.contains(message), "{told}");
    }
}

#[test]
fn explain_tells_the_times_and_why_others_do_not_run() {
    let cache = tempfile::tempdir().unwrap();
    let runtime = runtime(cache.path());
    let session = session(&runtime, &[PATIENCE], "", &[2]);
    assert_eq!(label(&session), "fast");
    let explained = session.explain(Some("y")).unwrap();
    let kernels = explained[0].kernels.as_ref().unwrap();
    let of = |label: &str| {
        kernels.candidates.iter().find(|candidate| candidate.kernel.label == label).unwrap()
    };
    let why = |label: &str| of(label).removed.as_ref().unwrap().to_string();
    assert!(of("fast").removed.is_none() && of("fast").measured_ns.is_some());
    assert!(of("").measured_ns > of("fast").measured_ns);
    assert!(why("").starts_with("measured ") && why("").contains("kernel 'fast'"), "{}", why(""));
    let failed = "it failed while it was measured: ";
    assert!(
        why("fails").contains(failed) && why("fails").contains("never works"),
        "{}",
        why("fails")
    );
    assert!(why("loose").contains("its numerics contract is weaker"), "{}", why("loose"));
}

#[test]
fn times_are_kept_for_the_next_process_and_not_for_another_build() {
    let cache = tempfile::tempdir().unwrap();
    {
        let first = runtime(cache.path());
        assert_eq!(
            label(&session(&first, &[NO_TIME], "", &[2])),
            "",
            "there is no time to measure"
        );
        assert_eq!(label(&session(&first, &[PATIENCE], "", &[2])), "fast");
    }
    let second = runtime(cache.path());
    assert_eq!(label(&session(&second, &[NO_TIME], "", &[2])), "fast", "known from disk");
    let other_size = session(&second, &[NO_TIME], "", &[3]);
    let fetched = other_size.run(&[("x", floats(&[1.0; 3]))], &["y"], &[], &RunOptions::default());
    assert_eq!(fetched.unwrap().1.nodes.iter().find(|node| node.name == "y").unwrap().label, "");
    drop((other_size, second));
    let mut bytes = fs::read(library("zoo_tuned")).unwrap();
    bytes.push(0);
    let build = cache.path().join("libzoo_tuned_other.so");
    fs::write(&build, bytes).unwrap();
    let other = runtime_of(&build, cache.path());
    assert_eq!(label(&session(&other, &[NO_TIME], "", &[2])), "", "another build is not timed yet");
}

#[test]
fn a_spoilt_cache_is_as_good_as_none() {
    let cache = tempfile::tempdir().unwrap();
    {
        let first = runtime(cache.path());
        assert_eq!(label(&session(&first, &[PATIENCE], "", &[2])), "fast");
    }
    for entry in fs::read_dir(cache.path()).unwrap().flatten() {
        let bytes = fs::read(entry.path()).unwrap();
        let spoilt: Vec<u8> = bytes.iter().map(|byte| byte.wrapping_add(1)).collect();
        fs::write(entry.path(), spoilt).unwrap();
    }
    let second = runtime(cache.path());
    assert_eq!(label(&session(&second, &[NO_TIME], "", &[2])), "");
    assert_eq!(label(&session(&second, &[PATIENCE], "", &[2])), "fast");
    let third = runtime(cache.path());
    assert_eq!(label(&session(&third, &[NO_TIME], "", &[2])), "fast");
}

#[test]
fn a_kernel_that_does_not_come_back_holds_nobody_up_beyond_the_budget() {
    let cache = tempfile::tempdir().unwrap();
    let gate = cache.path().join("gate");
    fs::write(&gate, "").unwrap();
    let name = gate.display().to_string();
    let runtime = runtime(cache.path());
    let held_up = session(&runtime, &[("runtime.tune_budget_ms", "20")], &name, &[2]);
    // The gate is closed: a kernel that is measured waits, and the step does not.
    assert_eq!(label(&held_up), "");
    let again = session(&runtime, &[("runtime.tune_budget_ms", "20")], &name, &[2]);
    assert_eq!(label(&again), "", "nothing is measured twice at once");
    fs::remove_file(&gate).unwrap();
    let known = || !label(&session(&runtime, &[NO_TIME], &name, &[2])).is_empty();
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while !known() {
        assert!(std::time::Instant::now() < end, "the measurement is finished all the same");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn shapes_that_only_the_step_knows_are_measured_at_first_sight() {
    let cache = tempfile::tempdir().unwrap();
    let runtime = runtime(cache.path());
    let session = session(&runtime, &[PATIENCE], "", &[-1]);
    for elements in [2usize, 3, 4, 100, 2] {
        let x: Vec<f32> = (0..elements).map(|at| at as f32).collect();
        let feeds = [("x", floats(&x))];
        let (fetched, _) = session.run(&feeds, &["y"], &[], &RunOptions::default()).unwrap();
        let expected: Vec<f32> = x.iter().map(|value| 2.0 * value).collect();
        assert_eq!(values(&fetched[0]), expected);
    }
    let mut calls: Vec<(String, String)> = runtime
        .measured()
        .into_iter()
        .map(|decision| {
            let shape = decision.call.split(' ').nth(1).unwrap().to_owned();
            (shape, decision.kernels[decision.chosen].0.clone())
        })
        .collect();
    calls.sort();
    let shapes: Vec<&str> = calls.iter().map(|(shape, _)| shape.as_str()).collect();
    assert_eq!(shapes, ["float[128]", "float[2]", "float[4]"], "sizes are rounded up");
    assert!(calls.iter().all(|(_, kernel)| kernel.contains("'fast'")), "{calls:?}");
}
