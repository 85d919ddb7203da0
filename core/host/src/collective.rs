//! Collective operations: the devices that take part find each other, and exchange tensors.
//!
//! A kernel of a collective operation joins it ([`Collectives::join`]) and then sends and receives by the places of the
//! members; what it sends to whom is its own. The members are devices of this process, or of other tasks of a cluster
//! ([`Remote`]).
//!
//! | file | content |
//! |---|---|
//! | `group.rs` | who takes part: groups and their operations |
//! | `agreed.rs` | what members show each other instead of asking the leader of their group |
//! | `buffers.rs` | tensors on their way, by step |
//! | `member.rs` | the place of one call |
//! | `timer.rs` | time limits |
//!
//! # Invariants
//! - Nothing blocks: each end is a callback, which runs once, outside all locks.
//! - The first error of a member ends the exchange of the step: what waits gets it, and so does what waits later.
//! - The state of a step goes with the step. What its members have sent to other tasks stays for a time: a member that has all
//!   of its tensors ends its step, when another one may still have to ask for the last that was sent to it.

mod agreed;
mod buffers;
mod group;
mod member;
mod timer;

pub use agreed::Agreed;
pub use buffers::{Arrived, BufferKey};
pub use group::{Done, Group, GroupDevice, GroupRequest, Groups, InstanceKey, InstanceRequest};
pub use member::{Join, Member, Place};

use buffers::StepBuffers;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};
use tenon_framework::{
    DType, KernelError, Tensor,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
        rank,
    },
};
use timer::Timer;

/// Gives a request up: its callback may then not be called.
pub type Abandon = Box<dyn FnOnce() + Send>;

/// A tensor that a member of another task sends.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Which one.
    pub key: BufferKey,
    /// The sending device.
    pub from: GroupDevice,
    /// The receiving device.
    pub to: GroupDevice,
    /// Its element type.
    pub dtype: DType,
    /// What the receiver agrees to.
    pub agreed: Agreed,
}

/// The other tasks of a cluster.
pub trait Remote: Send + Sync {
    /// Whether members of a step may be at other tasks; a step of this process alone is resolved here.
    fn is_shared(&self, step: u64) -> bool;

    /// The name of a device of this process in the cluster of the step's session.
    fn named(&self, step: u64, device: String) -> String;

    /// Whether a device of the step's cluster belongs to this task.
    fn is_here(&self, step: u64, device: &str) -> bool;

    /// Joins a group at the task that leads it.
    fn join_group(&self, step: u64, request: GroupRequest, done: Done<Arc<Group>>) -> Abandon;

    /// Joins an operation at the task that leads its group.
    fn join_instance(&self, request: InstanceRequest, done: Done<usize>) -> Abandon;

    /// Takes a tensor that a member of another task sends; it may have one dimension for all elements.
    fn receive(&self, wanted: Wanted, done: Arrived) -> Abandon;
}

/// The tensors on their way, by step.
#[derive(Default)]
struct Steps {
    running: HashMap<u64, Arc<StepBuffers>>,
    /// Those of steps that are over here, with the time of their end.
    over: VecDeque<(u64, Instant, Arc<StepBuffers>)>,
}

/// How long the tensors of a step that is over wait for members of other tasks.
const LEFT_FOR: Duration = Duration::from_secs(30);
/// Steps whose tensors wait so, at most.
const MOST_OVER: usize = 64;

/// The collective operations of a worker.
pub struct Collectives {
    /// Those of which this process knows all members, or which it leads.
    pub groups: Groups,
    steps: Mutex<Steps>,
    /// Complete groups with members at other tasks, by key.
    known: Mutex<HashMap<i32, Arc<Group>>>,
    remote: OnceLock<Arc<dyn Remote>>,
    timer: Timer,
    /// Counts the steps that have state here.
    in_steps: Arc<AtomicU64>,
}

impl Collectives {
    /// Operations of which steps with state are counted there.
    pub fn new(in_steps: &Arc<AtomicU64>) -> Arc<Collectives> {
        Arc::new(Collectives {
            groups: Groups::default(),
            steps: Mutex::ranked(rank::RENDEZVOUS, Steps::default()),
            known: Mutex::ranked(rank::RENDEZVOUS, HashMap::new()),
            remote: OnceLock::new(),
            timer: Timer::default(),
            in_steps: Arc::clone(in_steps),
        })
    }

    /// Sets the way to other tasks. Only the first call has an effect.
    pub fn connect(&self, remote: Arc<dyn Remote>) {
        let _ = self.remote.set(remote);
    }

    /// The way to other tasks, for a step that has members there.
    fn remote(&self, step: u64) -> Option<&Arc<dyn Remote>> {
        self.remote.get().filter(|remote| remote.is_shared(step))
    }

    /// Joins an operation. `ready` gets the place of the call once all members have joined.
    pub fn join(self: &Arc<Self>, mut join: Join, ready: Done<Place>) -> Arc<Member> {
        if let Some(remote) = self.remote(join.key.step) {
            join.device.name = remote.named(join.key.step, join.device.name);
        }
        Member::begin(self, join, ready)
    }

