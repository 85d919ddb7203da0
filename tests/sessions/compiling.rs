//! Compiling steps is bounded: plans are kept as long as they are used, deadlines and cancellation reach compiling and
//! folding, and constants that a graph makes of nothing keep to their limits.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    CallableOptions, CancelToken, RunOptions, Runtime, RuntimeError, Session, SessionOptions,
    framework::{Code, DType, PartialShape, Tensor},
    host::memory::HostMemory,
};
use tenon_tests::session::{floats, run, run_with, runtime, session, session_with, turn, values};

const ZOO: &[&str] = &["tenon_cpu", "zoo_faulty"];

/// Side of the squares of weights.
const SIDE: i64 = 64;

/// `y = x w` with weights that the kernel packs, and some room for the product.
fn product(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[SIDE, SIDE]).expect("a shape");
    let x = b.placeholder("x", DType::FLOAT, shape)?;
    let w = b.constant("w", square())?;
    let slow = b.op("ZooSleep").name("slow").input(x).attr("delay_ms", 1i64).build()?;
    b.op("MatMul").name("y").input(slow).input(w).build().map(|_| ())
}

fn square() -> Tensor {
    Tensor::from_slice(&[SIDE, SIDE], &vec![0.5f32; (SIDE * SIDE) as usize]).expect("a square")
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("the system tells");
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    4096 * pages.expect("a number of pages")
}

#[test]
fn memory_is_level_over_a_thousand_refreshes_with_steps_in_flight() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, product);
    let callable = session.callable(CallableOptions::new(&["x"], &["y"])).expect("names");
    let done = AtomicBool::new(false);
    let held = || HostMemory::shared().stats().live_bytes;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                run(&session, &[("x", square())], &["y"]).expect("a step");
            }
        });
        let mut fetched = Vec::new();
        let mut refresh = |times: usize| {
            for _ in 0..times {
                callable.run(&[square()], &mut fetched).expect("a step");
                session.refresh().expect("nothing has changed");
            }
        };
        refresh(100);
        let (bytes, resident) = (held(), resident_bytes());
        refresh(1000);
        // Each plan has a square of its own at least, of 16 KiB.
        let (now, more) = (held(), resident_bytes().saturating_sub(resident));
        done.store(true, Ordering::SeqCst);
        assert!(now < bytes + (1 << 20), "{bytes} bytes were held, and {now} are");
        assert!(more < 8 << 20, "the process holds {more} bytes more");
    });
}

/// `n0 = -x`, `n1 = -n0` and so on.
fn negatives(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let mut value = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    for at in 0..6 {
        value = b.op("Neg").name(&format!("n{at}")).input(value).build()?.into();
    }
    Ok(())
}

/// Whether running the step that fetches this compiled it.
fn compiles(session: &Session, fetch: &str) -> bool {
    let feeds = [("x", floats(&[1.0]))];
    let (_, told) = run_with(session, &feeds, &[fetch], &RunOptions::default()).expect("a step");
    told.compile_ns > 0
}

#[test]
fn the_plan_that_ran_longest_ago_goes_when_there_are_too_many() {
    let _turn = turn();
    let (plain, runtime) = (runtime(ZOO, &[]), runtime(ZOO, &[("runtime.plan_cache", "2")]));
    let session = session(&runtime, negatives);
    assert!(compiles(&session, "n0") && compiles(&session, "n1"));
    assert!(!compiles(&session, "n0") && !compiles(&session, "n1") && !compiles(&session, "n0"));
    assert!(compiles(&session, "n2"), "in the place of n1");
    assert!(!compiles(&session, "n0") && !compiles(&session, "n2"));
    assert!(compiles(&session, "n1"), "in the place of n0");
    assert!(!compiles(&session, "n2") && compiles(&session, "n0"));
    let all = session_of(&plain, "-1");
    for fetch in ["n0", "n1", "n2", "n3", "n4", "n5"] {
        assert!(compiles(&all, fetch) && !compiles(&all, fetch));
    }
    assert!(!compiles(&all, "n0"));
    let none = session_of(&plain, "0");
    assert!(compiles(&none, "n0") && compiles(&none, "n0"));
}

fn session_of(runtime: &Runtime, plan_cache: &str) -> Session {
    let knob = ("runtime.plan_cache".to_owned(), plan_cache.to_owned());
    let options = SessionOptions { knobs: [knob].into(), ..SessionOptions::default() };
    session_with(runtime, options, negatives)
}

#[test]
fn a_callable_keeps_its_plan_whatever_else_is_compiled() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[("runtime.plan_cache", "1")]);
    let options = SessionOptions { count_calls: true, ..SessionOptions::as_written() };
    let session = session_with(&runtime, options, negatives);
    let callable = session.callable(CallableOptions::new(&["x"], &["n0"])).expect("names");
    let mut fetched = Vec::new();
    for fetch in ["n1", "n2", "n3"] {
        callable.run(&[floats(&[1.0])], &mut fetched).expect("a step");
        assert_eq!(values(&fetched[0]), [-1.0]);
        assert!(compiles(&session, fetch));
    }
    assert_eq!(callable.calls().expect("counted"), [("n0".to_owned(), 3)], "of one plan");
}

