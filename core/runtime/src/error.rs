//! Errors of sessions and steps.

use std::sync::Arc;
use tenon_framework::text::{cut, cut_message, cut_text};
use tenon_framework::{Code, DType, KernelError, PartialShape, Shape, device::DeviceName};
use tenon_host::search::{Looked, looked_at};
use thiserror::Error;

/// The error of a failed step: its cause and where it happened.
#[derive(Debug, Clone, Error)]
#[error("{}: {message}{}", place(node, op), context(device, plugin), message = cut_message(.message))]
pub struct StepError {
    /// The canonical code.
    pub code: Code,
    /// The node; empty if the error belongs to the whole step.
    pub node: Arc<str>,
    /// The op of the node.
    pub op: Arc<str>,
    /// The full name of the device.
    pub device: Arc<str>,
    /// The plugin of the kernel.
    pub plugin: Arc<str>,
    /// What was expected, what was found, and what to do.
    pub message: Arc<str>,
}

fn place(node: &str, op: &str) -> String {
    if node.is_empty() { "step".to_owned() } else { format!("node '{}' ({})", cut(node), cut(op)) }
}

fn context(device: &str, plugin: &str) -> String {
    match (device.is_empty(), plugin.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!(" [on {}]", cut(device)),
        (false, false) => format!(" [on {}, kernel of {}]", cut(device), cut(plugin)),
    }
}

impl StepError {
    /// An error of the whole step.
    pub fn step(code: Code, message: impl Into<Arc<str>>) -> StepError {
        let none: Arc<str> = Arc::from("");
        StepError {
            code,
            node: none.clone(),
            op: none.clone(),
            device: none.clone(),
            plugin: none,
            message: message.into(),
        }
    }

    /// The error of a node.
    pub fn node(
        name: &str,
        op: &str,
        device: &str,
        plugin: &str,
        error: &KernelError,
    ) -> StepError {
        StepError {
            code: error.code,
            node: name.into(),
            op: op.into(),
            device: device.into(),
            plugin: plugin.into(),
            message: error.message.as_str().into(),
        }
    }

    /// The error of a device, outside any node.
    pub(crate) fn device(device: &DeviceName, error: &KernelError) -> StepError {
        StepError::node("", "", &device.to_string(), "", error)
    }
}

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(" ({})", cut_text(why)) }
}

