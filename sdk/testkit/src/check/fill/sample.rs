//! What the recipes need to know of an element type.

use super::random::Random;
use crate::float::Format;
use half::{bf16, f16};
use tenon_framework::{DType, element::Element};

/// An element type of which values are drawn.
pub(super) trait Sample: Element {
    /// Ordinary values, with special ones between them.
    const ORDINARY: (f64, f64);
    /// A number to which [`Sample::HALF_STEP`] adds nothing in a sum that is kept in this type: the addend is
    /// half of the distance to the next number, and ties round to the even one, which this is.
    const LARGE: Self;
    /// See [`Sample::LARGE`].
    const HALF_STEP: Self;

    /// Of [low, high), rounded to the type.
    fn between(low: f64, high: f64, random: &mut Random) -> Self;

    /// An integer as this type; what does not fit becomes the nearest number that does.
    fn of_integer(value: i64) -> Self;

    /// A number as this type, rounded.
    fn of_real(value: f64) -> Self;

    /// Values at which kernels go wrong.
    fn specials() -> Vec<Self>;

    /// Of a floating type a number of either sign of which the square overflows, and which is itself far from the
    /// end of the range; of other types an ordinary one.
    fn huge(random: &mut Random) -> Self {
        Self::between(Self::ORDINARY.0, Self::ORDINARY.1, random)
    }
}

/// Exponents of huge numbers, as parts of the greatest one: a half is where squares begin to overflow.
const HUGE: (f64, f64) = (0.51, 0.78);

macro_rules! floats {
    ($($ty:ident, $dtype:ident, $bits:ident, $large:expr, $half_step:expr, $of_f64:expr;)*) => {$(
        impl Sample for $ty {
            const ORDINARY: (f64, f64) = (-2.0, 2.0);
            const LARGE: $ty = $large;
            const HALF_STEP: $ty = $half_step;

            fn between(low: f64, high: f64, random: &mut Random) -> $ty {
                ($of_f64)(low + random.unit() * (high - low))
            }

            fn of_integer(value: i64) -> $ty {
                ($of_f64)(value as f64)
            }

            fn of_real(value: f64) -> $ty {
                ($of_f64)(value)
            }

            fn specials() -> Vec<$ty> {
                special_bits(DType::$dtype).into_iter().map(|bits| $ty::from_bits(bits as $bits)).collect()
            }

            fn huge(random: &mut Random) -> $ty {
                let most = Format::of(DType::$dtype).map_or(0.0, |format| format.greatest().log2());
                let part = HUGE.0 + random.unit() * (HUGE.1 - HUGE.0);
                let sign = if random.word() >> 63 == 0 { 1.0 } else { -1.0 };
                ($of_f64)(sign * (part * most).exp2())
            }
        }
    )*};
}

floats! {
    // A half-precision sum stops at 2: 2 + 2^-10 is a tie between 2 and 2 + 2^-9.
    f16, HALF, u16, f16::from_f32_const(2.0), f16::from_bits(0x1400), f16::from_f64;
    // 2 + 2^-7 is a tie between 2 and 2 + 2^-6.
    bf16, BFLOAT16, u16, bf16::from_f32_const(2.0), bf16::from_bits(0x3c00), bf16::from_f64;
    // 2^24 + 1 is a tie between 2^24 and 2^24 + 2.
    f32, FLOAT, u32, 16_777_216.0, 1.0, |x| x as f32;
    f64, DOUBLE, u64, 9_007_199_254_740_992.0, 1.0, |x| x;
}

/// Bits of the special numbers of a format: zeros, denormals and normal numbers at the ends of their ranges,
/// infinities and NaN, of both signs; numbers about 1, and those from which on integers are not exact.
fn special_bits(dtype: DType) -> Vec<u64> {
    let Some(format) = Format::of(dtype) else { return Vec::new() };
    let (sign, infinity) = (format.sign(), format.infinity());
    let step = format.normal();
    let one = format.one();
    let precise = one + u64::from(format.mantissa() + 1) * step;
    let quiet = infinity | (step >> 1);
    let magnitudes = [
        0,
        infinity,
        one,
        quiet,
        1,
        infinity - 1,
        step,
        step - 1,
        one + 1,
        one - 1,
        precise,
        one - step,
        quiet | 1,
    ];
    magnitudes.iter().flat_map(|&bits| [bits, bits | sign]).collect()
}

macro_rules! integers {
    ($($ty:ident),*) => {$(
        impl Sample for $ty {
            const ORDINARY: (f64, f64) = (if $ty::MIN == 0 { 0.0 } else { -8.0 }, 8.0);
            const LARGE: $ty = 2;
            const HALF_STEP: $ty = 1;

            fn between(low: f64, high: f64, random: &mut Random) -> $ty {
                (low + random.unit() * (high - low)).floor() as $ty
            }

            fn of_integer(value: i64) -> $ty {
                let least = i128::from($ty::MIN);
                i128::from(value).clamp(least, i128::from($ty::MAX)) as $ty
            }

            fn of_real(value: f64) -> $ty {
                value as $ty
            }

            fn specials() -> Vec<$ty> {
                let one: $ty = 1;
                vec![
                    $ty::MIN, $ty::MAX, 0, one, one.wrapping_neg(), $ty::MIN + 1, $ty::MAX - 1,
                    $ty::MAX / 2, $ty::MAX / 2 + 1, 55,
                ]
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Sample for bool {
    const ORDINARY: (f64, f64) = (0.0, 2.0);
    const LARGE: bool = true;
    const HALF_STEP: bool = false;

    fn between(_: f64, _: f64, random: &mut Random) -> bool {
        random.unit() >= 0.5
    }

    fn of_integer(value: i64) -> bool {
        value % 2 != 0
    }

    fn of_real(value: f64) -> bool {
        value != 0.0
    }

    fn specials() -> Vec<bool> {
        vec![true, true, false, false, false]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_step_adds_nothing_to_the_large_number() {
        assert_eq!(f16::LARGE + f16::HALF_STEP, f16::LARGE);
        assert_eq!(bf16::LARGE + bf16::HALF_STEP, bf16::LARGE);
        assert_eq!(f32::LARGE + f32::HALF_STEP, f32::LARGE);
        assert_eq!(f64::LARGE + f64::HALF_STEP, f64::LARGE);
        let wide = |x: f16| f32::from(x);
        assert!(wide(f16::LARGE) + wide(f16::HALF_STEP) > wide(f16::LARGE));
    }

    #[test]
    fn the_special_numbers_of_a_float_are_there() {
        let of: Vec<f32> = Sample::specials();
        for wanted in [
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            f32::from_bits(1),
            1.0 + f32::EPSILON,
            16_777_216.0,
            0.5,
        ] {
            assert!(of.contains(&wanted), "{wanted:e}");
        }
        assert!(of.iter().any(|x| x.is_nan()));
        assert!(of.iter().any(|x| x.to_bits() == (-0.0f32).to_bits()));
        let of: Vec<f16> = Sample::specials();
        assert!(of.contains(&f16::MAX) && of.contains(&f16::from_f32(2048.0)));
    }
}
