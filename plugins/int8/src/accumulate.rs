//! Accumulating: a tile of sums of products in registers, whatever the instruction set.
//!
//! A tile has up to [`Dot::ROWS`] rows and [`VECTORS`] vectors of columns. For each group along the depth it loads
//! the vectors of the right panel once, and for each row spreads the row's group over a vector and adds the
//! products: `rows * VECTORS` instructions (or pairs of them) for `rows + VECTORS` loads.

use crate::{
    depthwise::Depthwise,
    output::{Part, Stage, Terms},
    pack::{GROUP, LINE, Left, Source},
};
use std::ops::Range;

/// Vectors of columns in a tile.
pub const VECTORS: usize = 2;
/// Most rows of a tile of any instruction set: 28 sums, 2 right vectors and a left one fill 31 of 32 registers.
pub const MOST_ROWS: usize = 14;
/// Sums of a tile of few rows wait for each other: each is kept in so many parts, which take turns. The parts of all
/// fit in 16 registers.
const fn parts(rows: usize) -> usize {
    match rows {
        1 => 4,
        2 | 3 => 2,
        _ => 1,
    }
}

/// A vector of sums of 32 bits, and how an instruction set adds products to it.
///
/// # Safety
/// Every function runs instructions of the set, which the CPU has; pointers are readable or writable for what
/// they are said to hold, at any alignment.
pub unsafe trait Dot: Copy {
    /// Sums in a vector.
    const LANES: usize;
    /// Rows of a tile.
    const ROWS: usize;
    /// Whether groups are two words, not four bytes.
    const WORDS: bool;
    /// Whether left factors are signed.
    const LEFT_SIGNED: bool;
    /// Whether `f32::mul_add` is an instruction.
    const FMA: bool;
    /// As many right groups as there are lanes.
    type Right: Copy;

    /// # Safety
    /// `from` holds `LANES` sums.
    unsafe fn load(from: *const i32) -> Self;
    /// # Safety
    /// `to` holds `LANES` sums.
    unsafe fn store(self, to: *mut i32);
    /// # Safety
    /// `from` holds `LANES` groups.
    unsafe fn right(from: *const u8) -> Self::Right;
    /// Adds to each sum the products of a left group, the same for all lanes, with the lane's right group.
    ///
    /// # Safety
    /// `left` holds a group.
    unsafe fn dot(self, left: *const u8, right: Self::Right) -> Self;
    /// Adds to each sum the product of its own byte, signed or not, with the first word of its right group; the second
    /// one is 0.
    ///
    /// # Safety
    /// `bytes` holds `LANES` bytes.
    unsafe fn multiply<const SIGNED: bool>(self, bytes: *const u8, right: Self::Right) -> Self;
    /// Lane by lane.
    ///
    /// # Safety
    /// The CPU has the instructions.
    unsafe fn plus(self, other: Self) -> Self;
    /// Asks for memory that will be read soon; it need not exist.
    ///
    /// # Safety
    /// The CPU has the instructions.
    #[inline(always)]
    unsafe fn prefetch(_from: *const u8) {}
}

/// A vector type whose loops around the tile are functions of their own, compiled for the instruction set.
///
/// # Safety
/// As [`Dot`].
pub unsafe trait Compiled: Dot {
    /// [`pack_right`](crate::pack::pack_right).
    ///
    /// # Safety
    /// The CPU has the instructions.
    unsafe fn pack_right(source: &Source<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]);
    /// [`pack_left`](crate::pack::pack_left).
    ///
    /// # Safety
    /// The CPU has the instructions.
    unsafe fn pack_left(left: &Left<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]);
    /// [`Terms::begin`].
    ///
    /// # Safety
    /// The CPU has the instructions.
    unsafe fn begin(terms: &Terms<'_>, first: usize, row_sums: &[i32], sums: &mut [i32]);
    /// [`Stage::write`].
    ///
    /// # Safety
    /// The CPU has the instructions.
    unsafe fn write(stage: &Stage<'_>, first: usize, sums: &[i32], to: &mut Part<'_>);
    /// [`accumulate`].
    ///
    /// # Safety
    /// As there.
    unsafe fn accumulate(tile: &Tile);
    /// [`run`](crate::depthwise::run) of a depthwise convolution.
    ///
    /// # Safety
    /// As there.
    unsafe fn depthwise(convolution: &Depthwise<'_>, units: Range<usize>);
}

/// What a tile reads and writes.
#[derive(Debug, Clone, Copy)]
pub struct Tile {
    /// Rows.
    pub rows: usize,
    /// Groups along the depth.
    pub groups: usize,
    /// Panel of `rows` rows.
    pub left: *const u8,
    /// Panel of `VECTORS * LANES` columns.
    pub right: *const u8,
    /// `rows * VECTORS * LANES` sums, which the products are added to.
    pub sums: *mut i32,
}

/// Adds the products of a tile to its sums.
///
/// # Safety
/// The pointers hold what [`Tile`] says; there are 1 to `V::ROWS` rows; the CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn accumulate<V: Dot>(tile: &Tile) {
    macro_rules! by_rows {
        ($($rows:literal)*) => {
            match tile.rows {
                // SAFETY: the caller's promise.
                $($rows if $rows <= V::ROWS => unsafe {
                    rows::<V, $rows, { parts($rows) }>(tile)
                },)*
                rows => unreachable!("a tile of {rows} rows"),
            }
        };
    }
    by_rows!(1 2 3 4 5 6 7 8 9 10 11 12 13 14)
}

