//! Sessions over several servers of this process, on ports of the loopback interface.

use std::{
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};
use tenon_cluster::{
    ClusterError, ClusterSpec, DataPlane, Limits, Server, ServerOptions, Session, WayFigures,
};
use tenon_graph::{GraphBuilder, GraphError, NodeId};
use tenon_proto::{ConfigProto, GraphDef};
use tenon_runtime::{
    Runtime, RuntimeOptions, Worker,
    framework::{Code, DType, PartialShape, Tensor, device::DeviceName},
    host::Settings,
};
use tenon_tests::session::{floats, graph, library, turn, values};

const PS: &str = "/job:ps/task:0/device:CPU:0";
const WORKER: &str = "/job:worker/task:0/device:CPU:0";

/// Tasks of a cluster, each a server with a runtime of its own.
pub(super) struct Tasks {
    servers: Vec<(String, Server)>,
    runtimes: Vec<Runtime>,
    spec: ClusterSpec,
}

/// A port that nobody has.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

fn start(
    job: &str,
    task: u32,
    spec: &ClusterSpec,
    absent: Duration,
    data_plane: DataPlane,
) -> (Runtime, Server) {
    start_changed(job, task, spec, |options| {
        options.absent = absent;
        options.data_plane = data_plane;
    })
}

pub(super) fn start_changed(
    job: &str,
    task: u32,
    spec: &ClusterSpec,
    change: impl FnOnce(&mut ServerOptions),
) -> (Runtime, Server) {
    let options = RuntimeOptions {
        threads: Some(2),
        settings: Settings::default(),
        task: DeviceName::of_task(job, task),
        ..RuntimeOptions::with_plugins(["tenon_cpu", "tenon_data", "tenon_train"].map(library))
    };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    let listen = spec.socket_address(job, task).expect("the cluster has the task");
    let cluster = spec.clone();
    let mut options = ServerOptions { listen, cluster, ..ServerOptions::default() };
    change(&mut options);
    let server = Server::start(Worker::new(&runtime), &options).expect("the port is free");
    (runtime, server)
}

impl Tasks {
    /// A cluster of these tasks.
    pub(super) fn of(tasks: &[(&str, u32)]) -> Tasks {
        Tasks::by(tasks, &[DataPlane::Auto])
    }

    /// The same, with servers of these limits.
    pub(super) fn limited(tasks: &[(&str, u32)], limits: Limits) -> Tasks {
        Tasks::changed(tasks, &[DataPlane::Auto], |options| options.limits = limits)
    }

    /// The same, whose tensors take these ways: the last one is that of further tasks too.
    pub(super) fn by(tasks: &[(&str, u32)], planes: &[DataPlane]) -> Tasks {
        Tasks::changed(tasks, planes, |_| ())
    }

    /// The same with other changes of the options of all servers.
    pub(super) fn changed(
        tasks: &[(&str, u32)],
        planes: &[DataPlane],
        change: impl Fn(&mut ServerOptions),
    ) -> Tasks {
        let mut spec = ClusterSpec::default();
        for &(job, task) in tasks {
            let address = format!("127.0.0.1:{}", free_port());
            spec.jobs.entry(job.to_owned()).or_default().insert(task, address);
        }
        let (mut servers, mut runtimes) = (Vec::new(), Vec::new());
        for (at, &(job, task)) in tasks.iter().enumerate() {
            let plane = planes[at.min(planes.len() - 1)];
            let (runtime, server) = start_changed(job, task, &spec, |options| {
                options.absent = Duration::from_secs(20);
                options.data_plane = plane;
                change(options);
            });
            servers.push((format!("{job}/{task}"), server));
            runtimes.push(runtime);
        }
        Tasks { servers, runtimes, spec }
    }

    /// What came to a task from all others, by what carried it.
    pub(super) fn ways(&self, name: &str) -> Vec<WayFigures> {
        let found = self.servers.iter().find(|(other, _)| other == name);
        let links = found.expect("the cluster has it").1.watch().links();
        links.into_iter().flat_map(|link| link.ways).collect()
    }

