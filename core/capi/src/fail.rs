//! Failures, and the frame around every exported function.

use crate::status::TF_Status;
use std::{
    any::Any,
    ffi::c_int,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};
use tenon_cluster::ClusterError;
use tenon_framework::{Code, KernelError, shape::ShapeError, tensor::TensorError};
use tenon_gradient::GradientError;
use tenon_graph::GraphError;
use tenon_import::ImportError;
use tenon_proto::{ProtoError, convert::ConvertError};
use tenon_runtime::{RuntimeError, SessionError};

/// Why a function did not do what it was asked: what becomes a status.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The canonical code.
    pub code: Code,
    /// What was expected, what was found, and what to do.
    pub message: String,
}

impl Failure {
    /// A failure with this code.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
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
    ClusterError,
    ConvertError,
    GradientError,
    GraphError,
    ImportError,
    ProtoError,
    RuntimeError,
    SessionError,
    ShapeError,
    TensorError
);

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Failure {
        Failure { code: error.code, message: error.message }
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
fallback_by_default!((), bool, c_int, i64, u32, u64, usize, u8);

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
pub fn checked<T: Fallback>(
    status: Option<&mut TF_Status>,
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
                status.set(failure.code, &failure.message);
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
