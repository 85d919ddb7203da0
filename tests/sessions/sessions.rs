//! Sessions at work: extending and running at once, many threads, control dependencies, callables, closing,
//! refreshing, shared state, traces, workers.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    CallableOptions, RunOptions, RuntimeError, SessionOptions,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::session::{
    Account, floats, good_nodes, good_step, graph, run, run_with, runtime, session, session_with,
    turn, values,
};

pub const ZOO: &[&str] = &["tenon_cpu", "zoo_rust", "zoo_faulty"];

/// `y = relu(x * 2 - 3)` over several nodes.
pub fn formula(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let two = b.constant("two", floats(&[2.0]))?;
    let three = b.constant("three", floats(&[3.0]))?;
    let product = b.op("Mul").name("product").input(x).input(two).build()?;
    let difference = b.op("Sub").name("difference").input(product).input(three).build()?;
    b.op("Relu").name("y").input(difference).build()?;
    Ok(())
}

pub fn expected(x: &[f32]) -> Vec<f32> {
    x.iter().map(|x| (x * 2.0 - 3.0).max(0.0)).collect()
}

#[test]
fn a_graph_grows_while_steps_run() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, formula);
    let done = AtomicBool::new(false);
    let steps = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let fetched = run(&session, &[("x", floats(&[4.0, 1.0]))], &["y"]);
                    assert_eq!(values(&fetched.expect("a step")[0]), [5.0, 0.0]);
                    steps.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for at in 0..40 {
            let def = graph(&runtime, |b| {
                let c = b.constant(&format!("c{at}"), floats(&[at as f32]))?;
                b.op("Neg").name(&format!("n{at}")).input(c).build().map(|_| ())
            });
            session.extend(&def.to_graph_def().expect("it can be written")).expect("new names");
            let name = format!("n{at}");
            let fetched = run(&session, &[], &[&name]).expect("new nodes run at once");
            assert_eq!(values(&fetched[0]), [-(at as f32)]);
        }
        while steps.load(Ordering::SeqCst) < 50 {
            std::thread::yield_now();
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(session.graph().len(), 6 + 80);
}

#[test]
fn eight_threads_run_many_steps_of_one_session() {
    let _turn = turn();
    let before = Account::now();
    {
        let runtime = runtime(ZOO, &[]);
        let session = session(&runtime, formula);
        let callable = session.callable(CallableOptions::new(&["x"], &["y"])).expect("names");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (session, callable) = (&session, &callable);
                scope.spawn(move || {
                    let mut fetched = Vec::new();
                    for step in 0..300 {
                        let x = [thread as f32, step as f32, (step % 7) as f32 - 3.0];
                        if step % 2 == 0 {
                            callable.run(&[floats(&x)], &mut fetched).expect("a step");
                        } else {
                            fetched = run(session, &[("x", floats(&x))], &["y"]).expect("a step");
                        }
                        assert_eq!(values(&fetched[0]), expected(&x));
                    }
                });
            }
        });
    }
    before.check("after 2,400 steps");
}

/// Steps at once share the variables and nothing else.
#[test]
fn steps_at_once_update_one_variable() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, |b| {
        let shape = PartialShape::new(&[2]).expect("a shape");
        let handle = b.op("ZooVariable").name("v").attr("shape", shape).build()?;
        let zero = b.constant("zero", floats(&[0.0, 0.0]))?;
        b.op("ZooVariableAssign").name("assign").input(handle).input(zero).build()?;
        let one = b.constant("one", floats(&[1.0]))?;
        b.op("ZooVariableAdd").name("add").input(handle).input(one).build()?;
        b.op("ZooVariableSum").name("sum").input(handle).build().map(|_| ())
    });
    let target = |name: &str| {
        session.run(&[], &[], &[name], &RunOptions::default()).expect("the update runs");
    };
    target("assign");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..200).for_each(|_| target("add")));
        }
    });
    let fetched = run(&session, &[], &["sum"]).expect("the sum");
    assert_eq!(values(&fetched[0]), [2.0 * 8.0 * 200.0]);
}

