//! `Divisor` of `dims.cuh`: division by a number that is constant during a launch.

/// A divisor with its precomputed multiplier: T. Granlund and P. L. Montgomery, "Division by
/// Invariant Integers using Multiplication" (1994), figure 4.1. With s = ceil(log2 d) and w bits,
/// magic = floor(2^w (2^s - d) / d) + 1.
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

/// The shift for a divisor of at least 1.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn divide(n: u32, by: Divisor<u32>) -> u32 {
        let high = ((u64::from(n) * u64::from(by.magic)) >> 32) as u32;
        (high + n) >> by.shift
    }

    fn divide_long(n: u64, by: Divisor<u64>) -> u64 {
        let high = ((u128::from(n) * u128::from(by.magic)) >> 64) as u64;
        (high + n) >> by.shift
    }

    #[test]
    fn divisors_divide() {
        for d in [1, 2, 3, 5, 7, 10, 31, 32, 33, 641, 65535, 65537, (1 << 31) - 1, 1 << 31] {
            for n in [0, 1, 2, d - 1, d, d + 1, 3 * d, 1 << 30, (1 << 31) - 1] {
                let n = n.min((1 << 31) - 1);
                assert_eq!(divide(n as u32, u32::divisor(d)), (n / d) as u32, "{n} / {d}");
                let long = (n << 31) | 12345;
                assert_eq!(divide_long(long, u64::divisor(d)), long / d, "{long} / {d}");
            }
        }
        let (n, d) = ((1 << 63) - 1, (1 << 62) + 1);
        assert_eq!(divide_long(n, u64::divisor(d)), n / d);
    }
}
