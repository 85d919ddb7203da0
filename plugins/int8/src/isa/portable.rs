//! Plain Rust, for any CPU.

use super::{Isa, compiled};
use crate::{
    accumulate::Dot,
    pack::{GROUP, LINE},
    vector::{VECTORS, Vector},
};
use std::array::from_fn;
use tenon_sdk::fixed_point::saturating_rounding_doubling_high_mul;

const LANES: usize = 8;

/// Eight sums.
#[derive(Clone, Copy)]
struct Plain([i32; LANES]);

impl Plain {
    #[inline(always)]
    fn with(self, other: Plain, f: impl Fn(i32, i32) -> i32) -> Plain {
        Plain(from_fn(|at| f(self.0[at], other.0[at])))
    }
}

/// Applies a function lane by lane.
#[inline(always)]
fn zip(a: [f32; LANES], b: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    from_fn(|at| f(a[at], b[at]))
}

// SAFETY: it needs no special instructions.
#[expect(clippy::undocumented_unsafe_blocks, reason = "each is the caller's promise")]
unsafe impl Vector for Plain {
    const LANES: usize = LANES;
    type Floats = [f32; LANES];
    type Mantissas = Plain;

    #[inline(always)]
    unsafe fn load(from: *const i32) -> Self {
        Plain(unsafe { from.cast::<[i32; LANES]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut i32) {
        unsafe { to.cast::<[i32; LANES]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn splat(value: i32) -> Self {
        Plain([value; LANES])
    }
    #[inline(always)]
    unsafe fn totals(vectors: [Self; 4]) -> [i32; 4] {
        vectors.map(|x| x.0.into_iter().fold(0, i32::wrapping_add))
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        self.with(other, i32::wrapping_add)
    }
    #[inline(always)]
    unsafe fn times(self, other: Self) -> Self {
        self.with(other, i32::wrapping_mul)
    }
    #[inline(always)]
    unsafe fn at_least(self, low: Self) -> Self {
        self.with(low, i32::max)
    }
    #[inline(always)]
    unsafe fn at_most(self, high: Self) -> Self {
        self.with(high, i32::min)
    }
    #[inline(always)]
    unsafe fn shift_right(self, by: Self) -> Self {
        self.with(by, |x, by| x >> (by & 31))
    }

    #[inline(always)]
    unsafe fn mantissas(from: *const i32) -> Self {
        unsafe { Self::load(from) }
    }
    #[inline(always)]
    unsafe fn high_mul(self, by: Self) -> Self {
        self.with(by, saturating_rounding_doubling_high_mul)
    }

    #[inline(always)]
    unsafe fn load_floats(from: *const f32) -> Self::Floats {
        unsafe { from.cast::<Self::Floats>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_floats(floats: Self::Floats, to: *mut f32) {
        unsafe { to.cast::<Self::Floats>().write_unaligned(floats) }
    }
    #[inline(always)]
    unsafe fn splat_float(value: f32) -> Self::Floats {
        [value; LANES]
    }
    #[inline(always)]
    unsafe fn to_floats(self) -> Self::Floats {
        self.0.map(|x| x as f32)
    }
    #[inline(always)]
    unsafe fn from_bits(floats: Self::Floats) -> Self {
        Plain(floats.map(|x| x.to_bits().cast_signed()))
    }
    #[inline(always)]
    unsafe fn times_float(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        from_fn(|at| a[at].mul_add(b[at], c[at]))
    }
    #[inline(always)]
    unsafe fn at_least_float(a: Self::Floats, low: Self::Floats) -> Self::Floats {
        zip(a, low, f32::max)
    }
    #[inline(always)]
    unsafe fn at_most_float(a: Self::Floats, high: Self::Floats) -> Self::Floats {
        zip(a, high, f32::min)
    }

    #[inline(always)]
    unsafe fn narrow<const BOUNDED: bool>(
        rows: [[Self; VECTORS]; 2],
        most: u8,
        base: u8,
        to: [*mut u8; 2],
    ) {
        for (row, to) in rows.iter().zip(to) {
            let step = |step: i32| (step.clamp(0, most.into()) as u8).wrapping_add(base);
            let bytes: [u8; VECTORS * LANES] = from_fn(|at| step(row[at / LANES].0[at % LANES]));
            unsafe { to.cast::<[u8; VECTORS * LANES]>().write_unaligned(bytes) };
        }
    }
    #[inline(always)]
    unsafe fn narrow_words(row: [Self; VECTORS], most: u16, base: u16, to: *mut u8) {
        let step = |step: i32| (step.clamp(0, most.into()) as u16).wrapping_add(base);
        let words: [u16; VECTORS * LANES] = from_fn(|at| step(row[at / LANES].0[at % LANES]));
        unsafe { to.cast::<[u16; VECTORS * LANES]>().write_unaligned(words) };
    }
}

/// Products of bytes in groups of four.
struct Portable;

// SAFETY: it needs no special instructions.
unsafe impl Dot for Portable {
    type Sums = Plain;
    type Right = [[u8; GROUP]; LANES];
    const ROWS: usize = 4;
    const WORDS: bool = false;
    const LEFT_SIGNED: bool = false;

    #[inline(always)]
    unsafe fn right(from: *const u8) -> Self::Right {
        // SAFETY: the caller guarantees that a group for each lane is readable.
        unsafe { from.cast::<Self::Right>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn dot(mut sums: Plain, left: *const u8, right: Self::Right) -> Plain {
        // SAFETY: the caller guarantees that `left` holds a group.
        let left = unsafe { left.cast::<[u8; GROUP]>().read_unaligned() };
        for (sum, right) in sums.0.iter_mut().zip(right) {
            for (left, right) in left.into_iter().zip(right) {
                let product = i32::from(left) * i32::from(right.cast_signed());
                *sum = sum.wrapping_add(product);
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn multiply<const SIGNED: bool>(
        mut sums: Plain,
        bytes: *const u8,
        right: Self::Right,
    ) -> Plain {
        // SAFETY: the caller guarantees that `bytes` holds a byte for each lane.
        let bytes = unsafe { bytes.cast::<[u8; LANES]>().read_unaligned() };
        for ((sum, byte), [low, high, ..]) in sums.0.iter_mut().zip(bytes).zip(right) {
            let value = if SIGNED { byte.cast_signed().into() } else { i32::from(byte) };
            *sum = sum.wrapping_add(value * i32::from(i16::from_le_bytes([low, high])));
        }
        sums
    }

    #[inline(always)]
    unsafe fn pack_line(from: *const u8, flip: u8, to: *mut u8, mut sums: Plain) -> Plain {
        // SAFETY: the caller guarantees that `from` holds a line, and that `to` has room for one.
        let values = unsafe { from.cast::<[u8; LINE]>().read_unaligned() }.map(|x| x ^ flip);
        // SAFETY: the caller guarantees that `to` has room for a line.
        unsafe { to.cast::<[u8; LINE]>().write_unaligned(values) };
        for values in values.as_chunks::<LANES>().0 {
            sums = Plain(from_fn(|at| sums.0[at].wrapping_add(values[at].into())));
        }
        sums
    }
}

compiled!(Portable);

/// The instructions of any CPU.
pub static PORTABLE: Isa = Isa::of::<Portable>("portable", 8.0, || true);
