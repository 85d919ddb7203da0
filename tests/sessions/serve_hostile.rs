//! A server whose clients break the rules of the transport, vanish, or are many. It answers others as before.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};
use tenon_cluster::{ClientLimits, Limits, Server, ServerOptions, Session};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_proto::GraphDef;
use tenon_runtime::{
    Runtime, Worker,
    framework::{DType, PartialShape, Tensor},
};
use tenon_tests::session::{floats, graph, runtime, turn, values};

/// What a client of HTTP/2 says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW: u8 = 8;
const CONTINUATION: u8 = 9;
/// Flags of frames: the end of the stream, and of its headers; of SETTINGS, an acknowledgement.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// `y = x + 1`; `got`, an element of a queue that all sessions share, which `put` adds to.
fn nodes(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let one = b.constant("one", Tensor::scalar(1f32).expect("a scalar"))?;
    b.op("AddV2").name("y").input(x).input(one).build()?;
    let queue = b.op("FIFOQueueV2").name("queue").attr("component_types", vec![DType::FLOAT]);
    let queue = queue.attr("shared_name", "shared").build()?;
    b.op("QueueEnqueueV2").name("put").input(queue).inputs([x]).build()?;
    let got = b.op("QueueDequeueV2").name("got").attr("component_types", vec![DType::FLOAT]);
    got.input(queue).build().map(|_| ())
}

fn start(limits: Limits) -> (Runtime, Server, GraphDef) {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    // All clients of a test have the same address.
    let clients = ClientLimits { sessions: limits.sessions, ..ClientLimits::default() };
    let options = ServerOptions { limits, clients, ..ServerOptions::default() };
    let server = Server::start(Worker::new(&runtime), &options).expect("a port is free");
    let def = graph(&runtime, nodes).to_graph_def().expect("it can be written");
    (runtime, server, def)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Headers of a call, none of them indexed.
fn headers(path: &str) -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.extend([0, name.len() as u8]);
        bytes.extend(name.as_bytes());
        bytes.push(value.len() as u8);
        bytes.extend(value.as_bytes());
    }
    bytes
}

/// A message as gRPC sends it.
fn prefixed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

/// A connection that sends frames as a test writes them.
struct Raw {
    stream: TcpStream,
    /// The next stream.
    next: u32,
}

impl Raw {
    /// Connects and says what a client says first.
    fn connect(address: SocketAddr) -> Raw {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream.set_nodelay(true).expect("an option of the stream");
        let mut raw = Raw { stream, next: 1 };
        raw.send(PREFACE);
        raw.send(&frame(SETTINGS, 0, 0, &[]));
        raw.send(&frame(WINDOW, 0, 0, &(1u32 << 30).to_be_bytes()));
        raw
    }

    /// Sends bytes. The server may have closed the connection already.
    fn send(&mut self, bytes: &[u8]) {
        match self.stream.write_all(bytes) {
            Ok(()) => {}
            Err(error) if is_closed(error.kind()) => {}
            Err(error) => panic!("a connection to the server: {error}"),
        }
    }

