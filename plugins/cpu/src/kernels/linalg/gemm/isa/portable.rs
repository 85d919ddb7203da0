//! Tiles in arrays, which the compiler vectorises with the instructions that the target guarantees.

use super::{super::vector::Vector, compiled};
use crate::{arch::Baseline, lane::Compute};

/// Numbers in an array.
#[derive(Clone, Copy)]
pub struct Lanes<S, const N: usize>([S; N]);

// SAFETY: it only uses instructions that every CPU of the target has.
unsafe impl<S: Compute, const N: usize> Vector for Lanes<S, N> {
    type Scalar = S;
    const LANES: usize = N;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Lanes([S::ZERO; N])
    }
    #[inline(always)]
    unsafe fn spread(from: *const S) -> Self {
        // SAFETY: the caller guarantees, here and below, that pointers are valid for the numbers
        // that are read or written.
        Lanes([unsafe { *from }; N])
    }
    #[inline(always)]
    unsafe fn load(from: *const S) -> Self {
        // SAFETY: as above.
        Lanes(unsafe { from.cast::<[S; N]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut S) {
        // SAFETY: as above.
        unsafe { to.cast::<[S; N]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const S, count: usize) -> Self {
        let mut lanes = [S::ZERO; N];
        for (at, lane) in lanes.iter_mut().enumerate().take(count) {
            // SAFETY: as above.
            *lane = unsafe { *from.add(at) };
        }
        Lanes(lanes)
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut S, count: usize) {
        for (at, &lane) in self.0.iter().enumerate().take(count) {
            // SAFETY: as above.
            unsafe { to.add(at).write(lane) };
        }
    }
    #[inline(always)]
    unsafe fn plus(mut self, other: Self) -> Self {
        for (lane, other) in self.0.iter_mut().zip(other.0) {
            *lane = lane.add(other);
        }
        self
    }
    #[inline(always)]
    unsafe fn minus(mut self, other: Self) -> Self {
        for (lane, other) in self.0.iter_mut().zip(other.0) {
            *lane = lane.sub(other);
        }
        self
    }
    #[inline(always)]
    unsafe fn times(mut self, other: Self) -> Self {
        for (lane, other) in self.0.iter_mut().zip(other.0) {
            *lane = lane.mul(other);
        }
        self
    }
    #[inline(always)]
    unsafe fn at_least(mut self, low: Self) -> Self {
        for (lane, low) in self.0.iter_mut().zip(low.0) {
            *lane = if *lane < low { low } else { *lane };
        }
        self
    }
    #[inline(always)]
    unsafe fn at_most(mut self, high: Self) -> Self {
        for (lane, high) in self.0.iter_mut().zip(high.0) {
            *lane = if *lane > high { high } else { *lane };
        }
        self
    }
    #[inline(always)]
    unsafe fn mul_add(self, by: Self, mut to: Self) -> Self {
        for (lane, (factor, by)) in to.0.iter_mut().zip(self.0.into_iter().zip(by.0)) {
            *lane = factor.mul_add::<Baseline>(by, *lane);
        }
        to
    }
}

compiled! {
    /// Tiles of floats.
    PortableF32 of Lanes<f32, 4>, rows = 4, vectors = 2
}
compiled! {
    /// Tiles of doubles.
    PortableF64 of Lanes<f64, 2>, rows = 4, vectors = 2
}
