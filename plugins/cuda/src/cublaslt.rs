//! NVIDIA's library of matrix products.
//!
//! | file | what |
//! |---|---|
//! | `handle.rs` | the library's handle on a device, and its algorithms for problems, asked for once each |
//! | `problem.rs` | what is multiplied: sizes, strides, types, and what follows |
//! | `descriptors.rs` | the library's descriptions of both, which are given back when they go |
//! | `numbers.rs` | numbers of the library's headers, and what is believed of it, for `.ci/cuda-libraries` |
//!
//! It is no kernel: those of ops are in [`crate::kernels`]. Matrices are the library's, that is column after column: a
//! product of ours is given to it turned, see [`Problem`].
//!
//! # Invariants
//! - Nothing of the library is called but after [`require`], which makes sure of each symbol: cudarc panics for one
//!   that is missing.
//! - Memory that the library works in is scratch memory of the call.

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

/// What is called of the library.
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

/// Makes sure that the library is there with all that is called of it.
///
/// # Errors
/// `UNAVAILABLE` with what is missing, and where the library comes from.
pub fn require() -> Result<(), KernelError> {
    libraries::require(Library::CublasLt)?;
    static MISSING: OnceLock<Option<&'static CStr>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        // SAFETY: the library is there.
        let library = unsafe { sys::culib() };
        // SAFETY: a symbol is looked for, and not used.
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
