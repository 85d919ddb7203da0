//! What the host offers to kernels of collective operations, as a link: who takes part, and tensors between them.

use crate::{CallRecord, Code, DType, ExtHeader, FunctionDone, KeptTensor, Str};
use abi_stable::StableAbi;
use core::ffi::c_void;

/// The place of a call in a collective operation. Opaque to plugins; it has one owner.
#[repr(C)]
#[derive(StableAbi)]
pub struct Collective {
    _opaque: [u8; 0],
}

/// A kind of collective operation, with TensorFlow's numbers.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectiveKind(pub u32);

impl CollectiveKind {
    /// Every member gets the values of all members, merged into one.
    pub const REDUCE: CollectiveKind = CollectiveKind(0);
    /// Every member gets the value of one member.
    pub const BROADCAST: CollectiveKind = CollectiveKind(1);
    /// Every member gets the values of all members, one after the other.
    pub const GATHER: CollectiveKind = CollectiveKind(2);
    /// Every member gets a part of the value of each member.
    pub const ALL_TO_ALL: CollectiveKind = CollectiveKind(4);
    /// Every member gets a part of the merged value.
    pub const REDUCE_SCATTER: CollectiveKind = CollectiveKind(5);
}

/// How a call takes part in a collective operation. Filled by the plugin, which keeps it until
/// [`ExtCollectives::join`] returns.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct CollectiveJoin {
    /// Size of this struct in bytes.
    pub struct_size: u32,
    /// The kind of operation, the same at all members.
    pub kind: CollectiveKind,
    /// The group of devices.
    pub group_key: i32,
    /// The number of its devices, at least 1.
    pub group_size: i32,
    /// The operation within the group.
    pub instance_key: i32,
    /// Element type of the values, the same at all members.
    pub dtype: DType,
    /// 1 for the member whose value a broadcast gives to all, else 0.
    pub is_source: u32,
    /// Number of dimensions.
    pub rank: u32,
    /// Dimensions of the value, the same at all members.
    pub dims: *const i64,
    /// Nanoseconds after which the operation fails with `DEADLINE_EXCEEDED`; 0 for no limit of its own.
    pub timeout_ns: u64,
}

/// Takes the end of [`ExtCollectives::join`]: `OK` with the place of the call among `size` members and the place of the
/// source of a broadcast, or an error with its message. The message is valid while it runs. It runs once, on any
/// thread, perhaps before `join` returns. It must not unwind.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct CollectiveReady {
    /// Required.
    pub run: Option<
        unsafe extern "C" fn(
            data: *mut c_void,
            code: Code,
            message: Str,
            place: u32,
            size: u32,
            source: u32,
        ),
    >,
}

/// Link [`crate::ext_tags::COLLECTIVES`] of the host's table: collective operations of several devices, of this process
/// and of others. Filled by the host; every entry is there.
///
/// A member is the call of a kernel on one device. The host finds the members and carries tensors between them; what
/// is sent to whom, and what is computed, is the kernels' own.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtCollectives {
    /// Head, with tag [`crate::ext_tags::COLLECTIVES`].
    pub header: ExtHeader,
    /// Joins the operation, which is of the call's step. `ready` gets `data` once all members have joined. Null, and no
    /// call of `ready`, for a call that is over and for a description that is refused.
    pub join: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            join: *const CollectiveJoin,
            ready: CollectiveReady,
            data: *mut c_void,
        ) -> *mut Collective,
    >,
    /// Sends a tensor in host memory to a member under a number that this member has not used for it before. Never
    /// blocks. Only after `ready`.
    pub send: Option<
        unsafe extern "C" fn(
            collective: *mut Collective,
            to: u32,
            number: u64,
            tensor: *const KeptTensor,
        ) -> Code,
    >,
    /// Takes the tensor that a member sends to this one under a number, as the only result of `done`; its dimensions
    /// may be one that counts the elements. Never blocks. Only after `ready`.
    pub recv: Option<
        unsafe extern "C" fn(
            collective: *mut Collective,
            from: u32,
            number: u64,
            done: FunctionDone,
            data: *mut c_void,
        ),
    >,
    /// Fails the operation: what waits, here and at other members of the step, gets the error. Only the first error
    /// counts.
    pub abort: Option<unsafe extern "C" fn(collective: *mut Collective, code: Code, message: Str)>,
    /// Gives the place back; null is allowed. What this member has sent stays for its receivers.
    pub release: Option<unsafe extern "C" fn(collective: *mut Collective)>,
}

// SAFETY: a link is immutable data of function pointers.
unsafe impl Sync for ExtCollectives {}
