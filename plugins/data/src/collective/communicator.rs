//! Communicators: groups whose size and keys a resource has, so that nodes take them from there; and the groups of an
//! assignment.
//!
//! A communicator is one member's. It numbers the operations that run with it, as the others' do: members run the same ones in
//! the same order. It is made without waiting for the other members, and stays for later steps, whose nodes find it again.

use std::{
    sync::atomic::{AtomicI32, Ordering},
    time::Duration,
};
use tenon_sdk::prelude::*;

/// The container of communicators, as in TensorFlow.
const CONTAINER: &str = "collective_op_group";

/// The group of a member.
pub(super) struct Communicator {
    pub size: i32,
    pub group: i32,
    /// The place that the graph gives the member.
    pub rank: i32,
    pub timeout: Option<Duration>,
    /// The number of the next operation.
    next: AtomicI32,
}

impl ResourceValue for Communicator {
    const NAME: &'static str = "tensorflow::CollectiveGroupResource";
}

impl Communicator {
    /// The number of the next operation.
    pub fn next(&self) -> i32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// A limit in seconds; `None` for 0.
pub(super) fn limit(seconds: f32) -> Option<Duration> {
    Duration::try_from_secs_f32(seconds).ok().filter(|it| !it.is_zero())
}

/// A number of 32 bits.
pub(super) fn number(value: i64, name: &str) -> Result<i32, KernelError> {
    i32::try_from(value).map_err(|_| {
        KernelError::invalid_argument(format!("{name} {value}: expected a number of 32 bits"))
    })
}

/// Makes a communicator.
struct Make {
    timeout: Option<Duration>,
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Make { timeout: limit(c.attr("timeout_seconds")?) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let read = |input, name| number(c.integer(input, name)?, name);
        let (group, rank) = (read(0, "group_key")?, read(1, "rank")?);
        let size = read(2, "group_size")?;
        if size <= 0 {
            let message = format!("group_size {size}: expected a positive number");
            return Err(KernelError::invalid_argument(message));
        }
        if !(0..size).contains(&rank) {
            let message =
                format!("rank {rank}: expected a number below group_size, which is {size}");
            return Err(KernelError::invalid_argument(message));
        }
        let name = format!("{group}:r{rank:04}");
        let made = c.state().find_or_create(CONTAINER, &name, || {
            Ok(Communicator { size, group, rank, timeout: self.timeout, next: AtomicI32::new(0) })
        })?;
        if made.size != size {
            return Err(KernelError::new(
                Code::ALREADY_EXISTS,
                format!(
                    "group {group} has a communicator of rank {rank} for {} members on this device already, not for {size}",
                    made.size
                ),
            ));
        }
        c.output_handle(0, &made)
    }
}

register_kernel!("CollectiveInitializeCommunicator" on "CPU": Make);

/// Gives the size and the key of the group that a device is assigned to.
fn assign(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let groups = c.input::<i32>(0)?;
    let &[_, size] = groups.dims else {
        return Err(KernelError::invalid_argument(format!(
            "group_assignment: expected a matrix with a row for each group, found shape {:?}",
            groups.dims
        )));
    };
    let device = number(c.integer(1, "device_index")?, "device_index")?;
    let base = number(c.integer(2, "base_key")?, "base_key")?;
    let count = groups.data.len();
    let width = usize::try_from(size).unwrap_or(0).max(1);
    for (row, members) in groups.data.chunks_exact(width).enumerate() {
        let key = base.wrapping_add(row as i32);
        if key == 0 {
            return Err(KernelError::invalid_argument(format!(
                "base_key {base}: group {row} would have the key 0, which is reserved"
            )));
        }
        for &member in members {
            if usize::try_from(member).ok().is_none_or(|member| member >= count) {
                return Err(KernelError::invalid_argument(format!(
                    "group_assignment has device {member}: expected numbers below {count}, the number of devices"
                )));
            }
            if member == device {
                c.output::<i32>(0, &[])?.data[0] = number(size, "group_size")?;
                c.output::<i32>(1, &[])?.data[0] = key;
                return Ok(());
            }
        }
    }
    Err(KernelError::invalid_argument(format!(
        "device_index {device}: group_assignment has no group with it"
    )))
}

register_kernel!("CollectiveAssignGroupV2" on "CPU": fn assign);
