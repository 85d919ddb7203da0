//! Which steps are recorded on a GPU: not those in which devices wait for each other, and those in which nothing but
//! constants is in host memory. On the fake CUDA stack.

use std::{sync::mpsc, thread, time::Duration};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    Runtime, Session,
    framework::{DType, PartialShape, Tensor},
};
use tenon_tests::{
    cuda::{cuda_runtime, take_log},
    session::{run, session_as_written, turn, values},
};

const CUDA: &str = "/device:CUDA:0";
const SECOND: &str = "/device:CUDA:1";
const CPU: &str = "/device:CPU:0";

fn count(log: &str, call: &str) -> usize {
    log.lines().filter(|line| line.contains(call)).count()
}

fn recording() -> Runtime {
    cuda_runtime(&[("runtime.record_after", "0")])
}

fn feed(step: usize) -> Tensor {
    let x: Vec<f32> = (0..600).map(|at| ((at * 7 + step * 5) % 31) as f32 / 4.0 - 3.0).collect();
    Tensor::from_slice(&[20, 30], &x).expect("a shape")
}

/// `y = x^3`: another device negates the square between.
fn there_and_back(b: &mut GraphBuilder<'_>, by: &str) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[20, 30]).expect("a shape");
    let x = b.placeholder("x", DType::FLOAT, shape)?;
    let p = b.op("Square").name("p").input(x).device(CUDA).build()?;
    let q = b.op("Neg").name("q").input(p).device(by).build()?;
    let r = b.op("Mul").name("r").input(q).input(x).device(CUDA).build()?;
    b.op("Neg").name("y").input(r).device(CUDA).build().map(|_| ())
}

/// `y = z = x^3`: each of two devices computes something first that the other one needs then.
fn crosswise(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[20, 30]).expect("a shape");
    let x = b.placeholder("x", DType::FLOAT, shape)?;
    let p = b.op("Square").name("p").input(x).device(CUDA).build()?;
    let q = b.op("Neg").name("q").input(x).device(SECOND).build()?;
    let r = b.op("Mul").name("r").input(p).input(q).device(CUDA).build()?;
    let s = b.op("Mul").name("s").input(p).input(q).device(SECOND).build()?;
    b.op("Neg").name("y").input(r).device(CUDA).build()?;
    b.op("Neg").name("z").input(s).device(SECOND).build().map(|_| ())
}

/// Runs a few steps, whose results are the cubes of what is fed; fails where one does not come back.
fn steps(session: Session, fetches: &'static [&'static str]) {
    let (done, told) = mpsc::channel();
    let runner = thread::spawn(move || {
        for step in 0..12 {
            let x = feed(step);
            let expected: Vec<f32> = values(&x).into_iter().map(|x| x * x * x).collect();
            for found in run(&session, &[("x", x)], fetches).expect("the step runs") {
                assert_eq!(values(&found), expected, "step {step}");
            }
        }
        let _ = done.send(());
    });
    let in_time = told.recv_timeout(Duration::from_secs(120));
    assert_ne!(in_time, Err(mpsc::RecvTimeoutError::Timeout), "a step hangs");
    runner.join().expect("results are right");
}

#[test]
fn steps_in_which_devices_wait_for_each_other_come_to_their_end() {
    let _turn = turn();
    for by in [CPU, SECOND] {
        steps(session_as_written(&recording(), |b| there_and_back(b, by)), &["y"]);
    }
    steps(session_as_written(&recording(), crosswise), &["y", "z"]);
}

/// The copy of the large feed takes longer than a replay spares: what does not need it runs beside it.
#[test]
fn a_large_copy_is_not_waited_for_by_commands_that_do_not_need_it() {
    let _turn = turn();
    for (length, beside, recorded) in
        [(1 << 18, true, false), (1 << 18, false, true), (1 << 10, true, true)]
    {
        let session = session_as_written(&recording(), |b| {
            let shape = PartialShape::new(&[length]).expect("a shape");
            let x = b.placeholder("x", DType::FLOAT, shape)?;
            let v = b.placeholder("v", DType::FLOAT, PartialShape::new(&[4]).expect("a shape"))?;
            let p = b.op("Square").name("p").input(x).device(CUDA).build()?;
            b.op("Neg").name("y").input(p).device(CUDA).build()?;
            let q = b.op("Square").name("q").input(v).device(CUDA).build()?;
            b.op("Neg").name("z").input(q).device(CUDA).build().map(|_| ())
        });
        let fetches: &[&str] = if beside { &["y", "z"] } else { &["y"] };
        take_log();
        for _ in 0..3 {
            let x = Tensor::from_slice(&[length], &vec![2.0f32; length as usize]).expect("a shape");
            let v = Tensor::from_slice(&[4], &[3.0f32; 4]).expect("a shape");
            let feeds = if beside { vec![("x", x), ("v", v)] } else { vec![("x", x)] };
            let fetched = run(&session, &feeds, fetches).expect("the step runs");
            assert_eq!(values(&fetched[0]), vec![-4.0; length as usize]);
            fetched.get(1).inspect(|z| assert_eq!(values(z), [-9.0; 4]));
        }
        let log = take_log();
        let is_recorded = count(&log, "graph_launch ") > 0;
        assert_eq!(is_recorded, recorded, "{length} elements, beside: {beside}: {log}");
    }
}

#[test]
fn what_only_gives_results_away_is_recorded_still() {
    let _turn = turn();
    let session = session_as_written(&recording(), |b| {
        let shape = PartialShape::new(&[20, 30]).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape)?;
        let p = b.op("Square").name("p").input(x).device(CUDA).build()?;
        let q = b.op("Mul").name("q").input(p).input(x).device(CUDA).build()?;
        b.op("Identity").name("y").input(q).device(SECOND).build().map(|_| ())
    });
    take_log();
    steps(session, &["y"]);
    let log = take_log();
    assert_eq!((count(&log, "capture_begin"), count(&log, "graph_launch")), (1, 12), "{log}");
}

#[test]
fn constants_that_kernels_want_in_host_memory_lie_there_and_the_step_is_recorded() {
    let _turn = turn();
    let session = session_as_written(&recording(), |b| {
        let shape = PartialShape::new(&[20, 30]).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape)?;
        let flat = Tensor::from_slice(&[2], &[30i32, 20]).expect("a shape");
        let flat = b.constant("flat", flat)?;
        let p = b.op("Square").name("p").input(x).device(CUDA).build()?;
        let q = b.op("Mul").name("q").input(p).input(x).device(CUDA).build()?;
        b.op("Reshape").name("y").input(q).input(flat).device(CUDA).build().map(|_| ())
    });
    take_log();
    steps(session, &["y"]);
    let log = take_log();
    assert_eq!((count(&log, "capture_begin"), count(&log, "graph_launch")), (1, 12), "{log}");
    // What is fed and what is fetched, in each step; and the constant of the graph, once.
    assert_eq!((count(&log, "htod"), count(&log, "dtoh")), (12 + 1, 12), "{log}");
}
