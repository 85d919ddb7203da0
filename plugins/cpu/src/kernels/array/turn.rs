//! Turning one matrix: rows become columns.
//!
//! A strip of rows is turned at a time, a few of its columns after the other in the first-level cache: reads go
//! along rows, so that the processor fetches them ahead, and each of the strip's columns is a piece of a row of the
//! output that is long enough to be whole lines of memory but for its ends.

use super::Word;
use crate::{split::Parts, stream};
use std::ops::Range;

/// Rows of a strip.
pub const STRIP: usize = 128;
/// Columns that are turned together: a line of memory holds as many elements of 4 bytes.
pub const SIDE: usize = 16;

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
    let mut strip = [[W::default(); STRIP]; SIDE];
    for c in columns.clone().step_by(SIDE) {
        let width = SIDE.min(columns.end - c);
        let whole = if width == SIDE { count - count % SIDE } else { 0 };
        for r in (0..whole).step_by(SIDE) {
            turn_square(&x[(first + r) * cols + c..], cols, &mut strip, r);
        }
        for r in whole..count {
            let row = &x[(first + r) * cols + c..][..width];
            strip.iter_mut().zip(row).for_each(|(turned, &x)| turned[r] = x);
        }
        for (i, turned) in strip[..width].iter().enumerate() {
            let at = start + (c + i) * rows + first;
            // SAFETY: rows of the input, which are columns of the output, are given to one call each, or other
            // columns of them are.
            let y = unsafe { y.part(at..at + count) };
            match large {
                true => stream::copy(&turned[..count], y),
                false => y.copy_from_slice(&turned[..count]),
            }
        }
    }
    if large {
        stream::fence();
    }
}

/// Turns a square of [`SIDE`] rows, which are elements from `at` on of the strip's columns.
#[inline(always)]
fn turn_square<W: Word>(x: &[W], stride: usize, strip: &mut [[W; STRIP]; SIDE], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if size_of::<W>() == 4 {
        assert!(x.len() >= (SIDE - 1) * stride + SIDE && at + SIDE <= STRIP);
        for r in (0..SIDE).step_by(4) {
            for c in (0..SIDE).step_by(4) {
                // SAFETY: four rows of four elements of 4 bytes, inside `x` and inside the strip.
                unsafe {
                    let x = x.as_ptr().add(r * stride + c).cast();
                    turn_four(x, stride, strip[c].as_mut_ptr().add(at + r).cast());
                }
            }
        }
        return;
    }
    for (r, x) in x.chunks(stride).take(SIDE).enumerate() {
        for (turned, &x) in strip.iter_mut().zip(&x[..SIDE]) {
            turned[at + r] = x;
        }
    }
}

/// Turns four rows, `stride` apart, of four elements, to rows of a strip.
///
/// # Safety
/// They are there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn turn_four(x: *const i32, stride: usize, y: *mut i32) {
    use std::arch::x86_64::{
        __m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi32, _mm_unpackhi_epi64,
        _mm_unpacklo_epi32, _mm_unpacklo_epi64,
    };
    // SAFETY: the caller's promise; every x86-64 CPU has the instructions.
    unsafe {
        let row = |k: usize| _mm_loadu_si128(x.add(k * stride).cast::<__m128i>());
        let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
        let (ab_low, ab_high) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
        let (cd_low, cd_high) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
        let store = |k: usize, row| _mm_storeu_si128(y.add(k * STRIP).cast::<__m128i>(), row);
        store(0, _mm_unpacklo_epi64(ab_low, cd_low));
        store(1, _mm_unpackhi_epi64(ab_low, cd_low));
        store(2, _mm_unpacklo_epi64(ab_high, cd_high));
        store(3, _mm_unpackhi_epi64(ab_high, cd_high));
    }
}
