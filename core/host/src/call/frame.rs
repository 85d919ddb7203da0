//! The record of one call.

use super::{
    env::{StepEnv, TraceSink},
    functions::NodeFunctions,
    handover::Handover,
    services::CALL_SERVICES,
    ticket::{Again, Ticket, Watch},
    value::Value,
};
use crate::{bools, memory::HostMemory, resources::Found};
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

/// Prefix of out-of-memory messages, of kernels' lists and of strings.
const NO_MEMORY: &str = "no memory for ";

/// An output as the host knows it before it is computed.
pub struct OutputSpec {
    /// Element type.
    pub dtype: DType,
    /// Memory in which it is allocated.
    pub memory: Arc<dyn Memory>,
}

/// The data that all calls for one node share.
pub struct NodeInfo {
    /// Name of the node.
    pub name: String,
    /// Name of the op.
    pub op: String,
    /// The op's definition, for messages; `None` where no kernel is called.
    pub def: Option<Arc<OpDef>>,
    /// Outputs.
    pub outputs: Vec<OutputSpec>,
    /// Positions of each named input argument.
    pub input_args: Vec<Range>,
    /// Positions of each named output argument.
    pub output_args: Vec<Range>,
    /// The functions that its attributes name.
    pub functions: NodeFunctions,
    /// Host memory, for scratch buffers.
    pub host_memory: Arc<dyn Memory>,
    /// Memory of the device, for scratch buffers; the host's where the device computes in it.
    pub device_memory: Arc<dyn Memory>,
    /// The host's record of the device; null for the host's own memory.
    pub device: *mut Device,
    /// The plugin's state of the device; null for the host's own memory.
    pub device_state: *mut DeviceState,
}

// SAFETY: the raw pointers are handed to kernels as they are; the device outlives every plan over
// it.
unsafe impl Send for NodeInfo {}
// SAFETY: as for `Send`.
unsafe impl Sync for NodeInfo {}

/// The function that is called when an asynchronous call completes.
pub type Completion = unsafe fn(frame: *mut CallFrame, code: Code);

/// The function that says whether all references to a buffer, but for that of its variable, are those
/// of values of the step which nobody will read any more. If so, what the call enqueues from then on
/// comes after all work so far that read them.
pub type AreRead = unsafe fn(frame: *const CallFrame, buffer: &Buffer) -> Result<bool, KernelError>;

/// The record of one call. Kernels see `call`, whose `record` refers to this record: directly, or
/// by the ticket of an asynchronous call (see `ticket`).
///
/// One call at a time uses it. During a call its fields belong to the thread that computes, or,
/// once `compute` has returned `PENDING`, to the thread that completes the call. Between calls they
/// belong to the owner of the node.
pub struct CallFrame {
    call: UnsafeCell<Call>,
    /// The node.
    pub node: *const NodeInfo,
    /// The step.
    pub env: *const StepEnv,
    /// The outputs' values: `call.output_count` of them.
    pub outputs: *mut Value,
    /// The inputs' values: `call.input_count` of them; a null one is not forwarded.
    pub inputs: Box<[*mut Value]>,
    /// The executor's data for the completion.
    pub owner: *mut std::ffi::c_void,
    /// The index of the node in the plan, for the completion.
    pub index: u32,
    completion: Completion,
    are_read: Option<AreRead>,
    /// Which thread goes on after an asynchronous call.
    handover: Handover,
    /// Set from the first asynchronous call on.
    ticket: Cell<Option<&'static Ticket>>,
    watch: Option<Arc<dyn Watch>>,
    /// The last message, and the code that came with it.
    message: UnsafeCell<(Code, String)>,
    pub(super) scratch: UnsafeCell<Vec<Buffer>>,
    /// The variable that a call has found by its name.
    found: UnsafeCell<Option<Box<Found>>>,
    /// Number of variables that the call has locked.
    locked: Cell<usize>,
    /// Whether a loop of the call was cut short: its outputs are incomplete, even if the kernel
    /// reports success.
    cut: Cell<bool>,
    input_slots: Box<[*const Slot]>,
}

// SAFETY: see the ownership rule in the type's docs.
unsafe impl Send for CallFrame {}
// SAFETY: as for `Send`.
unsafe impl Sync for CallFrame {}

/// Does nothing: the completion of a record without asynchronous calls.
///
/// # Safety
/// None: `unsafe` only for the type [`Completion`].
unsafe fn ignore(_frame: *mut CallFrame, _code: Code) {}

