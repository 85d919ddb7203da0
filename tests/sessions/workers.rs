//! Workers: sessions that share values or do not, and graphs that were cut elsewhere.

use crate::sessions::{ZOO, expected, formula};
use std::{path::PathBuf, sync::Arc, thread};
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    CallableOptions, Session, SessionOptions, StepError, StepOptions, Worker, WorkerGraph,
    framework::{
        Code, DType, PartialShape, Tensor,
        attr::{AttrList, AttrValue},
    },
    proto::{GraphDef, convert::attr_to_proto, decode, encode},
    rendezvous::{Edges, Key, LocalRendezvous, Parcel, Receiver, Rendezvous},
};
use tenon_tests::{
    process::{finish, start},
    session::{floats, graph, run, runtime, turn, values},
};

/// A variable of the name `shared`, with `set` and `add` of what is fed as `x`, and its `value`.
fn counter(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, point())?;
    let handle = b.op("ZooVariable").name("v").attr("shape", point());
    let handle = handle.attr("shared_name", "shared").build()?;
    b.op("ZooVariableAssign").name("set").input(handle).input(x).build()?;
    b.op("ZooVariableAdd").name("add").input(handle).input(x).build()?;
    b.op("ZooVariableSum").name("value").input(handle).build().map(|_| ())
}

fn point() -> PartialShape {
    PartialShape::new(&[]).expect("no dimensions")
}

fn on(worker: &Worker) -> Session {
    let session = Session::on(worker, SessionOptions::default()).expect("no options");
    let def = graph(worker.runtime(), counter).to_graph_def().expect("it can be written");
    session.extend(&def).expect("it can be read");
    session
}

fn update(session: &Session, target: &str, by: f32) {
    let by = Tensor::scalar(by).expect("a scalar");
    let options = Default::default();
    session.run(&[("x", by)], &[], &[target], &options).expect("the variable is updated");
}

fn value(session: &Session) -> Result<f32, Code> {
    let found = run(session, &[], &["value"]).map_err(|error| error.code())?;
    Ok(values(&found[0])[0])
}

#[test]
fn sessions_on_one_worker_share_a_variable_and_others_do_not() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let worker = Worker::new(&runtime);
    let (first, second) = (on(&worker), on(&worker));
    let other = on(&Worker::new(&runtime));
    update(&first, "set", 2.0);
    update(&second, "add", 3.0);
    assert_eq!((value(&first), value(&second)), (Ok(5.0), Ok(5.0)));
    assert_eq!(
        value(&other),
        Err(Code::FAILED_PRECONDITION),
        "another worker has another variable"
    );
    update(&other, "set", 1.0);
    assert_eq!((value(&first), value(&other)), (Ok(5.0), Ok(1.0)));
    drop(first);
    assert_eq!(value(&second), Ok(5.0), "the worker has it, not the session");
    assert_eq!(worker.reset(&[""]), 1);
    assert_eq!(value(&second), Err(Code::FAILED_PRECONDITION));
}

/// What takes the message of a partition, and the values that it is fed.
const MESSAGE: &str = "TENON_TESTS_PARTITION";

#[test]
#[ignore = "run by `a_partition_runs_in_another_process`, in a process of its own"]
fn what_another_process_cut_runs_here() {
    let file = std::env::var_os(MESSAGE).expect("the process that starts this says where it is");
    let def: GraphDef = decode(&std::fs::read(file).unwrap()).unwrap();
    let worker = Worker::new(&runtime(ZOO, &[]));
    let graph = worker.register(&def, SessionOptions::default()).unwrap();
    let mut fetched = Vec::new();
    for x in [[4.0, 1.0], [0.5, 8.0]] {
        graph.run(&StepOptions::default(), &[floats(&x)], &mut fetched).unwrap();
        assert_eq!(values(&fetched[0]), expected(&x));
    }
    let error = graph.run(&StepOptions::default(), &[], &mut fetched).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
}

#[test]
fn a_partition_runs_in_another_process() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = tenon_tests::session::session(&runtime, formula);
    let cut = session.partitions(&CallableOptions::new(&["x"], &["y"])).unwrap();
    let [cpu] = &cut[..] else { panic!("expected a partition for the CPU, found {}", cut.len()) };
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("partition.pb");
    std::fs::write(&file, encode(cpu).unwrap()).unwrap();
    let test = "workers::what_another_process_cut_runs_here";
    finish(test, start(test, &[(MESSAGE, file)]));
}

