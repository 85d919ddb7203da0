//! Roundings of floats in steps that every processor has for vectors. The standard library's are one instruction
//! where SSE4.1 may be assumed, and else a call for each number.

/// From here on floats are integers.
const WHOLE: f32 = (1u32 << f32::MANTISSA_DIGITS) as f32;

/// Without its fraction; the sign of 0 is kept.
#[inline(always)]
fn truncated(x: f32) -> f32 {
    (x as i32 as f32).copysign(x)
}

/// `rounded`, for numbers that are integers or none `x` itself.
#[inline(always)]
fn unless_whole(x: f32, rounded: f32) -> f32 {
    if x.abs() < WHOLE { rounded } else { x }
}

/// To the nearest integer, halves away from 0.
#[inline(always)]
pub fn round_away(x: f32) -> f32 {
    let whole = truncated(x);
    let more = if (x - whole).abs() >= 0.5 { 1f32 } else { 0.0 };
    unless_whole(x, whole + more.copysign(x))
}

/// To the nearest integer, halves to the even one.
#[inline(always)]
pub fn round_to_even(x: f32) -> f32 {
    // The sum has no bits left for a fraction.
    const NO_FRACTION: f32 = WHOLE / 2.0;
    let rounded = (x.abs() + NO_FRACTION) - NO_FRACTION;
    unless_whole(x, if x.abs() < NO_FRACTION { rounded.copysign(x) } else { x })
}

/// To the next integer below.
#[inline(always)]
pub fn floor(x: f32) -> f32 {
    let whole = truncated(x);
    unless_whole(x, if whole > x { whole - 1.0 } else { whole })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[track_caller]
    fn agree(x: f32) {
        let pairs = [
            (round_away(x), x.round()),
            (round_to_even(x), x.round_ties_even()),
            (floor(x), x.floor()),
        ];
        for (found, expected) in pairs {
            let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
            assert!(same, "{x}: {found}, not {expected}");
        }
    }

    #[test]
    fn halves_their_neighbours_and_ends_are_rounded_as_by_the_standard_library() {
        let special =
            [f32::NAN, f32::INFINITY, 0.0, 0.5, 1.5, 2.5, 1e-40, 4194303.5, 4194304.5, 8388607.5];
        let large = [8388608.0, 8388609.0, 16777215.0, 16777216.0, 2147483600.0, 4e9, f32::MAX];
        for x in special.into_iter().chain(large) {
            for near in [x, x.next_up(), x.next_down()] {
                agree(near);
                agree(-near);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bits_are_rounded_as_by_the_standard_library(bits in any::<u32>(), near in -300f32..300.0) {
            agree(f32::from_bits(bits));
            agree(near);
        }
    }
}
