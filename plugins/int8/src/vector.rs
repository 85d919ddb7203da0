//! The vector operations of a register of sums, for all instruction sets.
//!
//! [`crate::output`] uses only this trait, so that a tile's sums stay in registers from the first
//! product to the narrow results. An instruction set's file names the instruction of each function.

/// Number of vectors of columns in a tile.
pub const VECTORS: usize = 2;
/// Most lanes of a vector.
pub const MOST_LANES: usize = 16;

/// 32-bit integers side by side. Arithmetic is modulo 2^32, lane by lane.
///
/// # Safety
/// An implementation only uses instructions of its set. For every function, the caller guarantees:
/// - The CPU has the instructions of the set.
/// - Pointers are valid for the values that the function reads or writes, at any alignment.
#[expect(clippy::missing_safety_doc, reason = "the conditions are the same for all: see the trait")]
pub unsafe trait Vector: Copy {
    /// Number of lanes.
    const LANES: usize;
    /// `LANES` floats.
    type Floats: Copy;
    /// Factors in `[2^30, 2^31)` for [`Vector::high_mul`].
    type Mantissas: Copy;

    /// Loads `LANES` integers.
    unsafe fn load(from: *const i32) -> Self;
    /// Stores `LANES` integers.
    unsafe fn store(self, to: *mut i32);
    /// The same value in every lane.
    unsafe fn splat(value: i32) -> Self;
    /// The sum of all lanes of each vector.
    unsafe fn totals(vectors: [Self; 4]) -> [i32; 4];
    /// The sum of all lanes.
    #[inline(always)]
    unsafe fn total(self) -> i32 {
        // SAFETY: the caller guarantees that the CPU has the instructions of the set; these
        // functions use no memory.
        unsafe {
            let zero = Self::splat(0);
            Self::totals([self, zero, zero, zero])[0]
        }
    }
    /// The sum.
    unsafe fn plus(self, other: Self) -> Self;
    /// The product.
    unsafe fn times(self, other: Self) -> Self;
    /// The greater of two numbers.
    unsafe fn at_least(self, low: Self) -> Self;
    /// The lesser of two numbers.
    unsafe fn at_most(self, high: Self) -> Self;
    /// Shifted right arithmetically by the other's lane, below 32.
    unsafe fn shift_right(self, by: Self) -> Self;

    /// Loads `LANES` mantissas.
    unsafe fn mantissas(from: *const i32) -> Self::Mantissas;
    /// `saturating_rounding_doubling_high_mul`: `floor((x * mantissa + 2^30) / 2^31)`.
    unsafe fn high_mul(self, by: Self::Mantissas) -> Self;

    /// Loads `LANES` floats.
    unsafe fn load_floats(from: *const f32) -> Self::Floats;
    /// Stores `LANES` floats.
    unsafe fn store_floats(floats: Self::Floats, to: *mut f32);
    /// The same value in every lane.
    unsafe fn splat_float(value: f32) -> Self::Floats;
    /// The nearest floats, ties to even.
    unsafe fn to_floats(self) -> Self::Floats;
    /// The bits of the floats.
    unsafe fn from_bits(floats: Self::Floats) -> Self;
    /// The product.
    unsafe fn times_float(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, rounded once.
    unsafe fn mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// The greater of two numbers.
    unsafe fn at_least_float(a: Self::Floats, low: Self::Floats) -> Self::Floats;
    /// The less of two numbers.
    unsafe fn at_most_float(a: Self::Floats, high: Self::Floats) -> Self::Floats;

    /// Stores two rows of `VECTORS * LANES` bytes each: clamps each number to `0..=most`, then adds
    /// `base`, modulo 2^8. Without `BOUNDED`, `most` is 255 and `base` 0.
    unsafe fn narrow<const BOUNDED: bool>(
        rows: [[Self; VECTORS]; 2],
        most: u8,
        base: u8,
        to: [*mut u8; 2],
    );
    /// Stores a row of `VECTORS * LANES` words, like [`Vector::narrow`] for bytes.
    unsafe fn narrow_words(row: [Self; VECTORS], most: u16, base: u16, to: *mut u8);
}
