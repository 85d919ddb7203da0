//! What words elements are moved as, and how a box of words is described to a kernel.
//!
//! A kernel that only moves elements need not know their type: 16 neighbouring bytes that stay neighbours are one
//! access, whether they are 16 bytes or two doubles. [`word_bytes`] says how wide words may be.

pub(super) use crate::kernels::divisor::{Divide, Divisor};

use crate::{
    compile::{Arguments, Entry, Module},
    launch::Operand,
};
use std::sync::{Arc, OnceLock};
use tenon_sdk::KernelError;

/// Dimensions of a box, as `MAX_DIMS` in `dims.cuh`.
pub(super) const MAX_DIMS: usize = 8;

/// Sizes of a word.
pub(super) const SIZES: [u64; 5] = [1, 2, 4, 8, 16];

/// A type of numbers of words.
pub(super) trait Index: Divide + Send + Sync + 'static {
    /// In CUDA C.
    const NAME: &'static str;

    /// A number of words, which is in range.
    fn of(value: u64) -> Self;
}

impl Index for u32 {
    const NAME: &'static str = "u32";

    fn of(value: u64) -> u32 {
        value as u32
    }
}

impl Index for u64 {
    const NAME: &'static str = "u64";

    fn of(value: u64) -> u64 {
        value
    }
}

/// Whether numbers of so many words fit 32 bits, with their offsets.
pub(super) fn is_short(words: u64) -> bool {
    words < 1 << 31
}

/// Bytes of the widest word for elements of `size` bytes, when runs, strides and first elements are these numbers of
/// elements, from these addresses on: 1 to 16.
pub(super) fn word_bytes(
    size: u64,
    elements: impl IntoIterator<Item = i64>,
    operands: &[&Operand],
) -> u64 {
    let bytes = |elements: i64| (elements as u64).wrapping_mul(size);
    let bits = elements.into_iter().fold(16, |bits, count| bits | bytes(count));
    let bits = operands.iter().fold(bits, |bits, operand| bits | operand.address);
    // Where an empty tensor is said to be does not matter.
    size.max(1 << bits.trailing_zeros())
}

/// Bytes of an element.
///
/// # Errors
/// `INTERNAL` for types without a size.
pub(super) fn element_bytes(operand: &Operand) -> Result<u64, KernelError> {
    let dtype = operand.dtype;
    let size = dtype.size().filter(|size| SIZES.contains(&(*size as u64)));
    let unknown = || KernelError::internal(format!("elements of {dtype} cannot be moved"));
    Ok(size.ok_or_else(unknown)? as u64)
}

/// What lies behind the first elements.
pub(super) fn behind(operand: &Operand, elements: u64, size: u64) -> Operand {
    Operand {
        address: operand.address + elements * size,
        elements: operand.elements - elements,
        dtype: operand.dtype,
    }
}

/// The entries of a source for each size of a word.
pub(super) struct ByWord<A, const N: usize>([Entry<A>; N]);

impl<A: Arguments, const N: usize> ByWord<A, N> {
    /// `stem_1`, `stem_2` and so on.
    ///
    /// # Errors
    /// A module without them.
    ///
    /// # Safety
    /// As [`Module::entry`], for each of them.
    pub(super) unsafe fn new(module: &Arc<Module>, stem: &str) -> Result<Self, KernelError> {
        let entries: Result<Vec<_>, KernelError> = SIZES
            .iter()
            .take(N)
            // SAFETY: the caller's promise.
            .map(|size| unsafe { module.entry(&format!("{stem}_{size}")) })
            .collect();
        let missing = |_| KernelError::internal(format!("{stem} has fewer than {N} entries"));
        Ok(ByWord(entries?.try_into().map_err(missing)?))
    }

    /// That for words of so many bytes.
    pub(super) fn of(&self, bytes: u64) -> &Entry<A> {
        &self.0[bytes.trailing_zeros() as usize]
    }
}

/// Kernels for tensors of fewer than 2^31 words, and those for larger ones, which are compiled when there is one.
pub(super) struct BySize<S, L> {
    short: S,
    long: OnceLock<L>,
}

impl<S, L> BySize<S, L> {
    pub(super) fn new(short: S) -> Self {
        BySize { short, long: OnceLock::new() }
    }

