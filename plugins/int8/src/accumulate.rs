//! Accumulates a tile of sums of products in registers, on any instruction set.
//!
//! A tile has up to [`Dot::ROWS`] rows and [`VECTORS`] vectors of columns. For each group along the
//! depth it loads the vectors of the right panel once, and for each row broadcasts the row's group
//! to a vector and adds the products: `rows * VECTORS` instructions (or pairs of them) for `rows +
//! VECTORS` loads. The sums stay in registers from beginning to end: each number of rows has its
//! own function.

use crate::{
    depthwise::Depthwise,
    output::{Part, Stage, Terms},
    pack::{GROUP, LINE, Left, Source},
    residual::Residual,
    vector::{VECTORS, Vector},
};
use std::ops::Range;
use tenon_sdk::element::{QInt8, QUInt8};

/// Most rows of a tile on any instruction set: 28 sums, 2 right vectors and a left one fill 31 of
/// 32 registers.
pub const MOST_ROWS: usize = 14;
/// Number of parts in which each sum of a tile with few rows is kept: additions to one sum wait for
/// each other, so the parts alternate. All parts together fit in 16 registers.
const fn parts(rows: usize) -> usize {
    match rows {
        1 => 4,
        2 | 3 => 2,
        _ => 1,
    }
}

/// How an instruction set adds products to sums of 32 bits.
///
/// # Safety
/// - The implementation upholds what [`Vector`] requires.
pub unsafe trait Dot {
    /// A vector of sums.
    type Sums: Vector;
    /// A right group for each lane of a vector.
    type Right: Copy;
    /// Rows of a tile.
    const ROWS: usize;
    /// Whether groups are two words instead of four bytes.
    const WORDS: bool;
    /// Whether left factors are signed.
    const LEFT_SIGNED: bool;

    /// Loads a right group for each lane.
    ///
    /// # Safety
    /// - The CPU has the instructions.
    /// - `from` is readable for a group for each lane.
    unsafe fn right(from: *const u8) -> Self::Right;
    /// Adds to each sum the products of a left group, which is the same for all lanes, with the
    /// lane's right group.
    ///
    /// # Safety
    /// - The CPU has the instructions.
    /// - `left` is readable for a group.
    unsafe fn dot(sums: Self::Sums, left: *const u8, right: Self::Right) -> Self::Sums;
    /// Adds to each sum the product of its own byte, signed or not, with the first word of its
    /// right group, whose second word is 0.
    ///
    /// # Safety
    /// - The CPU has the instructions.
    /// - `bytes` is readable for a byte for each lane.
    unsafe fn multiply<const SIGNED: bool>(
        sums: Self::Sums,
        bytes: *const u8,
        right: Self::Right,
    ) -> Self::Sums;
    /// Packs the left values of a line, XORed with `flip`, and adds each to one of the sums.
    ///
    /// # Safety
    /// - The CPU has the instructions.
    /// - `from` is readable for `LINE` bytes, or half as many with `WORDS`.
    /// - `to` is writable for `LINE` bytes.
    unsafe fn pack_line(from: *const u8, flip: u8, to: *mut u8, sums: Self::Sums) -> Self::Sums;
    /// Prefetches memory that will be read soon; it need not exist.
    ///
    /// # Safety
    /// - The CPU has the instructions.
    #[inline(always)]
    unsafe fn prefetch(_from: *const u8) {}
}

