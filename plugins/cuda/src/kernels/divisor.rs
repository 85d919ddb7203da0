//! `Divisor` of `dims.cuh`: division by a number that a launch does not change.

/// A divisor with what divides by it: T. Granlund and P. L. Montgomery, "Division by Invariant Integers using
/// Multiplication" (1994), figure 4.1. With s = ceil(log2 d) and w bits, magic = floor(2^w (2^s - d) / d) + 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Divisor<I> {
    pub(super) divisor: I,
    pub(super) magic: I,
    pub(super) shift: u32,
}

const _: () = assert!(size_of::<Divisor<u32>>() == 12 && size_of::<Divisor<u64>>() == 24);

/// An index type of kernels.
pub(super) trait Divide: Copy + Default {
    /// Divides numbers below half the type's range by a number from 1 to that half.
    fn divisor(by: u64) -> Divisor<Self>;
}

/// Of 1 and more.
fn shift_of(by: u64) -> u32 {
    u64::BITS - (by - 1).leading_zeros()
}

impl Divide for u32 {
    fn divisor(by: u64) -> Divisor<u32> {
        let by = by.clamp(1, 1 << 31);
        let shift = shift_of(by);
        let magic = (((1u64 << shift) - by) << 32) / by + 1;
        Divisor { divisor: by as u32, magic: magic as u32, shift }
    }
}

impl Divide for u64 {
    fn divisor(by: u64) -> Divisor<u64> {
        let by = by.clamp(1, 1 << 63);
        let shift = shift_of(by);
        let magic = (((1u128 << shift) - u128::from(by)) << 64) / u128::from(by) + 1;
        Divisor { divisor: by, magic: magic as u64, shift }
    }
}
