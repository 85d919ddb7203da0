//! Members at several tasks, each with operations of its own, without a network.

use super::*;
use std::sync::{
    Weak,
    mpsc::{Receiver, TryRecvError, channel},
};
use tenon_abi::CollectiveKind;
use tenon_framework::Code;

/// A task that has started: its incarnation and its collectives.
type Started = (u64, Weak<Collectives>);

/// The tasks of a cluster, of which the first leads.
#[derive(Clone)]
struct Tasks(Arc<Mutex<Vec<Started>>>);

fn device(task: usize, incarnation: u64) -> GroupDevice {
    GroupDevice {
        name: format!("/job:w/replica:0/task:{task}/device:CPU:0"),
        device_type: "CPU".to_owned(),
        incarnation,
    }
}

impl Tasks {
    fn new() -> Tasks {
        Tasks(Arc::new(Mutex::ranked(rank::LEAF, Vec::new())))
    }

    /// Starts a task, perhaps anew.
    fn start(&self, task: usize, incarnation: u64) -> Arc<Collectives> {
        let all = Collectives::new(&Arc::default());
        all.connect(Arc::new(Way { own: task, tasks: self.clone() }));
        let mut tasks = self.0.lock();
        let started = (incarnation, Arc::downgrade(&all));
        match tasks.get_mut(task) {
            Some(place) => *place = started,
            None => tasks.push(started),
        }
        drop(tasks);
        all
    }

    fn task(&self, task: usize) -> (u64, Arc<Collectives>) {
        let (incarnation, all) = self.0.lock()[task].clone();
        (incarnation, all.upgrade().expect("the test has it"))
    }
}

/// The way of a task to the others.
struct Way {
    own: usize,
    tasks: Tasks,
}

impl Remote for Way {
    fn is_shared(&self, _: u64) -> bool {
        true
    }

    fn named(&self, _: u64, device: String) -> String {
        device
    }

    fn is_here(&self, _: u64, name: &str) -> bool {
        name == device(self.own, 0).name
    }

    fn join_group(&self, _: u64, request: GroupRequest, done: Done<Arc<Group>>) -> Abandon {
        let (_, leader) = self.tasks.task(0);
        let (key, number) = (request.key, leader.groups.join(request, done));
        Box::new(move || leader.groups.leave(key, number))
    }

    fn join_instance(&self, request: InstanceRequest, done: Done<usize>) -> Abandon {
        let (_, leader) = self.tasks.task(0);
        leader.groups.join_instance(request, done);
        Box::new(|| ())
    }

    fn receive(&self, wanted: Wanted, done: Arrived) -> Abandon {
        let Wanted { key, from, agreed, .. } = wanted;
        let task = (0..3).find(|&task| device(task, 0).name == from.name).expect("one of three");
        let (incarnation, all) = self.tasks.task(task);
        match incarnation == from.incarnation {
            true => all.take(&key, agreed, done),
            false => done(Err(KernelError::new(Code::ABORTED, "it was started anew"))),
        }
        Box::new(|| ())
    }
}

type Got<T> = Receiver<Result<T, KernelError>>;

/// What a member of a group of two joins.
fn joins(step: u64, (task, incarnation): (usize, u64), dims: &[i64]) -> Join {
    Join {
        key: InstanceKey { step, group: 1, instance: 7, iteration: (0, 0) },
        size: 2,
        kind: CollectiveKind::REDUCE,
        device: device(task, incarnation),
        dtype: DType::FLOAT,
        dims: dims.to_vec(),
        is_source: false,
        timeout: None,
    }
}

fn join(all: &Arc<Collectives>, join: Join) -> (Arc<Member>, Got<Place>) {
    let (sender, got) = channel();
    (all.join(join, Box::new(move |place| drop(sender.send(place)))), got)
}

fn recv(member: &Member, from: u32) -> Got<Tensor> {
    let (sender, got) = channel();
    member.recv(from, 0, Box::new(move |tensor| drop(sender.send(tensor))));
    got
}

fn waits<T: std::fmt::Debug>(got: &Got<T>) -> bool {
    matches!(got.try_recv(), Err(TryRecvError::Empty))
}

fn error<T: std::fmt::Debug>(got: &Got<T>) -> KernelError {
    got.try_recv().expect("it has ended").expect_err("it has failed")
}

/// A step in which two members give each other a tensor.
fn exchange(all: [&Arc<Collectives>; 2], step: u64, incarnations: [u64; 2]) {
    let members = [0, 1].map(|task| join(all[task], joins(step, (task, incarnations[task]), &[1])));
    for (at, (member, got)) in members.iter().enumerate() {
        let place = got.try_recv().expect("it is ready").expect("it joins");
        assert_eq!((place.place, place.size), (at as u32, 2));
        member.send(1 - place.place, 0, Tensor::scalar(at as f32).unwrap()).unwrap();
    }
    for (at, (member, _)) in members.iter().enumerate() {
        let other = 1 - at as u32;
        let tensor = recv(member, other).try_recv().expect("it was sent").expect("it comes");
        assert_eq!(tensor.as_slice::<f32>().unwrap(), [other as f32]);
    }
    all.iter().for_each(|all| all.end_step(step));
}

