//! A server, its sessions from Rust, and steps that are fed in parts. TensorFlow's own client is in tests/client.

use std::{
    thread,
    time::{Duration, Instant},
};
use tenon_cluster::{ClusterError, Limits, Server, ServerOptions, Session};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_proto::{ConfigProto, GraphDef};
use tenon_runtime::{
    CallableOptions, RunOptions, Runtime, Worker,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::session::{floats, graph, runtime, session, turn, values};

/// `y = x + 1`, of a placeholder; a variable `v` with `set` and `value`; `wait`, a loop without an end.
fn small(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let one = b.constant("one", Tensor::scalar(1f32).expect("a scalar"))?;
    b.op("AddV2").name("y").input(x).input(one).build()?;
    let handle = b.op("VarHandleOp").name("v").attr("dtype", DType::FLOAT);
    let handle = handle.attr("shape", PartialShape::UNKNOWN).build()?;
    b.op("AssignVariableOp").name("set").input(handle).input(x).build()?;
    let value = b.op("ReadVariableOp").name("value").attr("dtype", DType::FLOAT);
    value.input(handle).build().map(|_| ())
}

fn start(limits: Limits) -> (Runtime, Server, GraphDef) {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    let options = ServerOptions { limits, ..ServerOptions::default() };
    let server = Server::start(Worker::new(&runtime), &options).expect("a port is free");
    let def = graph(&runtime, small).to_graph_def().expect("it can be written");
    (runtime, server, def)
}

fn target(server: &Server) -> String {
    format!("grpc://{}", server.address())
}

fn code(error: &ClusterError) -> Code {
    error.code()
}

#[test]
fn a_session_on_a_server_runs_steps_and_grows() {
    let _turn = turn();
    let (runtime, server, def) = start(Limits::default());
    let session = Session::connect(&target(&server), def).unwrap();
    let fetched = session.run(&[("x", floats(&[1.0, 2.0]))], &["y"], &[], None).unwrap();
    assert_eq!(values(&fetched[0]), [2.0, 3.0]);
    let more = |b: &mut GraphBuilder<'_>| {
        let z = b.placeholder("z", DType::FLOAT, PartialShape::UNKNOWN)?;
        b.op("Neg").name("negative").input(z).build().map(|_| ())
    };
    session.extend_graph(&graph(&runtime, more)).unwrap();
    let fetched = session.run(&[("z", floats(&[5.0]))], &["negative"], &[], None).unwrap();
    assert_eq!(values(&fetched[0]), [-5.0]);
    let again = session.extend_graph(&graph(&runtime, more)).unwrap_err();
    assert_eq!(code(&again), Code::INVALID_ARGUMENT, "{again}");
    session.close().unwrap();
}

#[test]
fn sessions_share_variables_unless_they_ask_not_to() {
    let _turn = turn();
    let (_runtime, server, def) = start(Limits::default());
    let [first, second] = [0; 2].map(|_| Session::connect(&target(&server), def.clone()).unwrap());
    let apart = ConfigProto { isolate_session_state: true, ..ConfigProto::default() };
    let apart = Session::connect_with(&target(&server), def, apart).unwrap();
    let unset = second.run(&[], &["value"], &[], None).unwrap_err();
    assert_eq!(code(&unset), Code::FAILED_PRECONDITION, "{unset}");
    assert!(unset.to_string().contains("uninitialized value v"), "{unset}");
    first.run(&[("x", floats(&[7.0]))], &[], &["set"], None).unwrap();
    assert_eq!(values(&second.run(&[], &["value"], &[], None).unwrap()[0]), [7.0]);
    let alone = apart.run(&[], &["value"], &[], None).unwrap_err();
    assert_eq!(code(&alone), Code::FAILED_PRECONDITION, "{alone}");
}

