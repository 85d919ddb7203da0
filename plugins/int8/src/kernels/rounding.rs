//! Roundings of floats in steps for which every processor has vector instructions. The standard
//! library's are one instruction with SSE4.1, and otherwise a call for each number.

/// From this magnitude on floats are integers.
const WHOLE: f32 = (1u32 << f32::MANTISSA_DIGITS) as f32;

/// `x` without its fraction; the sign of 0 is preserved.
#[inline(always)]
fn truncated(x: f32) -> f32 {
    (x as i32 as f32).copysign(x)
}

/// `rounded`, or `x` itself if it is an integer, infinite or NaN.
#[inline(always)]
fn unless_whole(x: f32, rounded: f32) -> f32 {
    if x.abs() < WHOLE { rounded } else { x }
}

/// Rounds to the nearest integer, halves away from 0.
#[inline(always)]
pub fn round_away(x: f32) -> f32 {
    let whole = truncated(x);
    let more = if (x - whole).abs() >= 0.5 { 1f32 } else { 0.0 };
    unless_whole(x, whole + more.copysign(x))
}

/// Rounds to the nearest integer, halves to even.
#[inline(always)]
pub fn round_to_even(x: f32) -> f32 {
    // The sum has no bits left for a fraction.
    const NO_FRACTION: f32 = WHOLE / 2.0;
    let rounded = (x.abs() + NO_FRACTION) - NO_FRACTION;
    unless_whole(x, if x.abs() < NO_FRACTION { rounded.copysign(x) } else { x })
}

/// Rounds down to an integer.
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
