//! Clusters whose tasks are busy, stop, or are started anew.

use super::cluster::Tasks;
use std::{
    io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};
use tenon_cluster::{DataPlane, Limits, Session};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::framework::{Code, DType, Tensor};
use tenon_tests::session::{turn, values};

const PS: &str = "/job:ps/task:0/device:CPU:0";
const WORKER: &str = "/job:worker/task:0/device:CPU:0";
const BOTH: [(&str, u32); 2] = [("ps", 0), ("worker", 0)];

/// `y` takes an element of a queue at the ps, `put` adds one. All sessions share the queue.
fn queue(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let queue = b.op("FIFOQueueV2").name("queue").device(PS).attr("shared_name", "shared");
    let queue = queue.attr("component_types", vec![DType::FLOAT]).build()?;
    let taken = b.op("QueueDequeueV2").name("taken").device(PS).input(queue);
    let taken = taken.attr("component_types", vec![DType::FLOAT]).build()?;
    b.op("Neg").name("y").device(WORKER).input(taken).build()?;
    let one = b.constant("one", Tensor::scalar(1f32).expect("a scalar"))?.node;
    let put = b.op("QueueEnqueueV2").name("put").device(PS).input(queue).input(one);
    put.attr("Tcomponents", vec![DType::FLOAT]).build()?;
    Ok(())
}

/// The code and the time of a step that waits for an element of the queue.
fn wait(session: &Session, limit: Duration) -> (Code, Duration) {
    let begin = Instant::now();
    let error = session.run(&[], &["y"], &[], Some(limit)).unwrap_err();
    (error.code(), begin.elapsed())
}

#[test]
fn steps_of_two_masters_on_each_other_do_not_take_each_others_threads() {
    let _turn = turn();
    const STEPS: usize = 4;
    let limits = Limits { steps: STEPS, parts: STEPS, ..Limits::default() };
    let tasks = Tasks::limited(&BOTH, limits);
    let open = |name: &str| Session::connect(&tasks.target(name), tasks.graph(queue)).unwrap();
    let sessions = [open("ps/0"), open("worker/0")];
    let limit = Duration::from_secs(4);
    thread::scope(|scope| {
        let each = sessions.iter().cycle().take(2 * STEPS);
        let steps: Vec<_> = each.map(|session| scope.spawn(move || wait(session, limit))).collect();
        thread::sleep(Duration::from_secs(1));
        for session in &sessions {
            let (code, took) = wait(session, limit);
            assert_eq!(code, Code::RESOURCE_EXHAUSTED);
            assert!(took < Duration::from_secs(1), "a step too many waited for {took:?}");
        }
        for step in steps {
            assert_eq!(step.join().expect("no panic").0, Code::DEADLINE_EXCEEDED);
        }
    });
    for session in &sessions {
        session.run(&[], &[], &["put"], Some(limit)).unwrap();
        assert_eq!(values(&session.run(&[], &["y"], &[], Some(limit)).unwrap()[0]), [-1.0]);
    }
}

#[test]
fn a_task_that_was_started_anew_is_seen_between_steps() {
    let _turn = turn();
    let mut tasks = Tasks::of(&BOTH);
    let session = Session::connect(&tasks.target("worker/0"), tasks.graph(queue)).unwrap();
    session.run(&[], &[], &["put"], None).unwrap();
    tasks.stop("ps/0");
    tasks.restart("ps", 0, DataPlane::Auto);
    thread::sleep(Duration::from_secs(5));
    let begin = Instant::now();
    let error = session.run(&[], &["y"], &[], None).unwrap_err();
    assert_eq!(error.code(), Code::ABORTED, "{error}");
    let message = error.to_string();
    let expected = "/job:ps/replica:0/task:0 was started anew";
    assert!(message.contains(expected), "{message}");
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
}

#[test]
fn a_server_that_stops_ends_the_steps_in_flight_and_begins_no_others() {
    let _turn = turn();
    let mut tasks = Tasks::of(&BOTH);
    let [target, other] = ["ps/0", "worker/0"].map(|name| tasks.target(name));
    let session = Session::connect(&other, tasks.graph(queue)).unwrap();
    let late = Session::connect(&target, tasks.graph(queue)).unwrap();
    let server = tasks.take("worker/0");
    thread::scope(|scope| {
        let step = scope.spawn(|| session.run(&[], &["y"], &[], Some(Duration::from_secs(20))));
        thread::sleep(Duration::from_millis(500));
        let stopping = scope.spawn(move || server.stop(Duration::from_secs(20)));
        thread::sleep(Duration::from_millis(300));
        let refused = session.run(&[], &["y"], &[], None).unwrap_err();
        assert_eq!(refused.code(), Code::UNAVAILABLE, "{refused}");
        assert!(refused.to_string().contains("the server stops"), "{refused}");
        // The element that the step waits for comes from a task that does not stop.
        late.run(&[], &[], &["put"], None).unwrap();
        let fetched = step.join().expect("no panic").unwrap();
        assert_eq!(values(&fetched[0]), [-1.0]);
        stopping.join().expect("no panic");
    });
}

/// A connection that passes bytes on to a server, its target, and what cuts it.
fn wire(server: SocketAddr) -> (String, thread::JoinHandle<[TcpStream; 2]>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let target = format!("grpc://{}", listener.local_addr().expect("it is bound"));
    let pass = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || drop(io::copy(&mut from, &mut to)));
    };
    let begun = thread::spawn(move || {
        let client = listener.accept().expect("a client connects").0;
        let server = TcpStream::connect(server).expect("the server is up");
        let again = |stream: &TcpStream| stream.try_clone().expect("a descriptor is free");
        pass(again(&client), again(&server));
        pass(again(&server), again(&client));
        [client, server]
    });
    (target, begun)
}

#[test]
fn a_step_whose_client_goes_takes_nothing() {
    let _turn = turn();
    let tasks = Tasks::of(&BOTH);
    let (target, wire) = wire(tasks.address("worker/0"));
    let session = Session::connect(&target, tasks.graph(queue)).unwrap();
    let ends = wire.join().expect("no panic");
    let other = Session::connect(&tasks.target("worker/0"), tasks.graph(queue)).unwrap();
    let limit = Some(Duration::from_secs(5));
    // The first step of a signature has a thread of the server; the next one has none.
    other.run(&[], &[], &["put"], limit).unwrap();
    assert_eq!(values(&session.run(&[], &["y"], &[], limit).unwrap()[0]), [-1.0]);
    thread::scope(|scope| {
        let step = scope.spawn(|| session.run(&[], &["y"], &[], None));
        thread::sleep(Duration::from_millis(500));
        ends.iter().for_each(|end| end.shutdown(Shutdown::Both).expect("it is open"));
        step.join().expect("no panic").expect_err("its connection is cut");
    });
    thread::sleep(Duration::from_millis(500));
    other.run(&[], &[], &["put"], limit).unwrap();
    assert_eq!(values(&other.run(&[], &["y"], &[], limit).unwrap()[0]), [-1.0]);
    session.forget();
}
