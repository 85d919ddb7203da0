//! Rust types of tensor elements, and the arithmetic that kernels are generic over.

use tenon_abi::DType;

/// The 16-bit floating-point types, from the crate `half`.
pub use half::{bf16, f16};
/// Complex numbers, from the crate `num-complex`.
pub use num_complex::{Complex, Complex32, Complex64};

mod quantised;

pub use quantised::{QInt8, QInt16, QInt32, QUInt8, QUInt16, Quantised};

/// A fixed-size element type.
///
/// # Safety
/// The type has the size and the layout that [`DType::bits`] of [`Element::DTYPE`] says, has no padding
/// and no destructor, and every bit pattern that the host lets into a tensor of that type is valid (for
/// `bool` the host lets only 0 and 1 in).
pub unsafe trait Element:
    Copy + Default + PartialEq + Send + Sync + std::fmt::Debug + 'static
{
    /// Its number.
    const DTYPE: DType;
}

/// The position of the first byte that is not a `bool`, that is, neither 0 nor 1.
pub fn invalid_bool(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 4096;
    // A block is examined without an early exit, so that the loop is vectorised.
    let has_other = |block: &[u8]| block.iter().fold(0, |all, &byte| all | byte) > 1;
    let first = bytes.chunks(BLOCK).position(has_other)? * BLOCK;
    bytes[first..].iter().position(|&byte| byte > 1).map(|at| first + at)
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident),* $(,)?) => {
        // SAFETY: sizes agree with `DType::bits` (tested), and the types are plain numbers or transparent wrappers of one.
        $(unsafe impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
        })*

        #[cfg(test)]
        const SIZES: &[(DType, usize)] = &[$((DType::$dtype, size_of::<$ty>())),*];
    };
}

elements! {
    bool => BOOL, i8 => INT8, i16 => INT16, i32 => INT32, i64 => INT64,
    u8 => UINT8, u16 => UINT16, u32 => UINT32, u64 => UINT64,
    f16 => HALF, bf16 => BFLOAT16, f32 => FLOAT, f64 => DOUBLE,
    Complex<f32> => COMPLEX64, Complex<f64> => COMPLEX128,
    QInt8 => QINT8, QInt16 => QINT16, QInt32 => QINT32, QUInt8 => QUINT8, QUInt16 => QUINT16,
}

/// A real number type with TensorFlow's arithmetic: integers wrap, 16-bit floats compute in `f32` and
/// round once.
pub trait Number: Element + PartialOrd {
    /// Type in which sums and products of many terms are kept: `f32` for 16-bit floats, else itself.
    type Accumulator: Number;
    /// Whether the type has a fraction.
    const IS_FLOAT: bool;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Smallest value; negative infinity for floats.
    const LOWEST: Self;
    /// Largest value; infinity for floats.
    const HIGHEST: Self;

    /// `self + other`.
    fn add(self, other: Self) -> Self;
    /// `self - other`.
    fn sub(self, other: Self) -> Self;
    /// `self * other`.
    fn mul(self, other: Self) -> Self;
    /// `-self`.
    fn neg(self) -> Self;
    /// Whether this is NaN.
    fn is_nan(self) -> bool;
    /// Widens for accumulation.
    fn widen(self) -> Self::Accumulator;
    /// Rounds an accumulated value back.
    fn narrow(value: Self::Accumulator) -> Self;
    /// As a double; integers beyond 2^53 are rounded.
    fn to_f64(self) -> f64;
    /// From a double, as `as` converts.
    fn from_f64(value: f64) -> Self;
}

macro_rules! integer_numbers {
    ($($ty:ty),*) => {$(
        impl Number for $ty {
            type Accumulator = $ty;
            const IS_FLOAT: bool = false;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$ty>::MIN;
            const HIGHEST: Self = <$ty>::MAX;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
            #[inline(always)]
            fn widen(self) -> Self { self }
            #[inline(always)]
            fn narrow(value: Self) -> Self { value }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $ty }
        }
    )*};
}

integer_numbers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! float_numbers {
    ($($ty:ident, $wide:ty, $one:expr, $widen:expr, $narrow:expr;)*) => {$(
        impl Number for $ty {
            type Accumulator = $wide;
            const IS_FLOAT: bool = true;
            const ZERO: Self = $ty::from_bits(0);
            const ONE: Self = $one;
            const LOWEST: Self = $ty::NEG_INFINITY;
            const HIGHEST: Self = $ty::INFINITY;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn neg(self) -> Self { -self }
            #[inline(always)]
            fn is_nan(self) -> bool { self != self }
            #[inline(always)]
            fn widen(self) -> $wide { ($widen)(self) }
            #[inline(always)]
            fn narrow(value: $wide) -> Self { ($narrow)(value) }
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from(self) }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { float_from_f64!($ty, value) }
        }
    )*};
}

macro_rules! float_from_f64 {
    (f32, $value:expr) => {
        $value as f32
    };
    (f64, $value:expr) => {
        $value
    };
    ($ty:ident, $value:expr) => {
        $ty::from_f64($value)
    };
}

float_numbers! {
    f32, f32, 1.0, |x| x, |x| x;
    f64, f64, 1.0, |x| x, |x| x;
    f16, f32, f16::ONE, f16::to_f32, f16::from_f32;
    bf16, f32, bf16::ONE, bf16::to_f32, bf16::from_f32;
}

/// A float type. `Accumulator` is `f32` or `f64`, in which elementary functions are computed.
pub trait Float: Number<Accumulator = Self::Wide> {
    /// `f32` or `f64`.
    type Wide: Wide;
}

impl Float for f32 {
    type Wide = f32;
}
impl Float for f64 {
    type Wide = f64;
}
impl Float for f16 {
    type Wide = f32;
}
impl Float for bf16 {
    type Wide = f32;
}

/// Elementary functions of the two hardware float types.
pub trait Wide: Float<Wide = Self> + num_traits::Float {}
impl Wide for f32 {}
impl Wide for f64 {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_sizes_agree_with_the_numbers_of_bits() {
        for &(dtype, size) in SIZES {
            assert_eq!(dtype.size(), Some(size), "{dtype}");
        }
    }

    #[test]
    fn the_first_byte_that_is_not_a_bool_is_found_in_any_block() {
        for at in [0, 4095, 4096, 9000] {
            let mut bytes = vec![1; 9001];
            assert_eq!(invalid_bool(&bytes), None);
            (bytes[at], bytes[9000]) = (2, 255);
            assert_eq!(invalid_bool(&bytes), Some(at));
        }
        assert_eq!(invalid_bool(&[]), None);
    }

    #[test]
    fn integers_wrap_and_halves_round_once() {
        assert_eq!(Number::add(i8::MAX, 1), i8::MIN);
        let x = f16::from_f32(2048.0);
        assert_eq!(Number::add(x, f16::ONE), x);
    }
}
