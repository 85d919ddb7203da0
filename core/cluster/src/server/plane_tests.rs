//! What carries tensors between two servers of this process. They load no plugin.

use super::*;
use crate::session::Session;
use tenon_framework::{Code, Tensor, device::DeviceName};
use tenon_proto::{AttrValue, AttrValueKind, DataType, GraphDef, NodeDef};
use tenon_runtime::{Runtime, RuntimeOptions};

const LIMIT: Option<Duration> = Some(Duration::from_secs(60));

/// An address of the loopback interface whose port nobody has.
pub(super) fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A graph whose value goes from task 0 to task 1.
pub(super) fn over_two_tasks() -> GraphDef {
    let node = |name: &str, op: &str, task: u32, input: &[&str], attr: &str| NodeDef {
        name: name.to_owned(),
        op: op.to_owned(),
        device: format!("/job:worker/task:{task}/device:CPU:0"),
        input: input.iter().map(|&it| it.to_owned()).collect(),
        attr: [(
            attr.to_owned(),
            AttrValue { value: Some(AttrValueKind::Type(DataType::Float as i32)) },
        )]
        .into(),
        ..NodeDef::default()
    };
    let node = [
        node("x", "Placeholder", 0, &[], "dtype"),
        node("there", "Identity", 0, &["x"], "T"),
        node("y", "Identity", 1, &["there"], "T"),
    ];
    GraphDef { node: node.into(), ..GraphDef::default() }
}

/// Two tasks of job `worker`.
struct Tasks {
    served: Vec<(Runtime, Server)>,
    addresses: [SocketAddr; 2],
}

impl Tasks {
    fn new(planes: [DataPlane; 2]) -> Tasks {
        let addresses = [free_address(), free_address()];
        let spec = format!(r#"{{"worker": ["{}", "{}"]}}"#, addresses[0], addresses[1]);
        let served = [0u32, 1].map(|task| {
            let options = RuntimeOptions {
                task: DeviceName::of_task("worker", task),
                ..RuntimeOptions::with_plugins(Vec::<String>::new())
            };
            let (runtime, _) = Runtime::new(options).unwrap();
            let options = ServerOptions {
                listen: addresses[task as usize],
                cluster: ClusterSpec::parse(&spec).unwrap(),
                data_plane: planes[task as usize],
                ..ServerOptions::default()
            };
            let server = Server::start(Worker::new(&runtime), &options).unwrap();
            (runtime, server)
        });
        Tasks { served: served.into(), addresses }
    }

    fn open(&self) -> Session {
        let target = format!("grpc://{}", self.addresses[1]);
        Session::connect(&target, over_two_tasks()).unwrap()
    }

    fn ways(&self, task: usize) -> Vec<&'static str> {
        let links = self.served[task].1.watch().links();
        links.iter().flat_map(|link| &link.ways).map(|way| way.way).collect()
    }
}

fn run(session: &Session, count: usize) -> Result<Vec<f32>, ClusterError> {
    let x: Vec<f32> = (0..count).map(|at| (at % 1009) as f32 - 3.0).collect();
    let fed = Tensor::from_slice(&[count as i64], &x).unwrap();
    let got = session.run(&[("x", fed)], &["y"], &[], LIMIT)?;
    let got = got[0].as_slice::<f32>().unwrap().to_vec();
    assert!(got == x, "{count} elements");
    Ok(got)
}

#[test]
fn each_way_carries_the_same_values_and_is_counted() {
    use DataPlane::{Auto, Grpc, Shm, Tcp};
    for (planes, way) in [
        ([Grpc, Grpc], "grpc"),
        ([Tcp, Tcp], "tcp"),
        ([Shm, Shm], "shm"),
        ([Auto, Auto], "shm"),
        ([Auto, Tcp], "tcp"),
        ([Grpc, Auto], "grpc"),
    ] {
        let tasks = Tasks::new(planes);
        let session = tasks.open();
        for count in [0usize, 1, 1, 100, 100, 16_385, 2_000_000, 1] {
            run(&session, count).unwrap();
        }
        assert_eq!((tasks.ways(0), tasks.ways(1)), (vec![way], vec![way]), "{planes:?}");
        let bytes: u64 = tasks.served[1].1.watch().links().iter().map(|link| link.bytes).sum();
        assert_eq!(bytes, 4 * (1 + 1 + 100 + 100 + 16_385 + 2_000_000 + 1), "{planes:?}");
        session.close().unwrap();
    }
}

#[test]
fn a_way_that_the_other_task_does_not_have_is_an_error_that_says_so() {
    let tasks = Tasks::new([DataPlane::Grpc, DataPlane::Tcp]);
    let error = run(&tasks.open(), 1).unwrap_err();
    assert_eq!(error.code(), Code::FAILED_PRECONDITION, "{error}");
    let (message, task) = (error.to_string(), "/job:worker/replica:0/task:");
    let says = [task, "--data-plane tcp", "--data-plane grpc", "use --data-plane auto"];
    assert!(says.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn a_task_that_goes_and_comes_again_gets_another_link() {
    for plane in [DataPlane::Tcp, DataPlane::Shm] {
        let mut tasks = Tasks::new([plane, plane]);
        run(&tasks.open(), 1000).unwrap();
        let spec = format!(r#"{{"worker": ["{}", "{}"]}}"#, tasks.addresses[0], tasks.addresses[1]);
        let (runtime, server) = tasks.served.remove(0);
        server.stop(Duration::ZERO);
        let options = ServerOptions {
            listen: tasks.addresses[0],
            cluster: ClusterSpec::parse(&spec).unwrap(),
            data_plane: plane,
            ..ServerOptions::default()
        };
        let server = Server::start(Worker::new(&runtime), &options).unwrap();
        tasks.served.insert(0, (runtime, server));
        run(&tasks.open(), 1000).unwrap();
        assert_eq!(tasks.ways(0), [plane.name()]);
    }
}
