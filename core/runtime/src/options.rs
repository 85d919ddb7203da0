//! Options of sessions and runs, and the information that a run returns.

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
    device::DeviceName,
    sync::{Mutex, rank},
};
use tenon_graph::{DeviceEntry, PlacementCosts};
use tenon_host::call::TraceSink;

/// Options of a session.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// The device for nodes that name none; may be a partial name such as `/device:ACCEL:0`.
    pub device: Option<String>,
    /// Whether a node runs on another device if its device does not exist or has no kernel for it;
    /// otherwise that is an error, as in TensorFlow's sessions. `None` means the knob
    /// `runtime.soft_placement`, which is off by default.
    pub soft_placement: Option<bool>,
    /// Whether to keep denormals; otherwise they are flushed to zero, as in TensorFlow's kernels.
    pub keep_denormals: bool,
    /// Whether calls are counted per node, for [`Metadata`]; this costs an atomic addition per
    /// call.
    pub count_calls: bool,
    /// Whether a session on a [worker](crate::Worker) has values of its own (variables, and values
    /// that plugins keep) instead of the worker's; they end with the session. TensorFlow's
    /// `isolate_session_state`.
    pub isolate_state: bool,
    /// What calls and transfers cost: a node that requests no device, or leaves several open, is placed where the step ends
    /// soonest ([`tenon_graph::place_by_cost`]). `None` places by the priority of device types.
    pub costs: Option<Arc<dyn PlacementCosts>>,
    /// The devices of other tasks, on which nodes may be placed. The steps of such a session are cut by task
    /// ([`Session::tasks`](crate::Session::tasks)), for the workers of the tasks to run; a step with nodes on other tasks cannot
    /// run in this process alone.
    pub remote: Vec<DeviceEntry>,
    /// The task that the devices of this process belong to in such a session, if it is another one than the runtime's: the
    /// client may name the tasks of a cluster anew. It has a meaning for [`Session::tasks`](crate::Session::tasks) and for the
    /// graphs of a [`WorkerSession`](crate::WorkerSession) alone.
    pub task: Option<DeviceName>,
    /// The kernel label to use for every node that has a kernel with it. `None` means the knob
    /// `runtime.kernel_label`.
    pub kernel_label: Option<String>,
    /// Knobs, `scope.name` to value. They override the environment and the runtime's options;
    /// `--set` overrides them. They apply to this session's kernels and to its compilation
    /// (`runtime.*`); a device sees the runtime's values. A session cannot set knobs that the host
    /// reads when it loads plugins (`host.*`).
    pub knobs: BTreeMap<String, String>,
}

impl SessionOptions {
    /// Default options, except that graphs run without optimisation (`graph.optimize`), for callers
    /// that measure or examine individual nodes.
    pub fn as_written() -> SessionOptions {
        let off = ("graph.optimize".to_owned(), "false".to_owned());
        SessionOptions { knobs: BTreeMap::from([off]), ..SessionOptions::default() }
    }

    /// The name of a device of this process in the session.
    pub(crate) fn named(&self, device: &DeviceName) -> DeviceName {
        let DeviceName { device_type, id, .. } = device.clone();
        self.task
            .as_ref()
            .map_or_else(|| device.clone(), |task| DeviceName { device_type, id, ..task.clone() })
    }
}

/// The feeds, fetches and targets of a callable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CallableOptions {
    /// The tensors to feed, in order.
    pub feeds: Vec<String>,
    /// The tensors to fetch, in order.
    pub fetches: Vec<String>,
    /// The nodes to run without fetching.
    pub targets: Vec<String>,
    /// Whether feeds may have other shapes than the graph says of them, as in TensorFlow's sessions:
    /// shapes that follow from theirs are then found by each step.
    pub feeds_of_any_shape: bool,
}

impl CallableOptions {
    /// Creates options from the names of feeds and fetches.
    pub fn new(feeds: &[&str], fetches: &[&str]) -> CallableOptions {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        CallableOptions {
            feeds: own(feeds),
            fetches: own(fetches),
            targets: Vec::new(),
            ..CallableOptions::default()
        }
    }
}

