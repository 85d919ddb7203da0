//! What a kernel gets when it computes, and the table of its entries.

use crate::{
    Code, Create, Device, DeviceState, ExtHeader, KeptTensor, MemoryKind, Packed, Range, Sink,
    Slot, Str, Stream, Support,
};
use abi_stable::StableAbi;
use core::{ffi::c_void, sync::atomic::AtomicU32};

/// A kernel's own state, made by `create`. Opaque to the host.
#[repr(C)]
#[derive(StableAbi)]
pub struct KernelState {
    _opaque: [u8; 0],
}

/// The host's record of one call. Opaque to plugins. It lives until the call completes.
#[repr(C)]
#[derive(StableAbi)]
pub struct CallRecord {
    _opaque: [u8; 0],
}

/// What all calls of one step share. Filled by the host.
#[repr(C)]
#[derive(StableAbi)]
pub struct Step {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Number of the step, unique in the process.
    pub step_id: u64,
    /// Deadline on the clock of `CallServices::now_ns`; [`crate::NO_DEADLINE`] if there is none.
    pub deadline_ns: u64,
    /// Becomes non-zero when the step is cancelled; read atomically.
    pub cancelled: *const AtomicU32,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

/// One call of a kernel. Filled by the host; lives until the call completes.
///
/// On the host's threads, those of `parallel_for` among them, the floating-point unit rounds to nearest and takes
/// denormal operands and results for zeros of their sign, as in TensorFlow's kernels: an intermediate product that is
/// below the smallest normal number is zero, and everything computed from it follows. If the kernel's definition says
/// [`crate::kernel_def_flags::KEEPS_DENORMALS`], or the session keeps denormals, denormals stay as they are. A
/// kernel that changes this state during a call finds it restored in its next call.
#[repr(C)]
#[derive(StableAbi)]
pub struct Call {
    /// Size of this struct.
    pub struct_size: u32,
    /// Number of inputs.
    pub input_count: u32,
    /// Number of outputs.
    pub output_count: u32,
    /// 1 when the host asks for a trace of this call.
    pub tracing: u32,
    /// `input_count` pointers: an input is the slot that another node's output filled.
    pub inputs: *const *const Slot,
    /// `output_count` slots.
    pub outputs: *mut Slot,
    /// Positions of each named input argument.
    pub input_args: *const Range,
    /// Positions of each named output argument.
    pub output_args: *const Range,
    /// Number of named input arguments.
    pub input_arg_count: u32,
    /// Number of named output arguments.
    pub output_arg_count: u32,
    /// What the services below take as their first argument.
    pub record: *mut CallRecord,
    /// Services of this call.
    pub services: *const CallServices,
    /// The step.
    pub step: *const Step,
    /// The device, for services; null on the host's own memory.
    pub device: *mut Device,
    /// State that the device's plugin made for it; null on the host's own memory.
    pub device_state: *mut DeviceState,
    /// Stream that the kernel enqueues on; null on a device without streams.
    pub stream: *mut Stream,
    /// Number of the control-flow frame; 0 outside all loops.
    pub frame: u64,
    /// Iteration within the frame.
    pub iteration: u64,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

/// Called once when the step is cancelled, from any thread, or at once when it already is.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct CancelCallback {
    /// Required.
    pub run: Option<unsafe extern "C" fn(data: *mut c_void)>,
}

/// The body of `parallel_for`: computes the units from `begin` up to `end`, `end` not included, as worker
/// `worker`: no two blocks run at the same time under one index. It must not unwind.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct ParallelBody {
    /// Required.
    pub run: Option<unsafe extern "C" fn(data: *mut c_void, begin: u64, end: u64, worker: u32)>,
}

