//! What carries tensors between tasks: each way gives the same values, the figures say which one it was, and peers that break
//! the rules of a link harm nobody.

use super::cluster::Tasks;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::{
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};
use tenon_cluster::{Access, ClientTls, DataPlane, Identity, ServerTls, Session};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_proto::ConfigProto;
use tenon_runtime::framework::{Code, DType, PartialShape, Tensor};
use tenon_tests::session::{floats, turn, values};

const PS: &str = "/job:ps/task:0/device:CPU:0";
const WORKER: &str = "/job:worker/task:0/device:CPU:0";
const LIMIT: Option<Duration> = Some(Duration::from_secs(60));
const TASKS: [(&str, u32); 2] = [("ps", 0), ("worker", 0)];

/// Goes from the ps to the worker and back: `y = -4 * x`, with parts of the sum at both; `t` is a text that crosses, too.
fn there_and_back(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let sum = b.op("AddV2").name("sum").device(PS).input(x).input(x).build()?;
    let back = b.op("AddV2").name("back").device(WORKER).input(sum).input(sum).build()?;
    b.op("Neg").name("y").device(PS).input(back).build()?;
    let text = b.placeholder("text", DType::STRING, PartialShape::UNKNOWN)?;
    let text = b.op("Identity").name("there").device(PS).input(text).build()?;
    b.op("Identity").name("t").device(WORKER).input(text).build()?;
    Ok(())
}

/// The results of some sizes, as one list for comparison.
fn results(tasks: &Tasks) -> Vec<Vec<f32>> {
    let session = Session::connect(&tasks.target("worker/0"), tasks.graph(there_and_back)).unwrap();
    let mut all = Vec::new();
    for count in [0usize, 1, 100, 16_385, 300_000, 3_000_000] {
        let x: Vec<f32> = (0..count).map(|at| (at % 1009) as f32 / 7.0 - 3.0).collect();
        // More than one step: values are pushed once there is a link.
        for _ in 0..3 {
            let got = session.run(&[("x", floats(&x))], &["y"], &[], LIMIT).unwrap();
            let expected: Vec<f32> = x.iter().map(|x| -((x + x) + (x + x))).collect();
            assert!(values(&got[0]) == expected, "{count} elements");
            all.push(values(&got[0]).to_vec());
        }
    }
    let text = Tensor::from_strings(&[2], &["a", "longer than a"]).unwrap();
    let texts = session.run(&[("text", text)], &["t"], &[], LIMIT).unwrap();
    assert_eq!(texts[0].as_strings().unwrap(), [b"a".as_slice(), b"longer than a"]);
    session.close().unwrap();
    all
}

fn ways(tasks: &Tasks, name: &str) -> Vec<&'static str> {
    let mut ways: Vec<_> = tasks.ways(name).iter().map(|it| it.way).collect();
    ways.sort_unstable();
    ways.dedup();
    ways
}

#[test]
fn each_way_carries_the_same_values_and_is_counted() {
    let _turn = turn();
    let mut expected = None;
    for (plane, way) in [
        (DataPlane::Grpc, "grpc"),
        (DataPlane::Tcp, "tcp"),
        (DataPlane::Shm, "shm"),
        (DataPlane::Auto, "shm"),
    ] {
        let tasks = Tasks::by(&TASKS, &[plane]);
        let found = results(&tasks);
        assert!(expected.get_or_insert_with(|| found.clone()) == &found, "{plane:?}");
        for name in ["ps/0", "worker/0"] {
            assert_eq!(ways(&tasks, name), [way], "{plane:?} at {name}");
            let bytes: u64 = tasks.ways(name).iter().map(|it| it.bytes).sum();
            assert!(bytes > 3 * 3_300_000 * 4, "{bytes} bytes came to {name}");
        }
    }
}

#[test]
fn tasks_that_differ_find_what_both_have() {
    let _turn = turn();
    use DataPlane::{Auto, Grpc, Shm, Tcp};
    for (one, other, way) in [(Auto, Grpc, "grpc"), (Auto, Tcp, "tcp"), (Auto, Shm, "shm")] {
        let tasks = Tasks::by(&TASKS, &[one, other]);
        results(&tasks);
        assert_eq!(ways(&tasks, "ps/0"), [way], "{other:?}");
    }
}