/// An instruction set whose inner loops are separate functions, compiled for it.
///
/// # Safety
/// - The implementation upholds what [`Dot`] requires.
pub unsafe trait Compiled: Dot {
    /// [`pack_right`](crate::pack::pack_right).
    ///
    /// # Safety
    /// - The CPU has the instructions.
    unsafe fn pack_right(source: &Source<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]);
    /// [`pack_left`](crate::pack::pack_left).
    ///
    /// # Safety
    /// - The CPU has the instructions.
    unsafe fn pack_left(left: &Left<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]);
    /// [`strip`] for `ROWS` rows.
    ///
    /// # Safety
    /// - The caller upholds what [`strip`] requires.
    unsafe fn strip<const ROWS: usize>(strip: &Strip<'_>);
    /// [`run`](crate::residual::run) for unsigned values.
    ///
    /// # Safety
    /// - The CPU has the instructions.
    unsafe fn add_unsigned(residual: &Residual, x: &[QUInt8], y: &[QUInt8], z: &mut [QUInt8]);
    /// [`run`](crate::residual::run) for signed values.
    ///
    /// # Safety
    /// - The CPU has the instructions.
    unsafe fn add_signed(residual: &Residual, x: &[QInt8], y: &[QInt8], z: &mut [QInt8]);
    /// [`run`](crate::depthwise::run) for a depthwise convolution.
    ///
    /// # Safety
    /// - The caller upholds what [`run`](crate::depthwise::run) requires.
    unsafe fn depthwise(convolution: &Depthwise<'_>, units: Range<usize>);
}

/// The operands of the tiles of a panel of rows.
#[derive(Debug)]
pub struct Strip<'a> {
    /// Number of groups along the depth.
    pub groups: usize,
    /// The left panel of the rows.
    pub left: *const u8,
    /// All panels of the right matrix.
    pub right: *const u8,
    /// Columns of the right matrix.
    pub columns: usize,
    /// The panels of columns to compute.
    pub panels: Range<usize>,
    /// Initial values of the sums.
    pub terms: &'a Terms<'a>,
    /// [`Terms::of_row`] of each row.
    pub row_terms: &'a [i32],
    /// The output stage of the sums.
    pub stage: &'a Stage<'a>,
    /// Where the results of the rows begin.
    pub to: *mut u8,
    /// Bytes from a row of results to the next.
    pub row_bytes: usize,
    /// Room for the sums of a tile of any instruction set.
    pub spare: *mut i32,
}

/// Sums of a tile of `R` rows.
pub type Sums<V, const R: usize> = [[V; VECTORS]; R];

/// Computes the tiles of `strip.row_terms.len()` rows.
///
/// # Safety
/// - The caller upholds what [`strip`] requires.
#[inline(always)]
pub unsafe fn run<D: Compiled>(strip: &Strip<'_>) {
    macro_rules! by_rows {
        ($($rows:literal)*) => {
            match strip.row_terms.len() {
                // SAFETY: the caller upholds what `strip` requires; the strip has a row term for
                // each row.
                $($rows if $rows <= D::ROWS => unsafe { D::strip::<$rows>(strip) },)*
                rows => unreachable!("a tile of {rows} rows"),
            }
        };
    }
    by_rows!(1 2 3 4 5 6 7 8 9 10 11 12 13 14)
}

/// Computes tiles of `R` rows.
///
/// # Safety
/// - The pointers of `strip` are valid as the fields of [`Strip`] say.
/// - There are terms and parameters for all columns, including those that fill the last panel.
/// - Nothing else reads or writes these results.
/// - The CPU has the instructions of `D`.
#[inline(always)]
pub unsafe fn strip<D: Dot, const R: usize>(strip: &Strip<'_>) {
    let width = VECTORS * D::Sums::LANES;
    let value_bytes = strip.stage.value_bytes();
    for panel in strip.panels.clone() {
        let column = panel * width;
        let bytes = width.min(strip.columns - column) * value_bytes;
        // SAFETY: the caller guarantees that the pointers are valid, that there are terms and
        // parameters for these columns, that nothing else uses these results, and that the CPU has
        // the instructions.
        unsafe {
            let right = strip.right.add(column * strip.groups * GROUP);
            let mut sums = strip.terms.begin::<D::Sums, R>(column, strip.row_terms);
            match parts(R) {
                4 => in_parts::<D, R, 4>(strip, right, &mut sums),
                2 => in_parts::<D, R, 2>(strip, right, &mut sums),
                _ => each_group::<D, R>(strip, right, 0..strip.groups, &mut sums),
            }
            let to = Part::new(strip.to.add(column * value_bytes), bytes, strip.row_bytes);
            strip.stage.write(column, &sums, &to, strip.spare);
        }
    }
}

/// Number of groups in a line, and of those that are written out one after the other.
const PER_LINE: usize = LINE / GROUP;
const TURN: usize = 4;

