//! Half and bfloat16 to float and back, in loops that vectorise.
//!
//! The conversions are integer arithmetic and selections on the bits, so that a loop over them has
//! no branch and no call; denormals of half survive where the processor flushes those of float. Many
//! halves are converted by the CPU's instructions, where it has them.

#[cfg(target_arch = "x86_64")]
mod f16c;

use crate::arch::vectorised;
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

vectorised! {
    fn each_up[](x: &[f16], y: &mut [f32]) {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = f16_up(x));
    }
}

vectorised! {
    fn each_down[](x: &[f32], y: &mut [f16]) {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = f16_down(x));
    }
}

/// Converts halves without loss: as many as both slices have.
pub fn halves_up(x: &[f16], y: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if f16c::is_supported() {
        // SAFETY: the CPU has the instructions.
        return unsafe { f16c::up(x, y) };
    }
    each_up(x, y);
}

/// Converts `columns` halves of each row without loss, from rows `stride` apart to whole rows
/// `width` apart.
///
/// Panics if `x` has too few rows, or `width` is 0.
pub fn rows_of_halves_up(x: &[f16], stride: usize, columns: usize, y: &mut [f32], width: usize) {
    #[cfg(target_arch = "x86_64")]
    if f16c::is_supported() {
        // SAFETY: the CPU has the instructions.
        return unsafe { f16c::rows_up(x, stride, columns, y, width) };
    }
    for (row, y) in y.chunks_exact_mut(width).enumerate() {
        each_up(&x[row * stride..][..columns], y);
    }
}

/// Rounds floats to halves, to nearest, ties to even: as many as both slices have.
pub fn halves_down(x: &[f32], y: &mut [f16]) {
    #[cfg(target_arch = "x86_64")]
    if f16c::is_supported() {
        // SAFETY: the CPU has the instructions.
        return unsafe { f16c::down(x, y) };
    }
    each_down(x, y);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every half, as a float and with floats between it and the next one.
    fn floats() -> Vec<f32> {
        (0..=u16::MAX)
            .flat_map(|bits| {
                let x = f16::from_bits(bits).to_f32().to_bits();
                [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff].map(|more| f32::from_bits(x | more))
            })
            .chain([1e-9, -1e-9, 1e9, f32::MIN_POSITIVE, 1e-40])
            .collect()
    }

    #[test]
    fn many_halves_are_converted_as_one_is() {
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let same = |x: f32, y: f32| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
        let short = |x: f16, y: f16| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
        for len in (0..40).chain([halves.len()]) {
            let first = (halves.len() - len) / 2;
            let (x, mut y) = (&halves[first..first + len], vec![7.0; len]);
            halves_up(x, &mut y);
            assert!(x.iter().zip(&y).all(|(&x, &y)| same(f16_up(x), y)), "{len}");
            let mut back = vec![f16::ONE; len];
            halves_down(&y, &mut back);
            assert!(x.iter().zip(&back).all(|(&x, &y)| short(x, y)), "{len}");
        }
        let x = floats();
        let mut y = vec![f16::ONE; x.len()];
        halves_down(&x, &mut y);
        for (x, y) in x.into_iter().zip(y) {
            assert!(short(f16_down(x), y), "{x:e}: {y:e}");
        }
    }

    #[test]
    fn columns_of_rows_are_converted_and_nothing_beside_them() {
        let x: Vec<f16> = (0..60).map(|i| f16::from_f32(i as f32)).collect();
        for columns in [1, 4, 7, 8, 11] {
            let mut y = vec![-1.0; 5 * 12];
            rows_of_halves_up(&x, 12, columns, &mut y, 12);
            for (at, y) in y.into_iter().enumerate() {
                assert_eq!(y, if at % 12 < columns { at as f32 } else { -1.0 });
            }
        }
    }

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
