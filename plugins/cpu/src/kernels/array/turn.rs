//! Turning one matrix: rows become columns.
//!
//! A few columns are turned at a time, of a strip of rows: reads go along rows, so that the processor fetches them
//! ahead, and each column becomes a piece of a row of the output. Where many pieces would meet in one set of the
//! first-level cache, and where the output goes past the caches, they are collected there first and then copied.

use super::Word;
use crate::{
    arch::{Isa, vectorised},
    split::Parts,
    stream,
};
use std::{marker::PhantomData, ops::Range};

/// Rows of a strip.
pub const STRIP: usize = 128;
/// Columns that are turned together: a line of memory holds as many elements of 4 bytes.
pub const SIDE: usize = 16;
/// Rows of the output that begin a multiple of so many bytes apart share two sets of the first-level cache, of 8
/// lines each: [`SIDE`] of them push each other out.
const RESONANCE: usize = 2048;

/// Turns rows `first..first + count` of a matrix of `rows` by `cols` elements at `x`, at most [`STRIP`], and of these
/// some columns; they are columns of the one that begins at `start` in `y`. `large` says to write past the caches.
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
            // SAFETY: rows of the input, which are columns of the output, are given to one call each, or other
            // columns of them are.
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
            // SAFETY: as above, and the columns between the first and the last are there as well.
            turn_piece(&piece, &mut unsafe { Turned::new(to, rows, [width, count]) });
        }
    }
    if large {
        stream::fence();
    }
}

/// Turns a piece by way of a strip in the first-level cache; `at` is where a column goes.
fn through_strip<'y, W: Word>(
    piece: &Piece<'_, W>,
    at: impl Fn(usize) -> &'y mut [W],
    large: bool,
) {
    let mut strip = [[W::default(); STRIP]; SIDE];
    let size = [piece.columns, piece.rows];
    assert!(size[0] <= SIDE && size[1] <= STRIP);
    // SAFETY: the strip is as large, and nobody else uses it.
    let mut to = unsafe { Turned::new(strip.as_flattened_mut().as_mut_ptr(), STRIP, size) };
    turn_piece(piece, &mut to);
    for (i, turned) in strip[..piece.columns].iter().enumerate() {
        match large {
            true => stream::copy(&turned[..piece.rows], at(i)),
            false => at(i).copy_from_slice(&turned[..piece.rows]),
        }
    }
}

/// Turns a matrix of `rows` by `cols` elements, rows of which begin `stride` elements apart, to one whose rows begin
/// `y_stride` elements apart.
///
/// Panics when they do not lie in `x` and `y`.
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
    // SAFETY: as many columns of as many elements lie in `y`, without overlap.
    turn_piece(&piece, &mut unsafe { Turned::new(y.as_mut_ptr(), y_stride, [cols, rows]) });
}

/// Some rows and columns of a matrix: `x` begins with the first of them, rows begin `stride` elements apart.
struct Piece<'a, W> {
    x: &'a [W],
    stride: usize,
    rows: usize,
    columns: usize,
}

/// Where the columns of a piece go, which begin `stride` elements apart.
struct Turned<'a, W> {
    first: *mut W,
    stride: usize,
    size: [usize; 2],
    life: PhantomData<&'a mut [W]>,
}

impl<W: Word> Turned<'_, W> {
    /// # Safety
    /// So many columns of so many elements may be written, and for as long as this is used nobody else uses them.
    unsafe fn new(first: *mut W, stride: usize, size: [usize; 2]) -> Self {
        Turned { first, stride, size, life: PhantomData }
    }

    /// Where element `row` of a column goes.
    ///
    /// # Safety
    /// There are as many.
    #[inline(always)]
    unsafe fn at(&mut self, column: usize, row: usize) -> *mut W {
        // SAFETY: the caller knows that there are as many columns and rows; the element is in the memory that `new` was
        // given.
        unsafe { self.first.add(column * self.stride + row) }
    }
}

vectorised! {
    /// Turns a piece.
    fn turn_piece[W: Word](piece: &Piece<'_, W>, to: &mut Turned<'_, W>) {
        let [columns, rows] = to.size;
        assert!(piece.columns == columns && piece.rows == rows, "the sizes agree");
        if rows == 0 || columns == 0 {
            return;
        }
        assert!(piece.x.len() >= (rows - 1) * piece.stride + columns, "the piece is in the matrix");
        let square = squares::<W, I>(piece, to);
        each(piece, to, 0..square[0], square[1]..columns);
        each(piece, to, square[0]..rows, 0..columns);
    }
}

/// Turns what is whole squares of a piece that is inside its matrix, of elements of 4 bytes; returns of how many
/// rows and columns that is.
#[inline(always)]
fn squares<W: Word, I: Isa>(piece: &Piece<'_, W>, to: &mut Turned<'_, W>) -> [usize; 2] {
    #[cfg(target_arch = "x86_64")]
    if size_of::<W>() == 4 {
        let (columns, rows) = (piece.columns - piece.columns % 4, piece.rows - piece.rows % 4);
        let eights = if I::WIDE { rows - rows % 8 } else { 0 };
        for c in (0..columns).step_by(4) {
            // SAFETY: four columns and eight rows, or four, inside the piece; 4 bytes each. The level has the
            // instructions.
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

/// Turns some rows and columns of a piece that is inside its matrix, one element after the other.
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
            // SAFETY: inside the piece.
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

    /// Turns four rows, `stride` apart, of four elements, to rows `y_stride` apart.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    pub unsafe fn turn_four(x: *const i32, stride: usize, y: *mut i32, y_stride: usize) {
        // SAFETY: the caller knows that the rows are there, on both sides; every x86-64 CPU has the instructions.
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

    /// As [`turn_four`], of eight rows: the last four in the upper halves.
    ///
    /// # Safety
    /// They are there, and the CPU has AVX2.
    #[inline(always)]
    pub unsafe fn turn_eight(x: *const i32, stride: usize, y: *mut i32, y_stride: usize) {
        // SAFETY: the caller knows that the rows are there, on both sides, and that the CPU has AVX2.
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
