//! Tensors in host memory as JSON: `{"dtype": "float", "dims": [2], "values": [1.5, "nan"]}`.
//!
//! Where numbers would not say every bit (the payload of a NaN, complex numbers), `"hex"` holds the bytes.

use crate::{
    attrs::{
        AttrProblem, boolean, bytes as text_or_bytes, bytes_json, dims, dtype, hexadecimal, number,
        number_json, problem,
    },
    float::Format,
    text::hex,
};
use half::{bf16, f16};
use serde_json::{Value, json};
use tenon_framework::{DType, Tensor, tensor::TensorError};

/// Writes a tensor, bit for bit.
///
/// # Errors
/// The tensor is not in host memory, or its elements are neither numbers nor text.
pub fn tensor_to_json(tensor: &Tensor) -> Result<Value, TensorError> {
    let (dtype, dims) = (tensor.dtype().name(), tensor.shape().dims());
    if tensor.dtype() == DType::STRING {
        let values: Vec<Value> = tensor.as_strings()?.into_iter().map(bytes_json).collect();
        return Ok(json!({ "dtype": dtype, "dims": dims, "values": values }));
    }
    let bytes = tensor.as_bytes()?;
    if let Some(values) = numbers(tensor.dtype(), bytes) {
        let json = json!({ "dtype": dtype, "dims": dims, "values": values });
        let same = |read: Tensor| read.as_bytes().is_ok_and(|read| read == bytes);
        if tensor_from_json(&json).is_ok_and(same) {
            return Ok(json);
        }
    }
    Ok(json!({ "dtype": dtype, "dims": dims, "hex": hex(bytes) }))
}

/// The elements as numbers; `None` for types that are not written so.
fn numbers(dtype: DType, bytes: &[u8]) -> Option<Vec<Value>> {
    let size = dtype.size()?;
    if let Some(format) = Format::of(dtype) {
        let read = |at| number_json(format.read(bytes, at).value());
        return Some((0..bytes.len() / size).map(read).collect());
    }
    let one = match dtype {
        DType::BOOL => |word: [u8; 8], _| json!(word[0] != 0),
        DType::UINT8 | DType::UINT16 | DType::UINT32 | DType::UINT64 => {
            |word: [u8; 8], _| json!(u64::from_le_bytes(word))
        }
        DType::INT8 | DType::INT16 | DType::INT32 | DType::INT64 => |word: [u8; 8], size: usize| {
            let unused = 64 - 8 * size as u32;
            json!(((u64::from_le_bytes(word) << unused) as i64) >> unused)
        },
        _ => return None,
    };
    let word = |element: &[u8]| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(element);
        if cfg!(target_endian = "big") {
            word[..size].reverse();
        }
        one(word, size)
    };
    Some(bytes.chunks_exact(size).map(word).collect())
}

/// Reads a tensor.
///
/// # Errors
/// The malformed part.
pub fn tensor_from_json(json: &Value) -> Result<Tensor, AttrProblem> {
    let part = |key: &str| json.get(key).unwrap_or(&Value::Null);
    let (dtype, dims) = (dtype(part("dtype"))?, dims(part("dims"))?);
    let made = |result: Result<Tensor, TensorError>| {
        result.map_err(|error| AttrProblem {
            expected: format!("the elements of a {dtype} of shape {dims:?}"),
            found: error.to_string(),
        })
    };
    if let Some(hex) = json.get("hex") {
        return made(Tensor::from_bytes(dtype, &dims, &hexadecimal(hex)?));
    }
    let values = part("values").as_array().ok_or_else(|| problem("a list", part("values")))?;
    if dtype == DType::STRING {
        let strings = values.iter().map(text_or_bytes).collect::<Result<Vec<_>, _>>()?;
        return made(Tensor::from_strings(&dims, &strings));
    }
    let mut bytes = Vec::new();
    for value in values {
        push(&mut bytes, dtype, value)?;
    }
    made(Tensor::from_bytes(dtype, &dims, &bytes))
}

