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
    windows::{self, Windows},
};

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

    /// The `count` factors of a line from `first` on, turned over, and zeros where there are none.
    #[inline(always)]
    fn part(&self, line: usize, first: usize, count: usize) -> [u8; LINE] {
        let count = count.min(self.depth.saturating_sub(first));
        let mut values = [0; LINE];
        if count > 0 {
            self.read(line, first, &mut values[..count]);
            values[..count].iter_mut().for_each(|value| *value ^= self.flip);
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
pub fn pack_left<V: Dot>(left: &Left<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]) {
    let source = match left {
        Left::Rows(rows) => rows,
        Left::Windows(windows) => return windows::pack::<V>(windows, first, panel, sums),
    };
    let rows = sums.len();
    for (row, sum) in sums.iter_mut().enumerate() {
        *sum = if V::WORDS {
            pack_row::<V, { LINE / 2 }>(source, first + row, panel, [row, rows])
        } else {
            pack_row::<V, LINE>(source, first + row, panel, [row, rows])
        };
    }
}

/// Packs a row, `N` values a line, into every line of the panel that is `at` modulo `rows`.
#[inline(always)]
fn pack_row<V: Dot, const N: usize>(
    source: &Source<'_>,
    row: usize,
    panel: &mut [u8],
    [at, rows]: [usize; 2],
) -> i32 {
    let mut sum = RowSum::new();
    let (whole, _) = source.neighbours(row).as_chunks::<N>();
    let lines = panel.as_chunks_mut::<LINE>().0;
    for (values, line) in whole.iter().zip((at..lines.len()).step_by(rows)) {
        // Never a copy in memory, which a vector would wait for.
        lines[line] = packed::<V, N>(values.map(|value| value ^ source.flip), &mut sum);
    }
    for (number, line) in (at..lines.len()).step_by(rows).enumerate().skip(whole.len()) {
        let values = source.part(row, number * N, N);
        let values = values.first_chunk::<N>().copied().unwrap_or([0; N]);
        lines[line] = packed::<V, N>(values, &mut sum);
    }
    sum.total::<V>()
}

/// Values as a line: bytes, or words where they fill half of it.
#[inline(always)]
pub(crate) fn packed<V: Dot, const N: usize>(values: [u8; N], sum: &mut RowSum) -> [u8; LINE] {
    let mut line = [0; LINE];
    if N == LINE {
        line.copy_from_slice(&values);
        sum.add::<V>(line);
    } else {
        line[..N].copy_from_slice(&values);
        sum.add::<V>(line);
        for (to, value) in line.as_chunks_mut::<2>().0.iter_mut().zip(values) {
            *to = u16::from(value).to_le_bytes();
        }
    }
    line
}

/// The sum of a row's values: in words, for as many lines as they hold.
pub(crate) struct RowSum {
    words: [u16; LINE / 2],
    lines: usize,
    total: i32,
}

impl RowSum {
    /// Lines whose pairs of bytes a word holds.
    const MOST_LINES: usize = u16::MAX as usize / (2 * u8::MAX as usize);

    #[inline(always)]
    pub(crate) fn new() -> RowSum {
        RowSum { words: [0; _], lines: 0, total: 0 }
    }

    /// Signed values are added as `value + 128`.
    #[inline(always)]
    fn add<V: Dot>(&mut self, values: [u8; LINE]) {
        let offset = if V::LEFT_SIGNED { FLIP } else { 0 };
        for (word, pair) in self.words.iter_mut().zip(values.as_chunks::<2>().0) {
            let pair = u16::from_le_bytes(pair.map(|value| value ^ offset));
            *word += (pair & 255) + (pair >> 8);
        }
        self.lines += 1;
        if self.lines.is_multiple_of(RowSum::MOST_LINES) {
            self.flush();
        }
    }

    #[inline(always)]
    fn flush(&mut self) {
        let words = self.words.iter().map(|&word| i32::from(word)).sum();
        self.total = self.total.wrapping_add(words);
        self.words.fill(0);
    }

    #[inline(always)]
    pub(crate) fn total<V: Dot>(mut self) -> i32 {
        self.flush();
        let offset = if V::LEFT_SIGNED { self.lines * LINE * FLIP as usize } else { 0 };
        self.total.wrapping_sub(offset as i32)
    }
}

/// Packs the columns from `first` on, as many as a panel has and the source has left, into a panel of
/// `sums.len()` columns. A sum is that of a column's factors, turned over and signed.
#[inline(always)]
pub fn pack_right<V: Dot>(source: &Source<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]) {
    sums.fill(0);
    let columns = sums.len().min(source.lines - first);
    for (group, to) in panel.chunks_exact_mut(sums.len() * GROUP).enumerate() {
        let depth = group * values_per_group(V::WORDS);
        let count = values_per_group(V::WORDS).min(source.depth - depth);
        let (to, padding) = to.split_at_mut(columns * GROUP);
        padding.fill(0);
        let to = to.as_chunks_mut::<GROUP>().0;
        if source.strides[0] == 1 && count == values_per_group(V::WORDS) {
            pack_rows::<V>(source, [first, depth], to, sums);
        } else {
            for (column, (to, sum)) in to.iter_mut().zip(&mut *sums).enumerate() {
                let mut values = [source.flip; GROUP];
                source.read(first + column, depth, &mut values[..count]);
                *to = right_group::<V>(values, source.flip, sum);
            }
        }
    }
}

/// A whole group of columns that are neighbours in memory.
#[inline(always)]
fn pack_rows<V: Dot>(
    source: &Source<'_>,
    [first, depth]: [usize; 2],
    to: &mut [[u8; GROUP]],
    sums: &mut [i32],
) {
    let row = |at: usize| {
        // Of words there are two: the others are not looked at.
        let at = depth + at % values_per_group(V::WORDS);
        &source.data[at * source.strides[1] + first..][..to.len()]
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(row);
    let values = a.iter().zip(b).zip(c.iter().zip(d));
    for ((to, sum), ((&a, &b), (&c, &d))) in to.iter_mut().zip(sums).zip(values) {
        *to = right_group::<V>([a, b, c, d], source.flip, sum);
    }
}

#[inline(always)]
fn right_group<V: Dot>(values: [u8; GROUP], flip: u8, sum: &mut i32) -> [u8; GROUP] {
    let [a, b, c, d] = values.map(|value| (value ^ flip).cast_signed());
    let wide = |value: i8| i32::from(value);
    if V::WORDS {
        *sum = sum.wrapping_add(wide(a) + wide(b));
        let ([a, b], [c, d]) = (i16::from(a).to_le_bytes(), i16::from(b).to_le_bytes());
        [a, b, c, d]
    } else {
        *sum = sum.wrapping_add(wide(a) + wide(b) + wide(c) + wide(d));
        [a, b, c, d].map(i8::cast_unsigned)
    }
}
