//! Asynchronous kernels that complete a call twice: the step fails while it runs; afterwards a line is logged, and
//! no other call is taken for the one that is over.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    RuntimeError, Session,
    framework::{Code, Tensor},
};
use tenon_tests::{
    log::Lines,
    session::{good_nodes, good_step, run, runtime, session, survives, turn, values},
};

const ZOO: &[&str] = &["tenon_cpu", "zoo_rust", "zoo_faulty"];
const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";
const LOGGED: &str =
    "a kernel completed a call that was over, when its step had no outstanding work";

/// The log of this process.
fn log() -> &'static Lines {
    static LOG: OnceLock<Lines> = OnceLock::new();
    LOG.get_or_init(|| {
        let lines = Lines::default();
        tracing::subscriber::set_global_default(lines.clone()).expect("nobody else takes the log");
        lines
    })
}

/// The lines about second completions, once there are `count` of them.
fn logged(count: usize) -> Vec<String> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let mut lines = log().all();
        lines.retain(|line| line.contains(LOGGED));
        if lines.len() >= count || Instant::now() > end {
            assert_eq!(lines.len(), count, "{lines:?}");
            return lines;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// `bad` completes after `first` milliseconds, and again `second` later.
fn twice(b: &mut GraphBuilder<'_>, first: i64, second: i64) -> Result<(), GraphError> {
    let node = b.op("ZooTwice").name("bad").attr("first_ms", first).attr("second_ms", second);
    node.build().map(|_| ())
}

/// `slow` takes so many milliseconds and listens to nobody.
fn slow(b: &mut GraphBuilder<'_>, delay_ms: i64) -> Result<(), GraphError> {
    b.op("ZooLate").name("slow").attr("delay_ms", delay_ms).build().map(|_| ())
}

/// The step failed because `bad` completed twice: the error names node, op, kernel, device and plugin.
#[track_caller]
fn failed(result: Result<Vec<Tensor>, RuntimeError>) {
    let error = match result {
        Err(RuntimeError::Step(error)) => error,
        other => panic!("expected the error of a step, found {other:?}"),
    };
    assert_eq!((error.code, &*error.node, &*error.op), (Code::INTERNAL, "bad", "ZooTwice"));
    assert_eq!((&*error.device, &*error.plugin), (CPU, "zoo-faulty"));
    let text = error.to_string();
    let begin = "node 'bad' (ZooTwice): kernel of op 'ZooTwice' on CPU (zoo-faulty ";
    assert!(text.starts_with(begin), "{text}");
    assert!(text.contains("completed its call twice: completion is called exactly once"), "{text}");
}

#[test]
fn a_call_that_completes_twice_before_it_returns_fails_its_step() {
    log();
    survives(ZOO, &[], |b| twice(b, 0, 0), |session| failed(run(session, &[], &["bad"])));
}

#[test]
fn a_second_completion_from_a_thread_fails_the_step_that_still_runs() {
    log();
    let make = |b: &mut GraphBuilder<'_>| {
        twice(b, 0, 10)?;
        slow(b, 150)
    };
    survives(ZOO, &[], make, |session| failed(run(session, &[], &["bad", "slow"])));
}

/// The same where the executor runs frames.
#[test]
fn a_second_completion_beside_control_flow_fails_the_step() {
    log();
    let make = |b: &mut GraphBuilder<'_>| {
        twice(b, 0, 10)?;
        slow(b, 150)?;
        let predicate = b.constant("p", Tensor::scalar(true).expect("a scalar"))?;
        let x = b.constant("x", Tensor::scalar(1f32).expect("a scalar"))?;
        let branch = b.op("Switch").name("branch").input(x).input(predicate).build()?;
        let taken = tenon_graph::Output::new(branch, 1);
        b.op("Identity").name("taken").input(taken).build().map(|_| ())
    };
    survives(ZOO, &[], make, |session| {
        failed(run(session, &[], &["bad", "slow", "taken"]));
    });
}

fn over(make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>) -> Session {
    session(&runtime(ZOO, &[]), |b| {
        good_nodes(b)?;
        make(b)
    })
}

/// The second completion comes while the next step waits for its own call of the same node.
#[test]
fn a_second_completion_does_not_end_the_call_of_the_next_step() {
    let _turn = turn();
    log().take();
    let session = over(|b| twice(b, 100, 50));
    let steps = 3;
    for _ in 0..steps {
        let begin = Instant::now();
        let fetched = run(&session, &[], &["bad"]).expect("the first completion counts");
        assert_eq!(values(&fetched[0]), [1.0]);
        assert!(begin.elapsed() >= Duration::from_millis(100), "it ended before its own call");
    }
    for line in logged(steps) {
        assert!(line.starts_with("ERROR") && line.contains("node 'bad' (ZooTwice)"), "{line}");
    }
    good_step(&session);
}

/// The second completion comes when session and runtime are gone, and with them the record of the call.
#[test]
fn a_second_completion_after_the_session_is_logged() {
    let _turn = turn();
    log().take();
    let session = over(|b| twice(b, 0, 150));
    run(&session, &[], &["bad"]).expect("the first completion counts");
    drop(session);
    logged(1);
    good_step(&over(|_| Ok(())));
}

/// A third completion, when the second one has failed the step and its state is gone.
#[test]
fn completions_after_a_failed_step_are_logged() {
    let _turn = turn();
    log().take();
    let session = over(|b| {
        let node = b.op("ZooTwice").name("late").attr("first_ms", 0i64).attr("second_ms", 150i64);
        node.build()?;
        twice(b, 0, 10)?;
        slow(b, 50)
    });
    failed(run(&session, &[], &["bad", "slow", "late"]));
    logged(1);
    good_step(&session);
}
