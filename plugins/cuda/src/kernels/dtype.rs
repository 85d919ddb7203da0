//! Names of element types in CUDA C.

use tenon_sdk::{DType, KernelError};

/// The name in `types.cuh`.
///
/// # Errors
/// `UNIMPLEMENTED` for types that the sources do not support.
pub(crate) fn name_of(dtype: DType) -> Result<&'static str, KernelError> {
    Ok(match dtype {
        DType::BOOL => "boolean",
        DType::INT8 => "i8",
        DType::INT16 => "i16",
        DType::INT32 => "i32",
        DType::INT64 => "i64",
        DType::UINT8 => "u8",
        DType::UINT16 => "u16",
        DType::UINT32 => "u32",
        DType::UINT64 => "u64",
        DType::HALF => "f16",
        DType::BFLOAT16 => "bf16",
        DType::FLOAT => "f32",
        DType::DOUBLE => "f64",
        other => {
            return Err(KernelError::unimplemented(format!("CUDA has no kernels for {other}")));
        }
    })
}

/// The name and the size of an unsigned integer as wide as `dtype`, for kernels that only move
/// elements.
///
/// # Errors
/// As [`name_of`].
pub(crate) fn word_of(dtype: DType) -> Result<(&'static str, usize), KernelError> {
    name_of(dtype)?;
    Ok(match dtype.size() {
        Some(1) => ("u8", 1),
        Some(2) => ("u16", 2),
        Some(4) => ("u32", 4),
        Some(8) => ("u64", 8),
        _ => return Err(KernelError::unimplemented(format!("CUDA does not move {dtype}"))),
    })
}