/// The error of a session or a step.
#[derive(Debug, Clone, Error)]
pub enum RuntimeError {
    /// The graph is invalid, or cannot be placed.
    #[error(transparent)]
    Graph(Box<tenon_graph::GraphError>),
    /// A gradient that the graph asks for cannot be made.
    #[error(transparent)]
    Gradient(Box<tenon_gradient::GradientError>),
    /// A graph that was cut elsewhere cannot be assembled.
    #[error(transparent)]
    Assemble(Box<tenon_graph::AssembleError>),
    /// A partition for, or a transfer with, a device that is not one of the worker's.
    #[error("{what} '{name}': expected a device of this worker, which are {}", cut_text(&there.join(", ")))]
    ForeignDevice {
        /// What has the name: a partition or a transfer.
        what: &'static str,
        /// The name.
        name: String,
        /// The worker's devices.
        there: Vec<String>,
    },
    /// A node of a part that was cut elsewhere is not on a device of this worker.
    #[error(
        "node '{node}' names device '{device}': expected the full name of a device of this worker, which are {}",
        cut_text(&there.join(", ")), node = cut(.node), device = cut(.device)
    )]
    ForeignNode {
        /// The node.
        node: String,
        /// The device that it names.
        device: String,
        /// The worker's devices.
        there: Vec<String>,
    },
    /// A node of a step that runs in this process alone is placed on another task.
    #[error(
        "node '{node}' is on {device}, a device of another task: expected one of this process; open the session on a server \
         of the cluster",
        node = cut(.node), device = cut(.device)
    )]
    RemoteNode {
        /// The node.
        node: String,
        /// Its device.
        device: String,
    },
    /// A plugin cannot be loaded.
    #[error(transparent)]
    Load(Arc<tenon_host::LoadError>),
    /// A step failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A node has no kernel on its device.
    #[error(
        "node '{node}' ({op}): {message}",
        node = cut(.node), op = cut(.op), message = cut_message(.message)
    )]
    NoKernel {
        /// The node.
        node: String,
        /// The op.
        op: String,
        /// The candidates, with the reason against each.
        message: String,
    },
    /// A kernel refused its node.
    #[error(
        "node '{node}' ({op}) on {device}: {error}",
        node = cut(.node), op = cut(.op), device = cut(.device)
    )]
    Kernel {
        /// The node.
        node: String,
        /// The op.
        op: String,
        /// The device.
        device: String,
        /// The error of the kernel.
        error: KernelError,
    },
    /// A feed, fetch or target that does not exist.
    #[error(
        "{what} '{name}': the graph has no such tensor; it has {nearest}",
        name = cut(.name), nearest = cut_text(.nearest)
    )]
    UnknownTensor {
        /// `feed`, `fetch` or `target`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// Similar names.
        nearest: String,
    },
    /// The same tensor is fed twice.
    #[error("tensor '{name}' is fed twice", name = cut(.name))]
    FedTwice {
        /// The name.
        name: String,
    },
    /// A feed of another type.
    #[error("feed '{name}': expected {expected}, found {found}", name = cut(.name))]
    FeedType {
        /// The name.
        name: String,
        /// The type in the graph.
        expected: DType,
        /// The type of the fed tensor.
        found: DType,
    },
    /// A feed of another shape.
    #[error("feed '{name}': expected shape {expected}, found {found}", name = cut(.name))]
    FeedShape {
        /// The name.
        name: String,
        /// The shape in the graph.
        expected: PartialShape,
        /// The shape of the fed tensor.
        found: Box<Shape>,
    },
    /// A feed with contents that its type does not allow.
    #[error("feed '{name}': {message}", name = cut(.name), message = cut_message(.message))]
    FeedValue {
        /// The name.
        name: String,
        /// The reason.
        message: String,
    },
    /// The wrong number of feeds for a callable.
    #[error("the callable takes {expected} feeds, found {found}")]
    FeedCount {
        /// The number of feeds that the callable takes.
        expected: usize,
        /// The number of feeds that were given.
        found: usize,
    },
    /// Pinned memory was requested, but no device has any.
    #[error(
        "no device has pinned memory: expected one with a memory kind of that name, such as CUDA"
    )]
    NoPinnedMemory,
    /// A tensor could not be copied to pinned memory.
    #[error("no copy in pinned memory: {0}")]
    PinnedMemory(Box<KernelError>),
    /// A device option that is not a device name.
    #[error("option device: {text}", text = cut_text(.0))]
    Device(String),
    /// A device option that matches no device.
    #[error(
        "option device: there is no device '{name}'{}; there are {}; to run without it, enable soft placement by the \
         knob runtime.soft_placement (--soft-placement on the command line)",
        because(.why), cut_text(&there.join(", ")), name = cut(.name)
    )]
    NoSuchDevice {
        /// The name.
        name: String,
        /// The existing devices.
        there: Vec<String>,
        /// The reason why this type has no devices; empty if no plugin gives one.
        why: String,
    },
    /// A node cannot run because there are no devices at all.
    #[error(
        "node '{node}' (op '{op}'): no device can run it: there are no devices, since no plugin with one is \
         loaded: name one (--plugin FILE, RuntimeOptions::plugins), or its folder in TENON_PLUGIN_PATH; {}",
        looked_at(.searched), node = cut(.node), op = cut(.op)
    )]
    NoDevices {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The places that were searched for plugins when the runtime started; empty if there was
        /// no search.
        searched: Vec<Looked>,
    },
    /// An invalid setting of a knob.
    #[error(transparent)]
    Setting(tenon_framework::knob::KnobError),
    /// An invalid setting of policy `measured`.
    #[error("{text}", text = cut_text(.0))]
    Policy(String),
    /// The runtime cannot start.
    #[error(transparent)]
    Start(Arc<tenon_host::StartError>),
    /// The session is closed.
    #[error("the session is closed")]
    Closed,
}

impl RuntimeError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            RuntimeError::Graph(error) => error.code(),
            RuntimeError::Gradient(error) => error.code(),
            RuntimeError::Load(error) => error.code(),
            RuntimeError::Step(error) => error.code,
            RuntimeError::Setting(error) => error.code(),
            RuntimeError::NoKernel { .. } => Code::NOT_FOUND,
            RuntimeError::Kernel { error, .. } => error.code,
            RuntimeError::PinnedMemory(error) => error.code,
            RuntimeError::NoPinnedMemory => Code::FAILED_PRECONDITION,
            RuntimeError::UnknownTensor { .. } => Code::NOT_FOUND,
            RuntimeError::Closed => Code::FAILED_PRECONDITION,
            _ => Code::INVALID_ARGUMENT,
        }
    }
}

impl From<tenon_gradient::GradientError> for RuntimeError {
    fn from(error: tenon_gradient::GradientError) -> RuntimeError {
        RuntimeError::Gradient(Box::new(error))
    }
}

impl From<tenon_graph::GraphError> for RuntimeError {
    fn from(error: tenon_graph::GraphError) -> RuntimeError {
        RuntimeError::Graph(Box::new(error))
    }
}

impl From<tenon_graph::AssembleError> for RuntimeError {
    fn from(error: tenon_graph::AssembleError) -> RuntimeError {
        match error {
            tenon_graph::AssembleError::Graph(error) => error.into(),
            error => RuntimeError::Assemble(Box::new(error)),
        }
    }
}

impl From<tenon_host::LoadError> for RuntimeError {
    fn from(error: tenon_host::LoadError) -> RuntimeError {
        RuntimeError::Load(Arc::new(error))
    }
}

impl From<tenon_host::StartError> for RuntimeError {
    fn from(error: tenon_host::StartError) -> RuntimeError {
        RuntimeError::Start(Arc::new(error))
    }
}