    /// How often a task was asked as the leader of groups.
    pub(super) fn questions(&self, name: &str) -> u64 {
        let found = self.servers.iter().find(|(other, _)| other == name);
        found.expect("the cluster has it").1.watch().questions()
    }

    pub(super) fn address(&self, name: &str) -> std::net::SocketAddr {
        let found = self.servers.iter().find(|(other, _)| other == name);
        found.expect("the cluster has it").1.address()
    }

    pub(super) fn target(&self, name: &str) -> String {
        let found = self.servers.iter().find(|(other, _)| other == name);
        format!("grpc://{}", found.expect("the cluster has it").1.address())
    }

    pub(super) fn graph(
        &self,
        make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
    ) -> GraphDef {
        graph(&self.runtimes[0], make).to_graph_def().expect("it can be written")
    }

    /// Starts a task anew that was stopped.
    pub(super) fn restart(&mut self, job: &str, task: u32, plane: DataPlane) {
        let (runtime, server) = start(job, task, &self.spec, Duration::from_secs(20), plane);
        self.servers.push((format!("{job}/{task}"), server));
        self.runtimes.push(runtime);
    }

    pub(super) fn stop(&mut self, name: &str) {
        self.take(name).stop(Duration::ZERO);
    }

    /// The server of a task, which is the caller's then.
    pub(super) fn take(&mut self, name: &str) -> Server {
        let at = self.servers.iter().position(|(other, _)| other == name);
        self.servers.remove(at.expect("the cluster has it")).1
    }
}

/// Adds a node on a device.
fn on(
    b: &mut GraphBuilder<'_>,
    device: &str,
    op: &str,
    name: &str,
    inputs: &[NodeId],
) -> Result<NodeId, GraphError> {
    let mut node = b.op(op).name(name).device(device);
    for &input in inputs {
        node = node.input(input);
    }
    node.build()
}

/// A variable `v` at the ps with `set`, `add` and `value`; `y = v * x`, at the worker.
pub(super) fn variable(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?.node;
    let handle = b.op("VarHandleOp").name("v").device(PS).attr("dtype", DType::FLOAT);
    let handle = handle.attr("shape", PartialShape::UNKNOWN).build()?;
    on(b, PS, "AssignVariableOp", "set", &[handle, x])?;
    let value = b.op("ReadVariableOp").name("value").device(PS).attr("dtype", DType::FLOAT);
    let value = value.input(handle).build()?;
    let y = on(b, WORKER, "Mul", "y", &[value, x])?;
    on(b, PS, "AssignAddVariableOp", "add", &[handle, y])?;
    Ok(())
}

fn code(error: &ClusterError) -> Code {
    error.code()
}

#[test]
fn a_variable_of_one_task_is_read_and_updated_from_another() {
    let _turn = turn();
    let tasks = Tasks::of(&[("ps", 0), ("worker", 0)]);
    let session = Session::connect(&tasks.target("worker/0"), tasks.graph(variable)).unwrap();
    let unset = session.run(&[], &["value"], &[], None).unwrap_err();
    assert_eq!(code(&unset), Code::FAILED_PRECONDITION, "{unset}");
    let message = unset.to_string();
    assert!(message.starts_with("From /job:ps/replica:0/task:0:"), "{message}");
    let x = |value: f32| [("x", floats(&[value]))];
    session.run(&x(3.0), &[], &["set"], None).unwrap();
    assert_eq!(values(&session.run(&x(2.0), &["y"], &[], None).unwrap()[0]), [6.0]);
    session.run(&x(2.0), &[], &["add"], None).unwrap();
    assert_eq!(values(&session.run(&[], &["value"], &[], None).unwrap()[0]), [9.0]);
    // A session on the other task has the same variable, and a feed that is fetched as it is.
    let other = Session::connect(&tasks.target("ps/0"), tasks.graph(variable)).unwrap();
    let fetched = other.run(&x(10.0), &["value", "y", "x"], &[], None).unwrap();
    assert_eq!(fetched.iter().map(values).collect::<Vec<_>>(), [[9.0], [90.0], [10.0]]);
    session.close().unwrap();
    other.close().unwrap();
}