    /// The tensors of a step on their way.
    fn buffers(&self, step: u64) -> Arc<StepBuffers> {
        let mut steps = self.steps.lock();
        let made = || {
            self.in_steps.fetch_add(1, Ordering::Relaxed);
            Arc::default()
        };
        Arc::clone(steps.running.entry(step).or_insert_with(made))
    }

    /// Takes a tensor that a member of this task sends to one of another task, which agrees to this.
    pub fn take(&self, key: &BufferKey, agreed: Agreed, done: Arrived) {
        let step = key.instance.step;
        match self.over(step) {
            Some(buffers) => done(buffers.take(key).ok_or_else(|| buffers::ended(step))),
            None => self.buffers(step).recv_agreed(*key, agreed, done),
        }
    }

    /// What a step has left that is over here.
    fn over(&self, step: u64) -> Option<Arc<StepBuffers>> {
        let steps = self.steps.lock();
        let over = steps.over.iter().find(|(number, ..)| *number == step);
        over.map(|(.., buffers)| Arc::clone(buffers))
    }

    /// Fails what members of a step exchange here.
    pub fn abort_step(&self, step: u64, error: &KernelError) {
        let buffers = self.steps.lock().running.get(&step).cloned();
        if let Some(buffers) = buffers {
            buffers.abort(error);
        }
    }

    /// Takes a tensor that a member of this task sent in a step that is over here.
    pub fn take_left(&self, key: &BufferKey) -> Option<Tensor> {
        self.over(key.instance.step)?.take(key)
    }

    /// Ends a step here: what waits for it fails.
    pub fn end_step(&self, step: u64) {
        let mut steps = self.steps.lock();
        let gone = steps.running.remove(&step);
        let mut oldest = None;
        if let Some(buffers) = gone.as_ref().filter(|_| self.remote.get().is_some()) {
            steps.over.push_back((step, Instant::now(), Arc::clone(buffers)));
            oldest = if steps.over.len() > MOST_OVER { steps.over.pop_front() } else { None };
        }
        drop(steps);
        drop(oldest);
        if let Some(buffers) = gone {
            self.in_steps.fetch_sub(1, Ordering::Relaxed);
            if !buffers.end(step) {
                self.steps.lock().over.retain(|(number, ..)| *number != step);
            }
        }
        self.groups.end_step(step);
    }

    /// Drops what members of other tasks have not taken for too long, and lets members that wait for long look whether their
    /// groups are as they were.
    pub fn collect(&self, now: Instant) {
        let running: Vec<_> = self.steps.lock().running.values().cloned().collect();
        running.iter().flat_map(|it| it.members()).for_each(|member| member.look(now));
        let is_late = |since: Instant| now.saturating_duration_since(since) >= LEFT_FOR;
        let mut steps = self.steps.lock();
        let late = steps.over.iter().take_while(|(_, since, _)| is_late(*since)).count();
        let gone: Vec<_> = steps.over.drain(..late).collect();
        drop(steps);
        drop(gone);
    }

    /// The number of steps that have state here.
    pub fn steps(&self) -> usize {
        self.steps.lock().running.len()
    }

    /// A group of other tasks that was complete before.
    fn known(&self, request: &GroupRequest) -> Option<Arc<Group>> {
        let group = self.known.lock().get(&request.key).cloned()?;
        let is_same = group.devices.len() == usize::try_from(request.size).unwrap_or(0)
            && group.devices.contains(&request.device);
        is_same.then_some(group)
    }

    /// Keeps a complete group.
    fn keep(&self, group: Arc<Group>) {
        let former = self.known.lock().insert(group.key, group);
        drop(former);
    }

    /// Forgets a group one of whose members failed: the next step forms the group from the members that join then.
    fn forget(&self, group: &Arc<Group>) {
        self.known.lock().remove(&group.key);
    }
}

impl std::fmt::Debug for Collectives {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collectives").field("steps", &self.steps()).finish_non_exhaustive()
    }
}

/// A tensor with the elements that came as bytes.
///
/// # Errors
/// `INTERNAL` if the bytes are not whole elements of fixed size; no memory.
pub fn tensor_of_bytes(dtype: DType, bytes: &[u8]) -> Result<Tensor, KernelError> {
    let size = dtype.size().filter(|&size| size > 0 && !dtype.needs_drop() && !dtype.is_ref());
    let count = size.filter(|size| bytes.len().is_multiple_of(*size)).map(|it| bytes.len() / it);
    let count = count.ok_or_else(|| {
        KernelError::internal(format!("{} bytes are not elements of {dtype}", bytes.len()))
    })?;
    let dims = [i64::try_from(count).unwrap_or(i64::MAX)];
    Tensor::from_bytes(dtype, &dims, bytes)
        .map_err(|error| KernelError::internal(format!("elements of {dtype}: {error}")))
}

#[cfg(all(test, not(loom)))]
mod tests;