    /// The next frame: kind, flags, stream and payload; `None` when the connection is closed.
    fn receive(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.fill(&mut head)?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.fill(&mut payload)?;
        Some((kind, flags, u32::from_be_bytes(stream), payload))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Option<()> {
        match self.stream.read_exact(bytes) {
            Ok(()) => Some(()),
            Err(error) if is_closed(error.kind()) => None,
            Err(error) => panic!("expected a frame or the end of the connection: {error}"),
        }
    }

    /// Begins a call: its headers, and bytes of its stream.
    fn begin(&mut self, path: &str, body: &[u8], flags: u8) -> u32 {
        let stream = self.next;
        self.next += 2;
        self.send(&frame(HEADERS, END_HEADERS, stream, &headers(path)));
        self.send(&frame(DATA, flags, stream, body));
        stream
    }

    /// The message that answers a call; `None` when the call is refused.
    fn answer(&mut self, stream: u32) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let (kind, flags, of, payload) = self.receive().expect("the connection stays open");
            match kind {
                SETTINGS if flags == 0 => self.send(&frame(SETTINGS, 1, 0, &[])),
                DATA if of == stream => body.extend(payload),
                GOAWAY => panic!("the server ends the connection: {payload:?}"),
                _ => {}
            }
            if of == stream && [DATA, HEADERS].contains(&kind) && flags & END_STREAM != 0 {
                return body.get(5..).map(<[u8]>::to_vec);
            }
        }
    }

    fn call(&mut self, method: &str, message: &[u8]) -> Option<Vec<u8>> {
        let path = format!("/tensorflow.MasterService/{method}");
        let stream = self.begin(&path, &prefixed(message), END_STREAM);
        self.answer(stream)
    }

    /// Waits until the server closes the connection.
    fn is_refused(&mut self) {
        let end = Instant::now() + PATIENCE;
        while self.receive().is_some() {
            assert!(Instant::now() < end, "the server keeps the connection");
        }
    }
}

fn is_closed(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&kind)
}

/// Runs a step by a connection of its own.
fn serves(server: &Server, def: &GraphDef) {
    let target = format!("grpc://{}", server.address());
    let session = Session::connect(&target, def.clone()).expect("the server takes a session");
    let fetched = session.run(&[("x", floats(&[1.0]))], &["y"], &[], None).expect("a step runs");
    assert_eq!(values(&fetched[0]), [2.0]);
    session.close().expect("the session is there");
}

