//! The figures that a runtime tells of itself: exact where they are counts, never falling where they are sums.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_monitor::{serve, serve_as_set};
use tenon_runtime::{
    Runtime,
    framework::{DType, PartialShape, Tensor},
    metrics::{KernelMetrics, Metrics},
};
use tenon_tests::{
    loops::{Loop, binary, unary},
    session::{floats, run, runtime, session_as_written},
};

/// The kernel of an op.
fn kernel(runtime: &Runtime, op: &str) -> KernelMetrics {
    let metrics = runtime.metrics();
    metrics.kernels.into_iter().find(|kernel| kernel.op == op).expect("the kernel has run")
}

fn relu(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    b.op("Relu").name("y").input(x).build().map(|_| ())
}

const X: [f32; 4] = [-1.0, 2.0, -3.0, 4.0];

#[test]
fn calls_and_time_stay_when_a_session_is_refreshed_and_closed() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = session_as_written(&runtime, relu);
    let step = || run(&session, &[("x", floats(&X))], &["y"]).expect("a step");
    (0..5).for_each(|_| drop(step()));
    let five = kernel(&runtime, "Relu");
    assert_eq!((five.nodes, five.calls, &*five.plugin), (1, 5, "tenon-cpu"));
    assert!(five.seconds > 0.0, "even a plan of one node is measured: {five:?}");
    session.refresh().expect("the registry is as it was");
    let after = kernel(&runtime, "Relu");
    assert_eq!((after.calls, after.seconds), (5, five.seconds));
    step();
    assert_eq!(kernel(&runtime, "Relu").calls, 6);
    session.close();
    drop(session);
    let closed = kernel(&runtime, "Relu");
    assert_eq!((closed.nodes, closed.calls), (0, 6));
    assert!(closed.seconds >= five.seconds);
}

#[test]
fn time_never_falls() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = session_as_written(&runtime, relu);
    let mut before = 0.0;
    for _ in 0..200 {
        (0..10).for_each(|_| drop(run(&session, &[("x", floats(&X))], &["y"]).expect("a step")));
        let metrics = runtime.metrics();
        let seconds = metrics.kernels[0].seconds;
        assert!(seconds >= before, "{seconds} after {before}");
        before = seconds;
    }
    let metrics = runtime.metrics();
    assert_eq!((metrics.steps.done, metrics.kernels[0].calls), (2000, 2000));
}

#[test]
fn failed_steps_are_counted_apart() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = session_as_written(&runtime, |b| {
        let at = b.placeholder("at", DType::INT32, PartialShape::UNKNOWN)?;
        let table = b.constant("table", floats(&X))?;
        b.op("Gather").name("y").input(table).input(at).build().map(|_| ())
    });
    let step = |at: i32| {
        let at = Tensor::from_slice(&[1], &[at]).expect("a vector");
        run(&session, &[("at", at)], &["y"]).is_ok()
    };
    let went_well: Vec<bool> = [0, 7, 3, -1].into_iter().map(step).collect();
    assert_eq!(went_well, [true, false, true, false]);
    // Refused before it began: no step of any plan.
    assert!(run(&session, &[("at", floats(&X))], &["y"]).is_err());
    let steps = runtime.metrics().steps;
    assert_eq!((steps.running, steps.done, steps.failed), (0, 2, 3));
    assert_eq!(kernel(&runtime, "Gather").calls, 2);
}

#[test]
fn calls_in_a_loop_are_those_that_were_made() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = session_as_written(&runtime, |b| {
        let int = |b: &mut GraphBuilder<'_>, name| {
            b.placeholder(name, DType::INT32, PartialShape::UNKNOWN)
        };
        let (n, start, step) = (int(b, "n")?, int(b, "start")?, int(b, "step")?);
        let steps = [step];
        let l = Loop { name: "loop", parallel: 4, counter: n, values: &[start], constants: &steps };
        let results = l.build(b, |b, values, constants| {
            Ok(vec![binary(b, "Mul", "body", values[0], constants[0])?])
        })?;
        unary(b, "Neg", "y", results[1]).map(|_| ())
    });
    let int = |value: i32| Tensor::scalar(value).expect("a scalar");
    for n in [10, 0, 32] {
        let feeds = [("n", int(n)), ("start", int(1)), ("step", int(1))];
        run(&session, &feeds, &["y"]).expect("a step");
    }
    assert_eq!(kernel(&runtime, "Mul").calls, 42, "of the loop's body");
    assert_eq!(kernel(&runtime, "Neg").calls, 3, "of what follows the loop");
}

/// Head and body of what is said under a path.
fn answer(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it takes a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer has a head");
    (head.to_owned(), body.to_owned())
}

/// What is said under a path that is there.
fn get(address: SocketAddr, path: &str) -> String {
    let (head, body) = answer(address, path);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body
}

#[test]
fn two_runtimes_of_a_process_tell_their_own_figures() {
    let both = [(); 2].map(|()| runtime(&["tenon_cpu"], &[("runtime.monitor", "0")]));
    let addresses = both.each_ref().map(|runtime| {
        let server = serve_as_set(runtime).expect("the port is free").expect("the knob is set");
        let address = server.address();
        runtime.attach(server);
        address
    });
    let sessions = both.each_ref().map(|runtime| session_as_written(runtime, relu));
    for (session, steps) in sessions.iter().zip([3, 5]) {
        (0..steps).for_each(|_| drop(run(session, &[("x", floats(&X))], &["y"]).expect("a step")));
    }
    for ((runtime, address), steps) in both.iter().zip(addresses).zip([3, 5]) {
        let told: Metrics = serde_json::from_str(&get(address, "/metrics.json")).expect("figures");
        assert_eq!((told.steps.done, told.kernels[0].calls), (steps, steps));
        let direct = &runtime.metrics().kernels[0];
        assert!((told.kernels[0].seconds / direct.seconds - 1.0).abs() < 1e-9, "{told:?}");
        let text = get(address, "/metrics");
        assert!(text.contains(&format!("tenon_steps_total{{result=\"ok\"}} {steps}\n")), "{text}");
    }
    drop((sessions, both));
    assert!(addresses.iter().all(|at| TcpStream::connect(at).is_err()), "nobody listens any more");
}

#[test]
fn a_server_is_asked_for_and_keeps_no_runtime() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    assert!(serve_as_set(&runtime).expect("no address is wrong").is_none(), "the knob is empty");
    let refused = serve(&runtime, "0.0.0.0:9100").expect_err("others could ask there");
    assert!(refused.to_string().contains("loopback"), "{refused}");
    let server = serve(&runtime, "0").expect("a port is free");
    let address = server.address();
    get(address, "/metrics");
    drop(runtime);
    let (head, body) = answer(address, "/metrics");
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert_eq!(body, "the runtime is gone\n");
    drop(server);
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}
