//! Kernels that fail in every way: the step's error says what and where, and the process is as before.

use std::time::{Duration, Instant};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    CancelToken, RunOptions, RuntimeError, Session, StepError,
    framework::{Code, DType, PartialShape, Shape},
};
use tenon_tests::session::{
    Account, floats, good_nodes, good_step, run, run_with, runtime, session, survives, turn, values,
};

const ZOO: &[&str] = &["tenon_cpu", "zoo_rust", "zoo_faulty"];
const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

fn step_error(result: Result<impl Sized, RuntimeError>) -> StepError {
    match result {
        Ok(_) => panic!("the step went well"),
        Err(RuntimeError::Step(error)) => error,
        Err(error) => panic!("expected the error of a step, found {error:?}"),
    }
}

/// A step over `bad` fails with this code and this message, which names node, op, device and plugin.
#[track_caller]
fn fails(session: &Session, code: Code, expected: &str) {
    let error = step_error(run(session, &[], &["bad"]));
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.code, code);
    assert_eq!(&*error.node, "bad");
    assert_eq!(&*error.device, CPU);
}

fn failure(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let node = b.op("ZooFailure").name("bad").attr("code", i64::from(Code::DATA_LOSS.0));
    node.attr("message", "the disk is wet").build().map(|_| ())
}

#[test]
fn a_kernel_that_returns_an_error_is_named_with_its_message() {
    survives(ZOO, &[], failure, |session| {
        let expected =
            format!("node 'bad' (ZooFailure): the disk is wet [on {CPU}, kernel of zoo-rust]");
        fails(session, Code::DATA_LOSS, &expected);
    });
}

fn panics(when: &str) -> impl Fn(&mut GraphBuilder<'_>) -> Result<(), GraphError> {
    move |b| b.op("ZooPanic").name("bad").attr("when", when).build().map(|_| ())
}

#[test]
fn a_kernel_that_panics_fails_its_step() {
    survives(ZOO, &[], panics("compute"), |session| {
        let error = step_error(run(session, &[], &["bad"]));
        assert_eq!((error.code, &*error.plugin), (Code::INTERNAL, "zoo-rust"));
        assert!(error.message.contains("panicked: zoo panic in compute"), "{error}");
    });
}

#[test]
fn a_kernel_that_panics_on_the_pools_threads_fails_its_step() {
    survives(ZOO, &[], panics("parallel"), |session| {
        let error = step_error(run(session, &[], &["bad"]));
        assert_eq!((error.code, &*error.node), (Code::INTERNAL, "bad"));
        assert!(error.message.contains("zoo panic in parallel work"), "{error}");
    });
}

#[test]
fn a_kernel_that_panics_when_it_is_created_is_refused() {
    survives(ZOO, &[], panics("create"), |session| {
        let error = run(session, &[], &["bad"]).expect_err("the kernel cannot be made");
        assert_eq!(error.code(), Code::INTERNAL);
        let message = error.to_string();
        let begin = format!("node 'bad' (ZooPanic) on {CPU}: ");
        assert!(message.starts_with(&begin), "{message}");
        assert!(message.contains("panicked: zoo panic in create"), "{message}");
    });
}

#[test]
fn an_output_that_is_left_unset_is_found() {
    let make = |b: &mut GraphBuilder<'_>| b.op("ZooUnset").name("bad").build().map(|_| ());
    survives(ZOO, &[], make, |session| {
        let expected = format!(
            "node 'bad' (ZooUnset): the kernel returned success and left output 0 unset \
             [on {CPU}, kernel of zoo-faulty]"
        );
        fails(session, Code::INTERNAL, &expected);
    });
}

#[test]
fn an_output_of_the_wrong_shape_is_found() {
    let make = |b: &mut GraphBuilder<'_>| {
        let x = b.constant("two", floats(&[1.0, 2.0]))?;
        b.op("ZooWrongShape").name("bad").input(x).build().map(|_| ())
    };
    survives(ZOO, &[], make, |session| {
        let expected = format!(
            "node 'bad' (ZooWrongShape): output 0 has shape [3], the shape function said [2]: one of the two \
             is wrong [on {CPU}, kernel of zoo-faulty]"
        );
        fails(session, Code::INTERNAL, &expected);
    });
}

