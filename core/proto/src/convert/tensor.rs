//! Conversions of tensors.

use prost::{Message, bytes::Bytes};
use tenon_framework::shape::Shape;
use tenon_framework::{DType, Tensor};

use super::shape::{dtype_from_proto, dtype_to_proto, full_shape_from_proto, shape_to_proto};
use super::{ConvertError, Decoder};
use crate::TensorProto;

impl Decoder<'_> {
    /// Reads a tensor into host memory. Values are in `tensor_content`, or in the list of their
    /// type; if the list is shorter than the shape its last value repeats, and an empty one means
    /// zeros (TensorFlow's `Tensor::FromProto`).
    ///
    /// # Errors
    /// A type without values (resource, variant, types that only have a number), an incomplete
    /// shape, data whose length does not match the shape, values that do not fit the type, bools
    /// other than 0 and 1, more bytes of repeated values than this decoder's limit allows.
    pub fn tensor(&mut self, proto: &TensorProto) -> Result<Tensor, ConvertError> {
        let dtype = dtype_from_proto(proto.dtype)?;
        if dtype.is_ref() {
            return Err(ConvertError::Reference { found: dtype });
        }
        let shape = full_shape_from_proto(proto.tensor_shape.as_ref())?;
        match dtype {
            DType::STRING if proto.tensor_content.is_empty() => {
                // TensorFlow's client gives a value for strings that are not there.
                let count = if shape.elements() == 0 { 0 } else { proto.string_val.len() };
                self.repeated_strings(&proto.string_val[..count], shape)
            }
            DType::STRING => packed_strings(&proto.tensor_content, shape),
            _ if proto.tensor_content.is_empty() => {
                let (values, size) = listed(proto, dtype)?;
                self.repeated(dtype, shape, values, size)
            }
            _ => packed(dtype, shape, &proto.tensor_content),
        }
    }

    /// A tensor of these values, the last one repeated as often as the shape requires.
    fn repeated(
        &mut self,
        dtype: DType,
        shape: Shape,
        mut bytes: Vec<u8>,
        size: usize,
    ) -> Result<Tensor, ConvertError> {
        let found = bytes.len() / size;
        let missing = missing_values(dtype, shape, found)?;
        if missing > 0 {
            let extra = missing.checked_mul(size);
            self.expand(extra, || format!("a tensor of {dtype} {shape} from {found} values"))?;
            if bytes.is_empty() {
                bytes.resize(missing * size, 0);
            } else {
                repeat_last(&mut bytes, size, missing * size);
            }
        }
        Ok(Tensor::from_bytes(dtype, shape.dims(), &bytes)?)
    }

    fn repeated_strings(
        &mut self,
        values: &[Vec<u8>],
        shape: Shape,
    ) -> Result<Tensor, ConvertError> {
        let missing = missing_values(DType::STRING, shape, values.len())?;
        let last = values.last().map(Vec::as_slice).unwrap_or_default();
        let each = last.len().saturating_add(DType::STRING.size().unwrap_or(0));
        self.expand(missing.checked_mul(each), || {
            format!("a tensor of string {shape} from {} values", values.len())
        })?;
        let all: Vec<&[u8]> =
            values.iter().map(Vec::as_slice).chain(std::iter::repeat_n(last, missing)).collect();
        Ok(Tensor::from_strings(shape.dims(), &all)?)
    }
}

/// Number of elements without a value of their own.
fn missing_values(dtype: DType, shape: Shape, found: usize) -> Result<usize, ConvertError> {
    let expected = shape.elements();
    expected.checked_sub(found).ok_or(ConvertError::TooManyValues {
        dtype,
        shape: shape.into(),
        expected,
        found,
    })
}

/// Appends `extra` bytes that repeat the last `size` ones; `extra` is a multiple of `size`.
fn repeat_last(bytes: &mut Vec<u8>, size: usize, extra: usize) {
    let start = bytes.len() - size;
    let end = bytes.len() + extra;
    bytes.reserve_exact(extra);
    // The repeated part doubles with every copy.
    while bytes.len() < end {
        let len = (bytes.len() - start).min(end - bytes.len());
        bytes.extend_from_within(start..start + len);
    }
}

