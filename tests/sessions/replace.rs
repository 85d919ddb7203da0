//! A plugin is replaced by a changed build while a session runs.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    CallableOptions, RunOptions, Session,
    framework::{Code, PartialShape},
};
use tenon_tests::session::{floats, library, run, runtime, session, turn, values};

/// A variable of the zoo's that a kernel of the second plugin updates by 3.
fn updated(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[2]).expect("a shape");
    let handle = b.op("ZooVariable").name("v").attr("shape", shape).build()?;
    let start = b.constant("start", floats(&[1.0, 2.0]))?;
    b.op("ZooVariableAssign").name("assign").input(handle).input(start).build()?;
    let three = b.constant("three", floats(&[3.0]))?;
    b.op("ZooSecondScale").name("update").input(handle).input(three).build()?;
    b.op("ZooVariableSum").name("sum").input(handle).build()?;
    Ok(())
}

fn target(session: &Session, name: &str) {
    session.run(&[], &[], &[name], &RunOptions::default()).expect("a step");
}

fn sum(session: &Session) -> f32 {
    values(&run(session, &[], &["sum"]).expect("a step")[0])[0]
}

#[test]
fn refresh_takes_the_new_build_and_keeps_the_variables() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "zoo_rust", "zoo_second"], &[]);
    let session = session(&runtime, updated);
    let update = session.callable(CallableOptions {
        targets: vec!["update".to_owned()],
        ..CallableOptions::default()
    });
    let update = update.expect("the name is right");
    target(&session, "assign");
    assert_eq!(sum(&session), 3.0);
    target(&session, "update");
    assert_eq!(sum(&session), 9.0, "the first build multiplies");
    let (info, _) =
        runtime.replace(library("zoo_second_next")).expect("it is a build of the same plugin");
    assert_eq!((info.name.as_str(), info.version.as_str()), ("zoo-second", "0.2.0"));
    target(&session, "update");
    update.run(&[], &mut Vec::new()).expect("a step");
    assert_eq!(sum(&session), 81.0, "the session keeps its snapshot");
    session.refresh().expect("the op is as before");
    assert_eq!(sum(&session), 81.0, "the variable is still there");
    target(&session, "update");
    assert_eq!(sum(&session), 87.0, "the new build adds");
    update.run(&[], &mut Vec::new()).expect("callables follow");
    assert_eq!(sum(&session), 93.0);
}

/// A node that counts its calls in a resource of the second plugin's own type.
fn counted(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    b.op("ZooSecondCount").name("count").build()?;
    Ok(())
}

#[test]
fn a_resource_of_the_earlier_build_is_not_taken_for_one_of_the_new() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "zoo_second"], &[]);
    let session = session(&runtime, counted);
    let count = |session: &Session| {
        run(session, &[], &["count"]).map(|y| y[0].as_slice::<i64>().expect("a count")[0])
    };
    assert_eq!(count(&session).expect("a step"), 1);
    assert_eq!(count(&session).expect("a step"), 2);
    runtime.replace(library("zoo_second_next")).expect("a build of the same plugin");
    session.refresh().expect("the op is as before");
    let error = count(&session).expect_err("the types have one name and different layouts");
    assert_eq!(error.code(), Code::FAILED_PRECONDITION, "{error}");
    let message = error.to_string();
    let said = "resource 'count' was made with another type of the name second.Count";
    assert!(message.contains(said) && message.contains("use a new session"), "{message}");
    let fresh = tenon_tests::session::session(&runtime, counted);
    assert_eq!(count(&fresh).expect("a step"), 1, "a new session makes its own");
}

#[test]
fn steps_run_while_the_plugin_is_replaced() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "zoo_rust", "zoo_second"], &[]);
    let session = session(&runtime, updated);
    target(&session, "assign");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    target(&session, "update");
                }
            });
        }
        for build in ["zoo_second_next", "zoo_second", "zoo_second_next"] {
            runtime.replace(library(build)).expect("a build of the same plugin");
            session.refresh().expect("the op is as before");
        }
        done.store(true, Ordering::SeqCst);
    });
    target(&session, "assign");
    target(&session, "update");
    assert_eq!(sum(&session), 9.0, "1 + 2 + 2 * 3");
}

/// Two nodes of the second plugin in one step: each doubles its variable in the first build, and adds 2 in the next.
fn twice(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let two = b.constant("two", floats(&[2.0]))?;
    let start = b.constant("start", floats(&[1.0, 2.0]))?;
    for name in ["a", "b"] {
        let shape = PartialShape::new(&[2]).expect("a shape");
        let handle = b.op("ZooVariable").name(name).attr("shape", shape).build()?;
        let assign = b.op("ZooVariableAssign").name(&format!("{name}/assign"));
        let assign = assign.input(handle).input(start).build()?;
        let update = b.op("ZooSecondScale").name(&format!("{name}/update"));
        let update = update.input(handle).input(two).control(assign).build()?;
        let sum = b.op("ZooVariableSum").name(&format!("{name}/sum"));
        sum.input(handle).control(update).build()?;
    }
    Ok(())
}

#[test]
fn a_step_has_the_old_build_or_the_new_one_and_never_both() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "zoo_rust", "zoo_second"], &[]);
    let session = session(&runtime, twice);
    let step = session.callable(CallableOptions::new(&[], &["a/sum", "b/sum"]));
    let step = step.expect("the names are right");
    let (done, steps) = (AtomicBool::new(false), AtomicU64::new(0));
    let seen = std::thread::scope(|scope| {
        let runner = scope.spawn(|| {
            let (mut seen, mut fetched) = (BTreeSet::new(), Vec::new());
            while !done.load(Ordering::SeqCst) {
                step.run(&[], &mut fetched).expect("no step fails");
                let [a, b] = &fetched[..] else { panic!("{fetched:?}") };
                seen.insert((values(a)[0] as i64, values(b)[0] as i64));
                steps.fetch_add(1, Ordering::SeqCst);
            }
            seen
        });
        for round in 0..20 {
            // Each build runs for some steps, and is replaced in the midst of one.
            let before = steps.load(Ordering::SeqCst);
            while steps.load(Ordering::SeqCst) < before + 5 && !runner.is_finished() {
                std::thread::yield_now();
            }
            let build = ["zoo_second_next", "zoo_second"][round % 2];
            runtime.replace(library(build)).expect("a build of the same plugin");
            session.refresh().expect("the op is as before");
        }
        done.store(true, Ordering::SeqCst);
        runner.join().expect("no step panics")
    });
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(6, 6), (7, 7)]);
}

#[test]
fn a_plugin_that_is_not_loaded_is_not_replaced() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "zoo_rust"], &[]);
    let error = runtime.replace(library("zoo_second")).expect_err("it is not loaded");
    let message = error.to_string();
    assert!(message.contains("zoo-second") && message.contains("tenon-cpu"), "{message}");
}
