//! The record of one call.

use super::{
    env::{StepEnv, TraceSink},
    services::CALL_SERVICES,
    ticket::{Again, Ticket, Watch},
    value::Value,
};
use crate::{bools, memory::HostMemory};
use std::{
    cell::{Cell, UnsafeCell},
    ptr,
    sync::Arc,
};
use tenon_abi::{Call, CallRecord, Code, DType, Device, DeviceState, Range, Slot, Stream};
use tenon_framework::{
    KernelError, Shape,
    op::OpDef,
    tensor::{Buffer, Memory},
};

/// What errors for want of memory say, those of kernels' lists and those of strings.
const NO_MEMORY: &str = "no memory for ";

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
    /// Its definition, for messages; `None` for what is no kernel's.
    pub def: Option<Arc<OpDef>>,
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

/// The record of one call. What kernels see is `call`, whose `record` leads here: straight, or by the
/// ticket of an asynchronous call (see `ticket`).
///
/// It is used by one call at a time; during a call its fields belong to the thread that computes, or, once
/// `compute` has returned `PENDING`, to whoever completes it. Between calls they belong to whoever owns the node.
pub struct CallFrame {
    call: UnsafeCell<Call>,
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
    /// From the first asynchronous call on.
    ticket: Cell<Option<&'static Ticket>>,
    watch: Option<Arc<dyn Watch>>,
    /// The last message, and the code that it came with.
    message: UnsafeCell<(Code, String)>,
    pub(super) scratch: UnsafeCell<Vec<Buffer>>,
    /// Variables that the call has locked.
    locked: Cell<usize>,
    /// Whether a loop of the call was cut short: its outputs are not complete, whatever the kernel says.
    cut: Cell<bool>,
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
            call: UnsafeCell::new(call),
            node,
            env,
            outputs: values,
            inputs: input_values,
            owner: ptr::null_mut(),
            index: 0,
            completion: ignore,
            ticket: Cell::new(None),
            watch: None,
            message: UnsafeCell::new((Code::OK, String::new())),
            scratch: UnsafeCell::new(Vec::new()),
            locked: Cell::new(0),
            cut: Cell::new(false),
            input_slots: inputs,
        }
    }

    /// Points the call at this record, which does not move any more.
    pub fn settle(&mut self) {
        let record = (&raw mut *self).cast();
        let inputs = self.input_slots.as_ptr();
        // SAFETY: the environment outlives the record.
        let step = unsafe { &raw const (*self.env).step };
        let call = self.call.get_mut();
        (call.record, call.inputs, call.step) = (record, inputs, step);
    }

    /// Says what happens when an asynchronous call of this record completes.
    pub fn set_completion(&mut self, completion: Completion) {
        self.completion = completion;
    }

    /// Says who is told when a kernel completes a call of this record that is over.
    pub fn set_watch(&mut self, watch: Arc<dyn Watch>) {
        self.watch = Some(watch);
    }

    /// Sets the stream that the kernel enqueues on.
    pub fn set_stream(&mut self, stream: *mut Stream) {
        self.call.get_mut().stream = stream;
    }

    /// Asks the kernel for a trace, or not.
    pub fn set_tracing(&mut self, tracing: u32) {
        self.call.get_mut().tracing = tracing;
    }

    /// Says in which iteration of which frame the next calls are.
    ///
    /// # Safety
    /// No call runs, and nobody else uses the record.
    pub unsafe fn set_iteration(&self, frame: u64, iteration: u64) {
        // SAFETY: no call runs and nobody else uses the record, as the caller guarantees.
        unsafe {
            (*self.call.get()).frame = frame;
            (*self.call.get()).iteration = iteration;
        }
    }

    /// What the kernel sees.
    #[inline(always)]
    pub fn call(&self) -> &Call {
        // SAFETY: it changes between calls only, by whoever owns the record.
        unsafe { &*self.call.get() }
    }

    /// The frame behind an opaque pointer; `None` for that of an asynchronous call which is over.
    ///
    /// # Safety
    /// `raw` is the `record` of a settled call: one that is alive, or an asynchronous one.
    #[inline(always)]
    pub(crate) unsafe fn from_raw<'a>(raw: *mut CallRecord) -> Option<&'a CallFrame> {
        match Ticket::of(raw) {
            // SAFETY: a record without a ticket is a frame, which is alive, as the caller guarantees.
            None => Some(unsafe { &*raw.cast::<CallFrame>() }),
            // SAFETY: while the call runs its frame is alive.
            Some((ticket, low)) => ticket.frame(low).map(|frame| unsafe { &*frame }),
        }
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

    /// Before an asynchronous call, by whoever owns the record. False while an earlier one runs.
    #[must_use = "a record that is still running belongs to another call"]
    pub fn begin_async(&self) -> bool {
        let ticket = self.ticket.get().unwrap_or_else(|| Ticket::take(self, self.watch.clone()));
        self.ticket.set(Some(ticket));
        let Some(record) = ticket.begin(self.env().step.step_id) else { return false };
        // SAFETY: no call runs, and the record belongs to the caller.
        unsafe { (*self.call.get()).record = record };
        true
    }

    /// After an asynchronous kernel returned without `PENDING`: false when it completed all the same.
    #[must_use = "a call that completed twice is an error"]
    pub fn end_inline(&self) -> bool {
        Ticket::of(self.call().record).is_some_and(|(ticket, low)| ticket.end(low).is_some())
    }

    /// Completes the call behind an opaque pointer. One that is over already fails its step, if that still
    /// runs; else it is logged.
    ///
    /// # Safety
    /// As [`CallFrame::from_raw`].
    pub(super) unsafe fn complete(raw: *mut CallRecord, code: Code) {
        let Some((ticket, low)) = Ticket::of(raw) else {
            // SAFETY: a record without a ticket is a frame, which is alive, as the caller guarantees.
            let node = unsafe { &(*raw.cast::<CallFrame>()).node().name };
            tracing::error!(
                node,
                "a kernel completed a call that is not asynchronous: its table lacks the flag ASYNC"
            );
            return;
        };
        match ticket.end(low) {
            // SAFETY: the frame is alive, and this thread is the one that completes its call.
            Some(frame) => unsafe {
                if code.is_ok() {
                    // Whatever language the kernel is in: there are few of them, and each waits for something.
                    bools::settle_outputs((*frame).call());
                }
                ((*frame).completion)(frame, code);
            },
            None => completed_again(ticket.again(low)),
        }
    }

    /// Counts variables that the call has locked.
    pub(crate) fn locks(&self, count: usize) {
        self.locked.set(self.locked.get().saturating_add(count));
    }

    /// Counts variables that the call has unlocked.
    pub(crate) fn unlocks(&self, count: usize) {
        self.locked.set(self.locked.get().saturating_sub(count));
    }

    /// Whether the call has locked a variable, which no loop may leave half written.
    pub(super) fn holds_variables(&self) -> bool {
        self.locked.get() > 0
    }

    /// A loop of the call was cut short: the step is cancelled, so that nothing reads the outputs.
    pub(super) fn set_cut(&self) {
        self.cut.set(true);
        self.env().cancellation.cancel();
    }

    /// Whether a loop of the call was cut short, said once.
    pub fn take_cut(&self) -> bool {
        self.cut.replace(false)
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

    /// The error of a call that returned `code`, which names an argument; the message is taken.
    pub fn take_error(&self, code: Code) -> KernelError {
        // SAFETY: as in `set_message`.
        let kept = unsafe { &mut *self.message.get() };
        let (_, message) = std::mem::replace(kept, (Code::OK, String::new()));
        let message =
            if message.is_empty() { "the kernel gave no message".to_owned() } else { message };
        let message = self.with_figures(code, message);
        let error = KernelError::new(code, message);
        // What an op with state refuses may be about that.
        match self.node().def.as_ref().filter(|def| !def.stateful) {
            Some(def) => def.naming_inputs(error, &self.node().input_args, |at| self.shape_of(at)),
            None => error,
        }
    }

    /// What a kernel of the host's memory says of the lack of it, with the figures of that memory where it has not
    /// got them from a service. Of other resources that are exhausted these say nothing.
    fn with_figures(&self, code: Code, message: String) -> String {
        // Also of a device that computes in it.
        let of_host = self.node().device_memory.device() == 0;
        let lacks = code == Code::RESOURCE_EXHAUSTED && of_host && message.contains(NO_MEMORY);
        if !lacks || message.contains(" are in use") {
            return message;
        }
        format!("{message}; of host memory {}", HostMemory::exhausted_figures())
    }

    /// Shape of an input, for messages.
    fn shape_of(&self, input: usize) -> String {
        // SAFETY: slots of inputs, and the dimensions that they show, live as long as the record.
        let dims = self.input_slots.get(input).map(|&slot| unsafe { (*slot).shape() });
        format!("{:?}", dims.unwrap_or_default())
    }

    /// Tells a trace of the tensors that a call took and gave.
    ///
    /// # Safety
    /// The call has succeeded, and nobody has taken its inputs or outputs away yet.
    pub unsafe fn tell_tensors(&self, trace: &dyn TraceSink) {
        let call = self.call();
        let tensor = |slot: &Slot| {
            // SAFETY: the dimensions live as long as nobody takes the tensor away, which the caller promises.
            Some((slot.dtype, Shape::new(unsafe { slot.shape() }).ok()?))
        };
        // SAFETY: slots of inputs live as long as the record.
        let inputs = self.input_slots.iter().map(|&slot| unsafe { &*slot });
        // SAFETY: a call has so many slots of outputs, which live as long.
        let output = |at: usize| unsafe { &*call.outputs.add(at).cast_const() };
        let outputs = (0..call.output_count as usize).map(output);
        // An input whose buffer an output took over has its shape still.
        let inputs: Vec<_> = inputs.filter_map(tensor).collect();
        let set = outputs.filter(|slot| !slot.data.is_null());
        trace.tensors(&self.node().name, &inputs, &set.filter_map(tensor).collect::<Vec<_>>());
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

impl Drop for CallFrame {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.get() {
            ticket.give_back();
        }
    }
}

#[cold]
fn completed_again(again: Again) {
    let fails = match (again.watch, again.step) {
        (Some(watch), Some(step)) => watch.completed_again(again.index, step),
        _ => false,
    };
    if !fails {
        let node = if again.node.is_empty() { "a node of an earlier step" } else { &again.node };
        tracing::error!(
            node,
            "a kernel completed a call that was over, and its step too: completion is called exactly once"
        );
    }
}