#[test]
fn control_inputs_order_nodes() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, |b| {
        let shape = PartialShape::new(&[1]).expect("a shape");
        let handle = b.op("ZooVariable").name("v").attr("shape", shape).build()?;
        let one = b.constant("one", floats(&[1.0]))?;
        let mut last = b.op("ZooVariableAssign").name("assign").input(handle).input(one).build()?;
        let amount = b.constant("amount", floats(&[2.0]))?;
        for at in 0..20 {
            let name = format!("add{at}");
            let add = b.op("ZooVariableAdd").name(&name).input(handle).input(amount);
            last = add.control(last).build()?;
        }
        let barrier = b.op("NoOp").name("barrier").control(last).build()?;
        b.op("ZooVariableSum").name("sum").input(handle).control(barrier).build().map(|_| ())
    });
    for _ in 0..20 {
        let fetched = run(&session, &[], &["sum"]).expect("a step");
        assert_eq!(values(&fetched[0]), [41.0]);
    }
}

/// Only what fetches and targets need runs.
#[test]
fn what_nobody_asks_for_does_not_run() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let options = SessionOptions { count_calls: true, ..SessionOptions::default() };
    let session = session_with(&runtime, options, |b| {
        formula(b)?;
        b.op("ZooFailure").name("bad").attr("code", 3i64).attr("message", "no").build().map(|_| ())
    });
    let options = CallableOptions::new(&["product"], &["difference"]);
    let callable = session.callable(options).expect("names");
    let mut fetched = Vec::new();
    for _ in 0..3 {
        callable.run(&[floats(&[10.0])], &mut fetched).expect("a step");
    }
    assert_eq!(values(&fetched[0]), [7.0]);
    let calls = callable.calls().expect("counts");
    let ran: Vec<(&str, u64)> =
        calls.iter().map(|(name, n)| (name.as_str(), *n)).filter(|(_, n)| *n > 0).collect();
    assert_eq!(ran, [("difference", 3)]);
}

#[test]
fn a_fed_tensor_can_be_fetched_and_a_fetch_repeated() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, formula);
    let x = floats(&[2.0, 1.0]);
    let fetched = run(&session, &[("x", x.clone())], &["x", "y", "y:0", "two"]).expect("a step");
    let all: Vec<Vec<f32>> = fetched.iter().map(values).collect();
    assert_eq!(all, [vec![2.0, 1.0], vec![1.0, 0.0], vec![1.0, 0.0], vec![2.0]]);
}

/// A fetched tensor is the client's: later steps do not write into it.
#[test]
fn fetched_tensors_stay_as_they_are() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, formula);
    let callable = session.callable(CallableOptions::new(&["x"], &["y"])).expect("names");
    let mut kept: Vec<(f32, Tensor)> = Vec::new();
    for step in 0..50 {
        let mut fetched = Vec::new();
        callable.run(&[floats(&[step as f32])], &mut fetched).expect("a step");
        kept.push((step as f32, fetched.remove(0)));
    }
    for (x, y) in &kept {
        assert_eq!(values(y), expected(&[*x]));
    }
}

#[test]
fn close_ends_steps_in_flight() {
    let _turn = turn();
    let before = Account::now();
    {
        let runtime = runtime(ZOO, &[]);
        let session = session(&runtime, |b| {
            good_nodes(b)?;
            b.op("ZooBlocking").name("waits").build().map(|_| ())
        });
        good_step(&session);
        std::thread::scope(|scope| {
            let steps: Vec<_> =
                (0..3).map(|_| scope.spawn(|| run(&session, &[], &["waits"]))).collect();
            std::thread::sleep(Duration::from_millis(30));
            let begin = Instant::now();
            session.close();
            assert!(
                begin.elapsed() < Duration::from_secs(10),
                "close does not wait for the kernel"
            );
            for step in steps {
                let error = step.join().expect("no panic").expect_err("the step was cancelled");
                assert!(
                    matches!(error, RuntimeError::Closed) || error.code() == Code::CANCELLED,
                    "{error}"
                );
            }
        });
        let error = run(&session, &[("good_x", floats(&[1.0]))], &["good_y"]).expect_err("closed");
        assert!(matches!(error, RuntimeError::Closed), "{error}");
    }
    before.check("after the session was closed");
}

