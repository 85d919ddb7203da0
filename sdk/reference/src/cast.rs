//! `Cast` between `bool`, integers and floats.
//!
//! - integer to integer keeps the low bits;
//! - integer or `f64` to a 16-bit float rounds to `f32` first, as TensorFlow does;
//! - float to integer drops the fraction. What does not fit is undefined in TensorFlow; here it saturates, and
//!   NaN gives 0;
//! - to `bool`: whether the value is not 0 (NaN is not);
//! - from `bool`: 0 or 1.
//!
//! With `Truncate`, a float loses the bits that the narrower mantissa has no room for before it is rounded:
//! `f64` to `f32` and `half`, and `f32` to `half` and `bfloat16`, as in TensorFlow, which rounds all other
//! pairs.

use half::{bf16, f16};
use tenon_framework::element::Element;

/// A value on its way from one type to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// From an integer or `bool`.
    Integer(i128),
    /// From `f32` or a 16-bit float.
    Single(f32),
    /// From `f64`.
    Double(f64),
}

impl Value {
    /// As `f32`, rounded.
    fn single(self) -> f32 {
        match self {
            Value::Integer(x) => x as f32,
            Value::Single(x) => x,
            Value::Double(x) => x as f32,
        }
    }

    /// Without the low bits of the mantissa that a type with `to` bits of mantissa lacks.
    fn truncated(self, to: u32) -> Value {
        match self {
            Value::Single(x) if !x.is_nan() => {
                Value::Single(f32::from_bits(x.to_bits() >> (23 - to) << (23 - to)))
            }
            Value::Double(x) if !x.is_nan() => {
                Value::Double(f64::from_bits(x.to_bits() >> (52 - to) << (52 - to)))
            }
            _ => self,
        }
    }
}

/// A type that `Cast` takes and gives.
pub trait CastElement: Element {
    /// The value, exactly.
    fn value(self) -> Value;
    /// Converts by the rules above.
    fn from_value(value: Value) -> Self;
}

macro_rules! cast_integers {
    ($($ty:ty),*) => {$(
        impl CastElement for $ty {
            fn value(self) -> Value {
                Value::Integer(i128::from(self))
            }
            fn from_value(value: Value) -> $ty {
                match value {
                    Value::Integer(x) => x as $ty,
                    Value::Single(x) => x as $ty,
                    Value::Double(x) => x as $ty,
                }
            }
        }
    )*};
}

cast_integers!(i8, i16, i32, i64, u8, u16, u32, u64);

impl CastElement for bool {
    fn value(self) -> Value {
        Value::Integer(i128::from(self))
    }
    fn from_value(value: Value) -> bool {
        match value {
            Value::Integer(x) => x != 0,
            Value::Single(x) => x != 0.0,
            Value::Double(x) => x != 0.0,
        }
    }
}

impl CastElement for f64 {
    fn value(self) -> Value {
        Value::Double(self)
    }
    fn from_value(value: Value) -> f64 {
        match value {
            Value::Integer(x) => x as f64,
            Value::Single(x) => f64::from(x),
            Value::Double(x) => x,
        }
    }
}

macro_rules! cast_floats {
    ($($ty:ident: $value:expr, $from:expr;)*) => {$(
        impl CastElement for $ty {
            fn value(self) -> Value {
                Value::Single($value(self))
            }
            fn from_value(value: Value) -> $ty {
                $from(value.single())
            }
        }
    )*};
}

cast_floats! {
    f32: |x| x, |x| x;
    f16: f16::to_f32, f16::from_f32;
    bf16: bf16::to_f32, bf16::from_f32;
}

/// Bits of mantissa that `Truncate` keeps from `S` to `D`; `None` for pairs that it leaves alone.
fn kept_bits<S: Element, D: Element>() -> Option<u32> {
    use tenon_framework::DType;
    match (S::DTYPE, D::DTYPE) {
        (DType::DOUBLE, DType::FLOAT) => Some(23),
        (DType::DOUBLE | DType::FLOAT, DType::HALF) => Some(10),
        (DType::DOUBLE | DType::FLOAT, DType::BFLOAT16) => Some(7),
        _ => None,
    }
}

/// Writes every element of `x` to `y` as the other type. `truncate` is the attribute `Truncate`.
pub fn cast<S: CastElement, D: CastElement>(x: &[S], y: &mut [D], truncate: bool) {
    let kept = kept_bits::<S, D>().filter(|_| truncate);
    super::math_unary::map(x, y, |x| {
        let value = x.value();
        D::from_value(kept.map_or(value, |bits| value.truncated(bits)))
    });
}