#[test]
fn frames_that_break_the_rules_end_their_connection_alone() {
    let _turn = turn();
    let (_runtime, server, def) = start(Limits::default());
    let address = server.address();
    let mut other = Raw::connect(address);
    let noise: Vec<u8> =
        (0..4096u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let huge = [&[0xff; 3][..], &[DATA, 0, 0, 0, 0, 1]].concat();
    let continued = |count| {
        let more = (0..count).map(|_| frame(CONTINUATION, 0, 1, &[0, 1, b'a', 1, b'b']));
        let first = frame(HEADERS, 0, 1, &headers("/tensorflow.MasterService/Reset"));
        [first, more.flatten().collect(), frame(DATA, 0, 1, b"x")].concat()
    };
    for (what, bytes) in [
        ("noise", noise),
        ("a frame beyond the limit", huge),
        ("data of no stream", frame(DATA, 0, 0, b"data")),
        ("data of a stream that is not open", frame(DATA, 0, 9, b"data")),
        ("settings of an odd size", frame(SETTINGS, 0, 0, &[1, 2, 3])),
        ("a window without a change", frame(WINDOW, 0, 0, &[0; 4])),
        ("headers that are no headers", frame(HEADERS, END_HEADERS, 1, &[0xff; 40])),
        ("headers that do not end", continued(3)),
        ("headers of an even stream", frame(HEADERS, END_HEADERS, 2, &headers("/x"))),
    ] {
        let mut raw = Raw::connect(address);
        raw.send(&bytes);
        // A connection whose other side is silent as well ends in any case.
        let _ = raw.stream.shutdown(std::net::Shutdown::Write);
        raw.is_refused();
        assert!(other.call("ListDevices", &[]).is_some(), "after {what}");
    }
    let mut text = TcpStream::connect(address).expect("the server listens");
    text.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("bytes of another protocol");
    drop(text);
    serves(&server, &def);
}

#[test]
fn messages_that_are_none_are_refused_and_the_connection_stays() {
    let _turn = turn();
    let (_runtime, server, def) = start(Limits::default());
    let mut raw = Raw::connect(server.address());
    let path = "/tensorflow.MasterService/RunStep";
    let beyond = [&[0][..], &u32::MAX.to_be_bytes(), b"a little"].concat();
    for (what, body) in [
        ("nothing", Vec::new()),
        ("half a prefix", vec![0, 0]),
        ("less than it says", [&prefixed(&[0x0a, 1, b'a'])[..7], &[]].concat()),
        ("more than the limit", beyond),
        ("an unknown compression", [&[1][..], &prefixed(b"text")[1..]].concat()),
        ("a flag that is none", [&[7][..], &prefixed(b"text")[1..]].concat()),
        ("bytes that are no message", prefixed(&[0xff; 64])),
        ("a field that does not end", prefixed(&[0x0a, 0x7f, 1])),
        ("a session that is not there", prefixed(&[0x0a, 1, b'a'])),
    ] {
        let stream = raw.begin(path, &body, END_STREAM);
        assert_eq!(raw.answer(stream), None, "{what}");
    }
    for path in ["/", "/tensorflow.MasterService/", "/tensorflow.WorkerService/RunGraph", "*"] {
        let stream = raw.begin(path, &prefixed(&[]), END_STREAM);
        assert_eq!(raw.answer(stream), None, "{path}");
    }
    assert!(raw.call("ListDevices", &[]).is_some(), "the connection is open");
    serves(&server, &def);
}

#[test]
fn ten_thousand_sessions_are_open_at_once() {
    const SESSIONS: usize = 10_000;
    let _turn = turn();
    let (_runtime, server, def) = start(Limits { sessions: SESSIONS, ..Limits::default() });
    let mut raw = Raw::connect(server.address());
    let handles: Vec<Vec<u8>> = (0..SESSIONS)
        .map(|_| raw.call("CreateSession", &[]).expect("there is room for a session"))
        .collect();
    assert_eq!(raw.call("CreateSession", &[]), None, "one more than the limit");
    // A session is named by field 1 in answers and requests alike.
    for handle in &handles {
        assert!(raw.call("CloseSession", handle).is_some(), "the session is there");
    }
    assert_eq!(raw.call("CloseSession", &handles[0]), None, "it is closed");
    serves(&server, &def);
}

/// Passes bytes on between a client and the server, until the connections are cut.
fn proxy(server: SocketAddr) -> (SocketAddr, thread::JoinHandle<[TcpStream; 2]>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("an address");
    let accepted = thread::spawn(move || {
        let (client, _) = listener.accept().expect("the client connects");
        let server = TcpStream::connect(server).expect("the server listens");
        let copy = |stream: &TcpStream| stream.try_clone().expect("a second handle");
        for [mut from, mut to] in [[copy(&client), copy(&server)], [copy(&server), copy(&client)]] {
            thread::spawn(move || {
                // Its end is that of the connection.
                let _ = std::io::copy(&mut from, &mut to);
            });
        }
        [client, server]
    });
    (address, accepted)
}

#[test]
fn a_client_that_vanishes_in_a_step_takes_nothing() {
    let _turn = turn();
    let (_runtime, server, def) = start(Limits::default());
    let (address, streams) = proxy(server.address());
    let vanishes = Session::connect(&format!("grpc://{address}"), def.clone()).expect("a session");
    let [client, to_server] = streams.join().expect("both connect");
    let waits = thread::spawn(move || {
        let result = vanishes.run(&[], &["got"], &[], None);
        vanishes.forget();
        result.map(|_| ()).map_err(|error| error.to_string())
    });
    // The step is in the server when it waits for the queue.
    thread::sleep(Duration::from_millis(300));
    for stream in [client, to_server] {
        stream.shutdown(std::net::Shutdown::Both).expect("the connection is cut");
    }
    waits.join().expect("the client does not panic").expect_err("the step has no answer");
    let stays = Session::connect(&format!("grpc://{}", server.address()), def).expect("a session");
    // The step that nobody waits for is cancelled, and leaves the queue.
    thread::sleep(Duration::from_millis(300));
    stays.run(&[("x", floats(&[5.0]))], &[], &["put"], None).expect("an element is added");
    let got = stays.run(&[], &["got"], &[], Some(PATIENCE)).expect("the element is there");
    assert_eq!(values(&got[0]), [5.0]);
}
