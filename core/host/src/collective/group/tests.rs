//! Groups and operations that form, fail and are left.

use super::*;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

fn device(task: u32, incarnation: u64) -> GroupDevice {
    GroupDevice {
        name: format!("/job:w/replica:0/task:{task}/device:CPU:0"),
        device_type: "CPU".to_owned(),
        incarnation,
    }
}

fn request(key: i32, size: i32, device: GroupDevice) -> GroupRequest {
    GroupRequest { key, size, kind: CollectiveKind::REDUCE, device }
}

type Got<T> = Receiver<Result<T, KernelError>>;

fn join(groups: &Groups, request: GroupRequest) -> (u64, Got<Arc<Group>>) {
    let (sender, got) = channel();
    (groups.join(request, Box::new(move |it| drop(sender.send(it)))), got)
}

const KEY: InstanceKey = InstanceKey { step: 3, group: 1, instance: 7, iteration: (0, 0) };

fn instance(place: usize) -> InstanceRequest {
    InstanceRequest {
        key: KEY,
        size: 2,
        kind: CollectiveKind::REDUCE,
        dtype: DType::FLOAT,
        dims: vec![2],
        is_source: false,
        device: (format!("CPU:{place}"), place),
    }
}

fn join_instance(groups: &Groups, request: InstanceRequest) -> (u64, Got<usize>) {
    let (sender, got) = channel();
    (groups.join_instance(request, Box::new(move |it| drop(sender.send(it)))), got)
}

#[test]
fn a_group_has_its_devices_in_their_order_and_stays() {
    let groups = Groups::default();
    let tasks = [10, 2, 0];
    let got: Vec<_> =
        tasks.iter().map(|&task| join(&groups, request(1, 3, device(task, 5))).1).collect();
    let first = got[0].try_recv().unwrap().unwrap();
    assert_eq!(first.devices, [device(0, 5), device(2, 5), device(10, 5)]);
    assert_eq!(first.place_of(&device(10, 5).name), Some(2));
    let again = join(&groups, request(1, 3, device(2, 5))).1.try_recv().unwrap().unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    // A device that was started anew begins another group.
    let (number, anew) = join(&groups, request(1, 3, device(2, 6)));
    assert_eq!(anew.try_recv().unwrap_err(), TryRecvError::Empty);
    groups.leave(1, number);
    assert_eq!(
        (anew.try_recv().unwrap_err(), groups.counts()),
        (TryRecvError::Disconnected, (0, 0))
    );
}

#[test]
fn a_device_that_does_not_fit_fails_those_that_wait() {
    let groups = Groups::default();
    let other = |device_type: &str| GroupDevice { device_type: device_type.into(), ..device(1, 5) };
    for (wrong, said) in [
        (request(1, 3, device(1, 5)), "with size 3, but that group has size 2"),
        (request(1, 2, other("GPU")), "with type GPU, but that group has type CPU"),
    ] {
        let (_, first) = join(&groups, request(1, 2, device(0, 5)));
        let (_, second) = join(&groups, wrong);
        for got in [first, second] {
            let error = got.try_recv().unwrap().unwrap_err();
            assert_eq!(error.code, Code::INTERNAL);
            assert!(error.message.contains(said), "{error}");
        }
        assert_eq!(groups.counts(), (0, 0));
    }
    for size in [0, -1] {
        let error = join(&groups, request(1, size, device(0, 5))).1.try_recv().unwrap();
        let error = error.unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT, "{error}");
    }
}

#[test]
fn members_of_an_operation_have_to_agree() {
    let float = instance(1);
    let source = |place| InstanceRequest {
        kind: CollectiveKind::BROADCAST,
        is_source: true,
        ..instance(place)
    };
    let receiver = |place| InstanceRequest { is_source: false, ..source(place) };
    for (first, second, code, said) in [
        (
            instance(0),
            InstanceRequest { dims: vec![1, 2], ..float.clone() },
            Code::INVALID_ARGUMENT,
            "[1, 2]",
        ),
        (
            instance(0),
            InstanceRequest { dtype: DType::INT32, ..float.clone() },
            Code::INTERNAL,
            "int32",
        ),
        (instance(0), instance(0), Code::INVALID_ARGUMENT, "twice"),
        (source(0), source(1), Code::INTERNAL, "second claim from 1"),
        (receiver(0), receiver(1), Code::INTERNAL, "no source"),
    ] {
        let groups = Groups::default();
        let (_, one) = join_instance(&groups, first);
        let (_, two) = join_instance(&groups, second);
        // One that comes later learns of it too.
        let (_, three) = join_instance(&groups, instance(1));
        for got in [one, two, three] {
            let error = got.try_recv().unwrap().unwrap_err();
            assert_eq!(error.code, code, "{error}");
            assert!(error.message.contains(said), "{error}");
        }
        groups.end_step(3);
        assert_eq!(groups.counts(), (0, 0));
    }
    let groups = Groups::default();
    let (_, one) = join_instance(&groups, receiver(0));
    let (_, two) = join_instance(&groups, source(1));
    assert_eq!([one, two].map(|got| got.try_recv().unwrap().unwrap()), [1, 1]);
}

#[test]
fn what_waits_for_an_operation_ends_with_a_member_or_the_step() {
    let groups = Groups::default();
    let (number, left) = join_instance(&groups, instance(0));
    groups.leave_instance(&KEY, number, &KernelError::new(Code::CANCELLED, "given up"));
    assert_eq!(left.try_recv().unwrap().unwrap_err().code, Code::CANCELLED);
    let late = join_instance(&groups, instance(1)).1.try_recv().unwrap().unwrap_err();
    assert_eq!(late.code, Code::CANCELLED);
    groups.end_step(3);
    let (_, waits) = join_instance(&groups, instance(0));
    groups.end_step(4);
    assert_eq!(waits.try_recv().unwrap_err(), TryRecvError::Empty);
    groups.end_step(3);
    assert_eq!(waits.try_recv().unwrap().unwrap_err().code, Code::ABORTED);
}