/// Options of one run.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// The time limit of the run; when it is exceeded, the run fails with `DEADLINE_EXCEEDED`. It
    /// includes compiling the step, and waiting for another thread that compiles it.
    pub deadline: Option<Duration>,
    /// A token to cancel the run, also while its step is compiled.
    pub cancel: Option<CancelToken>,
    /// The receiver of the step's spans.
    pub trace: Option<Arc<dyn TraceSink>>,
}

/// A token that cancels the runs it was passed to; clones are the same token.
#[derive(Clone, Default)]
pub struct CancelToken {
    inner: Arc<TokenState>,
}

struct TokenState {
    cancelled: AtomicBool,
    steps: Mutex<Vec<Weak<StepShared>>>,
    /// What is called when it is cancelled.
    called: Mutex<Vec<Weak<dyn Fn() + Send + Sync>>>,
}

impl Default for TokenState {
    fn default() -> TokenState {
        let steps = Mutex::ranked(rank::SESSION, Vec::new());
        let called = Mutex::ranked(rank::LEAF, Vec::new());
        TokenState { cancelled: AtomicBool::new(false), steps, called }
    }
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels all current and future steps with this token.
    pub fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::SeqCst);
        // The lock makes a step that ends now wait in `detach`, so that the next step over its
        // state is not cancelled by mistake.
        let steps = self.inner.steps.lock();
        for step in steps.iter().filter_map(Weak::upgrade) {
            step.cancellation.cancel();
            step.wake();
        }
        drop(steps);
        let called = std::mem::take(&mut *self.inner.called.lock());
        called.iter().filter_map(Weak::upgrade).for_each(|call| call());
    }

    /// Has `call` called when the token is cancelled, on the thread that cancels it, or now if it is cancelled already. It
    /// may be called twice, and is not called once its last owner has dropped it.
    pub fn on_cancel(&self, call: &Arc<dyn Fn() + Send + Sync>) {
        let mut called = self.inner.called.lock();
        called.retain(|call| call.strong_count() > 0);
        called.push(Arc::downgrade(call));
        drop(called);
        if self.is_cancelled() {
            call();
        }
    }

    /// Whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::SeqCst)
    }

    /// Attaches a step that starts.
    pub(crate) fn attach(&self, step: &Arc<StepShared>) {
        let mut steps = self.inner.steps.lock();
        steps.retain(|step| step.strong_count() > 0);
        steps.push(Arc::downgrade(step));
        drop(steps);
        if self.is_cancelled() {
            step.cancellation.cancel();
        }
    }

    /// Detaches a step that has ended.
    pub(crate) fn detach(&self, step: &Arc<StepShared>) {
        let done = Arc::downgrade(step);
        self.inner.steps.lock().retain(|step| !step.ptr_eq(&done));
    }
}

/// Information about a run, besides its fetches.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// The device and the kernel of each node.
    pub nodes: Arc<Vec<NodeReport>>,
    /// The nanoseconds spent on compiling; 0 if the plan existed.
    pub compile_ns: u64,
}

/// A node of a plan.
#[derive(Debug, Clone)]
pub struct NodeReport {
    /// The name.
    pub name: String,
    /// The op.
    pub op: String,
    /// The full name of the device.
    pub device: String,
    /// The plugin of the kernel.
    pub plugin: String,
    /// The label of the kernel.
    pub label: String,
    /// The attributes.
    pub attrs: Arc<AttrTable>,
    /// The types and shapes of the inputs, as far as they are known before a step.
    pub inputs: Vec<(DType, PartialShape)>,
    /// The types and shapes of the outputs, as far as they are known before a step.
    pub outputs: Vec<(DType, PartialShape)>,
    /// Whether the kernel is chosen per shape at run time; plugin and label are then those of the
    /// first candidate.
    pub per_shape: bool,
}
