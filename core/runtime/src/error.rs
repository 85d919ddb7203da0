//! Errors of sessions and steps.

use std::sync::Arc;
use tenon_framework::text::{cut, cut_message, cut_text};
use tenon_framework::{Code, DType, KernelError, PartialShape, Shape, device::DeviceName};
use tenon_host::search::{Looked, looked_at};
use thiserror::Error;

/// Why a step failed: what happened, where.
#[derive(Debug, Clone, Error)]
#[error("{}: {message}{}", place(node, op), context(device, plugin), message = cut_message(.message))]
pub struct StepError {
    /// Canonical code.
    pub code: Code,
    /// Node; empty when the error belongs to the whole step.
    pub node: Arc<str>,
    /// Op of the node.
    pub op: Arc<str>,
    /// Full name of the device.
    pub device: Arc<str>,
    /// Plugin of the kernel.
    pub plugin: Arc<str>,
    /// What was expected, what was found, what to do.
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

    /// An error of a node.
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

    /// An error of a device, at no node.
    pub(crate) fn device(device: &DeviceName, error: &KernelError) -> StepError {
        StepError::node("", "", &device.to_string(), "", error)
    }
}

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(" ({})", cut_text(why)) }
}

/// Why a session refuses or a step fails.
#[derive(Debug, Clone, Error)]
pub enum RuntimeError {
    /// The graph is wrong, or cannot be placed.
    #[error(transparent)]
    Graph(Box<tenon_graph::GraphError>),
    /// A graph that is to be run as it was cut elsewhere.
    #[error(transparent)]
    Assemble(Box<tenon_graph::AssembleError>),
    /// A partition for, or a transfer with, a device that is not the worker's.
    #[error("{what} '{name}': expected a device of this worker, which are {}", cut_text(&there.join(", ")))]
    ForeignDevice {
        /// What names it.
        what: &'static str,
        /// The name.
        name: String,
        /// The worker's devices.
        there: Vec<String>,
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
        /// Node.
        node: String,
        /// Op.
        op: String,
        /// Candidates, and what removed each.
        message: String,
    },
    /// A kernel refuses its node.
    #[error(
        "node '{node}' ({op}) on {device}: {error}",
        node = cut(.node), op = cut(.op), device = cut(.device)
    )]
    Kernel {
        /// Node.
        node: String,
        /// Op.
        op: String,
        /// Device.
        device: String,
        /// What the kernel says.
        error: KernelError,
    },
    /// A feed or fetch that names nothing.
    #[error(
        "{what} '{name}': the graph has no such tensor; it has {nearest}",
        name = cut(.name), nearest = cut_text(.nearest)
    )]
    UnknownTensor {
        /// `feed`, `fetch` or `target`.
        what: &'static str,
        /// What was given.
        name: String,
        /// Names that are near.
        nearest: String,
    },
    /// The same tensor is fed twice.
    #[error("tensor '{name}' is fed twice", name = cut(.name))]
    FedTwice {
        /// Name.
        name: String,
    },
    /// A feed of another type.
    #[error("feed '{name}': expected {expected}, found {found}", name = cut(.name))]
    FeedType {
        /// Name.
        name: String,
        /// The graph's.
        expected: DType,
        /// What was fed.
        found: DType,
    },
    /// A feed of another shape.
    #[error("feed '{name}': expected shape {expected}, found {found}", name = cut(.name))]
    FeedShape {
        /// Name.
        name: String,
        /// The graph's.
        expected: PartialShape,
        /// What was fed.
        found: Box<Shape>,
    },
    /// A feed whose contents are not what its type allows.
    #[error("feed '{name}': {message}", name = cut(.name), message = cut_message(.message))]
    FeedValue {
        /// Name.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// The wrong number of feeds for a callable.
    #[error("the callable takes {expected} feeds, found {found}")]
    FeedCount {
        /// Expected.
        expected: usize,
        /// Found.
        found: usize,
    },
    /// Pinned memory was asked for, and there is no device with such.
    #[error(
        "no device has pinned memory: expected one with a memory kind of that name, such as CUDA"
    )]
    NoPinnedMemory,
    /// There is no pinned copy of a tensor.
    #[error("no copy in pinned memory: {0}")]
    PinnedMemory(Box<KernelError>),
    /// A device option that is no name of a device.
    #[error("option device: {text}", text = cut_text(.0))]
    Device(String),
    /// A device option that names none of the devices.
    #[error(
        "option device: there is no device '{name}'{}; there are {}; to run without it, ask for soft placement by the \
         knob runtime.soft_placement (--soft-placement on the command line)",
        because(.why), cut_text(&there.join(", ")), name = cut(.name)
    )]
    NoSuchDevice {
        /// The name.
        name: String,
        /// The devices that there are.
        there: Vec<String>,
        /// Why the type has none; empty where no plugin says so.
        why: String,
    },
    /// A node to run where there are no devices at all.
    #[error(
        "node '{node}' (op '{op}'): no device takes it: there are no devices, since no plugin that brings one is \
         loaded: name one (--plugin FILE, RuntimeOptions::plugins), or its folder in TENON_PLUGIN_PATH; {}",
        looked_at(.searched), node = cut(.node), op = cut(.op)
    )]
    NoDevices {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// Where plugins were looked for when the runtime started; empty where they were not.
        searched: Vec<Looked>,
    },
    /// A setting of a knob.
    #[error(transparent)]
    Setting(tenon_framework::knob::KnobError),
    /// A setting of policy `measured` that says nothing.
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
