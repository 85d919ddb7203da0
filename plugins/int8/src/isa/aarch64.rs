//! NEON, with and without the dot product. Both sides are signed.
//!
//! | | instructions for a group of each of four lanes | exact because |
//! |---|---|---|
//! | `neon_dot` | `sdot` | it adds four products in 32 bits |
//! | `neon` | two each of `smull`, `saddlp`; `addp`, `add` | products of signed bytes have 16 bits, sums are wider |

use super::{Isa, aarch64_vectors::I32x8, compiled};
use crate::{accumulate::Dot, pack::LINE};
use std::arch::{aarch64::*, asm, is_aarch64_feature_detected};

/// Implements the products of bytes in groups of four for an instruction set.
macro_rules! dot {
    ($(#[$meta:meta])* $name:ident, $add:path) => {
        $(#[$meta])*
        struct $name;

        // SAFETY: it only uses instructions of the set, which the caller guarantees.
        unsafe impl Dot for $name {
            type Sums = I32x8;
            type Right = [int8x16_t; 2];
            // 24 registers of sums, 4 right ones and a left one are 29 of 32.
            const ROWS: usize = 6;
            const WORDS: bool = false;
            const LEFT_SIGNED: bool = true;

            #[inline(always)]
            unsafe fn right(from: *const u8) -> Self::Right {
                // SAFETY: the caller guarantees that a group for each lane is readable, and that
                // the CPU has the instruction.
                unsafe { [vld1q_s8(from.cast()), vld1q_s8(from.add(16).cast())] }
            }

            #[inline(always)]
            unsafe fn dot(sums: I32x8, left: *const u8, right: Self::Right) -> I32x8 {
                let I32x8([a, b]) = sums;
                // SAFETY: the caller guarantees that `left` holds a group, and that the CPU has the
                // instructions.
                unsafe {
                    let left = vreinterpretq_s8_s32(vdupq_n_s32(left.cast::<i32>().read_unaligned()));
                    I32x8([$add(a, left, right[0]), $add(b, left, right[1])])
                }
            }

            #[inline(always)]
            unsafe fn multiply<const SIGNED: bool>(
                sums: I32x8,
                bytes: *const u8,
                right: Self::Right,
            ) -> I32x8 {
                let I32x8([a, b]) = sums;
                // SAFETY: the caller guarantees that `bytes` holds a byte for each lane, and that
                // the CPU has the instructions.
                unsafe {
                    let values = widen::<SIGNED>(bytes);
                    let words = right.map(|words| vmovn_s32(vreinterpretq_s32_s8(words)));
                    let a = vmlal_s16(a, vget_low_s16(values), words[0]);
                    I32x8([a, vmlal_s16(b, vget_high_s16(values), words[1])])
                }
            }

            #[inline(always)]
            unsafe fn pack_line(from: *const u8, flip: u8, to: *mut u8, sums: I32x8) -> I32x8 {
                // SAFETY: the caller guarantees that `from` holds a line, that `to` has room for
                // one, and that the CPU has the instructions.
                unsafe { pack_line(from, flip, to, sums) }
            }
        }
    };
}

dot! {
    /// Products of bytes in groups of four, by one instruction.
    NeonDot, sdot
}

dot! {
    /// Products of bytes in groups of four, one by one.
    Neon, dot
}

/// `sdot`, whose intrinsic in the standard library is not stable yet.
///
/// # Safety
/// - The CPU has the instruction.
#[inline(always)]
unsafe fn sdot(mut sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t {
    // SAFETY: the caller guarantees that the CPU has the instruction, which only reads and writes
    // these registers.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {right:v}.16b, {left:v}.16b",
            sums = inout(vreg) sums,
            right = in(vreg) right,
            left = in(vreg) left,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// The same result as `sdot`, by other instructions.
///
/// # Safety
/// None: every AArch64 has the instructions.
#[inline(always)]
unsafe fn dot(sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t {
    // SAFETY: the caller guarantees that the CPU has the instruction, which only reads and writes
    // these registers.
    unsafe {
        let low = vmull_s8(vget_low_s8(left), vget_low_s8(right));
        let high = vmull_high_s8(left, right);
        vaddq_s32(sums, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)))
    }
}

/// Widens eight bytes to words.
///
/// # Safety
/// - `bytes` is readable for eight bytes.
#[inline(always)]
unsafe fn widen<const SIGNED: bool>(bytes: *const u8) -> int16x8_t {
    // SAFETY: the caller guarantees that there are eight bytes; every AArch64 has the instructions.
    unsafe {
        match SIGNED {
            true => vmovl_s8(vld1_s8(bytes.cast())),
            false => vreinterpretq_s16_u16(vmovl_u8(vld1_u8(bytes))),
        }
    }
}

/// Packs a line in four quarters, summed pairwise.
///
/// # Safety
/// - The caller upholds what [`Dot::pack_line`] requires.
#[inline(always)]
unsafe fn pack_line(from: *const u8, flip: u8, to: *mut u8, sums: I32x8) -> I32x8 {
    let mut sums = sums.0;
    for at in (0..LINE).step_by(16) {
        // SAFETY: the caller guarantees that `from` holds a line, and that `to` has room for one;
        // every AArch64 has the instructions.
        unsafe {
            let x = veorq_u8(vld1q_u8(from.add(at)), vdupq_n_u8(flip));
            vst1q_u8(to.add(at), x);
            let sum = &mut sums[at / 16 % 2];
            *sum = vpadalq_s16(*sum, vpaddlq_s8(vreinterpretq_s8_u8(x)));
        }
    }
    I32x8(sums)
}

compiled!(NeonDot, "neon,dotprod");
compiled!(Neon, "neon");

/// The dot product of Armv8.2. The rates are estimates from the number of instructions: no such CPU
/// was measured.
pub static NEON_DOT: Isa =
    Isa::of::<NeonDot>("neon_dot", 60.0, || is_aarch64_feature_detected!("dotprod"));

/// The instructions of every AArch64.
pub static NEON: Isa = Isa::of::<Neon>("neon", 12.0, || true);
