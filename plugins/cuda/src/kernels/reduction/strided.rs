//! Strided dimensions as `dims.cuh` reads them.

use crate::kernels::divisor::{Divide, Divisor};

/// Most dimensions.
pub(super) const MAX_DIMS: usize = 8;

/// A merged dimension: how many, and how far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dim {
    /// Extent.
    pub extent: u64,
    /// Stride, in elements.
    pub stride: i64,
}

/// Dimensions of one operand, the innermost first: `Strided<I, 1>`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strided<I> {
    rank: u32,
    extents: [Divisor<I>; MAX_DIMS],
    strides: [i64; MAX_DIMS],
}

impl<I: Divide> Strided<I> {
    /// Of dimensions, the outermost first; `None` when there are more than [`MAX_DIMS`].
    pub fn new(dims: &[Dim]) -> Option<Strided<I>> {
        let (mut extents, mut strides) = ([Divisor::default(); MAX_DIMS], [0; MAX_DIMS]);
        if dims.len() > MAX_DIMS {
            return None;
        }
        for (i, dim) in dims.iter().rev().enumerate() {
            (extents[i], strides[i]) = (I::divisor(dim.extent), dim.stride);
        }
        // What has no dimensions has one element.
        extents[0] = if dims.is_empty() { I::divisor(1) } else { extents[0] };
        Some(Strided { rank: dims.len().max(1) as u32, extents, strides })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplication_divides() {
        let numbers = [1u64, 2, 3, 5, 7, 10, 127, 128, 129, 641, 65535, 65537, (1 << 31) - 1];
        for d in numbers {
            let (narrow, wide) = (u32::divisor(d), u64::divisor(d));
            for n in numbers.iter().flat_map(|n| [n - 1, *n, n * 3 % (1 << 31)]) {
                let high = (n * u64::from(narrow.magic)) >> 32;
                assert_eq!((high + n) >> narrow.shift, n / d, "{n} / {d}");
                let n = n << 31;
                let high = ((u128::from(n) * u128::from(wide.magic)) >> 64) as u64;
                assert_eq!((high + n) >> wide.shift, n / d, "{n} / {d}");
            }
        }
    }

    #[test]
    fn the_layout_is_that_of_the_source() {
        assert_eq!((size_of::<Divisor<u32>>(), size_of::<Divisor<u64>>()), (12, 24));
        assert_eq!((size_of::<Strided<u32>>(), size_of::<Strided<u64>>()), (168, 264));
        let dims = |n: usize| vec![Dim { extent: 2, stride: 1 }; n];
        assert!(Strided::<u32>::new(&dims(9)).is_none());
        assert_eq!(Strided::<u32>::new(&[]).map(|it| it.rank), Some(1));
    }
}