/// Where the shape is known only by its rank, the executor holds the output against that.
#[test]
fn an_output_of_the_wrong_rank_is_found() {
    let make = |b: &mut GraphBuilder<'_>| {
        let shape = PartialShape::new(&[-1, 2]).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape)?;
        b.op("ZooWrongShape").name("bad").input(x).build().map(|_| ())
    };
    survives(ZOO, &[], make, |session| {
        let x = floats(&[1.0, 2.0]).reshaped(&[1, 2]).expect("two elements");
        let error = step_error(run(session, &[("x", x)], &["bad"]));
        assert_eq!(error.code, Code::INTERNAL);
        let expected =
            "output 0 has shape [3], the shape function said [?,2]: one of the two is wrong";
        assert_eq!(&*error.message, expected);
    });
}

fn asynchronous(mode: &str) -> impl Fn(&mut GraphBuilder<'_>) -> Result<(), GraphError> {
    move |b| {
        let x = b.constant("c", floats(&[1.0]))?;
        b.op("ZooAsync").name("bad").input(x).attr("mode", mode).build().map(|_| ())
    }
}

#[test]
fn a_foreign_thread_that_fails_fails_the_step() {
    survives(ZOO, &[], asynchronous("error"), |session| {
        let expected =
            format!("node 'bad' (ZooAsync): zoo error on a thread [on {CPU}, kernel of zoo-rust]");
        fails(session, Code::ABORTED, &expected);
    });
}

#[test]
fn a_call_that_is_forgotten_fails_the_step() {
    for mode in ["drop", "panic"] {
        survives(ZOO, &[], asynchronous(mode), |session| {
            let expected = format!(
                "node 'bad' (ZooAsync): the kernel dropped its call without finishing it \
                 [on {CPU}, kernel of zoo-rust]"
            );
            fails(session, Code::INTERNAL, &expected);
        });
    }
}

fn late(delay_ms: i64) -> impl Fn(&mut GraphBuilder<'_>) -> Result<(), GraphError> {
    move |b| b.op("ZooLate").name("bad").attr("delay_ms", delay_ms).build().map(|_| ())
}

fn within(limit: Duration) -> RunOptions {
    RunOptions { deadline: Some(limit), ..RunOptions::default() }
}

const DEADLINE: &str = "step: the deadline passed before the step was done";

/// The kernel does not listen and completes long after the step was given up: by then the session may be
/// gone, with its runtime.
#[test]
fn a_call_that_outlives_its_step_hurts_nobody() {
    let _turn = turn();
    let before = Account::now();
    {
        let runtime = runtime(ZOO, &[]);
        let session = session(&runtime, |b| {
            good_nodes(b)?;
            late(900)(b)
        });
        for _ in 0..2 {
            let begin = Instant::now();
            let result = run_with(&session, &[], &["bad"], &within(Duration::from_millis(20)));
            let error = step_error(result);
            assert!(begin.elapsed() < Duration::from_millis(800), "the step waited for the kernel");
            assert_eq!(
                (error.code, error.to_string().as_str()),
                (Code::DEADLINE_EXCEEDED, DEADLINE)
            );
            good_step(&session);
        }
    }
    before.check("once the calls have completed");
}

/// What an abandoned call held is given back while the session goes on.
#[test]
fn a_late_call_gives_back_what_it_held() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, |b| {
        good_nodes(b)?;
        late(600)(b)
    });
    let late_step = || {
        let limit = within(Duration::from_millis(10));
        let error = step_error(run_with(&session, &[], &["bad"], &limit));
        assert_eq!(error.code, Code::DEADLINE_EXCEEDED);
        // Until the call is over, on a busy machine too.
        std::thread::sleep(Duration::from_millis(900));
        good_step(&session);
    };
    late_step();
    let before = Account::now();
    late_step();
    late_step();
    before.check("after two more late calls");
}

