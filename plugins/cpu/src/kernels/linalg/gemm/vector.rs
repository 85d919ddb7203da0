//! Vectors: what a register of numbers does, whatever the instruction set.

/// Numbers side by side.
///
/// # Safety
/// Every function runs instructions of the set, which the CPU has: that is what callers promise. Pointers are readable
/// or writable for what they are said to hold, at any alignment.
#[expect(clippy::missing_safety_doc, reason = "the promise is the same for all: see the trait's")]
pub unsafe trait Vector: Copy {
    /// One of the numbers.
    type Scalar: Copy + 'static;
    /// Lanes.
    const LANES: usize;

    /// 0 in every lane.
    unsafe fn zero() -> Self;
    /// The same number in every lane.
    unsafe fn spread(from: *const Self::Scalar) -> Self;
    /// From `LANES` numbers.
    unsafe fn load(from: *const Self::Scalar) -> Self;
    /// To `LANES` numbers.
    unsafe fn store(self, to: *mut Self::Scalar);
    /// From `count` numbers, fewer than `LANES`; 0 in the other lanes.
    unsafe fn load_part(from: *const Self::Scalar, count: usize) -> Self;
    /// The first `count` lanes, fewer than `LANES`.
    unsafe fn store_part(self, to: *mut Self::Scalar, count: usize);
    /// The sum.
    unsafe fn plus(self, other: Self) -> Self;
    /// The difference.
    unsafe fn minus(self, other: Self) -> Self;
    /// The product.
    unsafe fn times(self, other: Self) -> Self;
    /// The greater of two numbers; NaN where `self` is.
    unsafe fn at_least(self, low: Self) -> Self;
    /// The lesser of two numbers; NaN where `self` is.
    unsafe fn at_most(self, high: Self) -> Self;
    /// `self * by + to`, rounded once where there is an instruction for it.
    unsafe fn mul_add(self, by: Self, to: Self) -> Self;
    /// Asks for memory that will be used soon; it need not exist.
    #[inline(always)]
    unsafe fn prefetch(_from: *const Self::Scalar) {}
    /// Asks for memory that will be used later: not in the first-level cache.
    #[inline(always)]
    unsafe fn prefetch_far(_from: *const Self::Scalar) {}
}