#[test]
fn a_way_that_the_other_task_does_not_have_is_an_error_that_says_so() {
    let _turn = turn();
    let tasks = Tasks::by(&TASKS, &[DataPlane::Tcp, DataPlane::Grpc]);
    let session = Session::connect(&tasks.target("worker/0"), tasks.graph(there_and_back)).unwrap();
    let error = session.run(&[("x", floats(&[1.0]))], &["y"], &[], LIMIT).unwrap_err();
    assert_eq!(error.code(), Code::FAILED_PRECONDITION, "{error}");
    let message = error.to_string();
    let says = [
        "/job:worker/replica:0/task:0",
        "--data-plane tcp",
        "--data-plane grpc",
        "use --data-plane auto",
    ];
    assert!(says.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn collectives_go_the_same_ways() {
    let _turn = turn();
    let tasks_of = [("worker", 0), ("worker", 1)];
    for (plane, way) in
        [(DataPlane::Grpc, "grpc"), (DataPlane::Tcp, "tcp"), (DataPlane::Shm, "shm")]
    {
        let tasks = Tasks::by(&tasks_of, &[plane]);
        let graph = tasks.graph(|b| super::cluster_collective::sums(b, &[0, 1], 2));
        let session = Session::connect(&tasks.target("worker/0"), graph).unwrap();
        for count in [1usize, 300_000, 2_000_000] {
            let x: Vec<f32> = (0..count).map(|at| (at % 97) as f32).collect();
            let feeds = [("x0", floats(&x)), ("x1", floats(&x))];
            let got = session.run(&feeds, &["y0", "y1"], &[], LIMIT).unwrap();
            let sum: Vec<f32> = x.iter().map(|x| x + x).collect();
            assert!(got.iter().all(|it| values(it) == sum), "{plane:?} {count}");
        }
        session.close().unwrap();
        let carried: u64 =
            tasks.ways("worker/1").iter().filter(|it| it.way == way).map(|it| it.bytes).sum();
        assert!(carried > 8_000_000, "{plane:?}: {:?}", tasks.ways("worker/1"));
    }
}

/// A value that comes late: the ps waits for an element of a queue that nobody fills.
fn waits(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let queue = b.op("FIFOQueueV2").name("queue").device(PS);
    let queue = queue.attr("component_types", vec![DType::FLOAT]).build()?;
    let got = b.op("QueueDequeueV2").name("got").device(PS);
    let got = got.attr("component_types", vec![DType::FLOAT]).input(queue).build()?;
    b.op("Neg").name("y").device(WORKER).input(got).build().map(|_| ())
}

#[test]
fn a_task_that_goes_ends_what_waits_for_it_by_each_way() {
    let _turn = turn();
    for plane in [DataPlane::Tcp, DataPlane::Shm] {
        let mut tasks = Tasks::by(&TASKS, &[plane]);
        let session = Session::connect(&tasks.target("worker/0"), tasks.graph(waits)).unwrap();
        let begin = Instant::now();
        let error = thread::scope(|scope| {
            let waiting = scope.spawn(|| session.run(&[], &["y"], &[], LIMIT).unwrap_err());
            thread::sleep(Duration::from_millis(500));
            tasks.stop("ps/0");
            waiting.join().unwrap()
        });
        assert!(begin.elapsed() < Duration::from_secs(20), "{plane:?}");
        let message = error.to_string();
        assert!(message.contains("/job:ps/replica:0/task:0"), "{plane:?}: {message}");
        // The task comes again, and gets another link.
        tasks.restart("ps", 0, plane);
        results(&tasks);
        assert_eq!(ways(&tasks, "ps/0"), [plane.name()]);
    }
}

#[test]
fn connections_without_a_ticket_are_closed_and_harm_nobody() {
    let _turn = turn();
    let tasks = Tasks::by(&TASKS, &[DataPlane::Tcp]);
    let forged = [
        [b"\xA7tenon-data/1\r\n\0".as_slice(), &[7; 16]].concat(),
        [b"\xA7tenon-data/9\r\n\0".as_slice(), &[7; 16]].concat(),
        b"\xA7".to_vec(),
        vec![0xA7; 1000],
    ];
    for bytes in forged {
        let mut stream = TcpStream::connect(tasks.address("ps/0")).unwrap();
        stream.write_all(&bytes).unwrap();
        // The server may have closed the connection already.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut answer = Vec::new();
        // The server may reset a connection with bytes that it did not read.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
    }
    results(&tasks);
}

/// A certificate for the loopback address, of one authority, in files; and the authority's own.
fn certificates(folder: &Path) -> (Identity, PathBuf) {
    let own = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&own).unwrap();
    let issuer = Issuer::new(params, own);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let identity = Identity {
        cert: file("cert.pem", certificate.pem()),
        key: file("cert.key", key.serialize_pem()),
    };
    (identity, file("ca.pem", authority.pem()))
}

#[test]
fn tensors_of_tasks_with_tls_go_over_tls_too() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let (identity, ca) = certificates(folder.path());
    let tls = ServerTls { identity: identity.clone(), ca: Some(ca.clone()) };
    let tasks =
        Tasks::changed(&TASKS, &[DataPlane::Tcp], |options| options.tls = Some(tls.clone()));
    let access =
        Access { tls: Some(ClientTls { ca, identity: Some(identity) }), ..Access::default() };
    let target = tasks.target("worker/0").replace("grpc://", "grpcs://");
    let (graph, config) = (tasks.graph(there_and_back), ConfigProto::default());
    let session = Session::connect_as(&target, graph, config, &access).unwrap();
    for count in [1usize, 500_000] {
        let x = vec![0.5; count];
        let got = session.run(&[("x", floats(&x))], &["y"], &[], LIMIT).unwrap();
        assert!(values(&got[0]) == vec![-2.0; count], "{count}");
    }
    assert_eq!((ways(&tasks, "ps/0"), ways(&tasks, "worker/0")), (vec!["tcp"], vec!["tcp"]));
    // A connection without TLS gets no link.
    let mut plain = TcpStream::connect(tasks.address("ps/0")).unwrap();
    plain.write_all(b"\xA7tenon-data/1\r\n\0................").unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"\xA7"), "{answer:?}");
}
