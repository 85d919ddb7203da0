//! What is added to the logits of a softmax, row by row, and the scale of them.

use crate::{arch::vectorised, lane::Compute};
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    element::Number,
    geometry::{BroadcastPlan, GeometryError},
};

/// A mask that is broadcast to logits.
pub struct Mask<'a, T> {
    data: &'a [T],
    /// Elements of a row: 1, or as many as the logits have.
    cols: usize,
    /// Size of each dimension of the logits but the last, from the last on, and how far apart the mask's rows are
    /// along it.
    steps: Vec<(usize, usize)>,
}

impl<'a, T: Compute> Mask<'a, T> {
    /// Input `at` of a call, if there is one, for logits of these dimensions, at least one.
    ///
    /// # Errors
    /// Several masks; one that does not broadcast, or would make the logits larger.
    pub fn new(
        c: &ComputeContext<'a>,
        at: usize,
        logits: &[i64],
    ) -> Result<Option<Mask<'a, T>>, KernelError> {
        match c.input_count() - at {
            0 => Ok(None),
            1 => {
                let mask = c.input::<T>(at)?;
                let plan = BroadcastPlan::new([logits, mask.dims])?;
                if plan.output_dims() != logits {
                    let (a, b) = (logits.to_vec(), mask.dims.to_vec());
                    return Err(GeometryError::Incompatible { a, b }.into());
                }
                Ok(Some(Mask::over(mask.data, mask.dims, logits)))
            }
            found => Err(GeometryError::Length { what: "mask", expected: 1, found }.into()),
        }
    }

    fn over(data: &'a [T], dims: &[i64], logits: &[i64]) -> Mask<'a, T> {
        let cols = dims.last().map_or(1, |&cols| cols as usize);
        let mut stride = cols;
        let mut own = dims.iter().rev().skip(1);
        let steps = logits.iter().rev().skip(1).map(|&size| {
            let own = own.next().map_or(1, |&own| own as usize);
            let step = if own == 1 { 0 } else { stride };
            stride *= own;
            (size as usize, step)
        });
        let steps = steps.collect();
        Mask { data, cols, steps }
    }

    /// What is added to a row of the logits: one value for all, or one for each.
    pub fn row(&self, row: usize) -> &'a [T] {
        let (mut rest, mut at) = (row, 0);
        for &(size, step) in &self.steps {
            at += rest % size * step;
            rest /= size;
        }
        &self.data[at..at + self.cols]
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