fn packed(dtype: DType, shape: Shape, content: &[u8]) -> Result<Tensor, ConvertError> {
    let size = value_size(dtype)?;
    let expected = shape.elements().saturating_mul(size);
    if content.len() != expected {
        return Err(ConvertError::ContentLength {
            dtype,
            shape: shape.into(),
            expected,
            found: content.len(),
        });
    }
    Ok(Tensor::from_bytes(dtype, shape.dims(), content)?)
}

/// Size of one value in bytes.
fn value_size(dtype: DType) -> Result<usize, ConvertError> {
    match dtype.size() {
        Some(size) if !dtype.is_reserved() && !dtype.needs_drop() => Ok(size),
        _ => Err(ConvertError::Unsupported { dtype }),
    }
}

/// Strings in `tensor_content`: every length as a varint, then the bytes (TensorFlow's
/// `EncodeStringList`).
fn packed_strings(content: &[u8], shape: Shape) -> Result<Tensor, ConvertError> {
    let expected = shape.elements();
    let fail = |problem| ConvertError::StringContent { shape: shape.into(), expected, problem };
    // Each length takes at least a byte, so that the vector below is no larger than the data.
    if expected > content.len() {
        return Err(fail("fewer bytes than lengths"));
    }
    let mut rest = content;
    let mut lengths = Vec::with_capacity(expected);
    for _ in 0..expected {
        let length = prost::encoding::decode_varint(&mut rest)
            .map_err(|_| fail("a length that is not a varint"))?;
        lengths.push(usize::try_from(length).map_err(|_| fail("a length beyond the data"))?);
    }
    let mut strings = Vec::with_capacity(expected);
    for length in lengths {
        let (string, tail) =
            rest.split_at_checked(length).ok_or_else(|| fail("a length beyond the data"))?;
        strings.push(string);
        rest = tail;
    }
    if !rest.is_empty() {
        return Err(fail("bytes after the last string"));
    }
    Ok(Tensor::from_strings(shape.dims(), &strings)?)
}

/// The listed values as bytes in native order, and the size of one.
fn listed(proto: &TensorProto, dtype: DType) -> Result<(Vec<u8>, usize), ConvertError> {
    let size = value_size(dtype)?;
    let ints = &proto.int_val;
    let bytes = match dtype {
        DType::FLOAT => flat(&proto.float_val, |v| v.to_ne_bytes()),
        DType::DOUBLE => flat(&proto.double_val, |v| v.to_ne_bytes()),
        DType::INT64 => flat(&proto.int64_val, |v| v.to_ne_bytes()),
        DType::UINT64 => flat(&proto.uint64_val, |v| v.to_ne_bytes()),
        DType::UINT32 => flat(&proto.uint32_val, |v| v.to_ne_bytes()),
        DType::BOOL => flat(&proto.bool_val, |v| [u8::from(v)]),
        DType::COMPLEX64 => flat(pairs(&proto.scomplex_val, dtype)?, |v| v.to_ne_bytes()),
        DType::COMPLEX128 => flat(pairs(&proto.dcomplex_val, dtype)?, |v| v.to_ne_bytes()),
        DType::INT32 | DType::QINT32 => flat(ints, |v| v.to_ne_bytes()),
        DType::INT16 | DType::QINT16 => {
            narrow(ints, dtype, |v| i16::try_from(v).map(i16::to_ne_bytes))?
        }
        DType::UINT16 | DType::QUINT16 => {
            narrow(ints, dtype, |v| u16::try_from(v).map(u16::to_ne_bytes))?
        }
        DType::INT8 | DType::QINT8 => {
            narrow(ints, dtype, |v| i8::try_from(v).map(i8::to_ne_bytes))?
        }
        DType::UINT8 | DType::QUINT8 => {
            narrow(ints, dtype, |v| u8::try_from(v).map(u8::to_ne_bytes))?
        }
        DType::HALF | DType::BFLOAT16 => narrow(&proto.half_val, dtype, half_bits)?,
        _ => return Err(ConvertError::Unsupported { dtype }),
    };
    Ok((bytes, size))
}

