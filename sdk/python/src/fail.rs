//! Errors, as Python raises them: one class of `tenon.errors` per canonical code.

use pyo3::{exceptions::PyTypeError, prelude::*};
use std::any::Any;
use tenon_bundle::BundleError;
use tenon_cluster::ClusterError;
use tenon_framework::{
    Code, KernelError, device::DeviceNameError, op::OpError, shape::ShapeError, tensor::TensorError,
};
use tenon_gradient::GradientError;
use tenon_graph::GraphError;
use tenon_host::LoadError;
use tenon_import::ImportError;
use tenon_proto::{ProtoError, convert::ConvertError};
use tenon_runtime::{RuntimeError, SessionError};
use tenon_training::TrainError;

/// Where a step failed. Texts are empty where they are not known.
#[derive(Debug, Default, Clone)]
pub(crate) struct Place {
    pub node: String,
    pub op: String,
    pub device: String,
    pub plugin: String,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Fail {
    /// An error of Tenon's.
    Tenon { code: Code, message: String, place: Box<Place> },
    /// An exception that Python raised, or that Python expects.
    Python(PyErr),
}

impl Fail {
    /// An error with this code.
    pub fn new(code: Code, message: impl Into<String>) -> Fail {
        Fail::Tenon { code, message: message.into(), place: Box::default() }
    }

    /// The caller gave something wrong.
    pub fn invalid(message: impl Into<String>) -> Fail {
        Fail::new(Code::INVALID_ARGUMENT, message)
    }

    /// The system is not in the state that a call needs.
    pub fn precondition(message: impl Into<String>) -> Fail {
        Fail::new(Code::FAILED_PRECONDITION, message)
    }

    /// An argument of another type.
    pub fn wrong_type(message: impl Into<String>) -> Fail {
        Fail::Python(PyTypeError::new_err(message.into()))
    }

    /// A panic of Rust code.
    pub fn panic(payload: &(dyn Any + Send)) -> Fail {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "no message".to_owned());
        Fail::new(Code::INTERNAL, format!("a panic in native code: {text}"))
    }

    /// The canonical code; `UNKNOWN` for exceptions of Python's.
    pub fn code(&self) -> Code {
        match self {
            Fail::Tenon { code, .. } => *code,
            Fail::Python(_) => Code::UNKNOWN,
        }
    }
}

impl From<PyErr> for Fail {
    fn from(error: PyErr) -> Fail {
        Fail::Python(error)
    }
}

impl From<Fail> for PyErr {
    fn from(fail: Fail) -> PyErr {
        match fail {
            Fail::Python(error) => error,
            Fail::Tenon { code, message, place } => Python::attach(|py| {
                let Place { node, op, device, plugin } = *place;
                let made = py
                    .import("tenon.errors")
                    .and_then(|errors| errors.getattr("make"))
                    .and_then(|make| make.call1((code.0, message, node, op, device, plugin)));
                made.map_or_else(|error| error, PyErr::from_value)
            }),
        }
    }
}

impl From<RuntimeError> for Fail {
    fn from(error: RuntimeError) -> Fail {
        let (code, message) = (error.code(), error.to_string());
        let place = match error {
            RuntimeError::Step(step) => Place {
                node: step.node.to_string(),
                op: step.op.to_string(),
                device: step.device.to_string(),
                plugin: step.plugin.to_string(),
            },
            RuntimeError::NoKernel { node, op, .. } | RuntimeError::NoDevices { node, op, .. } => {
                Place { node, op, ..Place::default() }
            }
            RuntimeError::Kernel { node, op, device, .. } => {
                Place { node, op, device, ..Place::default() }
            }
            RuntimeError::Graph(error) => place_of(&error),
            _ => Place::default(),
        };
        Fail::Tenon { code, message, place: Box::new(place) }
    }
}

/// The node that a graph's error names.
fn place_of(error: &GraphError) -> Place {
    match error {
        GraphError::UnknownOp { node, op, .. }
        | GraphError::InputType { node, op, .. }
        | GraphError::Shape { node, op, .. }
        | GraphError::Foreign { node, op, .. }
        | GraphError::NoDevice { node, op, .. } => {
            Place { node: node.clone(), op: op.clone(), ..Place::default() }
        }
        GraphError::Op { node, .. }
        | GraphError::Attr { node, .. }
        | GraphError::Device { node, .. }
        | GraphError::DuplicateNode { node } => Place { node: node.clone(), ..Place::default() },
        _ => Place::default(),
    }
}

impl From<GraphError> for Fail {
    fn from(error: GraphError) -> Fail {
        let place = Box::new(place_of(&error));
        Fail::Tenon { code: error.code(), message: error.to_string(), place }
    }
}

impl From<TrainError> for Fail {
    fn from(error: TrainError) -> Fail {
        match error {
            TrainError::Graph(error) => (*error).into(),
            error => Fail::new(error.code(), error.to_string()),
        }
    }
}

/// Errors that have a code and a message, and no more.
macro_rules! plain {
    ($($error:ty),*) => {$(
        impl From<$error> for Fail {
            fn from(error: $error) -> Fail {
                Fail::new(error.code(), error.to_string())
            }
        }
    )*};
}

plain!(
    BundleError,
    ClusterError,
    ConvertError,
    DeviceNameError,
    GradientError,
    ImportError,
    KernelError,
    LoadError,
    OpError,
    ProtoError,
    SessionError,
    ShapeError,
    TensorError
);
