//! The record of one call.

use super::{env::StepEnv, services::CALL_SERVICES, value::Value};
use std::{
    cell::UnsafeCell,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tenon_abi::{Call, CallRecord, Code, DType, Device, DeviceState, Range, Slot, Stream};
use tenon_framework::{
    KernelError,
    tensor::{Buffer, Memory},
};

/// An output as the host knows it before it is computed.
pub struct OutputSpec {
    /// Element type.
    pub dtype: DType,
    /// Where it goes.
    pub memory: Arc<dyn Memory>,
}

/// What all calls for one node share.
pub struct NodeInfo {
    /// Name of the node.
    pub name: String,
    /// Name of the op.
    pub op: String,
    /// Outputs.
    pub outputs: Vec<OutputSpec>,
    /// Positions of each named input argument.
    pub input_args: Vec<Range>,
    /// Positions of each named output argument.
    pub output_args: Vec<Range>,
    /// Host memory, for scratch.
    pub host_memory: Arc<dyn Memory>,
    /// Memory of the device, for scratch; the host's where the device computes in it.
    pub device_memory: Arc<dyn Memory>,
    /// The host's record of the device; null on the host's own memory.
    pub device: *mut Device,
    /// The plugin's state of the device; null on the host's own memory.
    pub device_state: *mut DeviceState,
}

// SAFETY: the raw pointers are handed to kernels as they are; the device outlives every plan over it.
unsafe impl Send for NodeInfo {}
// SAFETY: as above.
unsafe impl Sync for NodeInfo {}

/// What happens when an asynchronous call completes.
pub type Completion = unsafe fn(frame: *mut CallFrame, code: Code);

/// The call is not running.
const IDLE: u32 = 0;
/// The call runs, or is pending.
const RUNNING: u32 = 1;

/// The record of one call. What kernels see is `call`, whose `record` points here.
///
/// It is used by one call at a time; during a call its fields belong to the thread that computes, or, once
/// `compute` has returned `PENDING`, to whoever completes it. `state` alone is shared.
pub struct CallFrame {
    /// What the kernel sees.
    pub call: Call,
    /// The node.
    pub node: *const NodeInfo,
    /// The step.
    pub env: *const StepEnv,
    /// The outputs' values, as many as `call.output_count`.
    pub outputs: *mut Value,
    /// The inputs' values, as many as `call.input_count`; a null one is not forwarded.
    pub inputs: Box<[*mut Value]>,
    /// For the completion: what the executor needs to go on.
    pub owner: *mut std::ffi::c_void,
    /// For the completion: number of the node in the plan.
    pub index: u32,
    completion: Completion,
    state: AtomicU32,
    /// The last message, and the code that it came with.
    message: UnsafeCell<(Code, String)>,
    pub(super) scratch: UnsafeCell<Vec<Buffer>>,
    input_slots: Box<[*const Slot]>,
}

// SAFETY: see the ownership rule in the type's docs.
unsafe impl Send for CallFrame {}
// SAFETY: as above.
unsafe impl Sync for CallFrame {}

unsafe fn ignore(_frame: *mut CallFrame, _code: Code) {}

impl CallFrame {
    /// A record for calls of `node`, whose inputs are these slots and whose outputs start at `outputs`.
    /// [`CallFrame::settle`] follows once it has its final address.
    ///
    /// # Safety
    /// Everything pointed to outlives the record's use; `outputs` and `values` have as many elements as
    /// the node has outputs, `input_values` as many as `inputs`.
    pub unsafe fn new(
        node: &NodeInfo,
        env: *const StepEnv,
        inputs: Box<[*const Slot]>,
        input_values: Box<[*mut Value]>,
        outputs: *mut Slot,
        values: *mut Value,
    ) -> CallFrame {
        let call = Call {
            struct_size: size_of::<Call>() as u32,
            input_count: inputs.len() as u32,
            output_count: node.outputs.len() as u32,
            tracing: 0,
            inputs: inputs.as_ptr(),
            outputs,
            input_args: node.input_args.as_ptr(),
            output_args: node.output_args.as_ptr(),
            input_arg_count: node.input_args.len() as u32,
            output_arg_count: node.output_args.len() as u32,
            record: ptr::null_mut(),
            services: &CALL_SERVICES,
            step: ptr::null(),
            device: node.device,
            device_state: node.device_state,
            stream: ptr::null_mut(),
            frame: 0,
            iteration: 0,
            ext: ptr::null(),
        };
        CallFrame {
            call,
            node,
            env,
            outputs: values,
            inputs: input_values,
            owner: ptr::null_mut(),
            index: 0,
            completion: ignore,
            state: AtomicU32::new(IDLE),
            message: UnsafeCell::new((Code::OK, String::new())),
            scratch: UnsafeCell::new(Vec::new()),
            input_slots: inputs,
        }
    }

    /// Points the call at this record, which does not move any more.
    pub fn settle(&mut self) {
        self.call.record = (&raw mut *self).cast();
        self.call.inputs = self.input_slots.as_ptr();
        // SAFETY: the environment outlives the record.
        self.call.step = unsafe { &raw const (*self.env).step };
    }

    /// Says what happens when an asynchronous call of this record completes.
    pub fn set_completion(&mut self, completion: Completion) {
        self.completion = completion;
    }

    /// Sets the stream that the kernel enqueues on.
    pub fn set_stream(&mut self, stream: *mut Stream) {
        self.call.stream = stream;
    }

    /// The record behind an opaque pointer.
    ///
    /// # Safety
    /// `raw` is the `record` of a settled call that is alive.
    pub(crate) unsafe fn from_raw<'a>(raw: *mut CallRecord) -> &'a CallFrame {
        // SAFETY: the caller's promise.
        unsafe { &*raw.cast::<CallFrame>() }
    }

    /// The node.
    pub fn node(&self) -> &NodeInfo {
        // SAFETY: the node outlives the record.
        unsafe { &*self.node }
    }

    /// The step's environment.
    pub fn env(&self) -> &StepEnv {
        // SAFETY: the environment outlives the record.
        unsafe { &*self.env }
    }

    /// Before an asynchronous call.
    #[must_use = "a record that is still running belongs to another call"]
    pub fn begin_async(&self) -> bool {
        self.state.compare_exchange(IDLE, RUNNING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// After an asynchronous kernel returned without `PENDING`: false when it completed all the same.
    #[must_use = "a call that completed twice is an error"]
    pub fn end_inline(&self) -> bool {
        self.state.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Completes a pending call; false when it is not running (a second completion), which is logged.
    pub(super) fn complete(&self, code: Code) -> bool {
        if !self.end_inline() {
            tracing::error!(
                node = self.node().name,
                "a kernel completed a call that was not running: completion is called exactly once"
            );
            return false;
        }
        let frame = (&raw const *self).cast_mut();
        // SAFETY: the record is alive, and this thread is the one that completes it.
        unsafe { (self.completion)(frame, code) };
        true
    }

    /// Keeps the message of a failing call. Where a service kept one for the same code before, the kernel
    /// passes that failure on: its own words come first, the service's figures after them.
    pub(crate) fn set_message(&self, code: Code, message: &[u8]) {
        // SAFETY: the call belongs to this thread (see the type's docs).
        let (kept_code, kept) = unsafe { &mut *self.message.get() };
        let message = String::from_utf8_lossy(message);
        *kept = match (*kept_code == code && !kept.is_empty(), message.is_empty()) {
            (true, true) => std::mem::take(kept),
            (true, false) => format!("{message}: {kept}"),
            (false, _) => message.into_owned(),
        };
        *kept_code = code;
    }

    /// The error of a call that returned `code`; the message is taken.
    pub fn take_error(&self, code: Code) -> KernelError {
        // SAFETY: as in `set_message`.
        let kept = unsafe { &mut *self.message.get() };
        let (_, message) = std::mem::replace(kept, (Code::OK, String::new()));
        let message =
            if message.is_empty() { "the kernel gave no message".to_owned() } else { message };
        KernelError::new(code, message)
    }

    /// Ends a call: scratch memory goes back.
    #[inline(always)]
    pub fn end(&self) {
        // SAFETY: as in `set_message`.
        let scratch = unsafe { &mut *self.scratch.get() };
        if !scratch.is_empty() {
            scratch.clear();
        }
    }
}
