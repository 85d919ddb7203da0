//! Packing: lays out the factors of a product in the order in which [`crate::accumulate`] reads
//! them, with their sums.
//!
//! The unit is a *group* of four consecutive bytes along the depth: four values, or two words for
//! an instruction set that multiplies words. All left factors are unsigned (signed where a kernel
//! requires that), all right ones signed: other types are converted by inverting their highest bit,
//! which shifts a value and its zero point by 128.
//!
//! - **Left**: panels of a tile's rows. A row is cut into lines of 64 bytes; the lines of a panel's
//!   rows alternate, so that a tile reads one stream at fixed distances and packing copies whole
//!   lines. Rows are those of a matrix, or windows of images ([`crate::windows`]).
//! - **Right**: panels of a tile's columns. The groups of all columns at one depth are contiguous,
//!   followed by those at the next depth: a vector of columns is one load.
//!
//! Padding of a depth or a panel is 0 on both sides, and does not change sums.

use crate::{
    accumulate::Dot,
    vector::Vector,
    windows::{self, Windows},
};
use std::array;

/// Bytes of a group, the unit of each side for a lane of a sum.
pub const GROUP: usize = 4;
/// Bytes of a line of a left panel.
pub const LINE: usize = 64;
/// Lines that are transposed together if factors of one depth are contiguous.
const TURNED: usize = 8;
/// Mask that inverts the highest bit.
pub const FLIP: u8 = 0x80;

/// A matrix of bytes: its lines are factors along the depth, which are rows of the left matrix or
/// columns of the right one.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    data: &'a [u8],
    lines: usize,
    depth: usize,
    /// Distance in bytes between lines, and between factors of a line.
    strides: [usize; 2],
    flip: u8,
}

impl<'a> Source<'a> {
    /// The rows of a dense matrix of `lines` rows and `depth` columns, or, if `transposed`, the
    /// columns of one of `depth` rows. Every byte is XORed with `flip`.
    ///
    /// Panics if the matrix does not fill its memory.
    pub fn new(
        data: &'a [u8],
        [lines, depth]: [usize; 2],
        transposed: bool,
        flip: u8,
    ) -> Source<'a> {
        assert_eq!(Some(data.len()), lines.checked_mul(depth), "the matrix fills its memory");
        let strides = if transposed { [1, lines] } else { [depth, 1] };
        Source { data, lines, depth, strides, flip }
    }

    /// Number of rows of a left matrix, or of columns of a right one.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Number of factors of a line.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Copies the factors of a line from `first` on, unchanged.
    #[inline(always)]
    fn read(&self, line: usize, first: usize, to: &mut [u8]) {
        let [lines, step] = self.strides;
        let from = &self.data[line * lines + first * step..];
        if step == 1 {
            to.copy_from_slice(&from[..to.len()]);
        } else {
            to.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, &from)| *to = from);
        }
    }
}

impl Source<'_> {
    /// The factors of a line if they are contiguous in memory; otherwise, or if there are none, an
    /// empty slice.
    #[inline(always)]
    fn neighbours(&self, line: usize) -> &[u8] {
        let [lines, step] = self.strides;
        if step == 1 { &self.data[line * lines..][..self.depth] } else { &[] }
    }

    /// The factors from `depth` on of the [`TURNED`] lines from `first` on, if the factors of one
    /// depth are contiguous.
    ///
    /// Bytes are transposed in squares of 8 by 8, with a word for each depth: in three rounds words
    /// exchange halves, quarters and single bytes with the words 4, 2 and 1 further on. The squares
    /// of a line are side by side, to fill a vector.
    #[inline(always)]
    fn turned(&self, first: usize, depth: usize) -> [[[u8; 8]; LINE / 8]; TURNED] {
        let mut words = [[0u64; LINE / 8]; TURNED];
        for square in 0..LINE / 8 {
            for (step, words) in words.iter_mut().enumerate() {
                words[square] = self.word(first, depth + 8 * square + step);
            }
        }
        swap::<4>(&mut words, 0x0000_0000_FFFF_FFFF);
        swap::<2>(&mut words, 0x0000_FFFF_0000_FFFF);
        swap::<1>(&mut words, 0x00FF_00FF_00FF_00FF);
        words.map(|row| row.map(u64::to_le_bytes))
    }

    /// The factors at `depth` of the eight lines from `first` on; missing ones are `flip`, which
    /// becomes 0.
    #[inline(always)]
    fn word(&self, first: usize, depth: usize) -> u64 {
        let mut bytes = [self.flip; 8];
        if depth < self.depth {
            let rest = &self.data[depth * self.strides[1] + first..];
            match rest.first_chunk() {
                Some(eight) => bytes = *eight,
                None => bytes[..rest.len()].copy_from_slice(rest),
            }
        }
        u64::from_le_bytes(bytes)
    }

    /// The `count` factors of a line from `first` on; missing ones are `flip`, which becomes 0.
    #[inline(always)]
    fn part(&self, line: usize, first: usize, count: usize) -> [u8; LINE] {
        let count = count.min(self.depth.saturating_sub(first));
        let mut values = [self.flip; LINE];
        if count > 0 {
            self.read(line, first, &mut values[..count]);
        }
        values
    }
}

