//! The soak of a server: clients of `tenon serve`, in its own process, whose memory and descriptors are looked at.

use crate::level::Sample;
use std::{
    fmt,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{self, Scope, ScopedJoinHandle},
    time::{Duration, Instant},
};
use tenon_cluster::{ClusterError, Session};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_proto::{ConfigProto, GraphDef};
use tenon_runtime::framework::{Code, DType, PartialShape, Tensor};
use tenon_tests::{
    loops::Loop,
    session::{floats, graph, runtime_over, values},
    zoo::plugin,
};

/// The argument of a client that runs a step without an end.
pub const CLIENT: &str = "client";
/// The time between two looks at the server.
const PERIOD: Duration = Duration::from_millis(100);
/// The steps of a session after which its client opens another one.
const STEPS: u64 = 500;
/// The sessions that are closed, for one that is left open and one whose client is killed.
const CLOSED: u64 = 10;
/// The seconds after which the server closes a session without a client.
const AWAY: &str = "2";
/// The time that a step has which cannot end by itself.
const DEADLINE: Duration = Duration::from_millis(5);

/// What happened so far.
#[derive(Default)]
pub struct Counts {
    pub steps: AtomicU64,
    deadlines: AtomicU64,
    closed: AtomicU64,
    forgotten: AtomicU64,
    killed: AtomicU64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |of: &AtomicU64| of.load(Ordering::Relaxed);
        write!(
            f,
            "{} steps, {} deadlines, {} sessions closed, {} left open, {} clients killed",
            number(&self.steps),
            number(&self.deadlines),
            number(&self.closed),
            number(&self.forgotten),
            number(&self.killed)
        )
    }
}

fn count(of: &AtomicU64) {
    of.fetch_add(1, Ordering::Relaxed);
}

/// `value`, a variable to which `add` adds `x`; `got`, an element of a queue, which `put` and `close` change; `loop`, as
/// many iterations as `times`.
fn nodes(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let handle = b.op("VarHandleOp").name("v").attr("dtype", DType::FLOAT);
    let handle = handle.attr("shape", PartialShape::UNKNOWN).build()?;
    b.op("AssignVariableOp").name("set").input(handle).input(x).build()?;
    let add = b.op("AssignAddVariableOp").name("add").input(handle).input(x).build()?;
    let value = b.op("ReadVariableOp").name("value").attr("dtype", DType::FLOAT);
    value.input(handle).control(add).build()?;
    let queue = b.op("FIFOQueueV2").name("queue").attr("component_types", vec![DType::FLOAT]);
    let queue = queue.build()?;
    b.op("QueueEnqueueV2").name("put").input(queue).inputs([x]).build()?;
    let got = b.op("QueueDequeueV2").name("got").attr("component_types", vec![DType::FLOAT]);
    got.input(queue).build()?;
    b.op("QueueCloseV2").name("close").input(queue).build()?;
    let counter = b.placeholder("times", DType::INT32, PartialShape::UNKNOWN)?;
    let name = "loop";
    let repeat = Loop { name, parallel: 1, counter, values: &[x], constants: &[] };
    repeat.build(b, |_, values, _| Ok(values.to_vec()))?;
    Ok(())
}

/// The graph of all sessions.
fn definition() -> GraphDef {
    let runtime = runtime_over(2, ["tenon_cpu", "tenon_data"].map(plugin), &[]);
    graph(&runtime, nodes).to_graph_def().expect("the graph has a message")
}

/// `tenon serve`, while this exists.
struct Serving {
    process: Child,
    address: String,
}

impl Serving {
    /// # Panics
    /// The server does not start.
    fn start(tenon: &Path) -> Serving {
        let mut command = Command::new(tenon);
        command.args(["serve", "--listen", "127.0.0.1:0", "--session-timeout", AWAY]);
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the command starts");
        let mut address = String::new();
        let output = process.stdout.take().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut address).expect("the command writes its address");
        let address = address.trim().to_owned();
        assert!(address.starts_with("grpc://"), "expected an address, found '{address}'");
        Serving { process, address }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What all clients share.
struct Site {
    address: String,
    graph: GraphDef,
    counts: Counts,
}

impl Site {
    /// A session with state of its own.
    fn connect(&self) -> Session {
        let config = ConfigProto { isolate_session_state: true, ..ConfigProto::default() };
        let session = Session::connect_with(&self.address, self.graph.clone(), config);
        session.unwrap_or_else(|error| panic!("a session is opened: {error}"))
    }

