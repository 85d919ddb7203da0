//! `Strided` of `dims.cuh`: the strides of operands under an output that is traversed in order, as
//! a kernel's parameter.

use super::divisor::{Divide, Divisor};
use tenon_sdk::KernelError;

/// Most dimensions of a box, as `MAX_DIMS` in `dims.cuh`.
pub(super) const MAX_DIMS: usize = 8;

/// A box that is traversed in order: extents and the strides of the operands, outermost first.
/// Dimensions of one element are omitted, and dimensions that are contiguous in all operands are
/// merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Walk<const OPERANDS: usize> {
    dims: Vec<(i64, [i64; OPERANDS])>,
}

impl<const OPERANDS: usize> Walk<OPERANDS> {
    /// A walk over these dimensions, outermost first, each with its strides.
    pub(super) fn new(dims: impl IntoIterator<Item = (i64, [i64; OPERANDS])>) -> Self {
        let mut walk = Walk { dims: Vec::new() };
        dims.into_iter().for_each(|(extent, steps)| walk.push(extent, steps));
        walk
    }

    /// Adds an inner dimension.
    pub(super) fn push(&mut self, extent: i64, steps: [i64; OPERANDS]) {
        if extent == 1 {
            return;
        }
        if let Some((outer, outer_steps)) = self.dims.last_mut()
            && (0..OPERANDS).all(|k| outer_steps[k] == steps[k].wrapping_mul(extent))
        {
            *outer = outer.wrapping_mul(extent);
            *outer_steps = steps;
            return;
        }
        self.dims.push((extent, steps));
    }

    /// Dimensions and strides, outermost first.
    pub(super) fn dims(&self) -> &[(i64, [i64; OPERANDS])] {
        &self.dims
    }

    /// The innermost dimension: one element when there is none.
    pub(super) fn inner(&self) -> (i64, [i64; OPERANDS]) {
        self.dims.last().copied().unwrap_or((1, [1; OPERANDS]))
    }

    /// The walk in words of `elements` elements, contiguous in the innermost dimension.
    #[must_use]
    pub(super) fn in_words(&self, elements: i64) -> Self {
        let mut words = self.clone();
        if elements == 1 {
            return words;
        }
        if let Some(((extent, _), outer)) = words.dims.split_last_mut() {
            *extent /= elements;
            outer.iter_mut().for_each(|(_, steps)| steps.iter_mut().for_each(|it| *it /= elements));
        }
        words
    }

    /// The walk in packs of `elements` elements of the innermost dimension, whatever its stride.
    #[must_use]
    pub(super) fn in_packs(&self, elements: i64) -> Self {
        let mut packs = self.clone();
        if let Some((extent, steps)) = packs.dims.last_mut() {
            *extent /= elements;
            steps.iter_mut().for_each(|step| *step *= elements);
        }
        packs
    }

    /// The walk as a kernel's parameter.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for more than [`MAX_DIMS`] dimensions.
    pub(super) fn strided<I: Divide>(&self) -> Result<Strided<I, OPERANDS>, KernelError> {
        let mut strided = Strided {
            rank: check_rank(self.dims.len())?,
            extents: [I::divisor(1); MAX_DIMS],
            strides: [[0; MAX_DIMS]; OPERANDS],
        };
        for (d, (extent, steps)) in self.dims.iter().rev().enumerate() {
            strided.extents[d] = I::divisor(*extent as u64);
            (0..OPERANDS).for_each(|k| strided.strides[k][d] = steps[k]);
        }
        Ok(strided)
    }
}

/// Checks that kernels support the number of dimensions.
pub(super) fn check_rank(rank: usize) -> Result<u32, KernelError> {
    if rank > MAX_DIMS {
        return Err(KernelError::unimplemented(format!(
            "expected at most {MAX_DIMS} dimensions that are not neighbours on both sides, found {rank}: reshape first"
        )));
    }
    Ok(rank as u32)
}

/// `Strided` of `dims.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Strided<I, const OPERANDS: usize> {
    rank: u32,
    extents: [Divisor<I>; MAX_DIMS],
    strides: [[i64; MAX_DIMS]; OPERANDS],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_lays_boxes_out_as_the_device_does() {
        assert_eq!((size_of::<Divisor<u32>>(), size_of::<Divisor<u64>>()), (12, 24));
        assert_eq!((size_of::<Strided<u32, 1>>(), size_of::<Strided<u64, 1>>()), (168, 264));
        assert_eq!((size_of::<Strided<u32, 2>>(), size_of::<Strided<u64, 2>>()), (232, 328));
    }

    #[test]
    fn neighbours_are_one_dimension() {
        let walk = Walk::new([(2, [60]), (1, [7]), (3, [20]), (4, [1])]);
        assert_eq!(walk.dims(), [(6, [20]), (4, [1])]);
        assert_eq!(walk.in_words(4).dims(), [(6, [5]), (1, [1])]);
        assert_eq!(walk.in_packs(2).dims(), [(6, [20]), (2, [2])]);
        assert_eq!(Walk::new([(2, [0]), (3, [0])]).dims(), [(6, [0])]);
        assert_eq!(Walk::new([(1, [5])]).inner(), (1, [1]));
        assert!(Walk::new((0..9).map(|_| (2, [1]))).strided::<u32>().is_err());
    }

    #[test]
    fn the_innermost_dimension_comes_first() {
        let walk = Walk::new([(5, [8, 0]), (8, [1, 1])]);
        let strided = walk.in_packs(4).strided::<u32>().unwrap();
        assert_eq!((strided.rank, strided.extents[0].divisor), (2, 2));
        assert_eq!([&strided.strides[0][..2], &strided.strides[1][..2]], [[4, 8], [4, 0]]);
    }
}
