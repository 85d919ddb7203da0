//! Who takes part: groups of devices, and the operations of a group.
//!
//! # States
//! A group is *forming* until as many devices have joined as it has members; then it is *complete* and stays, so that
//! later steps find it at once. A device that does not fit a complete group (another size or type, a device of another
//! incarnation) begins a new one under the same key, since the earlier members are gone or of another graph. A device
//! that does not fit a forming group fails it for all that wait.
//!
//! An operation is *forming* until all members have joined; then its entry goes. One that failed stays as the error for
//! members that come later, until its step ends.

use super::agreed::digest;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_abi::CollectiveKind;
use tenon_framework::{
    Code, DType, KernelError,
    device::DeviceName,
    sync::{Mutex, rank},
};

/// Groups that are kept.
const MOST_GROUPS: usize = 10_000;
/// Operations of steps that nobody has ended are dropped after this time.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Members of a group, at most.
const MOST_MEMBERS: i32 = 65_536;

/// A device of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDevice {
    /// Its full name.
    pub name: String,
    /// Its type.
    pub device_type: String,
    /// Its incarnation.
    pub incarnation: u64,
}

/// A complete group.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// Its key.
    pub key: i32,
    /// Its devices, by job, task, type and number.
    pub devices: Vec<GroupDevice>,
    /// A number for its devices and their incarnations, the same in every process.
    digest: u64,
}

impl Group {
    /// A group of these devices, in their order.
    pub fn new(key: i32, devices: Vec<GroupDevice>) -> Group {
        let digest = digest(&devices);
        Group { key, devices, digest }
    }

    /// The number of its devices and their incarnations.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    /// The place of a device.
    pub fn place_of(&self, device: &str) -> Option<usize> {
        self.devices.iter().position(|it| it.name == device)
    }
}

/// A device that joins a group.
#[derive(Debug, Clone)]
pub struct GroupRequest {
    /// The key of the group.
    pub key: i32,
    /// The number of its devices.
    pub size: i32,
    /// The kind of operation that needs it.
    pub kind: CollectiveKind,
    /// The device.
    pub device: GroupDevice,
}

/// The number of an operation: step, group, instance, and the frame and iteration of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstanceKey {
    /// The step.
    pub step: u64,
    /// The group.
    pub group: i32,
    /// The operation within the group.
    pub instance: i32,
    /// The frame of the loop that the node is in, and its iteration.
    pub iteration: (u64, u64),
}

/// A device that joins an operation.
#[derive(Debug, Clone)]
pub struct InstanceRequest {
    /// The operation.
    pub key: InstanceKey,
    /// The number of members of its group.
    pub size: usize,
    /// The kind of operation.
    pub kind: CollectiveKind,
    /// Element type of the values.
    pub dtype: DType,
    /// Dimensions of the values.
    pub dims: Vec<i64>,
    /// Whether the device has the value of a broadcast.
    pub is_source: bool,
    /// The full name of the device, and its place in the group.
    pub device: (String, usize),
}

/// Takes the end of a request, once, from any thread.
pub type Done<T> = Box<dyn FnOnce(Result<T, KernelError>) + Send>;

/// A request that waits.
struct Waiting<T> {
    number: u64,
    device: String,
    done: Done<T>,
}

struct FormingGroup {
    size: i32,
    devices: Vec<GroupDevice>,
    waiting: Vec<Waiting<Arc<Group>>>,
}

enum GroupEntry {
    Forming(FormingGroup),
    Complete(Arc<Group>),
}

struct FormingInstance {
    first: InstanceRequest,
    source: Option<usize>,
    waiting: Vec<Waiting<usize>>,
}

enum InstanceEntry {
    Forming(FormingInstance),
    Failed(KernelError),
}

#[derive(Default)]
struct Table {
    next: u64,
    groups: HashMap<i32, GroupEntry>,
    instances: HashMap<InstanceKey, (Instant, InstanceEntry)>,
}

/// The groups and their operations, as the task that resolves them keeps them.
pub struct Groups {
    table: Mutex<Table>,
}

impl Default for Groups {
    fn default() -> Groups {
        Groups { table: Mutex::ranked(rank::RENDEZVOUS, Table::default()) }
    }
}

/// The order of devices in a group.
fn order(device: &GroupDevice) -> (String, u32, u32, String, u32, String) {
    let name = DeviceName::parse(&device.name).unwrap_or_default();
    (
        name.job.unwrap_or_default(),
        name.replica.unwrap_or(0),
        name.task.unwrap_or(0),
        name.device_type.unwrap_or_default(),
        name.id.unwrap_or(0),
        device.name.clone(),
    )
}

