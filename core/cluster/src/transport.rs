//! The way by which a worker gets tensors from others: links of the data plane between tasks of Tenon, RecvTensor over gRPC
//! with tasks of TensorFlow ([`Peers`](crate::peers::Peers) chooses); a step's rendezvous knows this trait alone.

use crate::{health::Ask, refusal::Refusal, way::Way, wire::Answer};
use std::sync::Arc;
use tenon_framework::{DType, Tensor};
use tenon_proto::{
    ClusterDef, CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest,
    CompleteInstanceResponse, RecvBufRequest,
};
use tenon_runtime::rendezvous::{Key, Parcel};

/// A tensor that another task sends.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The task that sends it, such as `/job:ps/replica:0/task:0`.
    pub task: String,
    /// The step.
    pub step: i64,
    /// The key.
    pub key: String,
}

/// Takes the tensor, or the reason why it does not come.
pub(crate) type Done = Box<dyn FnOnce(Result<Answer, Refusal>) + Send>;

/// Gives up a request: its [`Done`] may then not be called.
pub(crate) type Abandon = Box<dyn FnOnce() + Send>;

/// Why nobody waits for a tensor any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It came by another way.
    Settled,
    /// The step has failed here.
    GivenUp,
}

/// Withdraws a request for a tensor: its [`Done`] may then not be called.
pub(crate) type Withdraw = Box<dyn FnOnce(End) + Send>;

/// Takes the answer of another task.
pub(crate) type Asked<R> = Box<dyn FnOnce(Result<R, Refusal>) + Send>;

/// What a link says of the task that pushed a value over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sender {
    /// It has the name that the key says, in the server's own cluster.
    Named,
    /// It is the one at this address, to which this side made the link, whatever a session calls it.
    At(Arc<str>),
}

/// Sends tensors to a task by the link over which it has asked for some.
pub(crate) trait Pusher: Send + Sync {
    /// Sends a value under a key; whether it went. Never blocks.
    fn push_value(&self, step: i64, key: &str, answer: &Answer) -> bool;
}

/// Gets tensors from other tasks.
pub(crate) trait Transport: Send + Sync {
    /// Requests a tensor. Never blocks: `done` is called later, from any thread. A task that cannot be reached is an error at
    /// once.
    fn recv_tensor(&self, wanted: Wanted, done: Done) -> Withdraw;

    /// Sends a tensor to a task that has not asked for it; whether it went. Never blocks.
    fn push(&self, task: &str, step: i64, key: &Key, parcel: &Parcel) -> bool;

    /// Counts a tensor that was taken without a request.
    fn came(&self, task: &str, way: Way, bytes: usize);

    /// Whether a value that is pushed as one of a task may be its own.
    fn is_from(&self, _task: &str, _sender: &Sender) -> bool {
        true
    }

    /// A task has asked for a tensor over a link that it made: others may be pushed to it by the same way.
    fn asked_by(&self, _task: &str, _by: &Arc<dyn Pusher>) {}

    /// Joins a group at the task that leads it. Never blocks, as the following ones.
    fn complete_group(
        &self,
        leader: &str,
        request: CompleteGroupRequest,
        done: Asked<CompleteGroupResponse>,
    ) -> Abandon;

    /// Joins a collective operation at the task that leads its group.
    fn complete_instance(
        &self,
        leader: &str,
        request: CompleteInstanceRequest,
        done: Asked<CompleteInstanceResponse>,
    ) -> Abandon;

    /// Requests a tensor of a collective operation, which has elements of this type; it may have one dimension for all of them.
    fn recv_buf(
        &self,
        task: &str,
        request: RecvBufRequest,
        dtype: DType,
        done: Asked<Tensor>,
    ) -> Abandon;

    /// The task that leads groups of devices where nobody says otherwise, the same at all tasks; `None` without other tasks.
    fn leader(&self) -> Option<String>;

    /// The address of a task, if it is known.
    fn address(&self, _task: &str) -> Option<String> {
        None
    }

    /// What asks the tasks whether they are there, if they can be asked.
    fn asks(&self) -> Option<Arc<dyn Ask>> {
        None
    }

    /// The same way to the tasks of another cluster, which one session has for itself.
    fn of_cluster(&self, cluster: &ClusterDef) -> Arc<dyn Transport>;
}
