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
//! `f64` to `f32` and `half`, and `f32` to `half` and `bfloat16`. All other pairs it leaves alone, `f64` to
//! `bfloat16` included, as in TensorFlow.

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
        (DType::FLOAT, DType::BFLOAT16) => Some(7),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn one<S: CastElement, D: CastElement>(x: S, truncate: bool) -> D {
        let mut y = [D::default()];
        cast(&[x], &mut y, truncate);
        y[0]
    }

    /// Bits of an `f32` cast without and with `Truncate`.
    fn bf16_bits(x: f32) -> [u16; 2] {
        [false, true].map(|truncate| one::<f32, bf16>(x, truncate).to_bits())
    }

    fn half_bits<S: CastElement>(x: S) -> [u16; 2] {
        [false, true].map(|truncate| one::<S, f16>(x, truncate).to_bits())
    }

    #[test]
    fn integers() {
        assert_eq!(one::<i32, i8>(300, false), 44);
        assert_eq!(one::<i8, u64>(-1, false), u64::MAX);
        assert_eq!(one::<bool, i16>(true, false), 1);
        assert!(one::<i64, bool>(-7, false) && !one::<i64, bool>(0, false));
        assert_eq!(one::<u64, f32>(u64::MAX, false), 18446744073709551616.0);
    }

    #[test]
    fn floats_to_integers_drop_the_fraction_and_saturate() {
        assert_eq!([1.9f32, -1.9, -0.5].map(|x| one::<f32, i32>(x, true)), [1, -1, 0]);
        assert_eq!([300.0, -300.0, f64::NAN].map(|x| one::<f64, i8>(x, false)), [127, -128, 0]);
        assert_eq!(one::<f32, u16>(-1.0, false), 0);
        assert_eq!(one::<f32, i64>(f32::INFINITY, false), i64::MAX);
        assert!(one::<f32, bool>(f32::NAN, false) && !one::<f64, bool>(-0.0, false));
    }

    #[test]
    fn half_types_round_through_f32() {
        // tf.raw_ops.Cast; a single rounding would give 0x3c01 and 0x5381.
        assert_eq!(half_bits(1.0 + 2f64.powi(-11) + 2f64.powi(-40))[0], 0x3c00);
        assert_eq!(one::<i64, bf16>((1 << 40) + (1 << 32) + 1, false).to_bits(), 0x5380);
        assert_eq!(one::<i32, f16>(70000, false), f16::INFINITY);
    }

    #[test]
    fn truncation_is_tensorflow_s() {
        assert_eq!(bf16_bits(-1.006), [0xbf81, 0xbf80]);
        assert_eq!(bf16_bits(3.4e38), [0x7f80, 0x7f7f]);
        assert_eq!(bf16_bits(f32::from_bits(0x7f800001)), [0x7fc0, 0x7fc0]);
        assert_eq!(half_bits(1.0009f32), [0x3c01, 0x3c00]);
        assert_eq!(half_bits(65535.0f32), [0x7c00, 0x7bff]);
        assert_eq!(half_bits(1e-7f32), [0x2, 0x2]);
        assert_eq!(half_bits(1.0009f64), [0x3c01, 0x3c00]);
        let double = 1.0 + 1.5 * 2f64.powi(-24);
        let single = [false, true].map(|t| one::<f64, f32>(double, t).to_bits());
        assert_eq!(single, [1065353217, 1065353216]);
        assert_eq!(one::<f64, bf16>(1.0068, true).to_bits(), 0x3f81);
        assert_eq!(one::<f16, bf16>(f16::from_f32(1.0117), true).to_bits(), 0x3f82);
    }
}