/// Tells all that wait the same error, outside the lock.
fn fail<T>(waiting: Vec<Waiting<T>>, error: &KernelError) {
    for Waiting { done, .. } in waiting {
        done(Err(error.clone()));
    }
}

impl Groups {
    /// Joins a group; `done` gets it when it is complete. Returns a number for [`Groups::leave`].
    pub fn join(&self, request: GroupRequest, done: Done<Arc<Group>>) -> u64 {
        if let Some(error) = wrong_size(request.size) {
            done(Err(error));
            return 0;
        }
        let mut table = self.table.lock();
        table.next += 1;
        let number = table.next;
        if let Some(GroupEntry::Complete(group)) = table.groups.get(&request.key)
            && fits(group, &request)
        {
            let group = Arc::clone(group);
            drop(table);
            done(Ok(group));
            return number;
        }
        if table.groups.len() >= MOST_GROUPS && !table.groups.contains_key(&request.key) {
            table.groups.retain(|_, entry| matches!(entry, GroupEntry::Forming(_)));
        }
        let mut forming = match table.groups.remove(&request.key) {
            Some(GroupEntry::Forming(forming)) => forming,
            _ => FormingGroup { size: request.size, devices: Vec::new(), waiting: Vec::new() },
        };
        let device = request.device.name.clone();
        forming.waiting.push(Waiting { number, device, done });
        if let Some(error) = does_not_fit(&forming, &request) {
            drop(table);
            fail(forming.waiting, &error);
            return number;
        }
        if !forming.devices.iter().any(|it| it.name == request.device.name) {
            forming.devices.push(request.device);
        }
        if forming.devices.len() < forming.size as usize {
            table.groups.insert(request.key, GroupEntry::Forming(forming));
            return number;
        }
        forming.devices.sort_by_cached_key(order);
        let group = Arc::new(Group::new(request.key, forming.devices));
        table.groups.insert(request.key, GroupEntry::Complete(Arc::clone(&group)));
        drop(table);
        forming.waiting.into_iter().for_each(|it| (it.done)(Ok(Arc::clone(&group))));
        number
    }

    /// Withdraws a device that waits for its group; its `done` is dropped.
    pub fn leave(&self, key: i32, number: u64) {
        let mut table = self.table.lock();
        let Some(GroupEntry::Forming(forming)) = table.groups.get_mut(&key) else { return };
        let Some(at) = forming.waiting.iter().position(|it| it.number == number) else { return };
        let gone = forming.waiting.swap_remove(at);
        if !forming.waiting.iter().any(|it| it.device == gone.device) {
            forming.devices.retain(|it| it.name != gone.device);
        }
        if forming.waiting.is_empty() {
            table.groups.remove(&key);
        }
        drop(table);
        drop(gone);
    }

    /// A group, if it is complete.
    pub fn complete(&self, key: i32) -> Option<Arc<Group>> {
        match self.table.lock().groups.get(&key) {
            Some(GroupEntry::Complete(group)) => Some(Arc::clone(group)),
            _ => None,
        }
    }

    /// Joins an operation; `done` gets the place of the source of a broadcast (0 for others) when all members have
    /// joined. Returns a number for [`Groups::leave_instance`].
    pub fn join_instance(&self, request: InstanceRequest, done: Done<usize>) -> u64 {
        let mut table = self.table.lock();
        table.next += 1;
        let number = table.next;
        let now = Instant::now();
        if table.instances.len() >= MOST_GROUPS {
            table.instances.retain(|_, (since, _)| now.duration_since(*since) < FORGOTTEN);
        }
        let key = request.key;
        let mut forming = match table.instances.remove(&key) {
            Some((since, InstanceEntry::Failed(error))) => {
                table.instances.insert(key, (since, InstanceEntry::Failed(error.clone())));
                drop(table);
                done(Err(error));
                return number;
            }
            Some((_, InstanceEntry::Forming(forming))) => forming,
            None => FormingInstance { first: request.clone(), source: None, waiting: Vec::new() },
        };
        let error = differs(&forming, &request);
        if request.is_source {
            forming.source = Some(request.device.1);
        }
        forming.waiting.push(Waiting { number, device: request.device.0, done });
        let is_full = forming.waiting.len() >= request.size;
        let lacks = request.kind == CollectiveKind::BROADCAST && forming.source.is_none();
        let error = error.or_else(|| (is_full && lacks).then(|| no_source(&key, request.size)));
        if let Some(error) = error {
            table.instances.insert(key, (now, InstanceEntry::Failed(error.clone())));
            drop(table);
            fail(forming.waiting, &error);
        } else if is_full {
            drop(table);
            let source = forming.source.unwrap_or(0);
            forming.waiting.into_iter().for_each(|it| (it.done)(Ok(source)));
        } else {
            table.instances.insert(key, (now, InstanceEntry::Forming(forming)));
        }
        number
    }

