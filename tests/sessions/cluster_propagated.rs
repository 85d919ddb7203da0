//! Sessions whose clients name the tasks of the cluster anew, over servers of this process.

use super::{
    cluster::{Tasks, free_port, looped, start_changed, variable},
    cluster_collective::sums,
};
use std::{collections::BTreeMap, time::Duration};
use tenon_cluster::{ClusterError, ClusterSpec, Server, Session};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_proto::{ClusterDef, ConfigProto, ConfigProtoExperimental, GraphDef, JobDef};
use tenon_runtime::{
    Runtime,
    framework::{Code, Tensor},
};
use tenon_tests::session::{floats, graph, turn, values};

const LIMIT: Option<Duration> = Some(Duration::from_secs(20));

/// A configuration that names these tasks: job, number and address.
fn naming(tasks: &[(&str, i32, &str)]) -> ConfigProto {
    let mut jobs: BTreeMap<&str, JobDef> = BTreeMap::new();
    for &(job, task, address) in tasks {
        let def =
            jobs.entry(job).or_insert_with(|| JobDef { name: job.to_owned(), ..JobDef::default() });
        def.tasks.insert(task, address.to_owned());
    }
    let cluster_def = Some(ClusterDef { job: jobs.into_values().collect() });
    ConfigProto { cluster_def, ..ConfigProto::default() }
}

/// Two servers that know nothing of each other, each `/job:alone/task:0` of a cluster of its own.
struct Strangers {
    servers: Vec<(Runtime, Server)>,
    addresses: Vec<String>,
}

impl Strangers {
    fn start() -> Strangers {
        let (mut servers, mut addresses) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let address = format!("127.0.0.1:{}", free_port());
            let mut spec = ClusterSpec::default();
            spec.jobs.entry("alone".to_owned()).or_default().insert(0, address.clone());
            servers.push(start_changed("alone", 0, &spec, |options| {
                options.absent = Duration::from_millis(800);
            }));
            addresses.push(address);
        }
        Strangers { servers, addresses }
    }

    fn graph(
        &self,
        make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
    ) -> GraphDef {
        graph(&self.servers[0].0, make).to_graph_def().expect("it can be written")
    }

    fn open(&self, graph: GraphDef, config: ConfigProto) -> Result<Session, ClusterError> {
        Session::connect_with(&format!("grpc://{}", self.addresses[1]), graph, config)
    }

    /// Names them as a ps and a worker.
    fn named(&self) -> ConfigProto {
        naming(&[("ps", 0, &self.addresses[0]), ("worker", 0, &self.addresses[1])])
    }
}

#[test]
fn servers_of_other_clusters_are_the_tasks_that_a_session_names() {
    let _turn = turn();
    let servers = Strangers::start();
    let session = servers.open(servers.graph(variable), servers.named()).unwrap();
    let unset = session.run(&[], &["value"], &[], LIMIT).unwrap_err();
    assert_eq!(unset.code(), Code::FAILED_PRECONDITION, "{unset}");
    let message = unset.to_string();
    assert!(message.starts_with("From /job:ps/replica:0/task:0:"), "{message}");
    assert!(message.contains("/job:ps/") && !message.contains("/job:alone/"), "{message}");
    let x = |value: f32| [("x", floats(&[value]))];
    session.run(&x(3.0), &[], &["set"], LIMIT).unwrap();
    session.run(&x(2.0), &[], &["add"], LIMIT).unwrap();
    assert_eq!(values(&session.run(&x(2.0), &["y"], &[], LIMIT).unwrap()[0]), [18.0]);
    let devices = session.devices().unwrap();
    let mut names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    names.sort_unstable();
    let expected = ["ps", "worker"].map(|job| format!("/job:{job}/replica:0/task:0/device:CPU:0"));
    assert_eq!(names, expected);
    // Another session has values of its own, unless it asks for those that all share.
    let other = servers.open(servers.graph(variable), servers.named()).unwrap();
    let unset = other.run(&[], &["value"], &[], LIMIT).unwrap_err();
    assert_eq!(unset.code(), Code::FAILED_PRECONDITION, "{unset}");
    let shared = || {
        let experimental = Some(ConfigProtoExperimental {
            share_session_state_in_clusterspec_propagation: true,
            ..ConfigProtoExperimental::default()
        });
        let config = ConfigProto { experimental, ..servers.named() };
        servers.open(servers.graph(variable), config).unwrap()
    };
    shared().run(&x(5.0), &[], &["set"], LIMIT).unwrap();
    assert_eq!(values(&shared().run(&[], &["value"], &[], LIMIT).unwrap()[0]), [5.0]);
    // Its own cluster is as it was.
    let own = servers.open(GraphDef::default(), ConfigProto::default()).unwrap();
    assert_eq!(own.devices().unwrap()[0].name, "/job:alone/replica:0/task:0/device:CPU:0");
}