/// In each square, exchanges bytes of each word with the word `BY` further on: the upper bytes of
/// the first, where `low` selects the lower ones, with the lower bytes of the second.
#[inline(always)]
fn swap<const BY: usize>(words: &mut [[u64; LINE / 8]; TURNED], low: u64) {
    for at in (0..TURNED).filter(|at| at & BY == 0) {
        let (first, second) = words.split_at_mut(at + BY);
        for (a, b) in first[at].iter_mut().zip(&mut second[0]) {
            let moved = ((*a >> (8 * BY)) ^ *b) & low;
            *a ^= moved << (8 * BY);
            *b ^= moved;
        }
    }
}

/// Number of values in a group.
#[inline(always)]
pub const fn values_per_group(words: bool) -> usize {
    if words { GROUP / 2 } else { GROUP }
}

/// Number of values in a line.
#[inline(always)]
const fn values_per_line(words: bool) -> usize {
    LINE / GROUP * values_per_group(words)
}

/// Number of groups of a depth.
#[inline(always)]
pub const fn groups(depth: usize, words: bool) -> usize {
    depth.div_ceil(values_per_group(words))
}

/// Number of bytes of a packed left row.
pub const fn left_bytes(depth: usize, words: bool) -> usize {
    (groups(depth, words) * GROUP).next_multiple_of(LINE)
}

/// The source of a packed left matrix.
#[derive(Debug, Clone, Copy)]
pub enum Left<'a> {
    /// The rows of a matrix.
    Rows(Source<'a>),
    /// The windows of a convolution.
    Windows(Windows<'a>),
}

impl<'a> From<Source<'a>> for Left<'a> {
    fn from(rows: Source<'a>) -> Left<'a> {
        Left::Rows(rows)
    }
}

impl Left<'_> {
    /// Number of rows.
    pub fn lines(&self) -> usize {
        match self {
            Left::Rows(rows) => rows.lines(),
            Left::Windows(windows) => windows.lines(),
        }
    }

    /// Number of factors of a row.
    pub fn depth(&self) -> usize {
        match self {
            Left::Rows(rows) => rows.depth(),
            Left::Windows(windows) => windows.depth(),
        }
    }
}

/// Packs `sums.len()` rows from `first` on into a panel. A sum is that of a row's factors, XORed
/// with the mask.
#[inline(always)]
pub fn pack_left<D: Dot>(left: &Left<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]) {
    let source = match left {
        Left::Rows(rows) => rows,
        Left::Windows(windows) => return windows::pack::<D>(windows, first, panel, sums),
    };
    let lines = left_bytes(source.depth, D::WORDS) / LINE;
    let to = panel.as_chunks_mut::<LINE>().0;
    let mut panel = Panel { source, first, rows: sums.len(), lines, to };
    // SAFETY: the caller runs instructions of the set, so that the CPU has them.
    unsafe {
        if source.strides[1] != 1 {
            for (at, sums) in sums.chunks_mut(TURNED).enumerate() {
                panel.turn::<D>(TURNED * at, sums);
            }
            return;
        }
        for (at, sums) in sums.chunks_mut(4).enumerate() {
            match sums.len() {
                1 => panel.pack::<D, 1>(4 * at, sums),
                2 => panel.pack::<D, 2>(4 * at, sums),
                3 => panel.pack::<D, 3>(4 * at, sums),
                _ => panel.pack::<D, 4>(4 * at, sums),
            }
        }
    }
}

/// A left panel during packing: the first lines of all rows, then their second ones, and so on.
struct Panel<'p, 's> {
    source: &'p Source<'s>,
    /// The row of the source that is its first row.
    first: usize,
    rows: usize,
    lines: usize,
    to: &'p mut [[u8; LINE]],
}