/// `nothing` is a NoOp of the worker, and `afterwards` is one that waits for `set` at the ps.
fn idle(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    variable(b)?;
    b.op("NoOp").name("nothing").device(WORKER).build()?;
    let set = b.graph().target("set").expect("it is there");
    b.op("NoOp").name("afterwards").device(WORKER).control(set).build()?;
    Ok(())
}

#[test]
fn steps_that_do_nothing_end_as_others_do() {
    let _turn = turn();
    let tasks = Tasks::of(&[("ps", 0), ("worker", 0)]);
    let limit = Some(Duration::from_secs(20));
    let served = || {
        let server = tasks.servers.iter().find(|(name, _)| name == "worker/0");
        server.expect("it is there").1.watch().served().0
    };
    let session = Session::connect(&tasks.target("worker/0"), tasks.graph(idle)).unwrap();
    let before = served();
    // The first one is compiled, and one with a deadline has a thread.
    for deadline in [None, None, limit, None] {
        assert!(session.run(&[], &[], &["nothing"], deadline).unwrap().is_empty());
    }
    assert_eq!(served() - before, 4);
    session.run(&[("x", floats(&[4.0]))], &[], &["afterwards"], None).unwrap();
    assert_eq!(values(&session.run(&[], &["value"], &[], None).unwrap()[0]), [4.0]);
    let others = Session::connect(&tasks.target("ps/0"), tasks.graph(idle)).unwrap();
    for _ in 0..3 {
        others.run(&[], &[], &["nothing"], None).unwrap();
    }
    session.close().unwrap();
    assert_eq!(values(&others.run(&[], &["value"], &[], None).unwrap()[0]), [4.0]);
}

/// A chain over two tasks with a control edge: `second` reads `v` after `first` has set it.
fn ordered(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    variable(b)?;
    let graph = b.graph();
    let [set, handle] = ["set", "v"].map(|name| graph.target(name).expect("it is there"));
    let order = b.op("NoOp").name("order").device(WORKER).control(set).build()?;
    let read = b.op("ReadVariableOp").name("after").device(PS).attr("dtype", DType::FLOAT);
    let read = read.input(handle).control(order).build()?;
    on(b, WORKER, "Neg", "negative", &[read])?;
    Ok(())
}

#[test]
fn control_edges_lead_over_tasks() {
    let _turn = turn();
    let tasks = Tasks::of(&[("ps", 0), ("worker", 0)]);
    let session = Session::connect(&tasks.target("worker/0"), tasks.graph(ordered)).unwrap();
    for value in [1f32, 2.0, 3.0] {
        let fetched = session.run(&[("x", floats(&[value]))], &["negative"], &[], None).unwrap();
        assert_eq!(values(&fetched[0]), [-value]);
    }
}

/// A loop whose body is at another task than its condition: `result` is 2 to the power of `n`.
pub(super) fn looped(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let n = b.placeholder("n", DType::FLOAT, PartialShape::UNKNOWN)?.node;
    let one = b.constant("one", Tensor::scalar(1f32).expect("a scalar"))?.node;
    let two = b.constant("two", Tensor::scalar(2f32).expect("a scalar"))?.node;
    let zero = b.constant("zero", Tensor::scalar(0f32).expect("a scalar"))?.node;
    let enter = |b: &mut GraphBuilder<'_>, name: &str, value: NodeId, constant: bool| {
        let node = b.op("Enter").name(name).device(WORKER).input(value);
        node.attr("frame_name", "loop").attr("is_constant", constant).build()
    };
    let (i0, v0) = (enter(b, "i0", zero, false)?, enter(b, "v0", one, false)?);
    let most = enter(b, "most", n, true)?;
    let step = enter(b, "step", one, true)?;
    let factor = enter(b, "factor", two, true)?;
    let i = on(b, WORKER, "Merge", "i", &[i0, i0])?;
    let v = on(b, WORKER, "Merge", "value_now", &[v0, v0])?;
    let less = on(b, WORKER, "Less", "less", &[i, most])?;
    let goes_on = on(b, WORKER, "LoopCond", "goes_on", &[less])?;
    let i_switch = on(b, WORKER, "Switch", "i_switch", &[i, goes_on])?;
    let v_switch = on(b, WORKER, "Switch", "v_switch", &[v, goes_on])?;
    let from = |node: NodeId| tenon_graph::Output::new(node, 1);
    let i_next =
        b.op("AddV2").name("i_next").device(WORKER).input(from(i_switch)).input(step).build()?;
    let v_next =
        b.op("Mul").name("v_next").device(PS).input(from(v_switch)).input(factor).build()?;
    let i_back = on(b, WORKER, "NextIteration", "i_back", &[i_next])?;
    let v_back = on(b, WORKER, "NextIteration", "v_back", &[v_next])?;
    b.back_edge(i, 1, i_back)?;
    b.back_edge(v, 1, v_back)?;
    on(b, WORKER, "Exit", "result", &[v_switch])?;
    Ok(())
}

