//! The meaning of the driver's results.
//!
//! Most errors concern one call: out of memory, a wrong argument. Some are *sticky*: the context in
//! which they happened returns them from every later call, until the process ends. After one of
//! those the device is lost to this process; other devices continue.

use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CStr, c_char};
use tenon_sdk::{Code, KernelError};

/// Whether the context is unusable after this result.
///
/// Source: the comments on `CUresult` in cuda.h of CUDA 13.5 that say that further work returns the
/// same error, that the context cannot be used any more, or that the process must end. Besides
/// these, errors of memory and of links that the hardware could not correct, an error that the
/// driver itself calls unknown, and the shutdown of the driver.
pub fn is_sticky(result: CUresult) -> bool {
    use CUresult::*;
    matches!(
        result,
        CUDA_ERROR_DEINITIALIZED
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUDA_ERROR_CONTAINED
            | CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUDA_ERROR_EXTERNAL_DEVICE
            | CUDA_ERROR_UNKNOWN
    )
}

/// The canonical code of an error.
pub fn code(result: CUresult) -> Code {
    use CUresult::*;
    match result {
        _ if is_sticky(result) => Code::UNAVAILABLE,
        CUDA_ERROR_OUT_OF_MEMORY => Code::RESOURCE_EXHAUSTED,
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => Code::RESOURCE_EXHAUSTED,
        CUDA_ERROR_NO_DEVICE
        | CUDA_ERROR_STUB_LIBRARY
        | CUDA_ERROR_DEVICE_UNAVAILABLE
        | CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
        | CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
        | CUDA_ERROR_SYSTEM_NOT_READY
        | CUDA_ERROR_DEVICE_NOT_LICENSED
        | CUDA_ERROR_MPS_CONNECTION_FAILED
        | CUDA_ERROR_MPS_RPC_FAILURE
        | CUDA_ERROR_MPS_SERVER_NOT_READY
        | CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
        | CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED
        | CUDA_ERROR_NOT_INITIALIZED => Code::UNAVAILABLE,
        CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUDA_ERROR_NOT_SUPPORTED
        | CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUDA_ERROR_JIT_COMPILER_NOT_FOUND
        | CUDA_ERROR_JIT_COMPILATION_DISABLED => Code::UNIMPLEMENTED,
        CUDA_ERROR_NOT_FOUND => Code::NOT_FOUND,
        CUDA_ERROR_INVALID_VALUE => Code::INVALID_ARGUMENT,
        _ => Code::INTERNAL,
    }
}

/// A result in the driver's words: `CUDA_ERROR_OUT_OF_MEMORY (2): out of memory`. The driver must
/// be loaded.
pub fn text(result: CUresult) -> String {
    let (mut name, mut words) = (std::ptr::null::<c_char>(), std::ptr::null::<c_char>());
    // SAFETY: the driver sets the pointers to static texts, or leaves them null.
    let (name, words) = unsafe {
        let _ = sys::cuGetErrorName(result, &mut name);
        let _ = sys::cuGetErrorString(result, &mut words);
        let own = |text: *const c_char| {
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        (own(name), own(words))
    };
    let number = result as u32;
    match (name, words) {
        (Some(name), Some(words)) => format!("{name} ({number}): {words}"),
        (Some(name), None) => format!("{name} ({number})"),
        _ => format!("result {number}"),
    }
}

/// The error of a call that failed.
pub fn error(result: CUresult, call: &str) -> KernelError {
    KernelError::new(code(result), format!("{call}: {}", text(result)))
}

/// Turns a result into success, or the error of `call`.
///
/// # Errors
/// As [`error`].
pub fn check(result: CUresult, call: &str) -> Result<(), KernelError> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        result => Err(error(result, call)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_device_is_told_from_what_ends_a_call() {
        use CUresult::*;
        // As cuda.h says of each: "any further CUDA work will return the same error", or the like.
        for result in [
            CUDA_ERROR_CONTAINED,
            CUDA_ERROR_ILLEGAL_ADDRESS,
            CUDA_ERROR_LAUNCH_TIMEOUT,
            CUDA_ERROR_ASSERT,
            CUDA_ERROR_HARDWARE_STACK_ERROR,
            CUDA_ERROR_ILLEGAL_INSTRUCTION,
            CUDA_ERROR_MISALIGNED_ADDRESS,
            CUDA_ERROR_INVALID_ADDRESS_SPACE,
            CUDA_ERROR_INVALID_PC,
            CUDA_ERROR_LAUNCH_FAILED,
            CUDA_ERROR_TENSOR_MEMORY_LEAK,
            CUDA_ERROR_MPS_CLIENT_TERMINATED,
            CUDA_ERROR_EXTERNAL_DEVICE,
        ] {
            assert!(is_sticky(result), "{result:?}");
            assert_eq!(code(result), Code::UNAVAILABLE, "{result:?}");
        }
        for result in [
            CUDA_ERROR_OUT_OF_MEMORY,
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
            CUDA_ERROR_NOT_PERMITTED,
        ] {
            assert!(!is_sticky(result), "{result:?}");
        }
        assert_eq!(code(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS), Code::UNAVAILABLE);
        assert_eq!(code(CUresult::CUDA_ERROR_OUT_OF_MEMORY), Code::RESOURCE_EXHAUSTED);
        assert_eq!(code(CUresult::CUDA_ERROR_INVALID_VALUE), Code::INVALID_ARGUMENT);
    }
}