#[test]
fn what_a_server_refuses_has_a_code_and_a_name() {
    let _turn = turn();
    let (_runtime, server, def) = start(Limits { sessions: 1, ..Limits::default() });
    let session = Session::connect(&target(&server), def.clone()).unwrap();
    let run = |feeds: &[(&str, Tensor)], fetches: &[&str]| {
        session.run(feeds, fetches, &[], None).expect_err("it is refused")
    };
    let unknown = run(&[], &["nothing"]);
    assert_eq!(code(&unknown), Code::NOT_FOUND);
    assert!(unknown.to_string().contains("nothing"), "{unknown}");
    let x = || floats(&[1.0]);
    let twice = run(&[("x", x()), ("x:0", x())], &["y"]);
    assert_eq!(code(&twice), Code::INVALID_ARGUMENT);
    assert!(twice.to_string().contains("'x' is fed more than once"), "{twice}");
    assert!(run(&[("x", x())], &["y", "y:0"]).to_string().contains("fetched more than once"));
    let full = Session::connect(&target(&server), def).err().expect("the server is full");
    assert_eq!(code(&full), Code::RESOURCE_EXHAUSTED, "{full}");
    let nobody = Session::connect("grpc://127.0.0.1:1", GraphDef::default()).err();
    assert_eq!(nobody.map(|error| code(&error)), Some(Code::UNAVAILABLE));
    let form = Session::connect("127.0.0.1:2222", GraphDef::default()).err();
    assert_eq!(form.map(|error| code(&error)), Some(Code::INVALID_ARGUMENT));
    let taken = ServerOptions { listen: server.address(), ..ServerOptions::default() };
    let taken = Server::start(Worker::new(&_runtime), &taken).err().expect("the port is taken");
    assert_eq!(taken.code(), Code::ALREADY_EXISTS, "{taken}");
}

#[test]
fn a_session_goes_when_its_client_stays_away() {
    let _turn = turn();
    let (_runtime, server, def) =
        start(Limits { sessions: 1, away: Duration::from_millis(100), ..Limits::default() });
    // It is not closed: its client is gone without a word.
    let session = Session::connect(&target(&server), def.clone()).unwrap();
    session.forget();
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match Session::connect(&target(&server), def.clone()) {
            Ok(_) => break,
            Err(error) if Instant::now() < end => {
                assert_eq!(code(&error), Code::RESOURCE_EXHAUSTED, "{error}");
                thread::sleep(Duration::from_millis(50));
            }
            Err(error) => panic!("the session stays: {error}"),
        }
    }
}

#[test]
fn a_server_that_stops_is_gone_for_its_clients() {
    let _turn = turn();
    let (_runtime, server, def) = start(Limits::default());
    let session = Session::connect(&target(&server), def).unwrap();
    let begin = Instant::now();
    server.stop(Duration::from_secs(5));
    assert!(begin.elapsed() < Duration::from_secs(5), "nothing runs: it need not wait");
    let gone = session.run(&[("x", floats(&[1.0]))], &["y"], &[], None).unwrap_err();
    assert!([Code::UNAVAILABLE, Code::CANCELLED, Code::UNKNOWN].contains(&code(&gone)), "{gone}");
}

fn sums(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let scalar = || PartialShape::new(&[1]).expect("a shape");
    let [a, x] = ["a", "x"].map(|name| b.placeholder(name, DType::FLOAT, scalar()));
    let (a, x) = (a?, x?);
    let twice = b.op("AddV2").name("twice").input(a).input(a).build()?;
    b.op("Mul").name("product").input(twice).input(x).build().map(|_| ())
}

#[test]
fn a_step_is_fed_and_fetched_in_parts() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = session(&runtime, sums);
    let signature = CallableOptions::new(&["a", "x"], &["twice", "product"]);
    let options = RunOptions::default();
    let run = session.partial_run(&signature).unwrap();
    let early = run.run(&[], &["twice"], &options).unwrap_err();
    assert_eq!(early.code(), Code::INVALID_ARGUMENT);
    assert!(early.to_string().contains("needs feed 'a'"), "{early}");
    let twice = run.run(&[("a", floats(&[3.0]))], &["twice"], &options).unwrap();
    assert_eq!(values(&twice[0]), [6.0]);
    assert!(!run.is_done());
    let again = run.run(&[("a", floats(&[3.0]))], &[], &options).unwrap_err();
    assert!(again.to_string().contains("was fed before"), "{again}");
    let product = run.run(&[("x", floats(&[5.0]))], &["product"], &options).unwrap();
    assert_eq!(values(&product[0]), [30.0]);
    assert!(run.is_done());

    // One that is given up holds nothing: the session closes at once.
    let left = session.partial_run(&signature).unwrap();
    left.run(&[("a", floats(&[1.0]))], &["twice"], &options).unwrap();
    let begin = Instant::now();
    drop(left);
    session.close();
    assert!(begin.elapsed() < Duration::from_secs(10));
}
