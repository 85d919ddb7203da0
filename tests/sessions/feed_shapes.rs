//! Feeds of other shapes than their placeholders say. TensorFlow does not compare them: a client of its protocol may feed any.
//! Sessions from Rust do.

use super::cluster::Tasks;
use tenon_cluster::{ClusterError, Server, ServerOptions, Session};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    CallableOptions, RunOptions, Worker,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::session::{floats, graph, runtime, session, turn, values};

/// `y = -x` at one device and `z = |y|` at another one, and `dims`, the shape of `x`, which the graph says is `[2]`.
fn shaped(b: &mut GraphBuilder<'_>, devices: [&str; 2]) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[2]).expect("a shape"))?;
    let y = b.op("Neg").name("y").device(devices[0]).input(x).build()?;
    b.op("Abs").name("z").device(devices[1]).input(y).build()?;
    b.op("Shape").name("dims").device(devices[1]).input(y).build()?;
    Ok(())
}

fn here(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    shaped(b, ["", ""])
}

/// Feeds that fit and that do not, by turns.
fn feeds() -> Vec<Tensor> {
    let of = |dims: &[i64], count: usize| {
        let elements: Vec<f32> = (0..count).map(|at| at as f32 + 1.0).collect();
        floats(&elements).reshaped(dims).expect("as many elements")
    };
    vec![of(&[2], 2), of(&[3], 3), of(&[2, 2], 4), of(&[], 1), of(&[2], 2), of(&[0], 0)]
}

/// Checks `y`, `z` and `dims` of a feed.
fn check(x: &Tensor, fetched: &[Tensor]) {
    let negative: Vec<f32> = values(x).iter().map(|it| -it).collect();
    assert_eq!((values(&fetched[0]), values(&fetched[1])), (negative, values(x)));
    assert!(fetched[..2].iter().all(|it| it.shape() == x.shape()), "{fetched:?}");
    let dims: Vec<i32> = x.shape().dims().iter().map(|&dim| dim as i32).collect();
    assert_eq!(fetched[2].as_slice::<i32>().expect("a shape"), dims);
}

const FETCHES: [&str; 3] = ["y", "z", "dims"];

/// What a session from Rust says of a feed that does not fit.
fn check_refused(result: Result<Vec<Tensor>, ClusterError>) {
    let error = result.expect_err("it does not fit");
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert_eq!(error.to_string(), "feed 'x': expected shape [2], found [3]");
}

/// The steps of a session on a server, whole ones and in parts.
fn check_session(session: &Session) {
    for x in feeds() {
        check(&x, &session.run_any_shape(&[("x", x.clone())], &FETCHES, &[], None).unwrap());
    }
    check_refused(session.run(&[("x", floats(&[1.0; 3]))], &FETCHES, &[], None));
    for x in feeds() {
        let names = CallableOptions::new(&["x"], &FETCHES);
        let handle = session.set_up_partial_run(&names).unwrap();
        let feed = [("x", x.clone())];
        let mut fetched = session.run_part_any_shape(&handle, &feed, &["y"], None).unwrap();
        let rest = session.run_part_any_shape(&handle, &[], &["z", "dims"], None).unwrap();
        fetched.extend(rest);
        check(&x, &fetched);
    }
    let wrong = Tensor::from_slice(&[2], &[1i32, 2]).unwrap();
    let error = session.run_any_shape(&[("x", wrong)], &FETCHES, &[], None).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT, "the type is compared: {error}");
}

#[test]
fn a_server_takes_feeds_of_any_shape() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu"], &[]);
    let server = Server::start(Worker::new(&runtime), &ServerOptions::default()).unwrap();
    let def = graph(&runtime, here).to_graph_def().unwrap();
    let target = format!("grpc://{}", server.address());
    check_session(&Session::connect(&target, def).unwrap());
}

#[test]
fn a_cluster_takes_feeds_of_any_shape() {
    let _turn = turn();
    let tasks = Tasks::of(&[("ps", 0), ("worker", 0)]);
    let devices = ["/job:ps/task:0/device:CPU:0", "/job:worker/task:0/device:CPU:0"];
    let def = tasks.graph(|b| shaped(b, devices));
    for target in ["worker/0", "ps/0"] {
        check_session(&Session::connect(&tasks.target(target), def.clone()).unwrap());
    }
}

#[test]
fn a_session_here_takes_them_where_it_is_asked_to() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = session(&runtime, here);
    let (names, options) = (CallableOptions::new(&["x"], &FETCHES), RunOptions::default());
    let callable = session.any_shape_callable(names.clone()).unwrap();
    let mut fetched = Vec::new();
    for x in feeds() {
        let feed = [x.clone()];
        check(&x, &session.run_any_shape(&names, &feed, &options).unwrap().0);
        for options in [None, Some(&options)] {
            callable.run(&feed, &mut fetched, options).unwrap();
            check(&x, &fetched);
        }
    }
    let strict = session.callable(names.clone()).unwrap();
    let refused = strict.run(&[floats(&[1.0; 3])], &mut fetched).unwrap_err();
    assert_eq!(refused.to_string(), "feed 'x': expected shape [2], found [3]");
    let few = callable.run(&[], &mut fetched, None).map(drop).unwrap_err();
    assert_eq!(few.to_string(), "the callable takes 1 feeds, found 0");
}
