//! Vectors: the operations on a register of numbers, whatever the instruction set.

/// A vector: numbers side by side.
///
/// # Safety
/// An implementation only uses instructions of its set. For every function, the caller guarantees:
/// - The CPU has the instructions of the set.
/// - Each pointer is valid for reads, or for writes, of the numbers that the function reads or
///   writes there, at any alignment.
#[expect(clippy::missing_safety_doc, reason = "the conditions are the same for all: see the trait")]
pub unsafe trait Vector: Copy {
    /// The type of one of the numbers.
    type Scalar: Copy + 'static;
    /// The number of lanes.
    const LANES: usize;

    /// Returns 0 in every lane.
    unsafe fn zero() -> Self;
    /// Reads one number into every lane.
    unsafe fn spread(from: *const Self::Scalar) -> Self;
    /// Reads `LANES` numbers.
    unsafe fn load(from: *const Self::Scalar) -> Self;
    /// Writes `LANES` numbers.
    unsafe fn store(self, to: *mut Self::Scalar);
    /// Reads `count` numbers, fewer than `LANES`; the other lanes are 0.
    unsafe fn load_part(from: *const Self::Scalar, count: usize) -> Self;
    /// Writes the first `count` lanes, fewer than `LANES`.
    unsafe fn store_part(self, to: *mut Self::Scalar, count: usize);
    /// The sum.
    unsafe fn plus(self, other: Self) -> Self;
    /// The difference.
    unsafe fn minus(self, other: Self) -> Self;
    /// The product.
    unsafe fn times(self, other: Self) -> Self;
    /// The greater of two numbers; NaN where `self` is NaN.
    unsafe fn at_least(self, low: Self) -> Self;
    /// The lesser of two numbers; NaN where `self` is NaN.
    unsafe fn at_most(self, high: Self) -> Self;
    /// `self * by + to`, rounded once where there is an instruction for it.
    unsafe fn mul_add(self, by: Self, to: Self) -> Self;
    /// Prefetches memory that will be used soon; it need not exist.
    #[inline(always)]
    unsafe fn prefetch(_from: *const Self::Scalar) {}
    /// Prefetches memory that will be used later, but not into the first-level cache; it need not
    /// exist.
    #[inline(always)]
    unsafe fn prefetch_far(_from: *const Self::Scalar) {}
}
