//! The element values of constants.

use tenon_framework::{DType, Tensor};

/// A number that rules compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// 0; for floating-point types the one with positive sign.
    Zero,
    /// -0; for integer types 0.
    MinusZero,
    One,
}

/// The bits of a number, in native order.
fn bits(dtype: DType, number: Number) -> Option<Vec<u8>> {
    let size = dtype.size()?;
    let float = |one: u64, sign: u64| match number {
        Number::Zero => 0,
        Number::MinusZero => sign,
        Number::One => one,
    };
    let value: u64 = match dtype {
        DType::HALF => float(0x3c00, 1 << 15),
        DType::BFLOAT16 => float(0x3f80, 1 << 15),
        DType::FLOAT => float(0x3f80_0000, 1 << 31),
        DType::DOUBLE => float(0x3ff0_0000_0000_0000, 1 << 63),
        DType::BOOL => float(1, 0),
        _ if dtype.is_integer() => float(1, 0),
        _ => return None,
    };
    let bytes = value.to_ne_bytes();
    Some(if cfg!(target_endian = "little") {
        bytes[..size].to_vec()
    } else {
        bytes[8 - size..].to_vec()
    })
}

/// Whether every element of a constant is this number.
pub(crate) fn is_all(tensor: &Tensor, number: Number) -> bool {
    let Some(one) = bits(tensor.dtype(), number) else { return false };
    tensor.elements() > 0
        && tensor
            .as_bytes()
            .is_ok_and(|bytes| bytes.chunks_exact(one.len()).all(|found| found == one))
}

/// Whether no element of a constant is this number.
pub(crate) fn has_no(tensor: &Tensor, number: Number) -> bool {
    let Some(one) = bits(tensor.dtype(), number) else { return false };
    tensor.as_bytes().is_ok_and(|bytes| bytes.chunks_exact(one.len()).all(|found| found != one))
}