#[test]
fn a_plan_that_is_not_kept_is_freed() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[("runtime.plan_cache", "2")]);
    let session = session(&runtime, |b| {
        product(b)?;
        let y = b.graph().find("y").expect("a node");
        for at in 0..40 {
            b.op("Neg").name(&format!("n{at}")).input(y).build()?;
        }
        Ok(())
    });
    let step = |at: usize| {
        let name = format!("n{at}");
        run(&session, &[("x", square())], &[&name]).expect("a step");
    };
    (0..4).for_each(step);
    let before = HostMemory::shared().stats().live_bytes;
    (4..40).for_each(step);
    let now = HostMemory::shared().stats().live_bytes;
    assert!(now <= before + (64 << 10), "{before} bytes were held, and {now} are");
}

#[test]
fn a_stateful_kernel_goes_on_where_it_was_when_its_plan_is_compiled_anew() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[("runtime.plan_cache", "1")]);
    let make = |b: &mut GraphBuilder<'_>| {
        negatives(b)?;
        let shape = b.constant("shape", Tensor::from_slice(&[1], &[4i32]).expect("a shape"))?;
        let random = b.op("RandomUniform").name("random").input(shape);
        let random = random.attr("dtype", DType::FLOAT).attr("seed", 7i64).attr("seed2", 8i64);
        random.build().map(|_| ())
    };
    let draw = |session: &Session| values(&run(session, &[], &["random"]).expect("a step")[0]);
    let straight = session(&runtime, make);
    let expected: Vec<_> = (0..3).map(|_| draw(&straight)).collect();
    let interrupted = session(&runtime, make);
    let found: Vec<_> = (0..3)
        .map(|at| {
            let drawn = draw(&interrupted);
            assert!(compiles(&interrupted, &format!("n{at}")), "in the place of the other plan");
            drawn
        })
        .collect();
    assert_eq!(found, expected);
    assert_ne!(found[0], found[1]);
}

/// Kernels of 20 ms each that folding runs: it takes a second.
fn slow_to_fold(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let mut value: Output = b.constant("c", floats(&[1.0]))?;
    for at in 0..50 {
        let slow = b.op("ZooSlow").name(&format!("slow{at}")).input(value);
        value = slow.attr("delay_ms", 20i64).build()?.into();
    }
    b.op("Neg").name("y").input(value).build().map(|_| ())
}

/// What all of folding takes at least.
const WHOLE: Duration = Duration::from_millis(1000);

fn code_of(result: Result<(Vec<Tensor>, tenon_runtime::Metadata), RuntimeError>) -> (Code, String) {
    let error = result.expect_err("the run ends early");
    (error.code(), error.to_string())
}

#[track_caller]
fn runs_now(session: &Session) {
    let fetched = run(session, &[], &["y"]).expect("it is compiled anew");
    assert_eq!(values(&fetched[0]), [-1.0]);
}

#[test]
fn a_deadline_ends_compiling_and_folding() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, slow_to_fold);
    let options = RunOptions { deadline: Some(Duration::from_millis(50)), ..RunOptions::default() };
    let begin = Instant::now();
    let (code, said) = code_of(run_with(&session, &[], &["y"], &options));
    assert_eq!(code, Code::DEADLINE_EXCEEDED);
    assert_eq!(said, "step: the deadline passed before the step was done");
    assert!(begin.elapsed() < WHOLE / 2, "{:?}", begin.elapsed());
    runs_now(&session);
    // Its plan is there now, and the deadline is long enough for a step.
    let (fetched, told) = run_with(&session, &[], &["y"], &options).expect("a step");
    assert_eq!((values(&fetched[0]), told.compile_ns), (vec![-1.0], 0));
}

#[test]
fn a_token_ends_compiling_and_folding() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, slow_to_fold);
    let token = CancelToken::new();
    let options = RunOptions { cancel: Some(token.clone()), ..RunOptions::default() };
    let begin = Instant::now();
    let result = thread::scope(|scope| {
        let running = scope.spawn(|| run_with(&session, &[], &["y"], &options));
        thread::sleep(Duration::from_millis(50));
        token.cancel();
        running.join().expect("no panic")
    });
    let (code, said) = code_of(result);
    assert_eq!((code, said.as_str()), (Code::CANCELLED, "step: the step was cancelled"));
    assert!(begin.elapsed() < WHOLE / 2, "{:?}", begin.elapsed());
    runs_now(&session);
}

