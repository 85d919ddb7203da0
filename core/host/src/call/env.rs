//! What all calls of one step share.

use crate::{
    cancel::Cancellation,
    clock::monotonic_ns,
    pool::{Stop, ThreadPool},
    resources::Resources,
};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tenon_abi::{NO_DEADLINE, Step, Stream};
use tenon_framework::{
    Code, DType, KernelError, Shape,
    resource::ResourceRef,
    sync::{Mutex, rank},
    tensor::Buffer,
};

/// Takes spans for a trace; times are those of [`monotonic_ns`].
pub trait TraceSink: Send + Sync {
    /// A span of a node: `name` is empty for the whole call.
    fn span(&self, node: &str, name: &str, begin_ns: u64, end_ns: u64);

    /// The tensors that a call of a node took and gave, in the order of its arguments, without outputs that are not set.
    /// Comes right after the [`TraceSink::span`] of a call that succeeded, on the same thread.
    fn tensors(&self, node: &str, inputs: &[(DType, Shape)], outputs: &[(DType, Shape)]) {
        let _ = (node, inputs, outputs);
    }

    /// What a node enqueued on a stream of a device, such as `ACCEL:0 stream 1`: from when the stream came to
    /// it until it was done. Comes from the device's threads.
    fn stream_span(&self, stream: &str, node: &str, begin_ns: u64, end_ns: u64) {
        let _ = (stream, node, begin_ns, end_ns);
    }

    /// A copy between the host and a device, or between devices. On a device with streams it is enqueued in this time, and
    /// a [`TraceSink::stream_span`] of the same node tells when it ran.
    fn copy_span(&self, copy: &CopySpan<'_>) {
        let _ = copy;
    }

    /// The kernel of this node is called next on this thread, or its copy is enqueued: what the thread does until it
    /// [leaves](TraceSink::leaves) is the node's. On a thread such calls nest, as where a loop of a kernel has its
    /// thread help with another node.
    fn enters(&self, node: &str) {
        let _ = node;
    }

    /// The call that this thread entered last, and has not left yet, has returned: comes once for each
    /// [`TraceSink::enters`], also where the call failed. What an asynchronous kernel began may go on elsewhere.
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
    /// Whether it leaves the device.
    pub leaves: bool,
    /// Bytes.
    pub bytes: u64,
    /// When it began.
    pub begin_ns: u64,
    /// When it was done, or enqueued.
    pub end_ns: u64,
}

/// The environment of a step. It does not move while calls run: `step` is what kernels see.
pub struct StepEnv {
    /// What kernels see; `cancelled` points into `cancellation`.
    pub step: Step,
    /// Cancellation.
    pub cancellation: Arc<Cancellation>,
    /// Threads for `parallel_for`.
    pub pool: Arc<ThreadPool>,
    /// State that outlives the step.
    pub resources: Arc<Resources>,
    /// Whether single calls compute with denormals, which sessions decide for themselves.
    pub keep_denormals: bool,
    /// Takes spans, when a trace is asked for.
    pub trace: Option<Arc<dyn TraceSink>>,
    /// What nobody holds any more, but work on a stream may still use, by stream.
    kept: Mutex<Vec<(usize, Buffer)>>,
    /// Variables that a reference slot of the step shows, by their address: they live as long as the step.
    shown: Mutex<HashMap<usize, ResourceRef>>,
    /// Whether there are any. The end of the step comes after all of its calls, as other threads see it too.
    shows: AtomicBool,
}

// SAFETY: the raw pointers of `step` are read only, and point into this object.
unsafe impl Send for StepEnv {}
// SAFETY: as above.
unsafe impl Sync for StepEnv {}

impl StepEnv {
    /// An environment for steps over these resources.
    pub fn new(pool: Arc<ThreadPool>, resources: Arc<Resources>) -> StepEnv {
        let cancellation = Arc::new(Cancellation::new());
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
            trace: None,
            kept: Mutex::ranked(rank::STEP, Vec::new()),
            shown: Mutex::ranked(rank::STEP, HashMap::new()),
            shows: AtomicBool::new(false),
        }
    }

    /// Keeps a variable that a reference slot shows until [`StepEnv::end_step`].
    pub(crate) fn keep_shown(&self, variable: &ResourceRef) {
        let address = std::ptr::from_ref(variable.get()).cast::<()>().addr();
        self.shown.lock().entry(address).or_insert_with(|| variable.clone());
        self.shows.store(true, Ordering::Relaxed);
    }

    /// Lets go of what goes with the step, of which no call runs any more: the variables that reference slots showed
    /// and, unless parts of the step run elsewhere, what is in its container.
    #[inline(always)]
    pub fn end_step(&self, is_whole: bool) {
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
        // Variables go without the lock.
        drop(shown);
    }

    /// What ends the loops of calls early: the step is cancelled, or its deadline has passed.
    pub(crate) fn stop(&self) -> Stop<'_> {
        Stop::new(self.cancellation.flag(), self.step.deadline_ns)
    }

    /// The error of a call that did not compute all of its outputs because the step was to stop.
    pub(crate) fn stopped_error(&self) -> KernelError {
        let deadline = self.step.deadline_ns;
        if deadline != NO_DEADLINE && monotonic_ns() >= deadline {
            let message = "the deadline passed while the kernel computed";
            return KernelError::new(Code::DEADLINE_EXCEEDED, message);
        }
        KernelError::new(Code::CANCELLED, "the step was cancelled while the kernel computed")
    }

    /// Keeps what a call has read or replaced for as long as what was enqueued may use it: until
    /// [`StepEnv::release_kept`]. A call without a stream keeps nothing.
    pub(crate) fn keep_for(&self, stream: *mut Stream, buffer: Option<Buffer>) {
        if let Some(buffer) = buffer.filter(|_| !stream.is_null()) {
            self.kept.lock().push((stream.addr(), buffer));
        }
    }

    /// Lets go of what was kept, for one stream or for all: nothing that was enqueued there runs any more.
    pub fn release_kept(&self, stream: Option<*mut Stream>) {
        let is_done = |of: usize| stream.is_none_or(|stream| stream.addr() == of);
        // Buffers go without the lock: the last one of a device closes it.
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
