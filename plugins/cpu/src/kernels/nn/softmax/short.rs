//! Softmax of rows of few elements: many rows side by side, so that the loops vectorise.

use crate::{
    arch::{Isa, vectorised},
    kernels::elementary::Elementary,
    lane::Compute,
};
use tenon_sdk::element::Number;

/// The most elements of a short row.
pub const MOST: usize = 16;
/// The number of rows side by side.
const ROWS: usize = 64;

/// An element of each of some rows, for each column.
type Columns<W> = [[W; ROWS]; MOST];

vectorised! {
    /// Computes short rows of `cols` elements, or their logarithms.
    pub fn rows[T: Compute<Wide: Elementary>](x: &[T], cols: usize, log: bool, y: &mut [T]) {
        let mut columns = [[T::Wide::ZERO; ROWS]; MOST];
        for (x, y) in x.chunks(ROWS * cols).zip(y.chunks_mut(ROWS * cols)) {
            split(x, cols, &mut columns);
            softmax::<I, _>(&mut columns[..cols], log);
            join(&columns, cols, y);
        }
    }
}

vectorised! {
    /// As [`rows`], in place.
    pub fn rows_in_place[T: Compute<Wide: Elementary>](y: &mut [T], cols: usize, log: bool) {
        let mut columns = [[T::Wide::ZERO; ROWS]; MOST];
        for y in y.chunks_mut(ROWS * cols) {
            split(y, cols, &mut columns);
            softmax::<I, _>(&mut columns[..cols], log);
            join(&columns, cols, y);
        }
    }
}

/// Computes the softmax of all rows. Rows that are not there have any elements.
#[inline(always)]
fn softmax<I: Isa, W: Elementary>(columns: &mut [[W; ROWS]], log: bool) {
    let mut most = columns[0];
    for column in &columns[1..] {
        most.iter_mut()
            .zip(column)
            .for_each(|(most, &x)| *most = if x > *most { x } else { *most });
    }
    let mut sums = [W::ZERO; ROWS];
    for column in columns.iter_mut() {
        for ((x, sum), &most) in column.iter_mut().zip(&mut sums).zip(&most) {
            let less = x.sub(most);
            let power = less.exp_of_negative::<I>();
            *sum = sum.add(power);
            *x = if log { less } else { power };
        }
    }
    if log {
        sums.iter_mut().for_each(|sum| *sum = sum.ln::<I>());
    } else {
        sums.iter_mut().for_each(|sum| *sum = W::ONE.div(*sum));
    }
    for column in columns {
        for (x, &sum) in column.iter_mut().zip(&sums) {
            *x = if log { x.sub(sum) } else { x.mul(sum) };
        }
    }
}

/// Splits rows into columns.
#[inline(always)]
fn split<T: Compute>(x: &[T], cols: usize, columns: &mut Columns<T::Wide>) {
    #[inline(always)]
    fn by<T: Compute, const N: usize>(x: &[T], columns: &mut Columns<T::Wide>) {
        for (row, x) in x.as_chunks::<N>().0.iter().enumerate().take(ROWS) {
            for (column, x) in columns.iter_mut().zip(x) {
                column[row] = x.up();
            }
        }
    }
    match cols {
        2 => by::<T, 2>(x, columns),
        3 => by::<T, 3>(x, columns),
        4 => by::<T, 4>(x, columns),
        _ => {
            for (row, x) in x.chunks_exact(cols).enumerate().take(ROWS) {
                columns.iter_mut().zip(x).for_each(|(column, x)| column[row] = x.up());
            }
        }
    }
}

/// Joins columns into rows.
#[inline(always)]
fn join<T: Compute>(columns: &Columns<T::Wide>, cols: usize, y: &mut [T]) {
    #[inline(always)]
    fn by<T: Compute, const N: usize>(columns: &Columns<T::Wide>, y: &mut [T]) {
        for (row, y) in y.as_chunks_mut::<N>().0.iter_mut().enumerate().take(ROWS) {
            for (column, y) in columns.iter().zip(y) {
                *y = T::down(column[row]);
            }
        }
    }
    match cols {
        2 => by::<T, 2>(columns, y),
        3 => by::<T, 3>(columns, y),
        4 => by::<T, 4>(columns, y),
        _ => {
            for (row, y) in y.chunks_exact_mut(cols).enumerate().take(ROWS) {
                columns.iter().zip(y).for_each(|(column, y)| *y = T::down(column[row]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, values};
    use tenon_reference::nn::softmax as reference;

    #[test]
    fn short_rows_agree_with_the_reference() {
        for cols in 1..=MOST {
            for count in [1, 63, 64, 200] {
                let x = values::<f32>(count * cols, 1);
                let (mut expected, mut found) = (vec![0.0; x.len()], vec![0.0; x.len()]);
                reference(cols, &x, &mut expected);
                rows(&x, cols, false, &mut found);
                assert_close(&found, &expected, 0.0, 4e-6);
                let mut in_place = x.clone();
                rows_in_place(&mut in_place, cols, false);
                assert_eq!(in_place, found);
                rows(&x, cols, true, &mut found);
                expected.iter_mut().for_each(|y| *y = y.ln());
                assert_close(&found, &expected, 1e-6, 1e-5);
            }
        }
    }

    #[test]
    fn infinite_logits_and_nan() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let mut y = [1000.0, 1000.0, -inf, -inf, nan, 1.0, inf, 1.0];
        rows_in_place(&mut y, 2, false);
        assert_eq!(y[..2], [0.5, 0.5]);
        assert!(y[2..7].iter().all(|y| y.is_nan()), "{y:?}");
    }
}