/// `y = -relu(x)`, one half on each of two devices.
fn halves(b: &mut GraphBuilder<'_>, second: &str) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let relu = b.op("Relu").name("relu").input(x).device(second).build()?;
    b.op("Neg").name("y").input(relu).device("/device:CPU:0").build().map(|_| ())
}

/// Both graphs of a step at once, which meet at a rendezvous.
fn both(
    graphs: [&WorkerGraph; 2],
    rendezvous: &Arc<dyn Rendezvous>,
    x: &Tensor,
) -> [Result<Vec<Tensor>, Code>; 2] {
    let meeting = Some(Arc::clone(rendezvous));
    let step = StepOptions { id: 77, rendezvous: meeting, ..StepOptions::default() };
    let run = |graph: &WorkerGraph, feeds: &[Tensor]| {
        let mut fetched = Vec::new();
        let result = graph.run(&step, feeds, &mut fetched);
        if result.is_err() {
            rendezvous.abort(StepError::step(Code::CANCELLED, "the other half failed"));
        }
        result.map(|()| fetched).map_err(|error| error.code())
    };
    let feeds = std::slice::from_ref(x);
    thread::scope(|scope| {
        let other = scope.spawn(|| run(graphs[1], &[]));
        let first = run(graphs[0], feeds);
        [first, other.join().expect("it does not panic")]
    })
}

#[test]
fn graphs_of_one_step_meet_at_the_rendezvous_that_they_are_given() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "tenon_accel"], &[]);
    let accel = "/device:ACCEL:0";
    let session = tenon_tests::session::session_with(&runtime, SessionOptions::as_written(), |b| {
        halves(b, accel)
    });
    let cut = session.partitions(&CallableOptions::new(&["x"], &["y"])).unwrap();
    assert_eq!(cut.len(), 2, "a partition for each device");
    let worker = Worker::new(&runtime);
    let registered: Vec<WorkerGraph> = cut
        .iter()
        .map(|def| worker.register(def, SessionOptions::as_written()).expect("it is complete"))
        .collect();
    let has_feed = |def: &GraphDef| def.node.iter().any(|node| node.op == "_Arg");
    let first = cut.iter().position(has_feed).expect("one of them is fed");
    let graphs = [&registered[first], &registered[1 - first]];
    let rendezvous: Arc<dyn Rendezvous> = Arc::<LocalRendezvous>::default();
    for step in 0..3 {
        let x = floats(&[-1.0, step as f32]);
        let [client, other] = both(graphs, &rendezvous, &x);
        assert_eq!(values(&client.expect("it runs")[0]), [0.0, -(step as f32)]);
        assert_eq!(other.expect("it runs").len(), 0);
        rendezvous.reset();
    }
}

/// The rendezvous of workers that number their edges themselves: it tells keys apart by their names.
#[derive(Default)]
struct ByName {
    edges: Edges,
    meeting: LocalRendezvous,
}

impl ByName {
    fn own(&self, key: &Key) -> Key {
        Key { edge: self.edges.intern(key.edge.name().clone()), ..key.clone() }
    }
}

impl Rendezvous for ByName {
    fn send(&self, key: &Key, parcel: Parcel) -> Result<(), StepError> {
        self.meeting.send(&self.own(key), parcel)
    }

    fn recv(&self, key: &Key, receiver: Receiver) {
        self.meeting.recv(&self.own(key), receiver);
    }

    fn abort(&self, error: StepError) {
        self.meeting.abort(error);
    }

    fn reset(&self) {
        self.meeting.reset();
    }
}

