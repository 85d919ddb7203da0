//! What all calls of a step share.

use super::functions::FunctionTable;
use crate::{
    cancel::Cancellation,
    clock::monotonic_ns,
    pool::{Stop, ThreadPool},
    resources::{Resources, Variable},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};
use tenon_abi::{NO_DEADLINE, Step, Stream};
use tenon_framework::{
    Code, DType, KernelError, Shape,
    device::base::StreamId,
    resource::ResourceRef,
    sync::{Mutex, rank},
    tensor::Buffer,
};

/// Receives spans for a trace; times are those of [`monotonic_ns`].
pub trait TraceSink: Send + Sync {
    /// A span of a node: `name` is empty for the whole call.
    fn span(&self, node: &str, name: &str, begin_ns: u64, end_ns: u64);

    /// The tensors that a call of a node received and produced, in the order of its arguments,
    /// without unset outputs. Called right after the [`TraceSink::span`] of a successful call, on
    /// the same thread.
    fn tensors(&self, node: &str, inputs: &[(DType, Shape)], outputs: &[(DType, Shape)]) {
        let _ = (node, inputs, outputs);
    }

    /// The work of a node on a stream of a device, such as `ACCEL:0 stream 1`: from when the stream
    /// reached it until it was done. Called from the device's threads.
    fn stream_span(&self, stream: &str, node: &str, begin_ns: u64, end_ns: u64) {
        let _ = (stream, node, begin_ns, end_ns);
    }

    /// A copy between the host and a device, or between devices. On a device with streams it is
    /// enqueued in this time, and a [`TraceSink::stream_span`] of the same node says when it ran.
    fn copy_span(&self, copy: &CopySpan<'_>) {
        let _ = copy;
    }

    /// This thread is about to call the kernel of this node, or to enqueue its copy: what the
    /// thread does until it [leaves](TraceSink::leaves) belongs to the node. Such calls nest on a
    /// thread, for example when a thread that runs a loop of a kernel helps with another node.
    fn enters(&self, node: &str) {
        let _ = node;
    }

    /// The call that this thread entered last, and has not left yet, has returned. Called once for
    /// each [`TraceSink::enters`], even if the call failed. Work that an asynchronous kernel began
    /// may continue elsewhere.
    fn leaves(&self, node: &str) {
        let _ = node;
    }
}

/// A copy, for a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopySpan<'a> {
    /// The node of the transfer.
    pub node: &'a str,
    /// Full name of the device that copies.
    pub device: &'a str,
    /// Whether the copy is from the device to elsewhere.
    pub leaves: bool,
    /// Number of bytes.
    pub bytes: u64,
    /// When it began.
    pub begin_ns: u64,
    /// When it was done, or enqueued.
    pub end_ns: u64,
}

/// The environment of a step. It must not move while calls run, because kernels see `step`.
pub struct StepEnv {
    /// The part that kernels see; `cancelled` points into `cancellation`.
    pub step: Step,
    /// Cancellation of the step.
    pub cancellation: Arc<Cancellation>,
    /// Threads for `parallel_for`.
    pub pool: Arc<ThreadPool>,
    /// State that outlives the step.
    pub resources: Arc<Resources>,
    /// Whether single calls compute with denormals; sessions decide that for themselves.
    pub keep_denormals: bool,
    /// The functions that kernels may call.
    pub functions: Option<Weak<dyn FunctionTable>>,
    /// The number of calls of functions that the step is within.
    pub depth: u32,
    /// Receives spans, when a trace is requested.
    pub trace: Option<Arc<dyn TraceSink>>,
    /// Buffers that have no other owner, but that work on a stream may still use, by stream.
    kept: Mutex<Vec<(usize, Buffer)>>,
    /// Variables whose values work on a stream writes, by stream.
    written: Mutex<Vec<(StreamId, ResourceRef)>>,
    /// Whether `written` has entries; as `shows`.
    writes: AtomicBool,
    /// Variables that a reference slot of the step shows, by their address: they live as long as
    /// the step.
    shown: Mutex<HashMap<usize, ResourceRef>>,
    /// Whether `shown` has entries. The step ends after all of its calls, as seen by other threads
    /// too.
    shows: AtomicBool,
}

// SAFETY: the raw pointers of `step` are read only, and point into this object.
unsafe impl Send for StepEnv {}
// SAFETY: as for `Send`.
unsafe impl Sync for StepEnv {}

impl StepEnv {
    /// An environment for steps with these resources.
    pub fn new(pool: Arc<ThreadPool>, resources: Arc<Resources>) -> StepEnv {
        StepEnv::cancelled_by(Arc::new(Cancellation::new()), pool, resources)
    }

