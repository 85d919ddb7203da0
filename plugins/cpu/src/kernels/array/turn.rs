//! Transposes one matrix.
//!
//! A few columns of a strip of rows are transposed at a time: reads go along rows, so that the
//! processor prefetches them, and each column becomes a piece of a row of the output. If many
//! pieces would fall in one set of the first-level cache, or the output bypasses the caches, they
//! are collected in the cache first and then copied.

use super::Word;
use crate::{
    arch::{Isa, vectorised},
    split::Parts,
    stream,
};
use std::{marker::PhantomData, ops::Range, slice};

/// Rows of a strip.
pub const STRIP: usize = 128;
/// Columns that are transposed together: a cache line holds as many elements of 4 bytes.
pub const SIDE: usize = 16;
/// Rows of the output whose beginnings differ by a multiple of this many bytes share two sets of
/// the first-level cache, of 8 lines each: [`SIDE`] of them evict each other.
const RESONANCE: usize = 2048;

/// Transposes rows `first..first + count`, at most [`STRIP`], of a matrix of `rows` by `cols`
/// elements at `x`, for some columns; they become columns of the matrix that begins at `start` in
/// `y`. `large` selects writes that bypass the caches.
pub fn turn<W: Word>(
    x: &[W],
    [rows, cols]: [usize; 2],
    [first, count]: [usize; 2],
    columns: Range<usize>,
    (y, start): (&Parts<'_, W>, usize),
    large: bool,
) {
    let collect = large || (rows * size_of::<W>()).is_multiple_of(RESONANCE);
    for c in columns.clone().step_by(SIDE) {
        let width = SIDE.min(columns.end - c);
        let piece = Piece { x: &x[first * cols + c..], stride: cols, rows: count, columns: width };
        let at = |i: usize| {
            let at = start + (c + i) * rows + first;
            // SAFETY: only one call writes these rows of the input, which are columns of the
            // output, for these columns.
            unsafe { y.part(at..at + count) }
        };
        if collect {
            through_strip(&piece, at, large);
        } else {
            let to = at(0).as_mut_ptr();
            assert!(
                width == 0 || at(width - 1).len() == count,
                "the last column is in the output too"
            );
            // SAFETY: only one call writes these rows and columns; the columns between the first
            // and the last are within `y` as well.
            turn_piece(&piece, &mut unsafe { Turned::new(to, rows, [width, count]) });
        }
    }
    if large {
        stream::fence();
    }
}

/// Transposes a piece through a strip in the first-level cache; `at` gives the destination of a
/// column.
fn through_strip<'y, W: Word>(
    piece: &Piece<'_, W>,
    at: impl Fn(usize) -> &'y mut [W],
    large: bool,
) {
    let mut strip = [[W::default(); STRIP]; SIDE];
    let size = [piece.columns, piece.rows];
    assert!(size[0] <= SIDE && size[1] <= STRIP);
    // SAFETY: the strip has this size, and nothing else uses it.
    let mut to = unsafe { Turned::new(strip.as_flattened_mut().as_mut_ptr(), STRIP, size) };
    turn_piece(piece, &mut to);
    for (i, turned) in strip[..piece.columns].iter().enumerate() {
        match large {
            true => stream::copy(&turned[..piece.rows], at(i)),
            false => at(i).copy_from_slice(&turned[..piece.rows]),
        }
    }
}

/// Transposes a matrix of `rows` by `cols` elements, whose rows begin `stride` elements apart, to
/// one whose rows begin `y_stride` elements apart.
///
/// Panics if they are not within `x` and `y`.
pub(in crate::kernels) fn turn_into<W: Word>(
    x: &[W],
    stride: usize,
    [rows, cols]: [usize; 2],
    y: &mut [W],
    y_stride: usize,
) {
    if rows == 0 || cols == 0 {
        return;
    }
    let end = (cols - 1).checked_mul(y_stride).and_then(|last| last.checked_add(rows));
    assert!(end.is_some_and(|end| end <= y.len()) && (rows <= y_stride || cols == 1));
    let piece = Piece { x, stride, rows, columns: cols };
    // SAFETY: these columns and elements are within `y`, without overlap.
    turn_piece(&piece, &mut unsafe { Turned::new(y.as_mut_ptr(), y_stride, [cols, rows]) });
}