    pub(super) fn short(&self) -> &S {
        &self.short
    }

    /// The kernels for large tensors.
    ///
    /// # Errors
    /// What `make` says.
    pub(super) fn long(
        &self,
        make: impl FnOnce() -> Result<L, KernelError>,
    ) -> Result<&L, KernelError> {
        if let Some(long) = self.long.get() {
            return Ok(long);
        }
        let long = make()?;
        Ok(self.long.get_or_init(|| long))
    }
}

/// A box that is walked in order: extents and the steps between neighbours, outermost first. Dimensions of one element
/// are left out, and neighbours that are walked in one step are one dimension.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Walk<const OPERANDS: usize> {
    dims: Vec<(i64, [i64; OPERANDS])>,
}

impl<const OPERANDS: usize> Walk<OPERANDS> {
    /// Of the dimensions, outermost first, each with its steps.
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

    /// Dimensions and steps, outermost first.
    pub(super) fn dims(&self) -> &[(i64, [i64; OPERANDS])] {
        &self.dims
    }

    /// The innermost dimension: one element when there is none.
    pub(super) fn inner(&self) -> (i64, [i64; OPERANDS]) {
        self.dims.last().copied().unwrap_or((1, [1; OPERANDS]))
    }

    /// With words of so many elements, side by side in the innermost dimension.
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

    /// With packs of so many elements of the innermost dimension, whatever its step.
    #[must_use]
    pub(super) fn in_packs(&self, elements: i64) -> Self {
        let mut packs = self.clone();
        if let Some((extent, steps)) = packs.dims.last_mut() {
            *extent /= elements;
            steps.iter_mut().for_each(|step| *step *= elements);
        }
        packs
    }

    /// As kernels take it.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for more than [`MAX_DIMS`] dimensions.
    pub(super) fn strided<I: Index>(&self) -> Result<Strided<I, OPERANDS>, KernelError> {
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

/// Fails for more dimensions than kernels have room for.
pub(super) fn check_rank(rank: usize) -> Result<u32, KernelError> {
    if rank > MAX_DIMS {
        return Err(KernelError::unimplemented(format!(
            "expected at most {MAX_DIMS} dimensions that are not neighbours on both sides, found {rank}: reshape first"
        )));
    }
    Ok(rank as u32)
}

/// `Strided` of `dims.cuh`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Strided<I, const OPERANDS: usize> {
    rank: u32,
    extents: [Divisor<I>; MAX_DIMS],
    strides: [[i64; MAX_DIMS]; OPERANDS],
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::DType;

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

    #[test]
    fn the_host_lays_boxes_out_as_the_device_does() {
        assert_eq!((size_of::<Divisor<u32>>(), size_of::<Divisor<u64>>()), (12, 24));
        assert_eq!(size_of::<Strided<u32, 1>>(), 104 + 64);
        assert_eq!(size_of::<Strided<u64, 2>>(), 8 + 8 * 24 + 128);
    }

    #[test]
    fn neighbours_are_one_dimension() {
        let walk = Walk::new([(2, [60]), (1, [7]), (3, [20]), (4, [1])]);
        assert_eq!(walk.dims(), [(6, [20]), (4, [1])]);
        assert_eq!(walk.in_words(4).dims(), [(6, [5]), (1, [1])]);
        assert_eq!(Walk::new([(2, [0]), (3, [0])]).dims(), [(6, [0])]);
        assert_eq!(Walk::new([(1, [5])]).inner(), (1, [1]));
        assert!(Walk::new((0..9).map(|_| (2, [1]))).strided::<u32>().is_err());
    }

    #[test]
    fn words_are_as_wide_as_everything_allows() {
        let at = |address| Operand { address, elements: 64, dtype: DType::FLOAT };
        let (x, y) = (at(0x1000), at(0x2008));
        assert_eq!(word_bytes(4, [8, -4], &[&x]), 16);
        assert_eq!(word_bytes(4, [8, -4], &[&x, &y]), 8);
        assert_eq!(word_bytes(4, [8, 3], &[&x]), 4);
        assert_eq!(word_bytes(16, [3], &[&x]), 16);
    }
}
