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
use std::ptr;

/// Bytes of a group: what one lane of a sum takes of each side at a time.
pub const GROUP: usize = 4;
/// Bytes of a line of a left panel.
pub const LINE: usize = 64;
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

/// Values in a group.
#[inline(always)]
pub const fn values_per_group(words: bool) -> usize {
    if words { GROUP / 2 } else { GROUP }
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
    let rows = sums.len();
    let lines = left_bytes(source.depth, D::WORDS) / LINE;
    let panel = &mut panel.as_chunks_mut::<LINE>().0[..rows * lines];
    let (blocks, rest) = sums.as_chunks_mut::<4>();
    let alone = 4 * blocks.len();
    for (block, sums) in blocks.iter_mut().enumerate() {
        pack_rows::<D, 4>(source, first + 4 * block, panel, [4 * block, rows], sums);
    }
    for (row, sums) in rest.as_chunks_mut::<1>().0.iter_mut().enumerate() {
        pack_rows::<D, 1>(source, first + alone + row, panel, [alone + row, rows], sums);
    }
}

/// Packs `R` rows: those from `first` on of the source, those from `at` on of a panel of `rows`.
#[inline(always)]
fn pack_rows<D: Dot, const R: usize>(
    source: &Source<'_>,
    first: usize,
    panel: &mut [[u8; LINE]],
    [at, rows]: [usize; 2],
    sums: &mut [i32; R],
) {
    let values = if D::WORDS { LINE / 2 } else { LINE };
    let mut whole = panel.len() / rows;
    let mut from = [ptr::null(); R];
    for (row, from) in from.iter_mut().enumerate() {
        let neighbours = source.neighbours(first + row);
        whole = whole.min(neighbours.len() / values);
        *from = neighbours.as_ptr();
    }
    // SAFETY: the caller runs instructions of the set; a line is room for one, and as many values are read as it holds.
    unsafe {
        let mut totals = [D::Sums::splat(0); R];
        let mut lines = panel.chunks_exact_mut(rows);
        for (number, line) in lines.by_ref().take(whole).enumerate() {
            for (row, to) in line[at..][..R].iter_mut().enumerate() {
                let from = from[row].add(number * values);
                totals[row] = D::pack_line(from, source.flip, to.as_mut_ptr(), totals[row]);
            }
        }
        for (number, line) in lines.enumerate() {
            for (row, to) in line[at..][..R].iter_mut().enumerate() {
                let part = source.part(first + row, (whole + number) * values, values);
                totals[row] =
                    D::pack_line(part.as_ptr(), source.flip, to.as_mut_ptr(), totals[row]);
            }
        }
        for (sum, total) in sums.iter_mut().zip(totals) {
            *sum = total.total();
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