#[test]
fn who_waits_for_the_compiling_of_another_waits_no_longer_than_its_deadline() {
    let _turn = turn();
    let whole = RunOptions::default();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, slow_to_fold);
    thread::scope(|scope| {
        let first = scope.spawn(|| run_with(&session, &[], &["y"], &whole));
        thread::sleep(Duration::from_millis(100));
        let begin = Instant::now();
        let options =
            RunOptions { deadline: Some(Duration::from_millis(50)), ..RunOptions::default() };
        let (code, _) = code_of(run_with(&session, &[], &["y"], &options));
        assert_eq!(code, Code::DEADLINE_EXCEEDED);
        assert!(begin.elapsed() < WHOLE / 2, "{:?}", begin.elapsed());
        // One that has time waits for the first, and compiles nothing.
        let (_, told) = run_with(&session, &[], &["y"], &whole).expect("a step");
        let (_, told_first) = first.join().expect("no panic").expect("a step");
        assert_eq!(told.compile_ns, told_first.compile_ns, "the plan is the first one's");
    });
    let (_, told) = run_with(&session, &[], &["y"], &RunOptions::default()).expect("a step");
    assert_eq!(told.compile_ns, 0);
}

#[test]
fn who_waits_for_a_compiling_that_is_given_up_compiles() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, slow_to_fold);
    thread::scope(|scope| {
        let options =
            RunOptions { deadline: Some(Duration::from_millis(200)), ..RunOptions::default() };
        let first = scope.spawn({
            let session = &session;
            move || run_with(session, &[], &["y"], &options)
        });
        thread::sleep(Duration::from_millis(50));
        runs_now(&session);
        let (code, _) = code_of(first.join().expect("no panic"));
        assert_eq!(code, Code::DEADLINE_EXCEEDED);
    });
}

#[test]
fn a_session_that_is_closed_wakes_who_waits_for_a_plan() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, slow_to_fold);
    thread::scope(|scope| {
        let first = scope.spawn(|| run(&session, &[], &["y"]));
        thread::sleep(Duration::from_millis(50));
        let second = scope.spawn(|| run(&session, &[], &["y"]));
        thread::sleep(Duration::from_millis(50));
        let begin = Instant::now();
        session.close();
        let error = second.join().expect("no panic").expect_err("the session is closed");
        assert!(matches!(error, RuntimeError::Closed), "{error}");
        assert!(begin.elapsed() < WHOLE / 2, "{:?}", begin.elapsed());
        let error = first.join().expect("no panic").expect_err("the session is closed");
        assert!(matches!(error, RuntimeError::Closed), "{error}");
    });
}

/// A constant of 64 KiB that is joined to itself 16 times, to 4 GiB; only its size is fetched.
fn doubled(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let axis = b.constant("axis", Tensor::scalar(0i32).expect("a scalar"))?;
    let mut value = b.constant("c", floats(&vec![1.0; 16 << 10]))?;
    for at in 0..16 {
        let joined = b.op("ConcatV2").name(&format!("n{at}")).input(value).input(value);
        value = joined.input(axis).build()?.into();
    }
    b.op("Size").name("y").input(value).build().map(|_| ())
}

#[test]
fn a_constant_that_is_joined_to_itself_is_folded_up_to_the_limit() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[("graph.folding_limit", "1048576")]);
    let session = session(&runtime, doubled);
    let memory = HostMemory::shared();
    memory.reset_peak();
    let before = memory.stats().live_bytes;
    let fetched = run(&session, &[], &["y"]).expect("a step");
    assert_eq!(fetched[0].as_slice::<i32>().expect("a size"), [(16 << 10) << 16]);
    let peak = memory.stats().peak_bytes - before;
    assert!(peak < 16 << 20, "{peak} bytes");
}

#[test]
fn constants_that_are_joined_crosswise_are_folded_up_to_the_limit_of_all() {
    let _turn = turn();
    let knobs = [("graph.folding_bytes", "1000000")];
    let runtime = runtime(ZOO, &knobs);
    let session = session(&runtime, |b| {
        let axis = b.constant("axis", Tensor::scalar(0i32).expect("a scalar"))?;
        let mut pair = [b.constant("a", floats(&[1.0; 64]))?, b.constant("c", floats(&[2.0; 64]))?];
        for at in 0..16 {
            let mut join = |name: &str, [x, y]: [Output; 2]| {
                let joined = b.op("ConcatV2").name(&format!("{name}{at}")).input(x).input(y);
                joined.input(axis).build().map(Output::from)
            };
            let [x, y] = pair;
            pair = [join("a", [x, y])?, join("c", [y, x])?];
        }
        let [x, y] = pair;
        let less = b.op("Sub").name("less").input(x).input(y).build()?;
        b.op("Size").name("y").input(less).build().map(|_| ())
    });
    let step = CallableOptions::new(&[], &["less"]);
    let report = session.explain_passes(Some(&step)).expect("it is compiled");
    let [limit] = &report.limits[..] else { panic!("{:?}", report.limits) };
    assert_eq!(
        limit,
        "folding left nodes as they are: its constants reached the limit (graph.folding_bytes=1000000)"
    );
    let fetched = run(&session, &[], &["y"]).expect("a step");
    assert_eq!(fetched[0].as_slice::<i32>().expect("a size"), [64 << 16]);
}
