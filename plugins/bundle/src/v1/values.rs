//! Elements in the typed lists of a `TensorProto`.

use crate::{Content, strings::Strings};
use tenon_proto::TensorProto;
use tenon_sdk::{DType, KernelError, growth};

/// Why a message has not the elements of a tensor.
pub enum Wrong {
    Damaged(String),
    Memory(KernelError),
}

impl From<KernelError> for Wrong {
    fn from(error: KernelError) -> Wrong {
        Wrong::Memory(error)
    }
}

/// Whether V1 files have a place for a type, as TensorFlow writes them.
pub fn is_supported(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::FLOAT
            | DType::DOUBLE
            | DType::INT32
            | DType::UINT8
            | DType::INT16
            | DType::INT8
            | DType::STRING
            | DType::COMPLEX64
            | DType::INT64
            | DType::BOOL
            | DType::QINT8
            | DType::QUINT8
            | DType::QINT32
            | DType::UINT16
            | DType::COMPLEX128
            | DType::HALF
    )
}

/// Numbers of `N` bytes each, in memory of their own.
fn packed<T: Copy, const N: usize>(
    values: &[T],
    bytes: impl Fn(T) -> Option<[u8; N]>,
) -> Result<Vec<u8>, Wrong> {
    let len = values.len().checked_mul(N);
    let mut out = growth::with_room(len.unwrap_or(usize::MAX))?;
    for &value in values {
        let bytes = bytes(value).ok_or_else(|| {
            Wrong::Damaged("a number of a tensor does not fit its type".to_owned())
        })?;
        out.extend_from_slice(&bytes);
    }
    Ok(out)
}

/// The elements of fixed size of a message, little-endian.
pub fn bytes_of(proto: &TensorProto, dtype: DType) -> Result<Vec<u8>, Wrong> {
    match dtype {
        DType::FLOAT => packed(&proto.float_val, |value| Some(value.to_le_bytes())),
        DType::COMPLEX64 => packed(&proto.scomplex_val, |value| Some(value.to_le_bytes())),
        DType::DOUBLE => packed(&proto.double_val, |value| Some(value.to_le_bytes())),
        DType::COMPLEX128 => packed(&proto.dcomplex_val, |value| Some(value.to_le_bytes())),
        DType::INT64 => packed(&proto.int64_val, |value| Some(value.to_le_bytes())),
        DType::BOOL => packed(&proto.bool_val, |value| Some([u8::from(value)])),
        DType::INT32 | DType::QINT32 => packed(&proto.int_val, |value| Some(value.to_le_bytes())),
        DType::INT16 => {
            packed(&proto.int_val, |value| Some(i16::try_from(value).ok()?.to_le_bytes()))
        }
        DType::UINT16 => {
            packed(&proto.int_val, |value| Some(u16::try_from(value).ok()?.to_le_bytes()))
        }
        DType::HALF => {
            packed(&proto.half_val, |value| Some(u16::try_from(value).ok()?.to_le_bytes()))
        }
        DType::INT8 | DType::QINT8 => {
            packed(&proto.int_val, |value| Some(i8::try_from(value).ok()?.to_le_bytes()))
        }
        DType::UINT8 | DType::QUINT8 => {
            packed(&proto.int_val, |value| Some([u8::try_from(value).ok()?]))
        }
        other => {
            Err(Wrong::Damaged(format!("a tensor of type {}, which is not read", other.name())))
        }
    }
}

/// The strings of a message.
pub fn strings_of(proto: &TensorProto) -> Result<Strings, Wrong> {
    let mut strings = Strings::default();
    proto.string_val.iter().try_for_each(|text| strings.push(text))?;
    Ok(strings)
}

fn numbers<T, const N: usize>(
    bytes: &[u8],
    number: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, KernelError> {
    growth::collected(bytes.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)))
}

/// A message with the elements of a tensor; `None` for a type that V1 files have no place for.
pub fn proto_of(dtype: DType, content: Content<'_>) -> Result<Option<TensorProto>, KernelError> {
    let mut proto = TensorProto { dtype: dtype.0 as i32, ..TensorProto::default() };
    let bytes = match content {
        Content::Bytes(bytes) => bytes,
        Content::Strings(texts) => {
            let texts = texts.iter().map(|text| growth::copied(text));
            proto.string_val = texts.collect::<Result<_, _>>()?;
            return Ok((dtype == DType::STRING).then_some(proto));
        }
    };
    match dtype {
        DType::FLOAT => proto.float_val = numbers(bytes, f32::from_le_bytes)?,
        DType::COMPLEX64 => proto.scomplex_val = numbers(bytes, f32::from_le_bytes)?,
        DType::DOUBLE => proto.double_val = numbers(bytes, f64::from_le_bytes)?,
        DType::COMPLEX128 => proto.dcomplex_val = numbers(bytes, f64::from_le_bytes)?,
        DType::INT64 => proto.int64_val = numbers(bytes, i64::from_le_bytes)?,
        DType::BOOL => proto.bool_val = numbers(bytes, |[byte]| byte != 0)?,
        DType::INT32 | DType::QINT32 => proto.int_val = numbers(bytes, i32::from_le_bytes)?,
        DType::INT16 => proto.int_val = numbers(bytes, |two| i32::from(i16::from_le_bytes(two)))?,
        DType::UINT16 => proto.int_val = numbers(bytes, |two| i32::from(u16::from_le_bytes(two)))?,
        DType::HALF => proto.half_val = numbers(bytes, |two| i32::from(u16::from_le_bytes(two)))?,
        DType::INT8 | DType::QINT8 => {
            proto.int_val = numbers(bytes, |one| i32::from(i8::from_le_bytes(one)))?;
        }
        DType::UINT8 | DType::QUINT8 => proto.int_val = numbers(bytes, |[one]| i32::from(one))?,
        _ => return Ok(None),
    }
    Ok(Some(proto))
}
