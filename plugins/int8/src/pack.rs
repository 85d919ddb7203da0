//! Packing: the factors of a product in the order in which [`crate::accumulate`] reads them, with their sums.
//!
//! Values stand in *groups* of four bytes that follow each other along the depth: four bytes, or two words for an
//! instruction set that multiplies words. All left factors are unsigned (signed where a kernel wants them so), all
//! right ones signed: other types are brought there by turning their highest bit over, which moves a value and its
//! zero point by 128.
//!
//! - **Left**: panels of a tile's rows. A row is cut into lines of 64 bytes; the lines of a panel's rows alternate,
//!   so that a tile reads one stream at fixed distances and packing copies whole lines. Rows are those of a
//!   matrix, or windows of images ([`crate::windows`]).
//! - **Right**: panels of a tile's columns. The groups of all columns stand side by side, then those that follow
//!   along the depth: a vector of columns is one load.
//!
//! What pads a depth or a panel is 0 on both sides, and changes no sum.

use crate::{
    accumulate::Dot,
    vector::Vector,
    windows::{self, Windows},
};
use std::array;

/// Bytes of a group: what one lane of a sum takes of each side at a time.
pub const GROUP: usize = 4;
/// Bytes of a line of a left panel.
pub const LINE: usize = 64;
/// Lines that are turned together where factors of one depth are neighbours.
const TURNED: usize = 8;
/// Turns the highest bit over.
pub const FLIP: u8 = 0x80;

/// A matrix of bytes that is read: lines of factors along the depth, rows of the left matrix or columns of the
/// right one.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    data: &'a [u8],
    lines: usize,
    depth: usize,
    /// Bytes from a line to the next, and from a factor to the next of its line.
    strides: [usize; 2],
    flip: u8,
}

impl<'a> Source<'a> {
    /// The rows of a dense matrix of `lines` rows and `depth` columns, or, `transposed`, the columns of one of `depth`
    /// rows. Every byte is turned over by `flip`.
    ///
    /// Panics when the matrix does not fill its memory.
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

    /// Rows of a left matrix, columns of a right one.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Factors of a line.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The factors of a line from `first` on, as the matrix has them.
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
    /// The factors of a line where they are neighbours in memory; else, and where there are none, nothing.
    #[inline(always)]
    fn neighbours(&self, line: usize) -> &[u8] {
        let [lines, step] = self.strides;
        if step == 1 { &self.data[line * lines..][..self.depth] } else { &[] }
    }

    /// The factors from `depth` on of the [`TURNED`] lines from `first` on, where the factors of one depth are neighbours.
    ///
    /// Bytes move in squares of 8 by 8, a word for each depth: in three rounds words change their halves, quarters and
    /// single bytes with those 4, 2 and 1 further. The squares of a line go side by side, which a vector holds.
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

    /// The factors at `depth` of the eight lines from `first` on; what is 0 when it is turned over where there are none.
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

    /// The `count` factors of a line from `first` on, and what is 0 when it is turned over where there are none.
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

/// In each square, each word that has one `BY` further changes bytes with it: its upper ones, as `low` has the lower, with
/// the lower ones there.
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

/// Values in a group.
#[inline(always)]
pub const fn values_per_group(words: bool) -> usize {
    if words { GROUP / 2 } else { GROUP }
}

/// Values in a line.
#[inline(always)]
const fn values_per_line(words: bool) -> usize {
    LINE / GROUP * values_per_group(words)
}

/// Groups of a depth.
#[inline(always)]
pub const fn groups(depth: usize, words: bool) -> usize {
    depth.div_ceil(values_per_group(words))
}

/// Bytes of a packed left row.
pub const fn left_bytes(depth: usize, words: bool) -> usize {
    (groups(depth, words) * GROUP).next_multiple_of(LINE)
}

/// What the rows of a left matrix are packed from.
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
    /// Rows.
    pub fn lines(&self) -> usize {
        match self {
            Left::Rows(rows) => rows.lines(),
            Left::Windows(windows) => windows.lines(),
        }
    }

    /// Factors of a row.
    pub fn depth(&self) -> usize {
        match self {
            Left::Rows(rows) => rows.depth(),
            Left::Windows(windows) => windows.depth(),
        }
    }
}

/// Packs the rows from `first` on, as many as there are `sums`, into a panel. A sum is that of a row's factors, turned
/// over.
#[inline(always)]
pub fn pack_left<D: Dot>(left: &Left<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]) {
    let source = match left {
        Left::Rows(rows) => rows,
        Left::Windows(windows) => return windows::pack::<D>(windows, first, panel, sums),
    };
    let lines = left_bytes(source.depth, D::WORDS) / LINE;
    let to = panel.as_chunks_mut::<LINE>().0;
    let mut panel = Panel { source, first, rows: sums.len(), lines, to };
    // SAFETY: the caller runs instructions of the set.
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

/// A left panel as it is packed: the first lines of all rows, then their second ones, and so on.
struct Panel<'p, 's> {
    source: &'p Source<'s>,
    /// The row of the source that its first one is.
    first: usize,
    rows: usize,
    lines: usize,
    to: &'p mut [[u8; LINE]],
}

impl Panel<'_, '_> {
    /// Rows `at` and those that follow, whose factors are neighbours.
    ///
    /// # Safety
    /// The CPU has the instructions of `D`.
    #[inline(always)]
    unsafe fn pack<D: Dot, const R: usize>(&mut self, at: usize, sums: &mut [i32]) {
        let (source, first) = (self.source, self.first + at);
        let values = values_per_line(D::WORDS);
        let from: [_; R] = array::from_fn(|row| source.neighbours(first + row).as_ptr());
        let whole = source.depth / values;
        // SAFETY: a line is room for one, and as many values are read as it holds.
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

    /// Rows `at` and those that follow, whose factors lie a line of memory apart.
    ///
    /// # Safety
    /// As [`Panel::pack`].
    #[inline(always)]
    unsafe fn turn<D: Dot>(&mut self, at: usize, sums: &mut [i32]) {
        let source = self.source;
        let values = values_per_line(D::WORDS);
        // SAFETY: a line is room for one, and as many values are read as it holds.
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

/// Packs the columns from `first` on, as many as a panel has and the source has left, into a panel of
/// `sums.len()` columns. A sum is that of a column's factors, turned over and signed.
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

/// A whole group of columns that are neighbours in memory.
#[inline(always)]
fn pack_neighbours<D: Dot>(
    source: &Source<'_>,
    [first, depth]: [usize; 2],
    to: &mut [[u8; GROUP]],
    sums: &mut [i32],
) {
    let row = |at: usize| {
        // Of words there are two: the others are not looked at.
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
