//! The product of small matrices, and of integers, computed a tile of the result at a time in
//! registers, without packing.

use super::product::{Factor, Operand, Target};
use crate::{
    arch::{Isa, vectorised},
    side::{LANES, merged},
};

/// Rows of a tile.
const ROWS: usize = 4;

vectorised! {
    /// `C = A B`. The columns of `B` and of `C` are neighbours in memory (stride 1) where a matrix
    /// has several.
    pub fn tiles[T: Factor](a: Operand<'_, T>, b: Operand<'_, T>, c: Target<T>) {
        a.assert_product(&b, &c);
        assert!(c.cols <= 1 || b.strides[1] == 1 && c.strides[1] == 1, "dense columns");
        let mut j = 0;
        // SAFETY: operands are inside their slices, the target inside its memory (as its maker
        // guarantees), and every tile inside the matrices by the loops' bounds.
        unsafe {
            while j + 64 <= c.cols {
                columns::<I, T, 64>(&a, &b, &c, j);
                j += 64;
            }
            while j + 16 <= c.cols {
                columns::<I, T, 16>(&a, &b, &c, j);
                j += 16;
            }
            while j < c.cols {
                columns::<I, T, 1>(&a, &b, &c, j);
                j += 1;
            }
        }
    }
}

vectorised! {
    /// The sum of the products of neighbours: terms are added by lane, then the lanes are added.
    pub fn dot[T: Factor](a: &[T], b: &[T]) -> T {
        let mut sums = [T::ZERO; LANES];
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for ((sum, &x), &y) in sums.iter_mut().zip(a).zip(b) {
                *sum = x.mul_add::<I>(y, *sum);
            }
        }
        for ((sum, &x), &y) in sums.iter_mut().zip(a_rest).zip(b_rest) {
            *sum = x.mul_add::<I>(y, *sum);
        }
        merged(sums, |a, b| a.add(b))
    }
}

/// Computes columns `j..j + J`.
///
/// # Safety
/// - The operands and the target are in memory, and nothing else uses the target.
/// - Columns `j..j + J` are inside `B` and `C`, and neighbours in memory.
#[inline(always)]
unsafe fn columns<I: Isa, T: Factor, const J: usize>(
    a: &Operand<'_, T>,
    b: &Operand<'_, T>,
    c: &Target<T>,
    j: usize,
) {
    let mut i = 0;
    // SAFETY: the caller guarantees that the operands and the target are in memory, with all of
    // columns `j..j + J`; rows are below `c.rows`.
    unsafe {
        while J <= 16 && i + ROWS <= c.rows {
            tile::<I, T, ROWS, J>(a, b, c, i, j);
            i += ROWS;
        }
        while i < c.rows {
            tile::<I, T, 1, J>(a, b, c, i, j);
            i += 1;
        }
    }
}

/// Computes rows `i..i + R` and columns `j..j + J`.
///
/// # Safety
/// - The operands and the target are in memory, and nothing else uses the target.
/// - Rows `i..i + R` and columns `j..j + J` are inside the matrices.
/// - Columns of `B` and of `C` are neighbours in memory.
#[inline(always)]
unsafe fn tile<I: Isa, T: Factor, const R: usize, const J: usize>(
    a: &Operand<'_, T>,
    b: &Operand<'_, T>,
    c: &Target<T>,
    i: usize,
    j: usize,
) {
    let mut sums = [[T::ZERO; J]; R];
    for p in 0..a.cols {
        // SAFETY: `p` is below the columns of `a`, which are the rows of `b`.
        let row = unsafe { &*b.data.as_ptr().add(p * b.strides[0] + j).cast::<[T; J]>() };
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `p` is below the columns of `a`, and `i + r` is below its rows.
            let x = unsafe { *a.data.as_ptr().add((i + r) * a.strides[0] + p * a.strides[1]) };
            for (sum, &y) in sums.iter_mut().zip(row) {
                *sum = x.mul_add::<I>(y, *sum);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        // SAFETY: the tile is inside `c`.
        unsafe { c.data.add((i + r) * c.strides[0] + j).cast::<[T; J]>().write(*sums) };
    }
}