#[test]
fn refresh_plans_anew_and_callables_follow() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, formula);
    let callable = session.callable(CallableOptions::new(&["x"], &["y"])).expect("names");
    let mut fetched = Vec::new();
    let feed = floats(&[4.0]);
    callable.run(std::slice::from_ref(&feed), &mut fetched).expect("a step");
    let options = RunOptions::default();
    let compile_ns = || {
        let (_, metadata) =
            run_with(&session, &[("x", feed.clone())], &["y"], &options).expect("a step");
        metadata.compile_ns
    };
    assert_eq!(compile_ns(), 0, "the callable's plan serves");
    session.refresh().expect("nothing has changed");
    assert_ne!(compile_ns(), 0, "the plan was made anew");
    assert_eq!(compile_ns(), 0);
    callable.run(std::slice::from_ref(&feed), &mut fetched).expect("it follows");
    assert_eq!(values(&fetched[0]), [5.0]);
}

#[test]
fn steps_go_on_while_the_session_is_refreshed() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, formula);
    let callable = session.callable(CallableOptions::new(&["x"], &["y"])).expect("names");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut fetched = Vec::new();
                while !done.load(Ordering::SeqCst) {
                    callable.run(&[floats(&[4.0])], &mut fetched).expect("a step");
                    assert_eq!(values(&fetched[0]), [5.0]);
                }
            });
        }
        for _ in 0..30 {
            session.refresh().expect("nothing has changed");
        }
        done.store(true, Ordering::SeqCst);
    });
}

/// A stateful node's kernel is created once per session, whatever is fetched with it.
#[test]
fn a_stateful_node_has_one_kernel_in_all_plans() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let make = |b: &mut GraphBuilder<'_>| {
        good_nodes(b)?;
        b.op("ZooCallCount").name("count").build().map(|_| ())
    };
    let (first, second) = (session(&runtime, make), session(&runtime, make));
    let count = |fetched: Vec<Tensor>| fetched[0].as_slice::<i64>().expect("an int64")[0];
    assert_eq!(count(run(&first, &[], &["count"]).expect("a step")), 1);
    let feeds = [("good_x", floats(&[1.0]))];
    assert_eq!(count(run(&first, &feeds, &["count", "good_y"]).expect("another plan")), 2);
    assert_eq!(count(run(&second, &[], &["count"]).expect("another session")), 1);
}

/// A deadline in the middle of a long row of short kernels ends the step there.
#[test]
fn a_deadline_is_seen_between_kernels() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, |b| {
        let mut value = b.constant("c", floats(&[1.0]))?;
        for at in 0..40 {
            let sleep = b.op("ZooSleep").name(&format!("sleep{at}")).input(value);
            value = sleep.attr("delay_ms", 20i64).build()?.into();
        }
        b.op("Identity").name("last").input(value).build().map(|_| ())
    });
    let options = RunOptions { deadline: Some(Duration::from_millis(30)), ..RunOptions::default() };
    let begin = Instant::now();
    let error = run_with(&session, &[], &["last"], &options).expect_err("40 times 20 ms are more");
    assert_eq!(error.code(), Code::DEADLINE_EXCEEDED);
    assert!(begin.elapsed() < Duration::from_millis(400), "it took {:?}", begin.elapsed());
}

#[test]
fn explain_names_candidates_winner_and_place() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, |b| {
        formula(b)?;
        b.op("ZooLabel").name("label").build().map(|_| ())
    });
    let explained = session.explain(Some("label")).expect("it can be placed");
    assert_eq!(explained.len(), 1);
    let kernels = explained[0].kernels.as_ref().expect("an ordinary op");
    assert_eq!(kernels.candidates.len(), 3);
    assert_eq!(kernels.winner.as_ref().expect("one wins").label, "fast");
    assert!(explained[0].device.ends_with("/device:CPU:0"), "{}", explained[0].device);
    assert_eq!(session.explain(None).expect("all nodes").len(), session.graph().len());
}