/// The low 16 bits, which some writers sign-extend.
fn half_bits(value: i32) -> Result<[u8; 2], std::num::TryFromIntError> {
    match i16::try_from(value) {
        Ok(bits) => Ok(bits.to_ne_bytes()),
        Err(_) => u16::try_from(value).map(u16::to_ne_bytes),
    }
}

fn pairs<T>(values: &[T], dtype: DType) -> Result<&[T], ConvertError> {
    if values.len().is_multiple_of(2) {
        Ok(values)
    } else {
        Err(ConvertError::OddComplex { dtype, found: values.len() })
    }
}

fn flat<S: Copy, const N: usize>(values: &[S], bytes: impl Fn(S) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| bytes(value)).collect()
}

fn narrow<E, const N: usize>(
    values: &[i32],
    dtype: DType,
    bytes: impl Fn(i32) -> Result<[u8; N], E>,
) -> Result<Vec<u8>, ConvertError> {
    let mut out = Vec::with_capacity(values.len() * N);
    for (index, &value) in values.iter().enumerate() {
        let fits = bytes(value);
        let fits =
            fits.map_err(|_| ConvertError::ValueRange { dtype, index, value: value.into() })?;
        out.extend_from_slice(&fits);
    }
    Ok(out)
}

/// Whether a message is what [`tensor_to_proto`] returns for its value: type, shape and bytes, and
/// nothing else.
#[must_use]
pub fn is_plain(proto: &TensorProto) -> bool {
    let (Some(shape), content) = (&proto.tensor_shape, &proto.tensor_content) else {
        return false;
    };
    let (dtype, tensor_shape) = (proto.dtype, Some(shape.clone()));
    let bare = TensorProto { dtype, tensor_shape, ..TensorProto::default() };
    let bytes = prost::encoding::key_len(4) + prost::length_delimiter_len(content.len());
    !content.is_empty()
        && dtype != dtype_to_proto(DType::STRING)
        && shape.dim.iter().all(|dim| dim.name.is_empty())
        && proto.encoded_len() == bare.encoded_len() + bytes + content.len()
}

/// A tensor whose bytes a message has.
struct Shared(Tensor);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        // Host memory of plain elements, as `content` found.
        self.0.as_bytes().unwrap_or_default()
    }
}

/// The bytes of a tensor, for a message: small ones are copied, large ones stay the tensor's.
fn content(tensor: &Tensor) -> Result<Bytes, ConvertError> {
    let bytes = tensor.as_bytes()?;
    if bytes.len() < SHARED_BYTES {
        return Ok(Bytes::copy_from_slice(bytes));
    }
    Ok(Bytes::from_owner(Shared(tensor.clone())))
}

/// Bytes from which on sharing them is cheaper than copying.
const SHARED_BYTES: usize = 4096;

/// The message of a tensor in host memory: its bytes as `tensor_content`, strings as `string_val`.
///
/// # Errors
/// Memory of a device; elements that have no message (resource, variant).
pub fn tensor_to_proto(tensor: &Tensor) -> Result<TensorProto, ConvertError> {
    let mut proto = TensorProto {
        dtype: dtype_to_proto(tensor.dtype()),
        tensor_shape: Some(shape_to_proto(&(*tensor.shape()).into())),
        ..TensorProto::default()
    };
    if tensor.dtype() == DType::STRING {
        proto.string_val = tensor.as_strings()?.into_iter().map(<[u8]>::to_vec).collect();
    } else {
        value_size(tensor.dtype())?;
        proto.tensor_content = content(tensor)?;
    }
    Ok(proto)
}