impl CallFrame {
    /// A record for calls of `node`, with these slots of inputs, and with outputs that start at
    /// `outputs`. [`CallFrame::settle`] must follow once the record has its final address.
    ///
    /// # Safety
    /// - Everything that the arguments point to outlives the use of the record.
    /// - `outputs` and `values` have as many elements as the node has outputs.
    /// - `input_values` has as many elements as `inputs`.
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
            are_read: None,
            handover: Handover::default(),
            ticket: Cell::new(None),
            watch: None,
            message: UnsafeCell::new((Code::OK, String::new())),
            scratch: UnsafeCell::new(Vec::new()),
            found: UnsafeCell::new(None),
            locked: Cell::new(0),
            cut: Cell::new(false),
            input_slots: inputs,
        }
    }

    /// Makes the call point to this record, which must not move any more.
    pub fn settle(&mut self) {
        let record = (&raw mut *self).cast();
        let inputs = self.input_slots.as_ptr();
        // SAFETY: the environment outlives the record.
        let step = unsafe { &raw const (*self.env).step };
        let call = self.call.get_mut();
        (call.record, call.inputs, call.step) = (record, inputs, step);
    }

    /// Sets the function that runs when an asynchronous call of this record completes.
    pub fn set_completion(&mut self, completion: Completion) {
        self.completion = completion;
    }

    /// Sets the function that says whether values of the step were read ([`AreRead`]); it takes this
    /// frame.
    pub fn set_are_read(&mut self, are_read: AreRead) {
        self.are_read = Some(are_read);
    }

    /// Whether a variable's value may be written in place although values of the step still show it
    /// ([`AreRead`]).
    pub(crate) fn are_read(&self, buffer: &Buffer) -> Result<bool, KernelError> {
        // SAFETY: the function takes this frame, of which a call runs.
        self.are_read.map_or(Ok(false), |are_read| unsafe { are_read(self, buffer) })
    }

    /// Sets the observer that is notified when a kernel completes a call of this record that is
    /// over.
    pub fn set_watch(&mut self, watch: Arc<dyn Watch>) {
        self.watch = Some(watch);
    }

    /// Sets the stream that the kernel enqueues on.
    pub fn set_stream(&mut self, stream: *mut Stream) {
        self.call.get_mut().stream = stream;
    }

    /// Sets whether the kernel should trace.
    pub fn set_tracing(&mut self, tracing: u32) {
        self.call.get_mut().tracing = tracing;
    }

    /// Sets the frame and the iteration of later calls.
    ///
    /// # Safety
    /// - No call runs.
    /// - Nothing else uses the record.
    pub unsafe fn set_iteration(&self, frame: u64, iteration: u64) {
        // SAFETY: no call runs and nothing else uses the record, as the caller guarantees.
        unsafe {
            (*self.call.get()).frame = frame;
            (*self.call.get()).iteration = iteration;
        }
    }

    /// The call as the kernel sees it.
    #[inline(always)]
    pub fn call(&self) -> &Call {
        // SAFETY: it changes only between calls, through the owner of the record.
        unsafe { &*self.call.get() }
    }

    /// The slots of the inputs.
    ///
    /// # Safety
    /// - No thread writes the inputs while the result is in use.
    pub unsafe fn input_slots(&self) -> &[&Slot] {
        let slots = &*self.input_slots;
        // SAFETY: the slots live as long as the record, and the caller guarantees that they are only
        // read. A reference has the layout of a pointer.
        unsafe { std::slice::from_raw_parts(slots.as_ptr().cast::<&Slot>(), slots.len()) }
    }

    /// The frame behind an opaque pointer; `None` for an asynchronous call that is over.
    ///
    /// # Safety
    /// - `raw` is the `record` of a settled call: one whose frame is alive, or an asynchronous one.
    #[inline(always)]
    pub(crate) unsafe fn from_raw<'a>(raw: *mut CallRecord) -> Option<&'a CallFrame> {
        match Ticket::of(raw) {
            // SAFETY: a record without a ticket is a frame, which is alive, as the caller
            // guarantees.
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

    /// Which thread goes on after an asynchronous call.
    pub fn handover(&self) -> &Handover {
        &self.handover
    }

    /// Begins an asynchronous call; only the owner of the record may call it. False while an
    /// earlier call runs.
    #[must_use = "a record that is still running belongs to another call"]
    pub fn begin_async(&self) -> bool {
        let ticket = self.ticket.get().unwrap_or_else(|| Ticket::take(self, self.watch.clone()));
        self.ticket.set(Some(ticket));
        let Some(record) = ticket.begin(self.env().step.step_id) else { return false };
        self.handover.begin();
        // SAFETY: no call runs, and the record belongs to the caller.
        unsafe { (*self.call.get()).record = record };
        true
    }

    /// Ends the call when an asynchronous kernel returned without `PENDING`; false if the kernel
    /// completed it as well.
    #[must_use = "a call that completed twice is an error"]
    pub fn end_inline(&self) -> bool {
        Ticket::of(self.call().record).is_some_and(|(ticket, low)| ticket.end(low).is_some())
    }

    /// Whether the frame's last asynchronous call was completed again by now.
    pub fn was_completed_again(&self) -> bool {
        self.ticket.get().is_some_and(Ticket::was_repeated)
    }

    /// Completes the call behind an opaque pointer. If the call is over already, its step fails if
    /// that has outstanding work, or if the thread that started the call has not left it
    /// ([`CallFrame::was_completed_again`]); in any case but the first, the error is logged.
    ///
    /// # Safety
    /// - `raw` meets what [`CallFrame::from_raw`] requires.
    pub(super) unsafe fn complete(raw: *mut CallRecord, code: Code) {
        let Some((ticket, low)) = Ticket::of(raw) else {
            // SAFETY: a record without a ticket is a frame, which is alive, as the caller
            // guarantees.
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
                    // For kernels in any language: asynchronous kernels are few, and each waits for
                    // something anyway.
                    bools::normalise_outputs((*frame).call());
                }
                ((*frame).completion)(frame, code);
            },
            None => completed_again(ticket.again(low)),
        }
    }

    /// The variable that a call of this record has found.
    ///
    /// # Safety
    /// - The call belongs to this thread (see the type's docs), and the result to one user at a time.
    #[allow(clippy::mut_from_ref, reason = "during a call it belongs to the caller")]
    pub(crate) unsafe fn found(&self) -> &mut Option<Box<Found>> {
        // SAFETY: the caller guarantees that nothing else uses it.
        unsafe { &mut *self.found.get() }
    }

    /// Counts variables that the call has locked.
    pub(crate) fn locks(&self, count: usize) {
        self.locked.set(self.locked.get().saturating_add(count));
    }

    /// Counts variables that the call has unlocked.
    pub(crate) fn unlocks(&self, count: usize) {
        self.locked.set(self.locked.get().saturating_sub(count));
    }

    /// Whether the call has locked a variable, which a loop must not leave half written.
    pub(super) fn holds_variables(&self) -> bool {
        self.locked.get() > 0
    }

    /// Records that a loop of the call was cut short; cancels the step, so that nothing reads the
    /// outputs.
    pub(super) fn set_cut(&self) {
        self.cut.set(true);
        self.env().cancellation.cancel();
    }

    /// Whether a loop of the call was cut short; resets the flag.
    pub fn take_cut(&self) -> bool {
        self.cut.replace(false)
    }

    /// Stores the message of a failing call. If a service stored one for the same code before, the
    /// kernel passes that failure on: the kernel's message comes first, followed by the service's.
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

    /// The error of a call that returned `code`, with the argument that it names; takes the
    /// message.
    pub fn take_error(&self, code: Code) -> KernelError {
        // SAFETY: as in `set_message`.
        let kept = unsafe { &mut *self.message.get() };
        let (_, message) = std::mem::replace(kept, (Code::OK, String::new()));
        let message =
            if message.is_empty() { "the kernel gave no message".to_owned() } else { message };
        let message = self.with_figures(code, message);
        let error = KernelError::new(code, message);
        // The error of an op with state may concern the state rather than an argument.
        match self.node().def.as_ref().filter(|def| !def.stateful) {
            Some(def) => def.naming_inputs(error, &self.node().input_args, |at| self.shape_of(at)),
            None => error,
        }
    }

    /// The message of a kernel that ran out of host memory, with the memory's statistics unless a
    /// service included them. Messages about other exhausted resources stay as they are.
    fn with_figures(&self, code: Code, message: String) -> String {
        // Includes devices that compute in host memory.
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

    /// Reports the tensors that a call received and produced to a trace.
    ///
    /// # Safety
    /// - The call has succeeded.
    /// - Its inputs and outputs have not been taken away yet.
    pub unsafe fn tell_tensors(&self, trace: &dyn TraceSink) {
        let call = self.call();
        let tensor = |slot: &Slot| {
            // SAFETY: the caller guarantees that the tensor has not been taken away, so its
            // dimensions are live.
            Some((slot.dtype, Shape::new(unsafe { slot.shape() }).ok()?))
        };
        // SAFETY: slots of inputs live as long as the record.
        let inputs = self.input_slots.iter().map(|&slot| unsafe { &*slot });
        // SAFETY: a call has `output_count` slots of outputs, which live as long.
        let output = |at: usize| unsafe { &*call.outputs.add(at).cast_const() };
        let outputs = (0..call.output_count as usize).map(output);
        // An input whose buffer an output took over still has its shape.
        let inputs: Vec<_> = inputs.filter_map(tensor).collect();
        let set = outputs.filter(|slot| !slot.data.is_null());
        trace.tensors(&self.node().name, &inputs, &set.filter_map(tensor).collect::<Vec<_>>());
    }

    /// Ends a call: frees its scratch memory.
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
            "a kernel completed a call that was over, when its step had no outstanding work: completion is called exactly once"
        );
    }
}