#[test]
fn the_leader_is_asked_once_by_each_member() {
    let tasks = Tasks::new();
    let (one, two) = (tasks.start(0, 1), tasks.start(1, 1));
    (1..=10).for_each(|step| exchange([&one, &two], step, [1, 1]));
    assert_eq!(one.groups.questions(), 2);
    // The source of a broadcast needs nobody, and is told when all are there.
    let source = |task: usize| Join {
        kind: CollectiveKind::BROADCAST,
        is_source: task == 1,
        ..joins(11, (task, 1), &[1])
    };
    let (_first, got) = join(&one, source(0));
    assert!(waits(&got));
    let (_second, _) = join(&two, source(1));
    assert_eq!(got.try_recv().unwrap().unwrap().source, 1);
    assert_eq!(one.groups.questions(), 4);
}

#[test]
fn members_that_differ_fail_whoever_comes_first() {
    let tasks = Tasks::new();
    let (one, two) = (tasks.start(0, 1), tasks.start(1, 1));
    exchange([&one, &two], 1, [1, 1]);
    // The request comes after its sender has joined.
    let (first, _) = join(&one, joins(2, (0, 1), &[2]));
    let (second, _) = join(&two, joins(2, (1, 1), &[3]));
    let refused = error(&recv(&second, 0));
    assert_eq!(refused.code, Code::INVALID_ARGUMENT, "{refused}");
    assert!(refused.message.contains("shape mismatch"), "{refused}");
    let sent = first.send(1, 0, Tensor::scalar(1f32).unwrap()).unwrap_err();
    assert_eq!(sent.message, refused.message);
    // It comes before.
    let (second, _) = join(&two, joins(3, (1, 1), &[2]));
    let early = recv(&second, 0);
    assert!(waits(&early));
    let (_first, got) = join(&one, joins(3, (0, 1), &[1, 2]));
    let all = [got.try_recv().unwrap().unwrap_err(), error(&early)];
    assert!(all.iter().all(|it| it.code == Code::INVALID_ARGUMENT), "{all:?}");
    // A device joins once.
    let (_once, _) = join(&one, joins(4, (0, 1), &[2]));
    let (_twice, got) = join(&one, joins(4, (0, 1), &[2]));
    assert!(got.try_recv().unwrap().unwrap_err().message.contains("twice"));
    (2..5).for_each(|step| [&one, &two].iter().for_each(|all| all.end_step(step)));
    exchange([&one, &two], 5, [1, 1]);
}

#[test]
fn a_member_that_was_started_anew_forms_the_group_anew() {
    let tasks = Tasks::new();
    let (one, two) = (tasks.start(0, 1), tasks.start(1, 1));
    exchange([&one, &two], 1, [1, 1]);
    drop(two);
    let two = tasks.start(1, 2);
    let (first, ready) = join(&one, joins(2, (0, 1), &[1]));
    assert!(ready.try_recv().unwrap().is_ok(), "it does not know yet");
    let (second, formed) = join(&two, joins(2, (1, 2), &[1]));
    assert!(waits(&formed), "it joins another group than the one that is complete");
    let refused = error(&recv(&first, 1));
    assert_eq!(refused.code, Code::ABORTED);
    // As the kernel and the end of the step do.
    first.fail(refused);
    second.fail(KernelError::new(Code::CANCELLED, "the step was cancelled"));
    [&one, &two].iter().for_each(|all| all.end_step(2));
    let before = one.groups.questions();
    (3..=5).for_each(|step| exchange([&one, &two], step, [1, 2]));
    assert_eq!(one.groups.questions() - before, 2);
}

#[test]
fn a_member_that_waits_for_long_finds_a_group_of_others() {
    let tasks = Tasks::new();
    let (one, two, three) = (tasks.start(0, 1), tasks.start(1, 1), tasks.start(2, 1));
    exchange([&one, &two], 1, [1, 1]);
    // The same key, for other devices.
    let (first, _) = join(&one, joins(2, (0, 1), &[1]));
    let got = recv(&first, 1);
    let now = Instant::now();
    one.collect(now);
    let before = one.groups.questions();
    one.collect(now + Duration::from_secs(2));
    assert_eq!(one.groups.questions() - before, 1, "it asks once");
    assert!(waits(&got), "the group is the same");
    let (_third, formed) = join(&three, joins(2, (2, 1), &[1]));
    assert!(waits(&formed));
    one.collect(now + Duration::from_secs(3));
    let refused = error(&got);
    assert_eq!(refused.code, Code::ABORTED);
    assert!(refused.message.contains("formed anew"), "{refused}");
    let place = formed.try_recv().unwrap().unwrap();
    assert_eq!((place.place, place.size), (1, 2));
}
