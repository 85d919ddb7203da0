//! Sessions over CPU and CUDA, on the fake CUDA stack: what is computed, how often it is enqueued, what a trace shows,
//! and what happens when memory runs out or a device is lost.

use std::sync::{Arc, Mutex};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    RunOptions, Runtime, Session,
    framework::{Code, DType, PartialShape, Tensor},
    host::call::TraceSink,
};
use tenon_tests::{
    cuda::{cuda_runtime, order, take_log},
    session::{floats, run, run_with, session, session_as_written, turn, values},
};

const CUDA: &str = "/device:CUDA:0";
const SECOND: &str = "/device:CUDA:1";
const CPU: &str = "/device:CPU:0";
const LENGTH: i64 = 6000;

fn feed(step: usize) -> Tensor {
    let value = |at: i64| ((at * 37 + step as i64 * 11) % 101) as f32 / 16.0 - 3.0;
    floats(&(0..LENGTH).map(value).collect::<Vec<f32>>())
}

fn vector() -> PartialShape {
    PartialShape::new(&[LENGTH]).expect("a shape")
}

/// `y = relu(x) * (x - x^2)` on a GPU, and `z = -y` on the CPU.
fn mixed(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, vector())?;
    let p = b.op("Relu").name("p").input(x).device(CUDA).build()?;
    let q = b.op("Square").name("q").input(x).device(CUDA).build()?;
    let d = b.op("Sub").name("d").input(x).input(q).device(CUDA).build()?;
    let y = b.op("Mul").name("y").input(p).input(d).device(CUDA).build()?;
    b.op("Neg").name("z").input(y).device(CPU).build().map(|_| ())
}

fn expected(x: &Tensor) -> Vec<f32> {
    values(x).into_iter().map(|x| x.max(0.0) * (x - x * x)).collect()
}

fn step(session: &Session, number: usize) {
    let x = feed(number);
    let found = run(session, &[("x", x.clone())], &["y", "z"]).expect("the step runs");
    let (y, z) = (values(&found[0]), values(&found[1]));
    let expected = expected(&x);
    for at in 0..expected.len() {
        // Products and differences of few bits: no rounding differs.
        assert_eq!(y[at], expected[at], "y[{at}] of step {number}");
        assert_eq!(z[at], -expected[at], "z[{at}] of step {number}");
    }
}

fn count(log: &str, call: &str) -> usize {
    log.lines().filter(|line| line.contains(call)).count()
}

fn with_knob(value: &str) -> Runtime {
    cuda_runtime(&[("runtime.record_after", value), ("graph.elementwise_fusion", "false")])
}

#[test]
fn a_step_runs_over_both_devices() {
    let _turn = turn();
    let runtime = with_knob("-1");
    let session = session(&runtime, mixed);
    (0..5).for_each(|number| step(&session, number));
}

#[test]
fn streams_of_a_session_that_ended_serve_the_next() {
    let _turn = turn();
    let runtime = with_knob("-1");
    let made = || {
        take_log();
        step(&session(&runtime, mixed), 0);
        count(&take_log(), "stream_create")
    };
    let first = made();
    assert!(first > 0, "a step has streams of its own");
    assert_eq!((0..5).map(|_| made()).sum::<usize>(), 0, "all of them are kept");
}

#[test]
fn steps_that_repeat_are_recorded_once_and_launched_as_one() {
    let _turn = turn();
    let runtime = with_knob("2");
    let session = session(&runtime, mixed);
    step(&session, 0);
    step(&session, 1);
    take_log();
    step(&session, 2);
    let recording = take_log();
    assert_eq!(count(&recording, "capture_begin"), 1, "{recording}");
    assert_eq!(count(&recording, "graph_launch"), 1, "{recording}");
    for number in 3..8 {
        step(&session, number);
        let log = take_log();
        assert_eq!(count(&log, "capture_begin"), 0, "{log}");
        assert_eq!(count(&log, "graph_launch"), 1, "{log}");
        assert_eq!(count(&log, "launch kernel="), 0, "{log}");
    }
}

#[test]
fn a_recording_that_the_driver_refuses_leaves_the_step_as_it_was() {
    let _turn = turn();
    let runtime = with_knob("0");
    let session = session(&runtime, mixed);
    order("FAKE_CUDA_FAIL", Some("cuStreamEndCapture:1:901"));
    step(&session, 0);
    order("FAKE_CUDA_FAIL", None);
    take_log();
    (1..4).for_each(|number| step(&session, number));
    let log = take_log();
    assert_eq!(count(&log, "capture_begin"), 0, "none records any more: {log}");
}

/// What ran on which stream, and when.
#[derive(Default)]
struct Spans(Mutex<Vec<(String, String, u64, u64)>>);

impl TraceSink for Spans {
    fn span(&self, _node: &str, _name: &str, _begin_ns: u64, _end_ns: u64) {}

    fn stream_span(&self, stream: &str, node: &str, begin_ns: u64, end_ns: u64) {
        self.0.lock().unwrap().push((stream.to_owned(), node.to_owned(), begin_ns, end_ns));
    }
}