#[test]
fn a_partition_runs_where_the_device_at_the_other_end_is_not_there() {
    let _turn = turn();
    let both_devices = runtime(&["tenon_cpu", "tenon_accel"], &[]);
    let options = SessionOptions::as_written;
    let session = tenon_tests::session::session_with(&both_devices, options(), |b| {
        halves(b, "/device:ACCEL:0")
    });
    let cut = session.partitions(&CallableOptions::new(&["x"], &["y"])).unwrap();
    let has_feed = |def: &&GraphDef| def.node.iter().any(|node| node.op == "_Arg");
    let first = cut.iter().find(has_feed).expect("one of them is fed");
    let second = cut.iter().find(|def| !has_feed(def)).expect("the other is not");
    let host_alone = Worker::new(&runtime(&["tenon_cpu"], &[]));
    let graphs = [
        &host_alone.register(first, options()).expect("its own device is there"),
        &Worker::new(&both_devices).register(second, options()).expect("it is complete"),
    ];
    let rendezvous: Arc<dyn Rendezvous> = Arc::<ByName>::default();
    for step in 0..3 {
        let x = floats(&[-1.0, step as f32]);
        let [client, other] = both(graphs, &rendezvous, &x);
        assert_eq!(values(&client.expect("it runs")[0]), [0.0, -(step as f32)]);
        assert_eq!(other.expect("it runs").len(), 0);
        rendezvous.reset();
    }
    let error = host_alone.register(second, options()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("device:ACCEL:0") && error.contains("device:CPU:0"), "{error}");
}

#[test]
fn a_value_of_another_shape_than_the_message_says_is_refused() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "tenon_accel"], &[]);
    let session = tenon_tests::session::session_with(&runtime, SessionOptions::as_written(), |b| {
        halves(b, "/device:ACCEL:0")
    });
    let mut cut = session.partitions(&CallableOptions::new(&["x"], &["y"])).unwrap();
    let of_five = attr_to_proto(&AttrValue::List(AttrList::Shape(vec![
        PartialShape::new(&[5]).expect("a shape"),
    ])));
    let of_five = of_five.expect("shapes have a message");
    let has_feed = |def: &GraphDef| def.node.iter().any(|node| node.op == "_Arg");
    let first = cut.iter().position(has_feed).expect("one of them is fed");
    let other = &mut cut[1 - first];
    let receive = other.node.iter_mut().find(|node| node.op == "_Recv").expect("it receives");
    receive.attr.insert("_output_shapes".to_owned(), of_five);
    let worker = Worker::new(&runtime);
    let register = |def| worker.register(def, SessionOptions::as_written()).expect("a graph");
    let graphs = [&register(&cut[first]), &register(&cut[1 - first])];
    let rendezvous: Arc<dyn Rendezvous> = Arc::<LocalRendezvous>::default();
    let found = both(graphs, &rendezvous, &floats(&[1.0, 2.0]));
    assert_eq!(found[1].as_ref().map(Vec::len), Err(&Code::INVALID_ARGUMENT));
    assert!(found[0].is_err(), "the other half waits for nothing");
    rendezvous.reset();
    let found = both(graphs, &rendezvous, &floats(&[1.0; 5]));
    assert_eq!(values(&found[0].as_ref().expect("five elements fit")[0]), [-1.0; 5]);
}

#[test]
fn what_is_not_complete_in_itself_is_refused() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "tenon_accel"], &[]);
    let worker = Worker::new(&runtime);
    let refused = |make: &dyn Fn(&mut GraphBuilder<'_>) -> Result<(), GraphError>| {
        let def = graph(&runtime, |b| make(b)).to_graph_def().unwrap();
        let error = worker.register(&def, SessionOptions::default()).map(drop).unwrap_err();
        error.to_string()
    };
    let arg = |b: &mut GraphBuilder<'_>, index: i64| -> Result<Output, GraphError> {
        let arg = b.op("_Arg").attr("T", DType::FLOAT).attr("index", index);
        arg.device("/device:CPU:0").build().map(Output::from)
    };
    let crosses = refused(&|b| {
        let x = arg(b, 0)?;
        b.op("Relu").name("r").input(x).device("/device:ACCEL:0").build().map(|_| ())
    });
    assert!(crosses.contains("expected a _Send and a _Recv between two devices"), "{crosses}");
    let indices = refused(&|b| {
        arg(b, 0)?;
        arg(b, 0).map(|_| ())
    });
    assert!(indices.contains("each once, found [0, 0]"), "{indices}");
    let send = refused(&|b| {
        let x = arg(b, 0)?;
        let send = b.op("_Send").name("s").input(x).attr("tensor_name", "x:0");
        let send = send.attr("send_device", "/device:CPU:0").attr("send_device_incarnation", 1i64);
        let send = send.attr("recv_device", "nowhere at all").device("/device:CPU:0");
        send.build().map(|_| ())
    });
    assert!(send.starts_with("node 's': attribute recv_device: "), "{send}");
}