/// Transposes a whole matrix of `rows` by `cols` elements to some columns, from `first` on, of a
/// matrix `y` whose rows have `y_stride` elements.
///
/// Panics if these are not within `y`.
///
/// # Safety
/// - Nothing else uses these columns of `y` at the same time.
pub(in crate::kernels) unsafe fn turn_part<W: Word>(
    x: &[W],
    [rows, cols]: [usize; 2],
    (y, first): (&Parts<'_, W>, usize),
    y_stride: usize,
) {
    assert!(first + rows <= y_stride, "columns of the output");
    for (start, c) in
        (0..rows).step_by(STRIP).flat_map(|row| (0..cols).step_by(SIDE).map(move |c| (row, c)))
    {
        let (count, columns) = (STRIP.min(rows - start), SIDE.min(cols - c));
        let piece = Piece { x: &x[start * cols + c..], stride: cols, rows: count, columns };
        let at = |i: usize| {
            let at = (c + i) * y_stride + first + start;
            // SAFETY: the caller guarantees that nothing else uses these columns.
            unsafe { y.part(at..at + count) }
        };
        if (y_stride * size_of::<W>()).is_multiple_of(RESONANCE) {
            through_strip(&piece, at, false);
            continue;
        }
        assert_eq!(at(columns - 1).len(), count, "the last row is in the output too");
        let to = at(0).as_mut_ptr();
        // SAFETY: as above; the rows between the first and the last are within `y` as well.
        turn_piece(&piece, &mut unsafe { Turned::new(to, y_stride, [columns, count]) });
    }
}

/// Some rows and columns of a matrix: `x` begins with the first of them, and rows begin `stride`
/// elements apart.
struct Piece<'a, W> {
    x: &'a [W],
    stride: usize,
    rows: usize,
    columns: usize,
}

/// The destination of the columns of a piece, which begin `stride` elements apart.
struct Turned<'a, W> {
    first: *mut W,
    stride: usize,
    size: [usize; 2],
    life: PhantomData<&'a mut [W]>,
}

impl<W: Word> Turned<'_, W> {
    /// # Safety
    /// - `size` columns of as many elements are valid for writes.
    /// - Nothing else uses them as long as this value is used.
    unsafe fn new(first: *mut W, stride: usize, size: [usize; 2]) -> Self {
        Turned { first, stride, size, life: PhantomData }
    }

    /// The destination of element `row` of a column.
    ///
    /// # Safety
    /// - `column` and `row` are below the sizes.
    #[inline(always)]
    unsafe fn at(&mut self, column: usize, row: usize) -> *mut W {
        // SAFETY: the caller guarantees that the sizes include column and row; the element is in
        // the memory that `new` received.
        unsafe { self.first.add(column * self.stride + row) }
    }
}

vectorised! {
    /// Transposes a piece.
    fn turn_piece[W: Word](piece: &Piece<'_, W>, to: &mut Turned<'_, W>) {
        let [columns, rows] = to.size;
        assert!(piece.columns == columns && piece.rows == rows, "the sizes agree");
        if rows == 0 || columns == 0 {
            return;
        }
        assert!(piece.x.len() >= (rows - 1) * piece.stride + columns, "the piece is in the matrix");
        if piece.stride == columns {
            match columns {
                2 => return narrow::<W, 2>(piece, to),
                3 => return narrow::<W, 3>(piece, to),
                4 if size_of::<W>() != 4 => return narrow::<W, 4>(piece, to),
                _ => {}
            }
        }
        let square = squares::<W, I>(piece, to);
        each(piece, to, 0..square[0], square[1]..columns);
        each(piece, to, square[0]..rows, 0..columns);
    }
}

