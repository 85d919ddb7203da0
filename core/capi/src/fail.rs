//! Failures, and the frame around every exported function.

use std::{
    any::Any,
    ffi::c_int,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};
use tenon_bundle::BundleError;
use tenon_cluster::ClusterError;
use tenon_framework::{Code, KernelError, shape::ShapeError, tensor::TensorError};
use tenon_gradient::GradientError;
use tenon_graph::GraphError;
use tenon_import::ImportError;
use tenon_proto::{ProtoError, convert::ConvertError};
use tenon_runtime::{RuntimeError, SessionError};
use tenon_training::TrainError;

/// Why a function did not do what it was asked: what becomes a status.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The canonical code.
    pub code: Code,
    /// What was expected, what was found, and what to do.
    pub message: String,
    /// The node that failed, if one did.
    pub place: Option<Box<Place>>,
}

/// Where a step or the change of a graph failed. Texts are empty where they are not known.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The name of the node.
    pub node: String,
    /// Its op.
    pub op: String,
    /// The full name of the device on which it ran.
    pub device: String,
}

/// A status of one of the APIs.
pub trait Report {
    /// Notes success.
    fn clear(&mut self);

    /// Notes a failure.
    fn report(&mut self, failure: &Failure);
}

impl Failure {
    /// A failure with this code.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), place: None }
    }

    /// A failure of code `INVALID_ARGUMENT`.
    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(Code::INVALID_ARGUMENT, message)
    }

    /// An argument that must not be null.
    pub fn null(what: &str) -> Failure {
        Failure::invalid(format!("{what} is null: pass a pointer to one"))
    }

    fn panicked(panic: &(dyn Any + Send)) -> Failure {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("it has no message");
        Failure::new(
            Code::INTERNAL,
            format!("a panic in the library: {text}; please report it, with the calls before it"),
        )
    }
}

macro_rules! failures_from {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::new(error.code(), error.to_string())
            }
        })*
    };
}
failures_from!(
    BundleError,
    ClusterError,
    ConvertError,
    GradientError,
    ProtoError,
    SessionError,
    ShapeError,
    TensorError
);

impl Failure {
    fn at(self, place: Place) -> Failure {
        match place.node.is_empty() {
            true => self,
            false => Failure { place: Some(Box::new(place)), ..self },
        }
    }
}

impl From<GraphError> for Failure {
    fn from(error: GraphError) -> Failure {
        Failure::new(error.code(), error.to_string()).at(place_of(&error))
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

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Failure {
        let failure = Failure::new(error.code(), error.to_string());
        failure.at(match error {
            RuntimeError::Step(step) => Place {
                node: step.node.to_string(),
                op: step.op.to_string(),
                device: step.device.to_string(),
            },
            RuntimeError::NoKernel { node, op, .. } | RuntimeError::NoDevices { node, op, .. } => {
                Place { node, op, ..Place::default() }
            }
            RuntimeError::Kernel { node, op, device, .. } => Place { node, op, device },
            RuntimeError::Graph(error) => place_of(&error),
            _ => Place::default(),
        })
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
        match error {
            ImportError::Runtime(error) => error.into(),
            error => Failure::new(error.code(), error.to_string()),
        }
    }
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Failure {
        match error {
            TrainError::Graph(error) => (*error).into(),
            error => Failure::new(error.code(), error.to_string()),
        }
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Failure {
        Failure::new(error.code, error.message)
    }
}

/// What a function returns when it fails.
pub trait Fallback {
    /// The value.
    fn fallback() -> Self;
}

macro_rules! fallback_by_default {
    ($($kind:ty),*) => {
        $(impl Fallback for $kind {
            fn fallback() -> $kind {
                <$kind>::default()
            }
        })*
    };
}
fallback_by_default!((), bool, c_int, f32, i64, u32, u64, usize, u8);

/// A number of things; -1 after a failure.
#[repr(transparent)]
pub struct Length(pub c_int);

impl Fallback for Length {
    fn fallback() -> Length {
        Length(-1)
    }
}

impl<T> Fallback for *mut T {
    fn fallback() -> *mut T {
        ptr::null_mut()
    }
}

impl<T> Fallback for *const T {
    fn fallback() -> *const T {
        ptr::null()
    }
}

impl<T> Fallback for Option<T> {
    fn fallback() -> Option<T> {
        None
    }
}

/// Runs a function that reports by a status.
pub fn checked<T: Fallback, S: Report>(
    status: Option<&mut S>,
    run: impl FnOnce() -> Result<T, Failure>,
) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let outcome = outcome.unwrap_or_else(|panic| Err(Failure::panicked(&*panic)));
    match outcome {
        Ok(value) => {
            if let Some(status) = status {
                status.clear();
            }
            value
        }
        Err(failure) => {
            if let Some(status) = status {
                status.report(&failure);
            }
            T::fallback()
        }
    }
}

/// Runs a function that has no status.
pub fn quiet<T: Fallback>(run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        tracing::error!("{}", Failure::panicked(&*panic).message);
        T::fallback()
    })
}

/// Declares exported functions. A body that begins with a status in brackets gives a `Result`, whose error goes into the status;
/// one without gives the value.
macro_rules! api {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($arg:ident: $kind:ty),* $(,)?) $(-> $ret:ty)? $([$status:ident])? $body:block
    )*) => {
        $(
            $(#[$meta])*
            ///
            /// # Safety
            /// Its arguments are as the section "Pointers" of the crate's documentation requires.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $kind),*) $(-> $ret)? {
                api!(@run ($($status)?) $body)
            }
        )*
    };
    (@run () $body:block) => { $crate::fail::quiet(move || $body) };
    (@run ($status:ident) $body:block) => { $crate::fail::checked($status, move || $body) };
}
