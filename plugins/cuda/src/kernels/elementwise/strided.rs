//! `Strided` of `cu/dims.cuh`: how operands repeat over an output, as a kernel's parameter.

pub(super) use crate::kernels::divisor::{Divide as Index, Divisor};

use super::access::{Access, bytes_of, most_lanes};
use crate::launch::Operand;
use tenon_sdk::{DType, KernelError, geometry::BroadcastPlan};

/// Most dimensions after merging.
const MOST: usize = 8;

/// The parameter, for `N` operands.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Strided<I, const N: usize> {
    rank: u32,
    extents: [Divisor<I>; MOST],
    strides: [[i64; MOST]; N],
}

const _: () = {
    assert!(size_of::<Strided<u32, 2>>() == 104 + 128 && size_of::<Strided<u64, 2>>() == 200 + 128);
};

/// A merged broadcast, its innermost dimension first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Walk<const N: usize> {
    extents: Vec<u64>,
    strides: [Vec<i64>; N],
}

impl<const N: usize> Walk<N> {
    /// Of a plan.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for more than 8 merged dimensions.
    pub fn new(plan: &BroadcastPlan<N>) -> Result<Walk<N>, KernelError> {
        let extents: Vec<u64> =
            plan.extents().iter().rev().map(|extent| extent.unsigned_abs()).collect();
        if extents.len() > MOST {
            return Err(KernelError::unimplemented(format!(
                "broadcasting with {} dimensions after merging: expected at most {MOST}",
                extents.len()
            )));
        }
        let strides =
            std::array::from_fn(|operand| plan.strides(operand).iter().rev().copied().collect());
        Ok(Walk { extents, strides })
    }

    /// Elements of an access: the most for which accesses end where rows do and begin at their multiples.
    pub fn access(&self, operands: [Operand; N], output: Operand) -> Access {
        let mut types: Vec<DType> = operands.iter().map(|operand| operand.dtype).collect();
        types.push(output.dtype);
        let mut lanes = most_lanes(&types);
        while lanes > 1 && !self.takes(lanes, &operands, output) {
            lanes /= 2;
        }
        Access { lanes, is_long: output.elements >= 1 << 31 }
    }

    fn takes(&self, lanes: u64, operands: &[Operand; N], output: Operand) -> bool {
        let is_aligned = |operand: &Operand| operand.is_aligned(lanes * bytes_of(operand.dtype));
        let fits = |(operand, strides): (&Operand, &Vec<i64>)| match strides[0] {
            0 => true,
            1 => {
                let outer = &strides[1..];
                is_aligned(operand) && outer.iter().all(|s| s.unsigned_abs().is_multiple_of(lanes))
            }
            _ => false,
        };
        self.extents[0].is_multiple_of(lanes)
            && is_aligned(&output)
            && operands.iter().zip(&self.strides).all(fits)
    }

    /// The parameter, with dimension 0 counted in accesses.
    pub fn parameter<I: Index>(&self, lanes: u64) -> Strided<I, N> {
        let mut all = Strided {
            rank: self.extents.len() as u32,
            extents: [I::divisor(1); MOST],
            strides: [[0; MOST]; N],
        };
        for (d, extent) in self.extents.iter().enumerate() {
            let (extent, step) = if d == 0 { (extent / lanes, lanes as i64) } else { (*extent, 1) };
            all.extents[d] = I::divisor(extent);
            for (to, from) in all.strides.iter_mut().zip(&self.strides) {
                to[d] = from[d] * step;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_divide() {
        let numbers = [0, 1, 2, 6, 99, 1 << 20, (1 << 31) - 1];
        for by in (1..200).chain([1 << 16, (1 << 31) - 1, 1 << 31]) {
            let d = u32::divisor(by);
            for n in numbers.into_iter().chain([by - 1, by]).filter(|n| *n < 1 << 31) {
                let high = (n * u64::from(d.magic)) >> 32;
                assert_eq!((high + n) >> d.shift, n / by, "{n} / {by}");
            }
        }
        for by in [1, 3, 1000, (1 << 40) + 1, 1 << 63] {
            let d = u64::divisor(by);
            for n in [0, 2, by - 1, by, (1 << 63) - 1].into_iter().filter(|n| *n < 1 << 63) {
                let high = (u128::from(n) * u128::from(d.magic)) >> 64;
                assert_eq!(((high + u128::from(n)) >> d.shift) as u64, n / by, "{n} / {by}");
            }
        }
    }

    fn floats(address: u64, elements: u64) -> Operand {
        Operand { address, elements, dtype: DType::FLOAT }
    }

    #[test]
    fn accesses_end_with_rows() {
        let walk = |x: &[i64], y: &[i64]| Walk::new(&BroadcastPlan::new([x, y]).unwrap()).unwrap();
        let access =
            |walk: &Walk<2>| walk.access([floats(0, 1), floats(0, 1)], floats(0, 64)).lanes;
        let rows = walk(&[5, 8], &[8]);
        assert_eq!(access(&rows), 4);
        let parameter = rows.parameter::<u32>(4);
        assert_eq!((parameter.rank, parameter.extents[0].divisor), (2, 2));
        assert_eq!(parameter.strides[0][..2], [4, 8]);
        assert_eq!(parameter.strides[1][..2], [4, 0]);
        assert_eq!(access(&walk(&[5, 6], &[6])), 2);
        assert_eq!(access(&walk(&[5, 3], &[3])), 1);
        assert_eq!(rows.access([floats(4, 1), floats(0, 1)], floats(0, 40)).lanes, 1);
        assert_eq!(rows.access([floats(8, 1), floats(0, 1)], floats(0, 40)).lanes, 2);
    }
}