impl Panel<'_, '_> {
    /// Packs `R` rows from `at` on, whose factors are contiguous.
    ///
    /// # Safety
    /// - The CPU has the instructions of `D`.
    #[inline(always)]
    unsafe fn pack<D: Dot, const R: usize>(&mut self, at: usize, sums: &mut [i32]) {
        let (source, first) = (self.source, self.first + at);
        let values = values_per_line(D::WORDS);
        let from: [_; R] = array::from_fn(|row| source.neighbours(first + row).as_ptr());
        let whole = source.depth / values;
        // SAFETY: there is room for a line, and no more values are read than it holds.
        unsafe {
            let mut totals = [D::Sums::splat(0); 4];
            for number in 0..whole {
                let line = &mut self.to[number * self.rows + at..][..R];
                for (row, to) in line.iter_mut().enumerate() {
                    let from = from[row].add(number * values);
                    totals[row] = D::pack_line(from, source.flip, to.as_mut_ptr(), totals[row]);
                }
            }
            for number in whole..self.lines {
                let line = &mut self.to[number * self.rows + at..][..R];
                for (row, to) in line.iter_mut().enumerate() {
                    let from = source.part(first + row, number * values, values);
                    let from = from.as_ptr();
                    totals[row] = D::pack_line(from, source.flip, to.as_mut_ptr(), totals[row]);
                }
            }
            sums.copy_from_slice(&D::Sums::totals(totals)[..sums.len()]);
        }
    }

    /// Packs rows from `at` on whose factors are a line of memory apart.
    ///
    /// # Safety
    /// - The caller upholds what [`Panel::pack`] requires.
    #[inline(always)]
    unsafe fn turn<D: Dot>(&mut self, at: usize, sums: &mut [i32]) {
        let source = self.source;
        let values = values_per_line(D::WORDS);
        // SAFETY: there is room for a line, and no more values are read than it holds.
        unsafe {
            let mut totals = [D::Sums::splat(0); TURNED];
            for number in 0..self.lines {
                let turned = source.turned(self.first + at, number * values);
                let line = &mut self.to[number * self.rows + at..][..sums.len()];
                for ((to, from), total) in line.iter_mut().zip(&turned).zip(&mut totals) {
                    let from = from.as_flattened().as_ptr();
                    *total = D::pack_line(from, source.flip, to.as_mut_ptr(), *total);
                }
            }
            for (sums, totals) in sums.chunks_mut(4).zip(totals.as_chunks::<4>().0) {
                sums.copy_from_slice(&D::Sums::totals(*totals)[..sums.len()]);
            }
        }
    }
}

/// Packs the columns from `first` on, as many as a panel has and the source has left, into a panel
/// of `sums.len()` columns. A sum is that of a column's factors, XORed with the mask and signed.
#[inline(always)]
pub fn pack_right<D: Dot>(source: &Source<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]) {
    sums.fill(0);
    let columns = sums.len().min(source.lines - first);
    for (group, to) in panel.chunks_exact_mut(sums.len() * GROUP).enumerate() {
        let depth = group * values_per_group(D::WORDS);
        let count = values_per_group(D::WORDS).min(source.depth - depth);
        let (to, padding) = to.split_at_mut(columns * GROUP);
        padding.fill(0);
        let to = to.as_chunks_mut::<GROUP>().0;
        if source.strides[0] == 1 && count == values_per_group(D::WORDS) {
            pack_neighbours::<D>(source, [first, depth], to, sums);
        } else {
            for (column, (to, sum)) in to.iter_mut().zip(&mut *sums).enumerate() {
                let mut values = [source.flip; GROUP];
                source.read(first + column, depth, &mut values[..count]);
                *to = right_group::<D>(values, source.flip, sum);
            }
        }
    }
}

/// Packs a whole group of columns that are contiguous in memory.
#[inline(always)]
fn pack_neighbours<D: Dot>(
    source: &Source<'_>,
    [first, depth]: [usize; 2],
    to: &mut [[u8; GROUP]],
    sums: &mut [i32],
) {
    let row = |at: usize| {
        // Of words there are two: the others are ignored.
        let at = depth + at % values_per_group(D::WORDS);
        &source.data[at * source.strides[1] + first..][..to.len()]
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(row);
    let values = a.iter().zip(b).zip(c.iter().zip(d));
    for ((to, sum), ((&a, &b), (&c, &d))) in to.iter_mut().zip(sums).zip(values) {
        *to = right_group::<D>([a, b, c, d], source.flip, sum);
    }
}

#[inline(always)]
fn right_group<D: Dot>(values: [u8; GROUP], flip: u8, sum: &mut i32) -> [u8; GROUP] {
    let [a, b, c, d] = values.map(|value| (value ^ flip).cast_signed());
    let wide = |value: i8| i32::from(value);
    if D::WORDS {
        *sum = sum.wrapping_add(wide(a) + wide(b));
        let ([a, b], [c, d]) = (i16::from(a).to_le_bytes(), i16::from(b).to_le_bytes());
        [a, b, c, d]
    } else {
        *sum = sum.wrapping_add(wide(a) + wide(b) + wide(c) + wide(d));
        [a, b, c, d].map(i8::cast_unsigned)
    }
}
