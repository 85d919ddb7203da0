//! Members of collective operations at other tasks.
//!
//! One task leads the groups of a session: the one that its configuration names, or else the one that
//! [`Transport::leader`] gives. Members join groups and operations there, and take tensors from each other.

use super::{collective, steps::Steps};
use crate::{
    handles::new_request,
    keys::in_task,
    refusal::Refusal,
    rendezvous::task_of,
    transport::{Asked, Transport},
};
use std::sync::{Arc, Weak};
use tenon_framework::{KernelError, Tensor};
use tenon_host::collective::{
    Abandon, Arrived, Collectives, Done, Group, GroupDevice, GroupRequest, InstanceRequest, Remote,
    Wanted,
};
use tenon_proto::{
    CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest, CompleteInstanceResponse,
    DeviceAttributes, Dim, RecvBufRequest, TensorShapeProto,
};

/// The way of a step to members at other tasks.
#[derive(Clone)]
pub(super) struct Way {
    pub transport: Arc<dyn Transport>,
    /// The task that leads its groups.
    pub leader: Arc<str>,
    /// The name of this task in the cluster of the step's session.
    pub task: Arc<str>,
}

impl Way {
    /// Whether this task leads the groups.
    fn leads(&self) -> bool {
        self.leader == self.task
    }
}

/// The members at other tasks.
pub(super) struct Members {
    /// They hold the collectives, which hold this.
    pub steps: Weak<Steps>,
    pub collectives: Weak<Collectives>,
}

fn error(refusal: Refusal) -> KernelError {
    KernelError::new(refusal.code, refusal.message)
}

/// What a request ends with whose step has no way to other tasks.
fn no_way<T>(done: Done<T>) -> Abandon {
    done(Err(KernelError::internal("the step has no way to other tasks")));
    Box::new(|| ())
}

impl Members {
    fn way(&self, step: u64) -> Option<Way> {
        self.steps.upgrade()?.way(step.cast_signed())
    }
}

impl Remote for Members {
    fn is_shared(&self, step: u64) -> bool {
        self.way(step).is_some()
    }

    fn named(&self, step: u64, device: String) -> String {
        self.way(step).map_or(device.clone(), |way| format!("{}{}", way.task, in_task(&device)))
    }

    fn is_here(&self, step: u64, device: &str) -> bool {
        self.way(step).is_some_and(|way| task_of(device) == &*way.task)
    }

    fn join_group(&self, step: u64, request: GroupRequest, done: Done<Arc<Group>>) -> Abandon {
        let (Some(way), Some(all)) = (self.way(step), self.collectives.upgrade()) else {
            return no_way(done);
        };
        if way.leads() {
            let key = request.key;
            let number = all.groups.join(request, done);
            return Box::new(move || all.groups.leave(key, number));
        }
        let key = request.key;
        let sent = CompleteGroupRequest {
            group_key: key,
            group_size: request.size,
            device_type: request.device.device_type.clone(),
            collective_type: request.kind.0.cast_signed(),
            device_attributes: Some(DeviceAttributes {
                name: request.device.name,
                device_type: request.device.device_type,
                incarnation: request.device.incarnation,
                ..DeviceAttributes::default()
            }),
        };
        let group = move |devices: Vec<DeviceAttributes>| {
            let device = |it: DeviceAttributes| GroupDevice {
                name: it.name,
                device_type: it.device_type,
                incarnation: it.incarnation,
            };
            Arc::new(Group::new(key, devices.into_iter().map(device).collect()))
        };
        let answered: Asked<CompleteGroupResponse> = Box::new(move |answer| {
            done(answer.map(|it| group(it.device_attributes)).map_err(error));
        });
        way.transport.complete_group(&way.leader, sent, answered)
    }

    fn join_instance(&self, request: InstanceRequest, done: Done<usize>) -> Abandon {
        let key = request.key;
        let (Some(way), Some(all)) = (self.way(key.step), self.collectives.upgrade()) else {
            return no_way(done);
        };
        if way.leads() {
            let number = all.groups.join_instance(request, done);
            let given_up = collective::given_up();
            return Box::new(move || all.groups.leave_instance(&key, number, &given_up));
        }
        let sent = CompleteInstanceRequest {
            name: collective::iteration_text(key.iteration),
            r#type: request.kind.0.cast_signed(),
            data_type: request.dtype.0.cast_signed(),
            shape: Some(shape_of(&request.dims)),
            group_key: key.group,
            group_size: i32::try_from(request.size).unwrap_or(i32::MAX),
            instance_key: key.instance,
            device: request.device.0,
            is_source: request.is_source,
            step_id: key.step.cast_signed(),
            ..CompleteInstanceRequest::default()
        };
        let answered: Asked<CompleteInstanceResponse> = Box::new(move |answer| {
            let source = answer.map(|it| usize::try_from(it.source_rank).unwrap_or(0));
            done(source.map_err(error));
        });
        way.transport.complete_instance(&way.leader, sent, answered)
    }

    fn receive(&self, wanted: Wanted, done: Arrived) -> Abandon {
        let Some(way) = self.way(wanted.key.instance.step) else { return no_way(done) };
        let task = task_of(&wanted.from.name).to_owned();
        let sent = RecvBufRequest {
            step_id: wanted.key.instance.step.cast_signed(),
            buf_rendezvous_key: collective::key_text(&wanted.key, wanted.agreed),
            src_device: wanted.from.name,
            dst_device: wanted.to.name,
            request_id: new_request(),
            src_incarnation: wanted.from.incarnation,
            ..RecvBufRequest::default()
        };
        let dtype = wanted.dtype;
        let answered: Asked<Tensor> = Box::new(move |answer| done(answer.map_err(error)));
        way.transport.recv_buf(&task, sent, dtype, answered)
    }
}

fn shape_of(dims: &[i64]) -> TensorShapeProto {
    TensorShapeProto {
        dim: dims.iter().map(|&size| Dim { size, ..Dim::default() }).collect(),
        ..TensorShapeProto::default()
    }
}
