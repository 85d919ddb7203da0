//! The lists of elements in messages of tensors.

use tenon_proto::TensorProto;
use tenon_sdk::{author::Kept, element::Element, growth, prelude::*};

/// A message with the elements of a tensor in the list of their type.
///
/// # Errors
/// The type has no list; `RESOURCE_EXHAUSTED` without memory.
pub fn listed(tensor: &Kept, proto: TensorProto) -> Result<TensorProto, KernelError> {
    /// The elements, each as the number that its list has.
    fn all<T: Element, V>(tensor: &Kept, to: fn(T) -> V) -> Result<Vec<V>, KernelError> {
        growth::collected(tensor.view::<T>()?.data.iter().map(|&value| to(value)))
    }
    /// Real and imaginary parts in turn.
    fn pairs<T: Element, V: Copy>(
        tensor: &Kept,
        to: fn(T) -> [V; 2],
    ) -> Result<Vec<V>, KernelError> {
        let data = tensor.view::<T>()?.data;
        let mut parts = growth::with_room(data.len().saturating_mul(2))?;
        data.iter().for_each(|&value| parts.extend(to(value)));
        Ok(parts)
    }
    Ok(match tensor.dtype() {
        DType::FLOAT => TensorProto { float_val: all(tensor, |x: f32| x)?, ..proto },
        DType::DOUBLE => TensorProto { double_val: all(tensor, |x: f64| x)?, ..proto },
        DType::HALF => {
            TensorProto { half_val: all(tensor, |x: f16| i32::from(x.to_bits()))?, ..proto }
        }
        DType::BFLOAT16 => {
            TensorProto { half_val: all(tensor, |x: bf16| i32::from(x.to_bits()))?, ..proto }
        }
        DType::INT8 => TensorProto { int_val: all(tensor, |x: i8| x.into())?, ..proto },
        DType::UINT8 => TensorProto { int_val: all(tensor, |x: u8| x.into())?, ..proto },
        DType::INT16 => TensorProto { int_val: all(tensor, |x: i16| x.into())?, ..proto },
        DType::UINT16 => TensorProto { int_val: all(tensor, |x: u16| x.into())?, ..proto },
        DType::INT32 => TensorProto { int_val: all(tensor, |x: i32| x)?, ..proto },
        DType::INT64 => TensorProto { int64_val: all(tensor, |x: i64| x)?, ..proto },
        DType::UINT32 => TensorProto { uint32_val: all(tensor, |x: u32| x)?, ..proto },
        DType::UINT64 => TensorProto { uint64_val: all(tensor, |x: u64| x)?, ..proto },
        DType::BOOL => TensorProto { bool_val: all(tensor, |x: bool| x)?, ..proto },
        DType::COMPLEX64 => {
            TensorProto { scomplex_val: pairs(tensor, |x: Complex32| [x.re, x.im])?, ..proto }
        }
        DType::COMPLEX128 => {
            TensorProto { dcomplex_val: pairs(tensor, |x: Complex64| [x.re, x.im])?, ..proto }
        }
        DType::STRING => {
            let strings = tensor.strings()?;
            let copies = strings.iter().map(|string| growth::copied(string));
            TensorProto { string_val: growth::try_collected(copies)?, ..proto }
        }
        dtype => TensorProto { tensor_content: bytes_of(tensor, dtype)?.into(), ..proto },
    })
}

/// The bytes of elements of a type without a list of its own.
fn bytes_of(tensor: &Kept, dtype: DType) -> Result<Vec<u8>, KernelError> {
    if dtype.size().is_none() || dtype.needs_drop() {
        return Err(KernelError::unimplemented(format!(
            "a variant with a tensor of {dtype} cannot be saved: expected elements of whole bytes"
        )));
    }
    growth::copied(tensor.bytes()?)
}
