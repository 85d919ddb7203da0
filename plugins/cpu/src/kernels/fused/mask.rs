//! Masks and scales of the logits of a softmax, row by row.

use crate::{arch::vectorised, lane::Compute};
use tenon_sdk::{KernelError, element::Number, geometry::GeometryError};

/// The positions of the parts of a tensor, by index in what it is broadcast to.
#[derive(Debug)]
pub struct Steps {
    /// For each dimension, from the last on: its size, and the distance between the tensor's own
    /// parts along it.
    steps: Vec<(usize, usize)>,
}

impl Steps {
    /// The steps of a dense tensor: `own` are the dimensions of its parts, a part has `len`
    /// elements, and `all` is what `own` broadcasts to.
    pub fn new(own: &[i64], all: &[i64], len: usize) -> Steps {
        let mut stride = len;
        let apart = own.iter().rev().map(|&size| {
            let apart = stride;
            stride = stride.saturating_mul(size as usize);
            (size, apart)
        });
        Steps::apart(apart, all)
    }

    /// The steps of parts with given distances: size and distance for each dimension of the tensor,
    /// from the last on.
    pub fn apart(own: impl IntoIterator<Item = (i64, usize)>, all: &[i64]) -> Steps {
        let mut own = own.into_iter();
        let steps = all.iter().rev().map(|&size| match own.next() {
            Some((own, apart)) if own != 1 => (size as usize, apart),
            _ => (size as usize, 0),
        });
        Steps { steps: steps.collect() }
    }

    /// Index of the first element of a part.
    pub fn at(&self, number: usize) -> usize {
        let (mut rest, mut at) = (number, 0);
        for &(size, step) in &self.steps {
            at += rest % size * step;
            rest /= size;
        }
        at
    }
}

/// A tensor that is broadcast to logits, row by row.
#[derive(Debug)]
pub struct Mask<'a, T> {
    data: &'a [T],
    /// Elements of a row: 1, or as many as the logits have.
    cols: usize,
    rows: Steps,
}

impl<'a, T> Mask<'a, T> {
    /// The mask of a tensor that broadcasts to these dimensions; there must be at least one.
    pub fn over(data: &'a [T], dims: &[i64], logits: &[i64]) -> Mask<'a, T> {
        let (&cols, own) = dims.split_last().unwrap_or((&1, &[]));
        let all = &logits[..logits.len() - 1];
        Mask { data, cols: cols as usize, rows: Steps::new(own, all, cols as usize) }
    }

    /// The mask of a row of the logits: one value for all, or one for each.
    pub fn row(&self, row: usize) -> &'a [T] {
        &self.data[self.rows.at(row)..][..self.cols]
    }
}

/// Whether there is a mask.
///
/// # Errors
/// There are several masks.
pub fn at_most_one(what: &'static str, found: usize) -> Result<bool, KernelError> {
    match found {
        0 | 1 => Ok(found == 1),
        found => Err(GeometryError::Length { what, expected: 1, found }.into()),
    }
}

vectorised! {
    /// `y = scale * y`.
    fn scale[T: Compute](y: &mut [T::Wide], scale: T::Wide) {
        for y in y.iter_mut() {
            *y = scale.mul(*y);
        }
    }
}

vectorised! {
    /// `y = scale * y + mask`.
    fn scale_and_mask[T: Compute](y: &mut [T::Wide], scale: T::Wide, mask: &[T]) {
        for (y, mask) in y.iter_mut().zip(mask) {
            *y = scale.mul(*y).add(mask.up());
        }
    }
}

/// `factor * y + mask` for a row of logits, in place.
pub fn prepare<T: Compute>(y: &mut [T::Wide], factor: T::Wide, mask: Option<&[T]>) {
    match mask {
        None if factor == T::Wide::ONE => {}
        None => scale::<T>(y, factor),
        Some(&[one]) => {
            let one = one.up();
            y.iter_mut().for_each(|y| *y = factor.mul(*y).add(one));
        }
        Some(mask) => scale_and_mask(y, factor, mask),
    }
}

/// `y = dropped` where `keep` is false.
pub fn select<T: Number>(y: &mut [T], keep: &[bool], dropped: T) {
    match keep {
        &[true] => {}
        &[false] => y.fill(dropped),
        keep => {
            for (y, keep) in y.iter_mut().zip(keep) {
                *y = if *keep { *y } else { dropped };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_broadcast_mask() {
        let data: Vec<f32> = (0..6).map(|x| x as f32).collect();
        let rows = |dims: &[i64], logits: &[i64]| -> Vec<Vec<f32>> {
            let len: i64 = dims.iter().product();
            let mask = Mask::over(&data[..len as usize], dims, logits);
            let count: i64 = logits[..logits.len() - 1].iter().product();
            (0..count as usize).map(|row| mask.row(row).to_vec()).collect()
        };
        assert_eq!(rows(&[2, 1, 3], &[2, 2, 3])[1..3], [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]);
        assert_eq!(rows(&[3], &[2, 2, 3]), vec![vec![0.0, 1.0, 2.0]; 4]);
        assert_eq!(rows(&[], &[2, 5]), [[0.0], [0.0]]);
        assert_eq!(rows(&[2, 1], &[2, 5]), [[0.0], [1.0]]);
        assert_eq!(rows(&[2, 3, 1], &[2, 3, 9])[4], [4.0]);
    }
}
