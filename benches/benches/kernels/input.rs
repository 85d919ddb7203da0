//! Tensors and attributes of the forms: values are drawn from a range that every op takes, with both signs where
//! the op takes them, so that no branch on the values is always right.

use half::{bf16, f16};
use tenon_framework::{
    DType, Tensor,
    attr::{AttrList, AttrMap, AttrValue},
    element::Number,
};

/// From where values are drawn.
#[derive(Clone, Copy)]
pub enum Range {
    /// From -3 to 3; from 0 to 6 where the type has no sign.
    Signed,
    /// From 0.1 to 3.1; from 1 to 4 where the type has no fractions.
    Positive,
}

impl Range {
    /// The value at `unit`, which is at least 0 and below 1.
    fn at(self, unit: f64, dtype: DType) -> f64 {
        let whole = !is_float(dtype);
        match self {
            Range::Signed if is_unsigned(dtype) => (unit * 7.0).floor(),
            Range::Signed if whole => (unit * 7.0).floor() - 3.0,
            Range::Signed => unit * 6.0 - 3.0,
            Range::Positive if whole => (unit * 4.0).floor() + 1.0,
            Range::Positive => unit * 3.0 + 0.1,
        }
    }
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::HALF | DType::BFLOAT16 | DType::FLOAT | DType::DOUBLE)
}

fn is_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::UINT8 | DType::UINT16 | DType::UINT32 | DType::UINT64)
}

/// The element types that forms are made for.
pub const DTYPES: [DType; 12] = [
    DType::FLOAT,
    DType::DOUBLE,
    DType::HALF,
    DType::BFLOAT16,
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
];

/// Pseudo-random values; the same ones for the same place of the same form.
pub fn values(dtype: DType, dims: &[usize], range: Range, seed: u64) -> Tensor {
    match dtype {
        DType::FLOAT => fill::<f32>(dims, range, seed),
        DType::DOUBLE => fill::<f64>(dims, range, seed),
        DType::HALF => fill::<f16>(dims, range, seed),
        DType::BFLOAT16 => fill::<bf16>(dims, range, seed),
        DType::INT8 => fill::<i8>(dims, range, seed),
        DType::INT16 => fill::<i16>(dims, range, seed),
        DType::INT32 => fill::<i32>(dims, range, seed),
        DType::INT64 => fill::<i64>(dims, range, seed),
        DType::UINT8 => fill::<u8>(dims, range, seed),
        DType::UINT16 => fill::<u16>(dims, range, seed),
        DType::UINT32 => fill::<u32>(dims, range, seed),
        DType::UINT64 => fill::<u64>(dims, range, seed),
        other => panic!("no values are made for {other}"),
    }
}

fn fill<T: Number>(dims: &[usize], range: Range, seed: u64) -> Tensor {
    // Knuth's generator of 64 bits; its upper half is random enough for timing.
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        T::from_f64(range.at((state >> 32) as f64 / 4_294_967_296.0, T::DTYPE))
    };
    let values: Vec<T> = (0..dims.iter().product()).map(|_| next()).collect();
    tensor(dims, &values)
}

fn tensor<T: Number>(dims: &[usize], values: &[T]) -> Tensor {
    let dims: Vec<i64> = dims.iter().map(|&dim| dim as i64).collect();
    Tensor::from_slice(&dims, values).expect("as many values as the shape has")
}

/// A vector of int32, such as axes.
pub fn numbers(values: &[i32]) -> Tensor {
    tensor(&[values.len()], values)
}

/// A matrix of int32 with two columns.
pub fn pairs(values: &[[i32; 2]]) -> Tensor {
    tensor(&[values.len(), 2], values.as_flattened())
}

/// A scalar of int32.
pub fn number(value: i32) -> Tensor {
    tensor(&[], &[value])
}

/// Attributes by name.
pub fn attrs<const N: usize>(pairs: [(&str, AttrValue); N]) -> AttrMap {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An attribute of kind `string`.
pub fn text(value: &str) -> AttrValue {
    AttrValue::String(value.as_bytes().to_vec())
}

/// An attribute of kind `list(int)`.
pub fn ints(values: &[i64]) -> AttrValue {
    AttrValue::List(AttrList::Int(values.to_vec()))
}
