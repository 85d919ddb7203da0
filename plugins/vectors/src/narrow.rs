//! Half and bfloat16 to float and back, in loops that vectorise.
//!
//! The conversions are integer arithmetic and selections on the bits, so that a loop over them has
//! no branch and no call; denormals of half survive where the processor flushes those of float.

use tenon_sdk::{bf16, f16};

/// Converts without loss.
#[inline(always)]
pub fn bf16_up(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// Rounds to nearest, ties to even.
#[inline(always)]
pub fn bf16_down(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    // Rounding could carry a NaN into infinity.
    let quiet = bits >> 16 | 0x40;
    let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
    bf16::from_bits((if is_nan { quiet } else { rounded }) as u16)
}

/// Converts without loss.
#[inline(always)]
pub fn f16_up(value: f16) -> f32 {
    const REBIAS: u32 = (127 - 15) << 23;
    const SMALLEST_NORMAL: u32 = 113 << 23;
    let bits = u32::from(value.to_bits());
    let shifted = (bits & 0x7fff) << 13;
    let exponent = shifted & 0x0f80_0000;
    let normal = shifted + REBIAS;
    let special = normal + REBIAS;
    let denormal =
        (f32::from_bits(shifted + SMALLEST_NORMAL) - f32::from_bits(SMALLEST_NORMAL)).to_bits();
    let magnitude = if exponent == 0x0f80_0000 {
        special
    } else if exponent == 0 {
        denormal
    } else {
        normal
    };
    f32::from_bits(magnitude | (bits & 0x8000) << 16)
}

/// Rounds to nearest, ties to even.
#[inline(always)]
pub fn f16_down(value: f32) -> f16 {
    const INFINITE: u32 = (127 + 16) << 23;
    const SMALLEST_NORMAL: u32 = 113 << 23;
    // Adding this float shifts the bits of a small one to the position of half's denormals,
    // rounded.
    const ALIGN: u32 = ((127 - 15) + (23 - 10) + 1) << 23;
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let special: u32 = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let denormal =
        (f32::from_bits(magnitude) + f32::from_bits(ALIGN)).to_bits().wrapping_sub(ALIGN);
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + odd) >> 13;
    let result = if magnitude >= INFINITE {
        special
    } else if magnitude < SMALLEST_NORMAL {
        denormal
    } else {
        normal
    };
    f16::from_bits((result | bits >> 16 & 0x8000) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_that_of_the_half_crate() {
        for bits in (0..=u32::MAX).step_by(9973) {
            let x = f32::from_bits(bits);
            if x.is_nan() {
                assert!(f16_down(x).is_nan() && bf16_down(x).is_nan());
                continue;
            }
            assert_eq!(f16_down(x).to_bits(), f16::from_f32(x).to_bits(), "{x:e}");
            assert_eq!(bf16_down(x).to_bits(), bf16::from_f32(x).to_bits(), "{x:e}");
        }
    }
}