#[test]
fn a_loop_over_two_tasks_runs_to_its_end() {
    let _turn = turn();
    let tasks = Tasks::of(&[("ps", 0), ("worker", 0)]);
    let session = Session::connect(&tasks.target("worker/0"), tasks.graph(looped)).unwrap();
    for (n, expected) in [(0f32, 1f32), (1.0, 2.0), (5.0, 32.0)] {
        let n = Tensor::scalar(n).unwrap();
        let fetched = session.run(&[("n", n)], &["result"], &[], Some(Duration::from_secs(20)));
        assert_eq!(values(&fetched.unwrap()[0]), [expected]);
    }
}

/// `sum` adds the rows of a queue's element at the worker; the queue is at the ps.
fn failing(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?.node;
    let checked = b.op("CheckNumerics").name("checked").device(PS).attr("message", "not a number");
    let checked = checked.input(x).build()?;
    let y = on(b, WORKER, "Neg", "y", &[checked])?;
    on(b, PS, "Abs", "z", &[y])?;
    Ok(())
}

#[test]
fn the_cause_of_a_failed_step_is_what_its_client_sees() {
    let _turn = turn();
    let tasks = Tasks::of(&[("ps", 0), ("worker", 0)]);
    let session = Session::connect(&tasks.target("worker/0"), tasks.graph(failing)).unwrap();
    let run = |value| session.run(&[("x", floats(&[value]))], &["z"], &[], None);
    let error = run(f32::NAN).unwrap_err();
    assert_eq!(code(&error), Code::INVALID_ARGUMENT, "{error}");
    let message = error.to_string();
    let begins = "From /job:ps/replica:0/task:0:\nnode 'checked' (CheckNumerics)";
    assert!(message.starts_with(begins), "{message}");
    assert!(message.contains("/job:ps/replica:0/task:0/device:CPU:0"), "{message}");
    assert_eq!(values(&run(4.0).unwrap()[0]), [4.0]);
}

/// `taken` waits for an element of a queue at the ps, and `y` needs it at the worker.
fn waiting(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let queue = b.op("FIFOQueueV2").name("queue").device(PS);
    let queue = queue.attr("component_types", vec![DType::FLOAT]).build()?;
    let taken = b.op("QueueDequeueV2").name("taken").device(PS).input(queue);
    let taken = taken.attr("component_types", vec![DType::FLOAT]).build()?;
    on(b, WORKER, "Neg", "y", &[taken])?;
    Ok(())
}