/// Transposes the whole squares of a piece within its matrix, of elements of 4 bytes; returns the
/// number of rows and columns that this covers.
#[inline(always)]
fn squares<W: Word, I: Isa>(piece: &Piece<'_, W>, to: &mut Turned<'_, W>) -> [usize; 2] {
    #[cfg(target_arch = "x86_64")]
    if size_of::<W>() == 4 {
        let (columns, rows) = (piece.columns - piece.columns % 4, piece.rows - piece.rows % 4);
        let eights = if I::WIDE { rows - rows % 8 } else { 0 };
        for c in (0..columns).step_by(4) {
            // SAFETY: four columns and eight or four rows within the piece, of 4 bytes each. The
            // CPU has the level's instructions.
            unsafe {
                let from = |r: usize| piece.x.as_ptr().add(r * piece.stride + c).cast();
                for r in (0..eights).step_by(8) {
                    x86::turn_eight(from(r), piece.stride, to.at(c, r).cast(), to.stride);
                }
                for r in (eights..rows).step_by(4) {
                    x86::turn_four(from(r), piece.stride, to.at(c, r).cast(), to.stride);
                }
            }
        }
        return [rows, columns];
    }
    [0, 0]
}

/// Transposes a piece of whole rows of `N` elements, column by column, by loops that vectorise.
#[inline(always)]
fn narrow<W: Word, const N: usize>(piece: &Piece<'_, W>, to: &mut Turned<'_, W>) {
    for c in 0..N {
        // SAFETY: the piece has `N` columns of this many rows, and nothing else uses them.
        let column = unsafe { slice::from_raw_parts_mut(to.at(c, 0), piece.rows) };
        for (y, row) in column.iter_mut().zip(piece.x.as_chunks::<N>().0) {
            *y = row[c];
        }
    }
}

/// Transposes some rows and columns of a piece within its matrix, element by element.
#[inline(always)]
fn each<W: Word>(
    piece: &Piece<'_, W>,
    to: &mut Turned<'_, W>,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    for r in rows {
        let row = &piece.x[r * piece.stride..][..piece.columns];
        for c in columns.clone() {
            // SAFETY: column and row are within the piece.
            unsafe { to.at(c, r).write(row[c]) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi32,
        _mm_unpackhi_epi64, _mm_unpacklo_epi32, _mm_unpacklo_epi64, _mm256_loadu2_m128i,
        _mm256_storeu_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32,
        _mm256_unpacklo_epi64,
    };

    /// Transposes four rows, `stride` apart, of four elements, to rows `y_stride` apart.
    ///
    /// # Safety
    /// - The rows are valid, for reads at `x` and for writes at `y`.
    #[inline(always)]
    pub unsafe fn turn_four(x: *const i32, stride: usize, y: *mut i32, y_stride: usize) {
        // SAFETY: the caller guarantees that the rows are valid on both sides; every x86-64 CPU has
        // the instructions.
        unsafe {
            let row = |k: usize| _mm_loadu_si128(x.add(k * stride).cast::<__m128i>());
            let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
            let (ab_low, ab_high) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
            let (cd_low, cd_high) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
            let store = |k: usize, row| _mm_storeu_si128(y.add(k * y_stride).cast(), row);
            store(0, _mm_unpacklo_epi64(ab_low, cd_low));
            store(1, _mm_unpackhi_epi64(ab_low, cd_low));
            store(2, _mm_unpacklo_epi64(ab_high, cd_high));
            store(3, _mm_unpackhi_epi64(ab_high, cd_high));
        }
    }

    /// Like [`turn_four`], for eight rows: the last four in the upper halves.
    ///
    /// # Safety
    /// - The rows are valid, for reads at `x` and for writes at `y`.
    /// - The CPU has AVX2.
    #[inline(always)]
    pub unsafe fn turn_eight(x: *const i32, stride: usize, y: *mut i32, y_stride: usize) {
        // SAFETY: the caller guarantees that the rows are valid on both sides, and that the CPU has
        // AVX2.
        unsafe {
            let at = |k: usize| x.add(k * stride).cast::<__m128i>();
            let rows = |k: usize| _mm256_loadu2_m128i(at(k + 4), at(k));
            let [a, b, c, d]: [__m256i; 4] = [rows(0), rows(1), rows(2), rows(3)];
            let (ab_low, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let (cd_low, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
            let store = |k: usize, row| _mm256_storeu_si256(y.add(k * y_stride).cast(), row);
            store(0, _mm256_unpacklo_epi64(ab_low, cd_low));
            store(1, _mm256_unpackhi_epi64(ab_low, cd_low));
            store(2, _mm256_unpacklo_epi64(ab_high, cd_high));
            store(3, _mm256_unpackhi_epi64(ab_high, cd_high));
        }
    }
}