    /// Fails an operation because a member gave it up before all had joined.
    pub fn leave_instance(&self, key: &InstanceKey, number: u64, error: &KernelError) {
        let mut table = self.table.lock();
        let Some((_, InstanceEntry::Forming(forming))) = table.instances.get(key) else { return };
        if !forming.waiting.iter().any(|it| it.number == number) {
            return;
        }
        let failed = (Instant::now(), InstanceEntry::Failed(error.clone()));
        let Some((_, InstanceEntry::Forming(forming))) = table.instances.insert(*key, failed)
        else {
            return;
        };
        drop(table);
        fail(forming.waiting, error);
    }

    /// Forgets the operations of a step; what waits for one fails.
    pub fn end_step(&self, step: u64) {
        let mut gone = Vec::new();
        let mut table = self.table.lock();
        table.instances.retain(|key, (_, entry)| {
            if key.step != step {
                return true;
            }
            if let InstanceEntry::Forming(forming) = entry {
                gone.append(&mut forming.waiting);
            }
            false
        });
        drop(table);
        let message = format!("step {step} ended before all members of a collective had joined");
        fail(gone, &KernelError::new(Code::ABORTED, message));
    }

    /// How often members have asked here: for their group, or for the source of an operation.
    pub fn questions(&self) -> u64 {
        self.table.lock().next
    }

    /// The numbers of groups and of operations that are kept.
    pub fn counts(&self) -> (usize, usize) {
        let table = self.table.lock();
        (table.groups.len(), table.instances.len())
    }
}

/// The error of a group of a size that no group has.
fn wrong_size(size: i32) -> Option<KernelError> {
    if size < 1 {
        let message = format!("group_size must be positive integer but got {size}");
        return Some(KernelError::invalid_argument(message));
    }
    (size > MOST_MEMBERS).then(|| {
        let message =
            format!("group_size {size}: expected at most {MOST_MEMBERS}, the limit of a group");
        KernelError::new(Code::RESOURCE_EXHAUSTED, message)
    })
}

/// Whether a complete group is the one that a device asks for.
fn fits(group: &Group, request: &GroupRequest) -> bool {
    group.devices.len() == request.size as usize && group.devices.contains(&request.device)
}

/// The error of a device that does not fit a group that forms.
fn does_not_fit(forming: &FormingGroup, request: &GroupRequest) -> Option<KernelError> {
    let (device, key) = (&request.device, request.key);
    if request.size != forming.size {
        return Some(KernelError::internal(format!(
            "device {} is joining a group with size {}, but that group has size {} (group_key={key})",
            device.name, request.size, forming.size
        )));
    }
    let other = forming.devices.iter().find(|it| it.device_type != device.device_type);
    if let Some(other) = other {
        return Some(KernelError::internal(format!(
            "device {} is joining a group with type {}, but that group has type {} (group_key={key})",
            device.name, device.device_type, other.device_type
        )));
    }
    let earlier = |it: &&GroupDevice| it.name == device.name && it != &device;
    forming.devices.iter().find(earlier).map(|_| {
        KernelError::new(
            Code::ABORTED,
            format!("device {} was started anew while group {key} formed", device.name),
        )
    })
}

/// The error of a member that does not agree with those that joined before.
fn differs(forming: &FormingInstance, request: &InstanceRequest) -> Option<KernelError> {
    let (first, device, instance) = (&forming.first, &request.device.0, request.key.instance);
    if (first.kind, first.dtype) != (request.kind, request.dtype) {
        return Some(KernelError::internal(format!(
            "collective instance {instance}: expected type {} of {}, as {} has it, found type {} of {} at {device}",
            first.kind.0, first.dtype, first.device.0, request.kind.0, request.dtype
        )));
    }
    if first.dims != request.dims {
        return Some(KernelError::invalid_argument(format!(
            "shape mismatch in the collective instance {instance}: expected {:?}, as {} has it, found {:?} at {device}; \
             give all members inputs of one shape",
            first.dims, first.device.0, request.dims
        )));
    }
    if forming.waiting.iter().any(|it| it.device == *device) {
        return Some(KernelError::invalid_argument(format!(
            "device {device} joins collective instance {instance} twice in a step: give each node an instance_key of its own"
        )));
    }
    let source = forming.source.filter(|_| request.is_source)?;
    Some(KernelError::internal(format!(
        "instance {instance} already has source {source}, received second claim from {}",
        request.device.1
    )))
}

fn no_source(key: &InstanceKey, size: usize) -> KernelError {
    KernelError::internal(format!(
        "instance {} found no source for broadcast: there were group_size={size} receivers and no sender",
        key.instance
    ))
}

#[cfg(all(test, not(loom)))]
mod tests;
