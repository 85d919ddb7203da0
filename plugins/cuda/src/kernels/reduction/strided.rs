//! Strided dimensions as `dims.cuh` reads them.

/// Most dimensions.
pub(super) const MAX_DIMS: usize = 8;

/// A divisor below 2^31 with what divides by it, for dividends below 2^31; `dims.cuh` names the source.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Divisor32 {
    divisor: u32,
    magic: u32,
    shift: u32,
}

/// The same for 2^63.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Divisor64 {
    divisor: u64,
    magic: u64,
    shift: u32,
}

/// Either.
pub(super) trait Divisor: Copy + Default {
    /// Of a divisor from 1 on.
    fn of(divisor: u64) -> Self;
}

/// `ceil(log2 divisor)`.
fn shift_of(divisor: u64) -> u32 {
    u64::BITS - (divisor.max(1) - 1).leading_zeros()
}

impl Divisor for Divisor32 {
    fn of(divisor: u64) -> Divisor32 {
        let (divisor, shift) = (divisor.max(1), shift_of(divisor));
        let magic = (((1 << shift) - divisor) << 32) / divisor + 1;
        Divisor32 { divisor: divisor as u32, magic: magic as u32, shift }
    }
}

impl Divisor for Divisor64 {
    fn of(divisor: u64) -> Divisor64 {
        let (wide, shift) = (u128::from(divisor.max(1)), shift_of(divisor));
        let magic = (((1 << shift) - wide) << 64) / wide + 1;
        Divisor64 { divisor: wide as u64, magic: magic as u64, shift }
    }
}

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
pub(super) struct Strided<D> {
    rank: u32,
    extents: [D; MAX_DIMS],
    strides: [i64; MAX_DIMS],
}

impl<D: Divisor> Strided<D> {
    /// Of dimensions, the outermost first; `None` when there are more than [`MAX_DIMS`].
    pub fn new(dims: &[Dim]) -> Option<Strided<D>> {
        let (mut extents, mut strides) = ([D::default(); MAX_DIMS], [0; MAX_DIMS]);
        if dims.len() > MAX_DIMS {
            return None;
        }
        for (i, dim) in dims.iter().rev().enumerate() {
            (extents[i], strides[i]) = (D::of(dim.extent), dim.stride);
        }
        // What has no dimensions has one element.
        extents[0] = if dims.is_empty() { D::of(1) } else { extents[0] };
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
            let (narrow, wide) = (Divisor32::of(d), Divisor64::of(d));
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
        assert_eq!((size_of::<Divisor32>(), size_of::<Divisor64>()), (12, 24));
        assert_eq!((size_of::<Strided<Divisor32>>(), size_of::<Strided<Divisor64>>()), (168, 264));
        let dims = |n: usize| vec![Dim { extent: 2, stride: 1 }; n];
        assert!(Strided::<Divisor32>::new(&dims(9)).is_none());
        assert_eq!(Strided::<Divisor32>::new(&[]).map(|it| it.rank), Some(1));
    }
}