#[test]
fn a_blocking_kernel_is_woken_by_the_deadline() {
    let make = |b: &mut GraphBuilder<'_>| b.op("ZooBlocking").name("bad").build().map(|_| ());
    survives(ZOO, &[], make, |session| {
        let begin = Instant::now();
        let result = run_with(session, &[], &["bad"], &within(Duration::from_millis(5)));
        let error = step_error(result);
        assert_eq!(error.to_string(), DEADLINE);
        assert_eq!(error.code, Code::DEADLINE_EXCEEDED);
        assert!(begin.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn a_deadline_that_passes_in_a_kernel_ends_the_step_after_it() {
    let make = |b: &mut GraphBuilder<'_>| {
        let x = b.constant("c", floats(&[1.0]))?;
        let y = b.op("ZooSleep").name("sleep").input(x).attr("delay_ms", 10i64).build()?;
        b.op("ZooSleep").name("bad").input(y).attr("delay_ms", 0i64).build().map(|_| ())
    };
    survives(ZOO, &[], make, |session| {
        let result = run_with(session, &[], &["bad"], &within(Duration::from_millis(1)));
        let error = step_error(result);
        assert_eq!((error.code, error.to_string().as_str()), (Code::DEADLINE_EXCEEDED, DEADLINE));
    });
}

#[test]
fn a_deadline_that_is_not_reached_changes_nothing() {
    survives(ZOO, &[], late(2), |session| {
        let (fetched, _) = run_with(session, &[], &["bad"], &within(Duration::from_secs(60)))
            .expect("there is time enough");
        assert_eq!(values(&fetched[0]), [1.0]);
    });
}

#[test]
fn a_step_is_cancelled_from_another_thread() {
    let make = |b: &mut GraphBuilder<'_>| b.op("ZooBlocking").name("bad").build().map(|_| ());
    survives(ZOO, &[], make, |session| {
        let token = CancelToken::new();
        let options = RunOptions { cancel: Some(token.clone()), ..RunOptions::default() };
        let begin = Instant::now();
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                token.cancel();
            });
            run_with(session, &[], &["bad"], &options)
        });
        let error = step_error(result);
        assert_eq!(error.code, Code::CANCELLED);
        assert!(begin.elapsed() < Duration::from_secs(5));
        // The token stays cancelled: the next step under it does not begin.
        let error =
            step_error(run_with(session, &[("good_x", floats(&[1.0]))], &["good_y"], &options));
        assert_eq!(
            (error.code, error.to_string().as_str()),
            (Code::CANCELLED, "step: the step was cancelled")
        );
    });
}

/// The first error is the one reported, and what comes after the failing node does not run.
#[test]
fn the_first_error_cancels_the_rest_of_the_step() {
    let make = |b: &mut GraphBuilder<'_>| {
        failure(b)?;
        b.op("ZooBlocking").name("waits").build()?;
        let bad = b.graph().find("bad").expect("it was just built");
        let after = b.op("ZooCallCount").name("after").control(bad).build()?;
        b.op("Identity").name("last").input(after).build().map(|_| ())
    };
    survives(ZOO, &[], make, |session| {
        let error = step_error(run(session, &[], &["waits", "last"]));
        assert_eq!((error.code, &*error.node), (Code::DATA_LOSS, "bad"));
    });
}

#[test]
fn host_memory_that_runs_out_fails_the_step() {
    use tenon_runtime::host::memory::HostMemory;
    let make = |b: &mut GraphBuilder<'_>| {
        let shape = Shape::new(&[2]).expect("a shape");
        let dims = b.placeholder("dims", DType::INT32, PartialShape::from(shape))?;
        let value = b.constant("value", floats(&[1.0]).reshaped(&[]).expect("one element"))?;
        b.op("Fill").name("bad").input(dims).input(value).build().map(|_| ())
    };
    survives(ZOO, &[], make, |session| {
        let memory = HostMemory::shared();
        memory.set_limit(memory.stats().live_bytes + (1 << 20));
        let dims = |a: i32, b: i32| {
            tenon_runtime::framework::Tensor::from_slice(&[2], &[a, b]).expect("two elements")
        };
        let result = run(session, &[("dims", dims(1024, 1024))], &["bad"]);
        memory.set_limit(0);
        let error = step_error(result);
        assert_eq!((error.code, &*error.node), (Code::RESOURCE_EXHAUSTED, "bad"));
        let expected = "host memory: out of memory: asked for 4194304 bytes, ";
        assert!(error.message.contains(expected), "{error}");
        let error = step_error(run(session, &[("dims", dims(i32::MAX, i32::MAX))], &["bad"]));
        assert_eq!(&*error.node, "bad");
        assert!(matches!(error.code, Code::RESOURCE_EXHAUSTED | Code::INVALID_ARGUMENT), "{error}");
        let error = step_error(run(session, &[("dims", dims(-1, 1))], &["bad"]));
        assert_eq!((error.code, &*error.node), (Code::INVALID_ARGUMENT, "bad"));
    });
}
