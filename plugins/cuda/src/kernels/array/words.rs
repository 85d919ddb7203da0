//! Words as which elements are moved, and the parameters that describe a box of words.
//!
//! A kernel that only moves elements need not know their type: 16 contiguous bytes that stay
//! contiguous are one access, whether they are 16 bytes or two doubles. [`word_bytes`] gives the
//! greatest width of words.

pub(super) use crate::kernels::{
    divisor::{Divide, Divisor},
    strided::{MAX_DIMS, Strided, Walk, check_rank},
};

use crate::{
    compile::{Arguments, Entry, Module},
    launch::Operand,
};
use std::sync::{Arc, OnceLock};
use tenon_sdk::KernelError;

/// Sizes of a word.
pub(super) const SIZES: [u64; 5] = [1, 2, 4, 8, 16];

/// An integer type for numbers of words.
pub(super) trait Index: Divide + Send + Sync + 'static {
    /// Name of the type in CUDA C.
    const NAME: &'static str;

    /// A number of words, which must be in range.
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

/// Whether 32 bits hold a number of words and its offsets.
pub(super) fn is_short(words: u64) -> bool {
    words < 1 << 31
}

/// Bytes of the widest word for elements of `size` bytes, where runs, strides and first elements
/// are these numbers of elements, from these addresses on: 1 to 16.
pub(super) fn word_bytes(
    size: u64,
    elements: impl IntoIterator<Item = i64>,
    operands: &[&Operand],
) -> u64 {
    let bytes = |elements: i64| (elements as u64).wrapping_mul(size);
    let bits = elements.into_iter().fold(16, |bits, count| bits | bytes(count));
    let bits = operands.iter().fold(bits, |bits, operand| bits | operand.address);
    // The address of an empty tensor does not matter.
    size.max(1 << bits.trailing_zeros())
}

/// Bytes of an element.
///
/// # Errors
/// `INTERNAL` for types of unknown size.
pub(super) fn element_bytes(operand: &Operand) -> Result<u64, KernelError> {
    let dtype = operand.dtype;
    let size = dtype.size().filter(|size| SIZES.contains(&(*size as u64)));
    let unknown = || KernelError::internal(format!("elements of {dtype} cannot be moved"));
    Ok(size.ok_or_else(unknown)? as u64)
}

/// The operand without its first elements.
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
    /// The entries `stem_1`, `stem_2` and so on.
    ///
    /// # Errors
    /// `INTERNAL` when the module lacks one of them.
    ///
    /// # Safety
    /// - Each of the entries meets what [`Module::entry`] requires.
    pub(super) unsafe fn new(module: &Arc<Module>, stem: &str) -> Result<Self, KernelError> {
        let entries: Result<Vec<_>, KernelError> = SIZES
            .iter()
            .take(N)
            // SAFETY: the caller guarantees that the parameters of each entry are the parts of `A`.
            .map(|size| unsafe { module.entry(&format!("{stem}_{size}")) })
            .collect();
        let missing = |_| KernelError::internal(format!("{stem} has fewer than {N} entries"));
        Ok(ByWord(entries?.try_into().map_err(missing)?))
    }

    /// The entry for words of `bytes` bytes.
    pub(super) fn of(&self, bytes: u64) -> &Entry<A> {
        &self.0[bytes.trailing_zeros() as usize]
    }
}

/// The kernels for tensors of fewer than 2^31 words, and the ones for larger tensors, which are
/// compiled when needed.
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
    /// The error of `make`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::DType;

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