/// A tile of `R` rows, each sum in `P` parts that take turns.
#[inline(always)]
unsafe fn rows<V: Dot, const R: usize, const P: usize>(tile: &Tile) {
    let width = VECTORS * V::LANES;
    // SAFETY: the caller's promise.
    unsafe {
        let first = V::load(tile.sums);
        let mut sums = [[first; VECTORS]; R];
        for (row, sums) in sums.iter_mut().enumerate() {
            for (vector, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(tile.sums.add(row * width + vector * V::LANES));
            }
        }
        if P == 1 {
            each_group::<V, R>(tile, 0..tile.groups, &mut sums);
        } else {
            in_parts::<V, R, P>(tile, &mut sums);
        }
        for (row, sums) in sums.iter().enumerate() {
            for (vector, sum) in sums.iter().enumerate() {
                sum.store(tile.sums.add(row * width + vector * V::LANES));
            }
        }
    }
}

/// Some groups on the sums.
#[inline(always)]
unsafe fn each_group<V: Dot, const R: usize>(
    tile: &Tile,
    groups: Range<usize>,
    sums: &mut [[V; VECTORS]; R],
) {
    const PER_LINE: usize = LINE / GROUP;
    let width = VECTORS * V::LANES * GROUP;
    let mut group = groups.start;
    // SAFETY: the caller's promise: groups below `tile.groups`.
    unsafe {
        while group < groups.end {
            let (line, within) = (group / PER_LINE, group % PER_LINE);
            let left = tile.left.add(line * R * LINE + within * GROUP);
            let right = tile.right.add(group * width);
            let count = (PER_LINE - within).min(groups.end - group);
            let mut at = 0;
            while at + 4 <= count {
                for next in at..at + 4 {
                    step::<V, R>(left.add(next * GROUP), right.add(next * width), sums);
                }
                at += 4;
            }
            while at < count {
                step::<V, R>(left.add(at * GROUP), right.add(at * width), sums);
                at += 1;
            }
            group += count;
        }
    }
}

/// One group.
#[inline(always)]
unsafe fn step<V: Dot, const R: usize>(
    left: *const u8,
    right: *const u8,
    sums: &mut [[V; VECTORS]; R],
) {
    /// How far ahead, in groups, memory is asked for.
    const AHEAD: usize = 12;
    let vector = V::LANES * GROUP;
    // SAFETY: the caller's promise; what is only asked for need not exist.
    unsafe {
        let mut columns = [V::right(right); VECTORS];
        for (at, column) in columns.iter_mut().enumerate() {
            *column = V::right(right.add(at * vector));
            V::prefetch(right.wrapping_add((AHEAD * VECTORS + at) * vector));
        }
        for (row, sums) in sums.iter_mut().enumerate() {
            for (sum, &column) in sums.iter_mut().zip(&columns) {
                *sum = sum.dot(left.add(row * LINE), column);
            }
        }
    }
}

/// Few rows: the groups of a line go to `P` sums in turn, which are added in the end.
#[inline(always)]
unsafe fn in_parts<V: Dot, const R: usize, const P: usize>(
    tile: &Tile,
    sums: &mut [[V; VECTORS]; R],
) {
    let width = VECTORS * V::LANES * GROUP;
    const { assert!((LINE / GROUP).is_multiple_of(P), "a turn stays in its line") };
    let turns = tile.groups / P;
    // SAFETY: the caller's promise.
    unsafe {
        let zero = [0i32; MOST_LANES];
        let mut parts = [[[V::load(zero.as_ptr()); VECTORS]; R]; P];
        for turn in 0..turns {
            let group = turn * P;
            let line = group / (LINE / GROUP);
            let left = tile.left.add(line * R * LINE + group % (LINE / GROUP) * GROUP);
            let right = tile.right.add(group * width);
            for (at, part) in parts.iter_mut().enumerate() {
                step::<V, R>(left.add(at * GROUP), right.add(at * width), part);
            }
        }
        for part in &parts {
            for (sums, part) in sums.iter_mut().zip(part) {
                for (sum, &part) in sums.iter_mut().zip(part) {
                    *sum = sum.plus(part);
                }
            }
        }
        each_group::<V, R>(tile, turns * P..tile.groups, sums);
    }
}

/// Most lanes of a vector.
pub const MOST_LANES: usize = 16;