#[test]
fn a_step_ends_when_one_of_its_tasks_goes() {
    let _turn = turn();
    let mut tasks = Tasks::of(&[("ps", 0), ("worker", 0)]);
    let session = Session::connect(&tasks.target("worker/0"), tasks.graph(waiting)).unwrap();
    let late = session.run(&[], &["y"], &[], Some(Duration::from_millis(300))).unwrap_err();
    assert_eq!(code(&late), Code::DEADLINE_EXCEEDED, "{late}");
    thread::scope(|scope| {
        let step = scope.spawn(|| session.run(&[], &["y"], &[], None));
        thread::sleep(Duration::from_millis(300));
        let begin = Instant::now();
        tasks.stop("ps/0");
        let error = step.join().expect("no panic").unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        let expected = [Code::UNAVAILABLE, Code::ABORTED, Code::CANCELLED];
        assert!(expected.contains(&code(&error)), "{error}");
        assert!(error.to_string().contains("/job:ps/replica:0/task:0"), "{error}");
    });
    let gone = session.run(&[], &["y"], &[], None).unwrap_err();
    assert_eq!(code(&gone), Code::UNAVAILABLE, "{gone}");
    // A server with other state on the same port does not have the graph.
    let (_runtime, _server) = start("ps", 0, &tasks.spec, Duration::from_secs(20), DataPlane::Auto);
    let restarted = session.run(&[], &["y"], &[], None).unwrap_err();
    assert!([Code::ABORTED, Code::UNAVAILABLE].contains(&code(&restarted)), "{restarted}");
}

#[test]
fn absent_tasks_are_named_and_may_be_left_out() {
    let _turn = turn();
    let mut spec = ClusterSpec::default();
    for (job, task) in [("ps", 0), ("ps", 1), ("worker", 0)] {
        let address = format!("127.0.0.1:{}", free_port());
        spec.jobs.entry(job.to_owned()).or_default().insert(task, address);
    }
    let (_worker, server) = start("worker", 0, &spec, Duration::from_millis(800), DataPlane::Auto);
    let target = format!("grpc://{}", server.address());
    let absent = Session::connect(&target, GraphDef::default()).err().expect("they are absent");
    assert_eq!(code(&absent), Code::UNAVAILABLE, "{absent}");
    let message = absent.to_string();
    let named = ["/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1", "device_filters"];
    assert!(named.iter().all(|it| message.contains(it)), "{message}");
    let (ps, _ps) = start("ps", 0, &spec, Duration::from_millis(800), DataPlane::Auto);
    let filters = vec!["/job:ps/task:0".to_owned()];
    let filtered = ConfigProto { device_filters: filters, ..ConfigProto::default() };
    let def = graph(&ps, variable).to_graph_def().expect("it can be written");
    let session = Session::connect_with(&target, def, filtered).unwrap();
    session.run(&[("x", floats(&[1.0]))], &[], &["set"], None).unwrap();
    let wrong = ConfigProto { device_filters: vec!["/what".to_owned()], ..ConfigProto::default() };
    let wrong = Session::connect_with(&target, GraphDef::default(), wrong).err();
    assert_eq!(wrong.map(|error| code(&error)), Some(Code::INVALID_ARGUMENT));
}

/// Ten megabytes that cross twice, and strings.
fn large(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?.node;
    let negative = on(b, PS, "Neg", "negative", &[x])?;
    on(b, WORKER, "Abs", "y", &[negative])?;
    let text = b.placeholder("text", DType::STRING, PartialShape::UNKNOWN)?.node;
    let there = on(b, PS, "Identity", "there", &[text])?;
    on(b, WORKER, "Identity", "back", &[there])?;
    Ok(())
}

#[test]
fn large_tensors_and_strings_cross_tasks() {
    let _turn = turn();
    let tasks = Tasks::of(&[("ps", 0), ("worker", 0)]);
    let session = Session::connect(&tasks.target("worker/0"), tasks.graph(large)).unwrap();
    let x: Vec<f32> = (0..2_500_000).map(|at| at as f32).collect();
    let fetched = session.run(&[("x", floats(&x))], &["y"], &[], None).unwrap();
    assert_eq!(values(&fetched[0]), x);
    let text = Tensor::from_strings(&[2], &["a", "\u{e4}bc"]).unwrap();
    let fetched = session.run(&[("text", text.clone())], &["back"], &[], None).unwrap();
    assert_eq!(fetched[0].as_strings().unwrap(), text.as_strings().unwrap());
}