#[test]
fn small_values_come_before_they_are_asked_for() {
    let _turn = turn();
    let servers = Strangers::start();
    // The master is at the task that sends, so that its part begins first.
    let target = format!("grpc://{}", servers.addresses[0]);
    let session = Session::connect_with(&target, servers.graph(variable), servers.named()).unwrap();
    session.run(&[("x", floats(&[3.0]))], &[], &["set"], LIMIT).unwrap();
    // The first ones are asked for: the link that is made for them says where the others go.
    for step in 0..20 {
        let x = [("x", floats(&[step as f32]))];
        assert_eq!(values(&session.run(&x, &["y"], &[], LIMIT).unwrap()[0]), [3.0 * step as f32]);
    }
    let links = servers.servers[1].1.watch().links();
    let link = links.iter().find(|link| link.from == "/job:ps/replica:0/task:0");
    let pushed: u64 = link.expect("it sent values").ways.iter().map(|way| way.pushed).sum();
    assert!(pushed > 0, "{links:?}");
}

#[test]
fn tasks_may_change_their_names() {
    let _turn = turn();
    let tasks = Tasks::of(&[("ps", 0), ("worker", 0)]);
    let [ps, worker] = ["ps/0", "worker/0"].map(|name| tasks.address(name).to_string());
    let swapped = || naming(&[("ps", 0, &worker), ("worker", 0, &ps)]);
    let open =
        |config| Session::connect_with(&tasks.target("worker/0"), tasks.graph(looped), config);
    // In turns with a session that has the servers' own names: links serve both.
    let sessions = [open(swapped()).unwrap(), open(ConfigProto::default()).unwrap()];
    for (n, expected) in [(0f32, 1f32), (5.0, 32.0)] {
        for session in &sessions {
            let n = Tensor::scalar(n).unwrap();
            let fetched = session.run(&[("n", n)], &["result"], &[], LIMIT).unwrap();
            assert_eq!(values(&fetched[0]), [expected]);
        }
    }
}

#[test]
fn members_of_a_collective_have_the_names_of_the_session() {
    let _turn = turn();
    let servers = Strangers::start();
    let graph = servers.graph(|b| sums(b, &[0, 1], 2));
    for order in [[0, 1], [1, 0]] {
        let tasks = order.map(|at| servers.addresses[at].as_str());
        let config = naming(&[("worker", 0, tasks[0]), ("worker", 1, tasks[1])]);
        let session = servers.open(graph.clone(), config).unwrap();
        for _ in 0..2 {
            let feeds = [("x0", floats(&[1.0, 2.0])), ("x1", floats(&[10.0, 20.0]))];
            let got = session.run(&feeds, &["y0", "y1"], &[], LIMIT).unwrap();
            assert!(got.iter().all(|it| values(it) == [11.0, 22.0]), "{got:?}");
        }
    }
}

#[test]
fn clusters_that_cannot_be_are_refused() {
    let _turn = turn();
    let servers = Strangers::start();
    let (other, own) = (servers.addresses[0].as_str(), servers.addresses[1].as_str());
    let absent = format!("127.0.0.1:{}", free_port());
    let refused = |tasks: &[(&str, i32, &str)]| {
        let opened = servers.open(GraphDef::default(), naming(tasks));
        let error = opened.err().expect("it is refused");
        (error.code(), error.to_string())
    };
    let (code, message) = refused(&[("worker", 0, own), ("gone", 3, &absent)]);
    assert_eq!(code, Code::UNAVAILABLE, "{message}");
    assert!(message.contains("/job:gone/replica:0/task:3"), "{message}");
    type Task<'a> = (&'a str, i32, &'a str);
    let cases: [(&[Task<'_>], &str); 3] = [
        (&[("worker", 0, other)], "does not include this server"),
        (&[], "does not include this server"),
        (&[("worker", 0, own), ("worker", 1, own)], "the same address"),
    ];
    for (tasks, what) in cases {
        let (code, message) = refused(tasks);
        assert_eq!(code, Code::INVALID_ARGUMENT, "{message}");
        assert!(message.contains(what), "{message}");
    }
}
