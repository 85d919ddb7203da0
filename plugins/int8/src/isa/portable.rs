//! Plain Rust, for any CPU.

use super::{Isa, compiled};
use crate::{accumulate::Dot, pack::GROUP};

const LANES: usize = 8;

/// Eight sums.
#[derive(Clone, Copy)]
struct Portable([i32; LANES]);

// SAFETY: it needs no instructions of its own.
unsafe impl Dot for Portable {
    const LANES: usize = LANES;
    const ROWS: usize = 4;
    const WORDS: bool = false;
    const LEFT_SIGNED: bool = false;
    const FMA: bool = false;
    type Right = [[u8; GROUP]; LANES];

    #[inline(always)]
    unsafe fn load(from: *const i32) -> Self {
        // SAFETY: the caller's promise.
        Portable(unsafe { from.cast::<[i32; LANES]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[i32; LANES]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn right(from: *const u8) -> Self::Right {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<Self::Right>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn dot(mut self, left: *const u8, right: Self::Right) -> Self {
        // SAFETY: the caller's promise.
        let left = unsafe { left.cast::<[u8; GROUP]>().read_unaligned() };
        for (sum, right) in self.0.iter_mut().zip(right) {
            for (left, right) in left.into_iter().zip(right) {
                let product = i32::from(left) * i32::from(right.cast_signed());
                *sum = sum.wrapping_add(product);
            }
        }
        self
    }

    #[inline(always)]
    unsafe fn multiply<const SIGNED: bool>(mut self, bytes: *const u8, right: Self::Right) -> Self {
        // SAFETY: the caller's promise.
        let bytes = unsafe { bytes.cast::<[u8; LANES]>().read_unaligned() };
        for ((sum, byte), [low, high, ..]) in self.0.iter_mut().zip(bytes).zip(right) {
            let value = if SIGNED { byte.cast_signed().into() } else { i32::from(byte) };
            *sum = sum.wrapping_add(value * i32::from(i16::from_le_bytes([low, high])));
        }
        self
    }

    #[inline(always)]
    unsafe fn plus(mut self, other: Self) -> Self {
        for (sum, other) in self.0.iter_mut().zip(other.0) {
            *sum = sum.wrapping_add(other);
        }
        self
    }
}

compiled!(Portable);

/// What any CPU has.
pub static PORTABLE: Isa = Isa::of::<Portable>("portable", 8.0, || true);