/// Appends an element.
fn push(bytes: &mut Vec<u8>, dtype: DType, value: &Value) -> Result<(), AttrProblem> {
    macro_rules! integer {
        ($as:ident, $type:ty) => {{
            let fits = value.$as().and_then(|value| <$type>::try_from(value).ok());
            let value =
                fits.ok_or_else(|| problem(concat!("a value of ", stringify!($type)), value))?;
            bytes.extend_from_slice(&value.to_ne_bytes())
        }};
    }
    match dtype {
        DType::BOOL => bytes.push(u8::from(boolean(value)?)),
        DType::UINT8 => integer!(as_u64, u8),
        DType::UINT16 => integer!(as_u64, u16),
        DType::UINT32 => integer!(as_u64, u32),
        DType::UINT64 => integer!(as_u64, u64),
        DType::INT8 => integer!(as_i64, i8),
        DType::INT16 => integer!(as_i64, i16),
        DType::INT32 => integer!(as_i64, i32),
        DType::INT64 => integer!(as_i64, i64),
        DType::HALF => bytes.extend_from_slice(&f16::from_f64(number(value)?).to_ne_bytes()),
        DType::BFLOAT16 => bytes.extend_from_slice(&bf16::from_f64(number(value)?).to_ne_bytes()),
        DType::FLOAT => bytes.extend_from_slice(&(number(value)? as f32).to_ne_bytes()),
        DType::DOUBLE => bytes.extend_from_slice(&number(value)?.to_ne_bytes()),
        _ => return Err(problem("\"hex\" for elements of this type", value)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round(tensor: &Tensor) -> Value {
        let json = tensor_to_json(tensor).unwrap();
        let read: Value = serde_json::from_str(&json.to_string()).unwrap();
        let back = tensor_from_json(&read).unwrap();
        assert_eq!((back.dtype(), back.shape()), (tensor.dtype(), tensor.shape()));
        match tensor.dtype() {
            DType::STRING => assert_eq!(back.as_strings().unwrap(), tensor.as_strings().unwrap()),
            _ => assert_eq!(back.as_bytes().unwrap(), tensor.as_bytes().unwrap(), "{json}"),
        }
        json
    }

    #[test]
    fn numbers_go_round() {
        let floats = [1.5f32, -0.0, f32::NAN, f32::NEG_INFINITY, 0.1, f32::MIN_POSITIVE / 2.0];
        let json = round(&Tensor::from_slice(&[2, 3], &floats).unwrap());
        assert_eq!(json["values"][2], "nan");
        assert_eq!(json["values"][3], "-inf");
        round(&Tensor::from_slice(&[1], &[f64::MAX]).unwrap());
        round(&Tensor::from_slice(&[2], &[i8::MIN, -1]).unwrap());
        round(&Tensor::from_slice(&[2], &[i64::MIN, i64::MAX]).unwrap());
        round(&Tensor::from_slice(&[2], &[u64::MAX, 0]).unwrap());
        round(&Tensor::from_slice(&[], &[true]).unwrap());
        round(&Tensor::from_slice::<f32>(&[0, 3], &[]).unwrap());
        let halves = [f16::from_f32(1.5), f16::MIN_POSITIVE_SUBNORMAL, f16::INFINITY];
        round(&Tensor::from_slice(&[3], &halves).unwrap());
        round(&Tensor::from_slice(&[1], &[bf16::from_f32(-3.25)]).unwrap());
    }

    #[test]
    fn what_numbers_cannot_say_stands_as_bytes() {
        let json = round(&Tensor::from_slice(&[1], &[f32::from_bits(0xffc0_0001)]).unwrap());
        assert!(json.get("values").is_none(), "{json}");
        let complex: Vec<u8> = (0..8).collect();
        round(&Tensor::from_bytes(DType::COMPLEX64, &[1], &complex).unwrap());
        round(&Tensor::from_strings(&[2], &[&b"text"[..], &[0xff, 0]]).unwrap());
    }

    #[test]
    fn malformed_tensors_are_refused() {
        for text in [
            r#"{"dtype": "float", "dims": [2], "values": [1]}"#,
            r#"{"dtype": "int8", "dims": [1], "values": [200]}"#,
            r#"{"dtype": "float", "dims": [1], "hex": "0"}"#,
            r#"{"dtype": "float"}"#,
            r#"{"dims": [1], "values": [1]}"#,
        ] {
            assert!(tensor_from_json(&serde_json::from_str(text).unwrap()).is_err(), "{text}");
        }
    }
}