/// Adds some groups to the sums. Groups of whole lines prefetch the following lines, at an even
/// pace: prefetches that were all issued at the beginning of a line would wait for each other.
///
/// # Safety
/// - The groups are below `strip.groups`, in both panels.
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn each_group<D: Dot, const R: usize>(
    strip: &Strip<'_>,
    right: *const u8,
    groups: Range<usize>,
    sums: &mut Sums<D::Sums, R>,
) {
    let width = VECTORS * D::Sums::LANES * GROUP;
    let (line, within) = (groups.start / PER_LINE, groups.start % PER_LINE);
    let mut rest = groups.len();
    // SAFETY: the caller guarantees that the groups are below `strip.groups`, so that both panels
    // have them, and that the CPU has the instructions.
    unsafe {
        let mut left = strip.left.add(line * R * LINE + within * GROUP);
        let mut right = right.add(groups.start * width);
        while within == 0 && rest >= PER_LINE {
            let mut ahead = left.wrapping_add(R * LINE);
            for _ in 0..PER_LINE / TURN {
                for group in 0..TURN {
                    if group < R.div_ceil(PER_LINE / TURN) {
                        D::prefetch(ahead.wrapping_add(group * LINE));
                    }
                    step::<D, R>(left.add(group * GROUP), right.add(group * width), sums);
                }
                (left, right) = (left.add(TURN * GROUP), right.add(TURN * width));
                ahead = ahead.wrapping_add(R.div_ceil(PER_LINE / TURN) * LINE);
            }
            left = left.add((R - 1) * LINE);
            rest -= PER_LINE;
        }
        for _ in 0..rest {
            step::<D, R>(left, right, sums);
            (left, right) = (left.add(GROUP), right.add(width));
        }
    }
}

/// Adds one group to the sums.
///
/// # Safety
/// - Both sides have this group.
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn step<D: Dot, const R: usize>(
    left: *const u8,
    right: *const u8,
    sums: &mut Sums<D::Sums, R>,
) {
    /// How far ahead memory is prefetched, in groups.
    const AHEAD: usize = 8;
    let vector = D::Sums::LANES * GROUP;
    // SAFETY: the caller guarantees that both sides have this group, and that the CPU has the
    // instructions; prefetched memory need not exist.
    unsafe {
        let mut columns = [D::right(right); VECTORS];
        for (at, column) in columns.iter_mut().enumerate() {
            *column = D::right(right.add(at * vector));
            if (at * vector).is_multiple_of(LINE) {
                D::prefetch(right.wrapping_add((AHEAD * VECTORS + at) * vector));
            }
        }
        for (row, sums) in sums.iter_mut().enumerate() {
            for (sum, &column) in sums.iter_mut().zip(&columns) {
                *sum = D::dot(*sum, left.add(row * LINE), column);
            }
        }
    }
}

/// Computes a tile of few rows: the groups of a line are added to `P` sums in turn, which are added
/// at the end.
///
/// # Safety
/// - Both panels have `strip.groups` groups.
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn in_parts<D: Dot, const R: usize, const P: usize>(
    strip: &Strip<'_>,
    right: *const u8,
    sums: &mut Sums<D::Sums, R>,
) {
    let width = VECTORS * D::Sums::LANES * GROUP;
    const { assert!(PER_LINE.is_multiple_of(P), "a turn stays in its line") };
    let turns = strip.groups / P;
    // SAFETY: the caller guarantees that both panels have `strip.groups` groups, and that the CPU
    // has the instructions; the turns end before that.
    unsafe {
        let mut parts = [[[D::Sums::splat(0); VECTORS]; R]; P];
        for turn in 0..turns {
            let group = turn * P;
            let (line, within) = (group / PER_LINE, group % PER_LINE);
            let left = strip.left.add(line * R * LINE + within * GROUP);
            let right = right.add(group * width);
            for (at, part) in parts.iter_mut().enumerate() {
                step::<D, R>(left.add(at * GROUP), right.add(at * width), part);
            }
        }
        for part in &parts {
            for (sums, part) in sums.iter_mut().zip(part) {
                for (sum, &part) in sums.iter_mut().zip(part) {
                    *sum = sum.plus(part);
                }
            }
        }
        each_group::<D, R>(strip, right, turns * P..strip.groups, sums);
    }
}
