//! Matrix products by cuBLASLt.
//!
//! | file | what |
//! |---|---|
//! | `handle.rs` | the library's handle on a device, and its algorithms for problems, requested once each |
//! | `problem.rs` | what is multiplied: sizes, strides, types, and the epilogue |
//! | `descriptors.rs` | the library's descriptors of both, which are destroyed when dropped |
//! | `numbers.rs` | numbers of the library's headers, and what the plugin assumes about it, for `.ci/cuda-libraries` |
//!
//! The kernels of ops are in [`crate::kernels`], not here. The library's matrices are column-major:
//! it receives a row-major product transposed, see [`Problem`].
//!
//! # Invariants
//! - [`require`] checks each symbol before any function of the library is called: cudarc panics for
//!   a missing one.
//! - The library's workspace is scratch memory of the call.

mod descriptors;
mod handle;
mod numbers;
mod problem;

pub use handle::{Addresses, Handle};
#[doc(hidden)]
pub use numbers::{believed, describe};
pub use problem::{Element, Epilogue, Problem};

use crate::libraries::{self, Library};
use cudarc::cublaslt::sys::{self, cublasStatus_t};
use std::{ffi::CStr, sync::OnceLock};
use tenon_sdk::{Code, KernelError};

/// The functions of the library that are called.
const SYMBOLS: &[&CStr] = &[
    c"cublasLtCreate",
    c"cublasLtDestroy",
    c"cublasLtMatmul",
    c"cublasLtMatmulAlgoGetHeuristic",
    c"cublasLtMatmulDescCreate",
    c"cublasLtMatmulDescDestroy",
    c"cublasLtMatmulDescSetAttribute",
    c"cublasLtMatmulPreferenceCreate",
    c"cublasLtMatmulPreferenceDestroy",
    c"cublasLtMatmulPreferenceSetAttribute",
    c"cublasLtMatrixLayoutCreate",
    c"cublasLtMatrixLayoutDestroy",
    c"cublasLtMatrixLayoutSetAttribute",
];

/// Checks that the library is installed and has every function that is called.
///
/// # Errors
/// `UNAVAILABLE`, naming what is missing and where the library comes from.
pub fn require() -> Result<(), KernelError> {
    libraries::require(Library::CublasLt)?;
    static MISSING: OnceLock<Option<&'static CStr>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        // SAFETY: the library is loaded.
        let library = unsafe { sys::culib() };
        // SAFETY: the symbol is looked up, and not used.
        let has =
            |name: &CStr| unsafe { library.get::<*const ()>(name.to_bytes_with_nul()).is_ok() };
        SYMBOLS.iter().copied().find(|name| !has(name))
    });
    match missing {
        None => Ok(()),
        Some(name) => Err(KernelError::new(
            Code::UNAVAILABLE,
            format!(
                "libcublasLt.so has no {}: expected one of CUDA 12 or later",
                name.to_string_lossy()
            ),
        )),
    }
}

/// Success, or the error of `call`.
fn check(status: cublasStatus_t, call: &str) -> Result<(), KernelError> {
    use cublasStatus_t::*;
    let code = match status {
        CUBLAS_STATUS_SUCCESS => return Ok(()),
        CUBLAS_STATUS_ALLOC_FAILED => Code::RESOURCE_EXHAUSTED,
        CUBLAS_STATUS_INVALID_VALUE => Code::INVALID_ARGUMENT,
        CUBLAS_STATUS_NOT_SUPPORTED | CUBLAS_STATUS_ARCH_MISMATCH => Code::UNIMPLEMENTED,
        CUBLAS_STATUS_NOT_INITIALIZED => Code::UNAVAILABLE,
        _ => Code::INTERNAL,
    };
    Err(KernelError::new(code, format!("{call}: {status:?} ({})", status as u32)))
}