#[test]
fn a_trace_shows_the_streams_with_the_times_of_the_devices_events() {
    let _turn = turn();
    let runtime = with_knob("0");
    let session = session(&runtime, mixed);
    step(&session, 0);
    let spans = Arc::new(Spans::default());
    let options = RunOptions { trace: Some(spans.clone()), ..RunOptions::default() };
    run_with(&session, &[("x", feed(1))], &["y", "z"], &options).expect("the step runs");
    let spans = spans.0.lock().unwrap();
    assert!(!spans.is_empty());
    let kernels: Vec<_> =
        spans.iter().filter(|(stream, ..)| stream.starts_with("CUDA:0 stream")).collect();
    assert!(kernels.len() >= 2, "{spans:?}");
    assert!(kernels.iter().all(|(_, _, begin, end)| 0 < *begin && begin <= end), "{spans:?}");
}

#[test]
fn memory_that_runs_out_fails_the_step_and_nothing_else() {
    let _turn = turn();
    order("FAKE_CUDA_MEMORY", Some("1048576"));
    let runtime = with_knob("-1");
    let large = session(&runtime, |b| {
        let shape = PartialShape::new(&[1 << 20]).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape)?;
        let y = b.op("Square").name("y").input(x).device(CUDA).build()?;
        b.op("Relu").name("z").input(y).device(CUDA).build().map(|_| ())
    });
    let x = floats(&vec![1.0; 1 << 20]);
    let error = run(&large, &[("x", x)], &["z"]).expect_err("4 MiB do not fit into 1");
    assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED, "{error}");
    let message = error.to_string();
    for part in ["4194304", "in use", "free"] {
        assert!(message.contains(part), "expected '{part}' in: {message}");
    }
    let small = session(&runtime, mixed);
    step(&small, 0);
    order("FAKE_CUDA_MEMORY", None);
}

#[test]
fn a_lost_device_fails_its_steps_and_others_go_on() {
    let _turn = turn();
    let runtime = with_knob("-1");
    let on = |device: &'static str| {
        session(&runtime, move |b| {
            let x = b.placeholder("x", DType::FLOAT, vector())?;
            let y = b.op("Square").name("y").input(x).device(device).build()?;
            b.op("Relu").name("z").input(y).device(device).build().map(|_| ())
        })
    };
    let (other, lost) = (on(CUDA), on(SECOND));
    let step = |session: &Session| run(session, &[("x", feed(0))], &["z"]);
    step(&lost).expect("it is there");
    order("FAKE_CUDA_FAIL_LATER", Some("cuLaunchKernelEx:1:700"));
    let error = step(&lost).expect_err("an illegal access");
    order("FAKE_CUDA_FAIL_LATER", None);
    assert_eq!(error.code(), Code::UNAVAILABLE, "{error}");
    assert!(error.to_string().contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{error}");
    let again = step(&lost).expect_err("it stays lost");
    assert_eq!(again.code(), Code::UNAVAILABLE, "{again}");
    let found = step(&other).expect("the other device goes on");
    let squares: Vec<f32> = values(&feed(0)).into_iter().map(|x| x * x).collect();
    assert_eq!(values(&found[0]), squares);
}

/// `y = x^2` of a vector that is fed, and `z = -fill`, which needs nothing of it.
fn independent(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, vector())?;
    b.op("Square").name("y").input(x).device(CUDA).build()?;
    let dims = Tensor::from_slice(&[1], &[1000i32]).expect("a vector");
    let dims = b.constant("dims", dims)?;
    let value = b.constant("value", Tensor::from_slice(&[], &[1.5f32]).expect("a scalar"))?;
    let fill = b.op("Fill").name("fill").input(dims).input(value).device(CUDA).build()?;
    b.op("Neg").name("z").input(fill).device(CUDA).build().map(|_| ())
}

#[test]
fn copies_run_while_kernels_compute_what_does_not_need_them() {
    let _turn = turn();
    let runtime = with_knob("-1");
    let session = session_as_written(&runtime, independent);
    let step = || {
        let x = feed(0);
        let found = run(&session, &[("x", x.clone())], &["y", "z"]).expect("the step runs");
        let squares: Vec<f32> = values(&x).into_iter().map(|x| x * x).collect();
        assert_eq!(values(&found[0]), squares);
        assert_eq!(values(&found[1]), [-1.5; 1000]);
    };
    step();
    let (into, out_of) = (LENGTH * 4, 1000 * 4);
    // Each pair waits for each other on the device: where one is behind the other, or the host waits between the
    // two, they never meet.
    for pair in
        [format!("htod bytes={into},fill"), format!("dtoh bytes={out_of},htod bytes={into}")]
    {
        take_log();
        order("FAKE_CUDA_MEET", Some(&pair));
        step();
        order("FAKE_CUDA_MEET", None);
        let log = take_log();
        assert_eq!(count(&log, &format!("met {pair}")), 1, "{log}");
    }
}