/// Services of a call. Filled by the host; every entry is there.
#[repr(C)]
#[derive(StableAbi)]
pub struct CallServices {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Keeps a copy of `message` for the call's error and returns `code`.
    pub fail:
        Option<unsafe extern "C" fn(record: *mut CallRecord, code: Code, message: Str) -> Code>,
    /// Sets output `output` to a fresh buffer of this shape, in its own memory for
    /// [`crate::MemoryKind::ORDINARY`]. The contents are undefined, except that strings, resources and
    /// variants are all zero, which is empty.
    pub allocate: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            output: u32,
            dims: *const i64,
            rank: u32,
            memory: MemoryKind,
        ) -> Code,
    >,
    /// Lets output `output` take over the buffer of input `input` under this shape if nothing else
    /// holds it: 1 when it did, 0 when not (the output is as before).
    pub forward: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            input: u32,
            output: u32,
            dims: *const i64,
            rank: u32,
        ) -> u32,
    >,
    /// Returns the buffer of input `input` as output `output` under a shape with as many bytes.
    pub share: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            input: u32,
            output: u32,
            dims: *const i64,
            rank: u32,
        ) -> Code,
    >,
    /// Lends memory for as long as the call's own memory may be used. `align` is a power of two.
    pub scratch: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            bytes: u64,
            align: u64,
            memory: MemoryKind,
            result: *mut *mut c_void,
        ) -> Code,
    >,
    /// Registers a callback for cancellation; its token, or [`crate::NO_CALLBACK`] when
    /// it was run at once.
    pub on_cancel: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            callback: CancelCallback,
            data: *mut c_void,
        ) -> u64,
    >,
    /// Withdraws a callback; when this returns it is not running and will not run. Not to be called from
    /// the callback itself. [`crate::NO_CALLBACK`] is allowed.
    pub off_cancel: Option<unsafe extern "C" fn(record: *mut CallRecord, token: u64)>,
    /// Returns a kept tensor as output `output`, without a copy.
    pub output_kept: Option<
        unsafe extern "C" fn(record: *mut CallRecord, output: u32, kept: *const KeptTensor) -> Code,
    >,
    /// Ends a call whose `compute` returned or will return `PENDING`; exactly once, from any thread. Nothing of the
    /// call may be used afterwards. A second call fails the step with an error, or is logged if the step has ended.
    pub complete: Option<unsafe extern "C" fn(record: *mut CallRecord, code: Code)>,
    /// Computes `total` units of about `cost_ns` each on the host's threads; returns when all are done. Once
    /// the step is cancelled or its deadline has passed, the remaining units are skipped and the outputs of the call
    /// are not used, whatever it returns. A call that has locked a variable computes all units.
    pub parallel_for: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            total: u64,
            cost_ns: f64,
            body: ParallelBody,
            data: *mut c_void,
        ),
    >,
    /// Threads that `parallel_for` may use in this call, the caller's included: at least 1. The worker
    /// index of its body is below this.
    pub parallelism: Option<unsafe extern "C" fn(record: *mut CallRecord) -> u32>,
    /// Adds a span to the step's trace, with times of `now_ns`.
    pub trace: Option<
        unsafe extern "C" fn(record: *mut CallRecord, name: Str, begin_ns: u64, end_ns: u64),
    >,
    /// Nanoseconds of a monotonic clock.
    pub now_ns: Option<unsafe extern "C" fn() -> u64>,
    /// Name of the node, for messages.
    pub node: Option<unsafe extern "C" fn(record: *mut CallRecord) -> Str>,
}

/// Bits of [`KernelTable::flags`].
pub mod kernel_flags {
    /// `compute` may return `PENDING` and complete later; without this flag `PENDING` is an error.
    pub const ASYNC: u32 = 1;
    /// `compute` may block on something other than computation: it never runs on the caller's thread.
    pub const BLOCKING: u32 = 2;
    /// A call costs enough to be worth another thread before it has been measured.
    pub const EXPENSIVE: u32 = 4;
}

/// Entries of a kernel. Filled by the plugin; lives as long as the library.
#[repr(C)]
#[derive(StableAbi)]
pub struct KernelTable {
    /// Size of this struct.
    pub struct_size: u32,
    /// Bits of [`kernel_flags`].
    pub flags: u32,
    /// Makes the state for one node. Null: the state is null.
    pub create:
        Option<unsafe extern "C" fn(create: *const Create, state: *mut *mut KernelState) -> Code>,
    /// Computes. Required. Calls for one state may run at the same time.
    pub compute: Option<unsafe extern "C" fn(state: *mut KernelState, call: *const Call) -> Code>,
    /// Frees the state. Null: nothing to free.
    pub destroy: Option<unsafe extern "C" fn(state: *mut KernelState)>,
    /// Packs the constant input `input` into a form of the kernel's own; leaves `*packed` null to decline.
    /// The host may free the constant afterwards and gives the form to other states of the same node.
    pub prepack: Option<
        unsafe extern "C" fn(
            state: *mut KernelState,
            input: u32,
            view: *const Slot,
            packed: *mut *mut Packed,
            packed_bytes: *mut u64,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Gives a state the packed form of its input; required with `prepack`. The form outlives the state.
    pub attach_packed:
        Option<unsafe extern "C" fn(state: *mut KernelState, input: u32, packed: *mut Packed)>,
    /// Frees a packed form; required with `prepack`.
    pub release_packed: Option<unsafe extern "C" fn(packed: *mut Packed)>,
    /// Whether the kernel takes these attributes and shapes. Null: yes.
    pub supports: Option<unsafe extern "C" fn(create: *const Create) -> Support>,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

// SAFETY: a table is immutable data of function pointers; its chain is immutable too.
unsafe impl Sync for KernelTable {}
// SAFETY: as above.
unsafe impl Send for KernelTable {}
