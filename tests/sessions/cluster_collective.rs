//! Collective operations between tasks, each a server of this process on a port of the loopback interface.

use super::cluster::Tasks;
use std::{
    thread,
    time::{Duration, Instant},
};
use tenon_cluster::{ClusterError, DataPlane, Session};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_proto::{ConfigProto, ConfigProtoExperimental, GraphDef};
use tenon_runtime::framework::{Code, DType, PartialShape, Tensor, attr::AttrValue};
use tenon_tests::session::{floats, turn, values};

const LIMIT: Option<Duration> = Some(Duration::from_secs(30));

fn device(task: usize) -> String {
    format!("/job:worker/task:{task}/device:CPU:0")
}

/// Adds `y0`, `y1`, ...: the sum over the tasks of what is fed as `x0`, `x1`, ..., each at its task.
pub(super) fn sums(b: &mut GraphBuilder<'_>, tasks: &[usize], size: i64) -> Result<(), GraphError> {
    for &task in tasks {
        let x = b.placeholder(&format!("x{task}"), DType::FLOAT, PartialShape::UNKNOWN)?;
        let checked = b.op("CheckNumerics").name(&format!("checked{task}")).device(&device(task));
        let checked = checked.input(x).attr("message", "bad").build()?;
        let node = b.op("CollectiveReduce").name(&format!("y{task}")).device(&device(task));
        let node = node.input(checked).attr("merge_op", "Add").attr("final_op", "Id");
        let node = node.attr("subdiv_offsets", vec![0i64]).attr("group_size", size);
        node.attr("group_key", 1i64).attr("instance_key", 7i64).build()?;
    }
    Ok(())
}

fn code(error: &ClusterError) -> Code {
    error.code()
}

#[test]
fn members_of_two_tasks_get_the_same_sum() {
    let _turn = turn();
    let tasks = Tasks::of(&[("worker", 0), ("worker", 1)]);
    let graph = tasks.graph(|b| sums(b, &[0, 1], 2));
    // Whichever task the session is at: the first one leads the groups.
    for target in ["worker/0", "worker/1"] {
        let session = Session::connect(&tasks.target(target), graph.clone()).unwrap();
        for count in [1usize, 5, 300_000] {
            let of = |task: usize| -> Vec<f32> {
                (0..count).map(|at| ((at * 7 + task * 13) % 101) as f32 / 3.0).collect()
            };
            let sum: Vec<f32> = of(0).iter().zip(of(1)).map(|(a, b)| a + b).collect();
            let feeds = [("x0", floats(&of(0))), ("x1", floats(&of(1)))];
            let got = session.run(&feeds, &["y0", "y1"], &[], LIMIT).unwrap();
            assert!(got.iter().all(|it| values(it) == sum), "{target} {count}");
        }
        let feeds = [("x0", floats(&[1.0])), ("x1", floats(&[1.0, 2.0]))];
        let error = session.run(&feeds, &["y0", "y1"], &[], LIMIT).unwrap_err();
        assert_eq!(code(&error), Code::INVALID_ARGUMENT, "{error}");
        assert!(error.to_string().contains("shape mismatch"), "{error}");
        let feeds = [("x0", floats(&[1.0])), ("x1", floats(&[f32::NAN]))];
        let error = session.run(&feeds, &["y0", "y1"], &[], LIMIT).unwrap_err();
        assert_eq!(code(&error), Code::INVALID_ARGUMENT, "{error}");
        assert!(error.to_string().contains("checked1"), "{error}");
        let feeds = [("x0", floats(&[1.0])), ("x1", floats(&[2.0]))];
        let got = session.run(&feeds, &["y0", "y1"], &[], LIMIT).unwrap();
        assert!(got.iter().all(|it| values(it) == [3.0]));
        session.close().unwrap();
    }
}

/// Adds a broadcast from the first task, and what all gather.
fn others(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = || AttrValue::Shape(PartialShape::new(&[2]).expect("a shape"));
    for task in 0..3usize {
        let x = b.constant(&format!("x{task}"), floats(&[task as f32, 1.5]))?;
        let op = if task == 0 { "CollectiveBcastSend" } else { "CollectiveBcastRecv" };
        let mut node = b.op(op).name(&format!("b{task}")).device(&device(task));
        if task == 0 {
            node = node.input(x);
        }
        let keys = [("group_size", 3i64), ("group_key", 1), ("instance_key", 2)];
        let mut node = node.attr("T", DType::FLOAT).attr("shape", shape());
        for (name, key) in keys {
            node = node.attr(name, key);
        }
        node.build()?;
        let mut node = b.op("CollectiveGather").name(&format!("g{task}")).device(&device(task));
        node = node.input(x).attr("shape", shape());
        for (name, key) in [("group_size", 3i64), ("group_key", 1), ("instance_key", 3)] {
            node = node.attr(name, key);
        }
        node.build()?;
    }
    Ok(())
}

#[test]
fn values_are_given_to_and_gathered_from_three_tasks() {
    let _turn = turn();
    let tasks = Tasks::of(&[("worker", 0), ("worker", 1), ("worker", 2)]);
    let session = Session::connect(&tasks.target("worker/2"), tasks.graph(others)).unwrap();
    for _ in 0..3 {
        let got = session.run(&[], &["b0", "b1", "b2", "g0", "g1", "g2"], &[], LIMIT).unwrap();
        assert!(got[..3].iter().all(|it| values(it) == [0.0, 1.5]), "{got:?}");
        assert!(got[3..].iter().all(|it| values(it) == [0.0, 1.5, 1.0, 1.5, 2.0, 1.5]), "{got:?}");
    }
}