    /// An environment for steps that this cancellation ends.
    pub fn cancelled_by(
        cancellation: Arc<Cancellation>,
        pool: Arc<ThreadPool>,
        resources: Arc<Resources>,
    ) -> StepEnv {
        let step = Step {
            struct_size: size_of::<Step>() as u32,
            reserved: 0,
            step_id: 0,
            deadline_ns: NO_DEADLINE,
            cancelled: cancellation.flag(),
            ext: std::ptr::null(),
        };
        StepEnv {
            step,
            cancellation,
            pool,
            resources,
            keep_denormals: false,
            functions: None,
            depth: 0,
            trace: None,
            kept: Mutex::ranked(rank::STEP, Vec::new()),
            written: Mutex::ranked(rank::STEP, Vec::new()),
            writes: AtomicBool::new(false),
            shown: Mutex::ranked(rank::STEP, HashMap::new()),
            shows: AtomicBool::new(false),
        }
    }

    /// Keeps a variable that a reference slot shows until [`StepEnv::end_step`].
    pub(crate) fn keep_shown(&self, variable: ResourceRef) {
        let address = std::ptr::from_ref(variable.get()).cast::<()>().addr();
        self.shown.lock().entry(address).or_insert(variable);
        self.shows.store(true, Ordering::Relaxed);
    }

    /// Notes that work on this stream writes the value of a variable, until the stream is done.
    pub(crate) fn note_written(&self, stream: StreamId, variable: ResourceRef) {
        self.written.lock().push((stream, variable));
        self.writes.store(true, Ordering::Relaxed);
    }

    /// Tells variables that a stream, or each, is done that wrote them.
    #[cold]
    fn forget_written(&self, stream: Option<*mut Stream>) {
        let is_done = |of: StreamId| stream.is_none_or(|stream| stream == of.as_raw());
        let mut done = std::mem::take(&mut *self.written.lock());
        let rest: Vec<_> = done.extract_if(.., |(of, _)| !is_done(*of)).collect();
        if !rest.is_empty() {
            self.written.lock().extend(rest);
        }
        // Variables are told, and dropped, without the lock.
        for (stream, resource) in done {
            if let Some(variable) = Variable::of(&resource) {
                variable.forget_writer(stream);
            }
        }
    }

    /// Ends a step, of which no call runs any more and whose streams are done: releases the
    /// variables that reference slots showed and, unless parts of the step run elsewhere, the
    /// contents of its container.
    #[inline(always)]
    pub fn end_step(&self, is_whole: bool) {
        if self.writes.load(Ordering::Relaxed) {
            self.writes.store(false, Ordering::Relaxed);
            self.forget_written(None);
        }
        if self.shows.load(Ordering::Relaxed) {
            self.release_shown();
        }
        if is_whole {
            self.resources.end_step(self.step.step_id);
        }
    }

    #[cold]
    fn release_shown(&self) {
        self.shows.store(false, Ordering::Relaxed);
        let shown = std::mem::take(&mut *self.shown.lock());
        // Variables are dropped without the lock.
        drop(shown);
    }

    /// What ends the loops of calls early: cancellation of the step, or its deadline.
    pub(crate) fn stop(&self) -> Stop<'_> {
        Stop::new(self.cancellation.flag(), self.step.deadline_ns)
    }

    /// The error of a call that did not compute all of its outputs because the step was stopped.
    pub(crate) fn stopped_error(&self) -> KernelError {
        let deadline = self.step.deadline_ns;
        if deadline != NO_DEADLINE && monotonic_ns() >= deadline {
            let message = "the deadline passed while the kernel computed";
            return KernelError::new(Code::DEADLINE_EXCEEDED, message);
        }
        KernelError::new(Code::CANCELLED, "the step was cancelled while the kernel computed")
    }

    /// Keeps a buffer that a call has read or replaced until [`StepEnv::release_kept`], since
    /// enqueued work may use it. Does nothing without a stream.
    pub(crate) fn keep_for(&self, stream: *mut Stream, buffer: Option<Buffer>) {
        if let Some(buffer) = buffer.filter(|_| !stream.is_null()) {
            self.kept.lock().push((stream.addr(), buffer));
        }
    }

    /// Releases what was kept, for one stream or for all: nothing enqueued there runs any more.
    pub fn release_kept(&self, stream: Option<*mut Stream>) {
        if self.writes.load(Ordering::Relaxed) {
            self.forget_written(stream);
        }
        let is_done = |of: usize| stream.is_none_or(|stream| stream.addr() == of);
        // Buffers are dropped without the lock: the last one of a device closes it.
        let mut values = std::mem::take(&mut *self.kept.lock());
        values.retain(|(of, _)| !is_done(*of));
        let mut kept = self.kept.lock();
        if kept.is_empty() {
            *kept = values;
        } else {
            kept.append(&mut values);
        }
    }
}