    /// Ends a session in one of two ways.
    fn end(&self, session: Session, number: u64) {
        if number.is_multiple_of(CLOSED) {
            session.forget();
            return count(&self.counts.forgotten);
        }
        session.close().expect("the server has the session");
        count(&self.counts.closed);
    }
}

fn code<T>(result: Result<T, ClusterError>) -> Option<Code> {
    result.err().map(|error| error.code())
}

fn targets(session: &Session, feeds: &[(&str, Tensor)], name: &str) {
    session.run(feeds, &[], &[name], None).unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// A session that adds to its variable, and compares the sum.
fn adds(site: &Site, number: u64) {
    let session = site.connect();
    targets(&session, &[("x", floats(&[0.0, 0.0]))], "set");
    for step in 1..=STEPS {
        let fetched = session.run(&[("x", floats(&[1.0, -1.0]))], &["value"], &[], None);
        let fetched = fetched.unwrap_or_else(|error| panic!("a step: {error}"));
        assert_eq!(values(&fetched[0]), [step as f32, -(step as f32)], "the sum of a variable");
        count(&site.counts.steps);
    }
    site.end(session, number);
}

/// Steps whose deadline passes while they wait, and while they compute.
fn deadlines(site: &Site, number: u64) {
    let session = site.connect();
    for _ in 0..STEPS / 50 {
        let waits = session.run(&[], &["got"], &[], Some(DEADLINE));
        assert_eq!(code(waits), Some(Code::DEADLINE_EXCEEDED), "a step that waits");
        assert_eq!(code(compute(&session, Some(DEADLINE))), Some(Code::DEADLINE_EXCEEDED));
        site.counts.deadlines.fetch_add(2, Ordering::Relaxed);
    }
    site.end(session, number);
}

/// Runs the loop for longer than anyone waits.
fn compute(session: &Session, deadline: Option<Duration>) -> Result<Vec<Tensor>, ClusterError> {
    let times = Tensor::scalar(i32::MAX).expect("a scalar");
    let feeds = [("times", times), ("x", floats(&[1.0]))];
    session.run(&feeds, &["loop/counter_out"], &[], deadline)
}

/// A step that waits for a queue, which another step fills or closes.
fn queues(site: &Site, number: u64) {
    let session = site.connect();
    for step in 0..STEPS / 10 {
        let got = thread::scope(|scope| {
            let got = scope.spawn(|| session.run(&[], &["got"], &[], None));
            targets(&session, &[("x", floats(&[step as f32]))], "put");
            got.join().expect("the client does not panic")
        });
        let got = got.unwrap_or_else(|error| panic!("an element: {error}"));
        assert_eq!(values(&got[0]), [step as f32], "an element of a queue");
        count(&site.counts.steps);
    }
    let closed = thread::scope(|scope| {
        let got = scope.spawn(|| session.run(&[], &["got"], &[], None));
        targets(&session, &[], "close");
        got.join().expect("the client does not panic")
    });
    assert_eq!(code(closed), Some(Code::OUT_OF_RANGE), "an element of a closed queue");
    site.end(session, number);
}

/// A client that is killed while its step runs. The server cancels the step, or it computes until the soak ends.
fn killed(site: &Site, _number: u64) {
    let program = std::env::current_exe().expect("a program knows its own path");
    let mut command = Command::new(program);
    command.args([CLIENT, &site.address]).stdout(Stdio::piped());
    let mut client = command.spawn().expect("a client starts");
    let output = client.stdout.take().expect("its output is a pipe");
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("the client writes a line");
    assert_eq!(line, "runs\n", "the client reached the server");
    thread::sleep(DEADLINE);
    client.kill().expect("the client runs");
    client.wait().expect("the client was started");
    count(&site.counts.killed);
    thread::sleep(DEADLINE * 20);
}

/// The client that [`killed`] starts.
///
/// # Panics
/// The server cannot be reached, or the step ends.
pub fn client(address: &str) {
    let site = Site { address: address.to_owned(), graph: definition(), counts: Counts::default() };
    let session = site.connect();
    println!("runs");
    let ended = compute(&session, None);
    panic!("the step ended: {:?}", code(ended));
}

type Job = fn(&Site, u64);

fn start<'scope, 'site>(
    scope: &'scope Scope<'scope, 'site>,
    site: &'site Site,
    over: &'site AtomicBool,
) -> Vec<ScopedJoinHandle<'scope, ()>> {
    let jobs: [Job; 5] = [adds, adds, deadlines, queues, killed];
    let start = |job: Job| {
        scope.spawn(move || {
            for number in 1.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                job(site, number);
            }
        })
    };
    jobs.into_iter().map(start).collect()
}

/// Runs clients of a server until there were so many steps; what the server held, and the number of clients that
/// failed.
///
/// # Panics
/// The server does not start.
pub fn soak(tenon: &Path, steps: u64) -> (Vec<Sample>, usize) {
    let serving = Serving::start(tenon);
    let site =
        Site { address: serving.address.clone(), graph: definition(), counts: Counts::default() };
    let process = serving.process.id().to_string();
    let (over, begin) = (AtomicBool::new(false), Instant::now());
    let mut samples: Vec<Sample> = Vec::new();
    let failed = thread::scope(|scope| {
        let threads = start(scope, &site, &over);
        while site.counts.steps.load(Ordering::Relaxed) < steps
            && !threads.iter().any(ScopedJoinHandle::is_finished)
        {
            thread::sleep(PERIOD);
            samples.push(Sample::of(&process, begin.elapsed()));
            if samples.len().is_multiple_of(50) {
                println!("{}; {}", samples[samples.len() - 1], site.counts);
            }
        }
        over.store(true, Ordering::Relaxed);
        // A client that ended before its time has panicked, and said why.
        threads.into_iter().filter_map(|thread| thread.join().err()).count()
    });
    println!("{}", site.counts);
    (samples, failed)
}