/// The configuration of a session that uses one task only, and meets others in its collective operations.
fn alone(task: usize) -> ConfigProto {
    let experimental = ConfigProtoExperimental {
        collective_group_leader: "/job:worker/replica:0/task:0".to_owned(),
        ..ConfigProtoExperimental::default()
    };
    ConfigProto {
        device_filters: vec![format!("/job:worker/task:{task}")],
        experimental: Some(experimental),
        ..ConfigProto::default()
    }
}

/// A session at each of two tasks, with a graph of its own.
fn replicas(tasks: &Tasks) -> [Session; 2] {
    [0usize, 1].map(|task| {
        let graph: GraphDef = tasks.graph(|b| sums(b, &[task], 2));
        let target = tasks.target(&format!("worker/{task}"));
        Session::connect_with(&target, graph, alone(task)).unwrap()
    })
}

/// One step of both sessions at once.
fn together(
    sessions: &[Session; 2],
    of: [f32; 2],
    limit: Option<Duration>,
) -> [Result<Vec<Tensor>, ClusterError>; 2] {
    thread::scope(|scope| {
        let run = |task: usize| {
            let (session, value) = (&sessions[task], of[task]);
            scope.spawn(move || {
                let (x, y) = (format!("x{task}"), format!("y{task}"));
                session.run(&[(x.as_str(), floats(&[value]))], &[y.as_str()], &[], limit)
            })
        };
        let started = [run(0), run(1)];
        started.map(|it| it.join().expect("no panic"))
    })
}

#[test]
fn sessions_of_two_masters_meet() {
    let _turn = turn();
    let tasks = Tasks::of(&[("worker", 0), ("worker", 1)]);
    let sessions = replicas(&tasks);
    for step in 0..5 {
        let got = together(&sessions, [1.0, step as f32], LIMIT);
        for it in got {
            assert_eq!(values(&it.unwrap()[0]), [1.0 + step as f32]);
        }
    }
    // A step that one of them fails is over for both; the next one is theirs again.
    let limit = Some(Duration::from_secs(3));
    let [first, second] = together(&sessions, [1.0, f32::NAN], limit);
    assert_eq!(code(&second.unwrap_err()), Code::INVALID_ARGUMENT);
    assert!(first.is_err());
    for it in together(&sessions, [1.0, 2.0], LIMIT) {
        assert_eq!(values(&it.unwrap()[0]), [3.0]);
    }
}

#[test]
fn a_member_whose_task_goes_ends_the_step() {
    let _turn = turn();
    let mut tasks = Tasks::of(&[("worker", 0), ("worker", 1)]);
    // A group of three, of which one never comes.
    let graph = tasks.graph(|b| sums(b, &[0, 1], 3));
    let session = Session::connect(&tasks.target("worker/0"), graph).unwrap();
    let feeds = [("x0", floats(&[1.0])), ("x1", floats(&[1.0]))];
    let short = Some(Duration::from_millis(300));
    let late = session.run(&feeds, &["y0", "y1"], &[], short).unwrap_err();
    assert_eq!(code(&late), Code::DEADLINE_EXCEEDED, "{late}");
    thread::scope(|scope| {
        let step = scope.spawn(|| session.run(&feeds, &["y0", "y1"], &[], None));
        thread::sleep(Duration::from_millis(300));
        let begin = Instant::now();
        tasks.stop("worker/1");
        let error = step.join().expect("no panic").unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        let expected = [Code::UNAVAILABLE, Code::ABORTED, Code::CANCELLED];
        assert!(expected.contains(&code(&error)), "{error}");
        assert!(error.to_string().contains("/job:worker/replica:0/task:1"), "{error}");
    });
}

/// A step of one session; both members have the sum.
fn check_sum(session: &Session, of: [f32; 2]) {
    let feeds = [("x0", floats(&[of[0]])), ("x1", floats(&[of[1]]))];
    let got = session.run(&feeds, &["y0", "y1"], &[], LIMIT).unwrap();
    assert!(got.iter().all(|it| values(it) == [of[0] + of[1]]), "{got:?}");
}

#[test]
fn the_leader_is_asked_for_a_group_and_not_for_each_sum() {
    let _turn = turn();
    let mut tasks = Tasks::of(&[("worker", 0), ("worker", 1)]);
    let graph = tasks.graph(|b| sums(b, &[0, 1], 2));
    let session = Session::connect(&tasks.target("worker/0"), graph.clone()).unwrap();
    (0..10).for_each(|step| check_sum(&session, [1.0, step as f32]));
    assert_eq!(tasks.questions("worker/0"), 2, "each member asks for its group");
    assert_eq!(tasks.questions("worker/1"), 0);
    session.close().unwrap();
    // A session that has the same members asks nothing.
    let session = Session::connect(&tasks.target("worker/1"), graph.clone()).unwrap();
    check_sum(&session, [1.0, 2.0]);
    assert_eq!(tasks.questions("worker/0"), 2);
    // A member that was started anew forms the group anew, with those that still know the former one.
    tasks.stop("worker/1");
    tasks.restart("worker", 1, DataPlane::Auto);
    let session = Session::connect(&tasks.target("worker/0"), graph).unwrap();
    let begin = Instant::now();
    let feeds = [("x0", floats(&[1.0])), ("x1", floats(&[2.0]))];
    while let Err(error) = session.run(&feeds, &["y0", "y1"], &[], LIMIT) {
        let expected = [Code::UNAVAILABLE, Code::ABORTED, Code::CANCELLED];
        assert!(expected.contains(&code(&error)), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{error}");
    }
    let asked = tasks.questions("worker/0");
    assert!(asked > 2, "{asked}");
    (0..5).for_each(|step| check_sum(&session, [1.0, step as f32]));
    assert_eq!(tasks.questions("worker/0"), asked);
}
