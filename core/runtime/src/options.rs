//! What a session and a run are told, and what a run tells.

use crate::executor::StepShared;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tenon_framework::{
    DType, PartialShape,
    attr_view::AttrTable,
    sync::{Mutex, rank},
};
use tenon_host::call::TraceSink;

/// How a session places and runs.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// Device for nodes that name none; a partial name such as `/device:ACCEL:0`.
    pub device: Option<String>,
    /// Whether a node whose device is not there, or has no kernel for it, goes to another one; else that is an error, as
    /// in TensorFlow's sessions. `None` leaves it to the knob `runtime.soft_placement`, which is off.
    pub soft_placement: Option<bool>,
    /// Whether denormals are kept; else they are flushed to zero, as TensorFlow's kernels do.
    pub keep_denormals: bool,
    /// Whether calls are counted per node, for [`Metadata`]; costs an atomic addition per call.
    pub count_calls: bool,
    /// Whether a session on a [worker](crate::Worker) has values of its own (variables, and what plugins keep), which end
    /// with it, in the place of the worker's: TensorFlow's `isolate_session_state`.
    pub isolate_state: bool,
    /// Label that every node asks for where it has a kernel of that label; `None` leaves it to the knob
    /// `runtime.kernel_label`.
    pub kernel_label: Option<String>,
    /// Knobs, `scope.name` to value: over the environment and the runtime's options, under `--set`. This session's
    /// kernels see them; a device sees the runtime's values. Compiling steps, the session sees them too
    /// (`runtime.*`). What the host itself reads when it loads plugins (`host.*`) no session can set.
    pub knobs: BTreeMap<String, String>,
}

impl SessionOptions {
    /// Options by default, but for graphs: they run as they are written, by the knob `graph.optimize`. For
    /// callers that measure or examine the nodes themselves.
    pub fn as_written() -> SessionOptions {
        let off = ("graph.optimize".to_owned(), "false".to_owned());
        SessionOptions { knobs: BTreeMap::from([off]), ..SessionOptions::default() }
    }
}

/// What a callable feeds, fetches and runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CallableOptions {
    /// Tensors that are fed, in order.
    pub feeds: Vec<String>,
    /// Tensors that are fetched, in order.
    pub fetches: Vec<String>,
    /// Nodes that run without being fetched.
    pub targets: Vec<String>,
}

impl CallableOptions {
    /// Feeds and fetches by name.
    pub fn new(feeds: &[&str], fetches: &[&str]) -> CallableOptions {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        CallableOptions { feeds: own(feeds), fetches: own(fetches), targets: Vec::new() }
    }
}

/// How one step runs.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// The run fails with `DEADLINE_EXCEEDED` when it takes longer, from the moment when it is asked for: compiling the
    /// step, and waiting for another thread that compiles it, count.
    pub deadline: Option<Duration>,
    /// Cancels the run from elsewhere, while the step is compiled too.
    pub cancel: Option<CancelToken>,
    /// Takes the spans of the step.
    pub trace: Option<Arc<dyn TraceSink>>,
}

/// Cancels the steps that it was given to; clones are the same token.
#[derive(Clone, Default)]
pub struct CancelToken {
    inner: Arc<TokenState>,
}

struct TokenState {
    cancelled: AtomicBool,
    steps: Mutex<Vec<Weak<StepShared>>>,
}

impl Default for TokenState {
    fn default() -> TokenState {
        let steps = Mutex::ranked(rank::SESSION, Vec::new());
        TokenState { cancelled: AtomicBool::new(false), steps }
    }
}

impl CancelToken {
    /// A token that cancels nothing yet.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels the steps that run under it, and those that will.
    pub fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::SeqCst);
        // Under the lock: a step that ends meanwhile waits in `detach`, so that the next step over its state is
        // not taken for it.
        let steps = self.inner.steps.lock();
        for step in steps.iter().filter_map(Weak::upgrade) {
            step.cancellation.cancel();
            step.wake();
        }
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::SeqCst)
    }

    /// Attaches a step that begins.
    pub(crate) fn attach(&self, step: &Arc<StepShared>) {
        let mut steps = self.inner.steps.lock();
        steps.retain(|step| step.strong_count() > 0);
        steps.push(Arc::downgrade(step));
        drop(steps);
        if self.is_cancelled() {
            step.cancellation.cancel();
        }
    }

    /// Detaches a step that ended.
    pub(crate) fn detach(&self, step: &Arc<StepShared>) {
        let done = Arc::downgrade(step);
        self.inner.steps.lock().retain(|step| !step.ptr_eq(&done));
    }
}

/// What a run tells beside its fetches.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// Where each node ran, and by which kernel.
    pub nodes: Arc<Vec<NodeReport>>,
    /// Nanoseconds that compiling took; 0 when the plan was there.
    pub compile_ns: u64,
}

/// A node of a plan.
#[derive(Debug, Clone)]
pub struct NodeReport {
    /// Name.
    pub name: String,
    /// Op.
    pub op: String,
    /// Full name of the device.
    pub device: String,
    /// Plugin of the kernel.
    pub plugin: String,
    /// Label of the kernel.
    pub label: String,
    /// Attributes.
    pub attrs: Arc<AttrTable>,
    /// Types and shapes of the inputs, as far as they are known before a step.
    pub inputs: Vec<(DType, PartialShape)>,
    /// Types and shapes of the outputs, as far as they are known before a step.
    pub outputs: Vec<(DType, PartialShape)>,
    /// Whether the kernel is chosen for each shape as steps run: then plugin and label are those of the first that
    /// is asked.
    pub per_shape: bool,
}
