//! `_FusedLayerNorm`, row by row: after the first of three passes, a row is read from the cache.

use super::functions::Special;
use crate::{
    arch::vectorised,
    kernels::elementary::Elementary,
    lane::Compute,
    side,
    split::for_rows,
    stream::{store_rows, stores},
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    reg::Numerics,
    register_kernel,
};

/// The terms that are summed: the values, or the squares of their deviations from the mean.
trait Term {
    fn of<W: Compute<Wide = W>>(x: W, mean: W) -> W;
}

enum Value {}
impl Term for Value {
    #[inline(always)]
    fn of<W: Compute<Wide = W>>(x: W, _mean: W) -> W {
        x
    }
}

enum SquaredDeviation {}
impl Term for SquaredDeviation {
    #[inline(always)]
    fn of<W: Compute<Wide = W>>(x: W, mean: W) -> W {
        let deviation = x.sub(mean);
        deviation.mul(deviation)
    }
}

vectorised! {
    /// The sum of the terms of a row.
    fn sum[T: Compute, K: Term](x: &[T], mean: T::Wide) -> T::Wide {
        side::fold(x, T::Wide::ZERO, |sum, x| sum.add(K::of(x.up(), mean)), |a, b| a.add(b))
    }
}

vectorised! {
    /// `y = (x - mean) * factor * scale + offset`.
    fn normalise[T: Compute](
        x: &[T], scale: &[T], offset: &[T], mean: T::Wide, factor: T::Wide, y: &mut [T],
    ) {
        let vectors = scale.iter().zip(offset);
        for ((y, &x), (&scale, &offset)) in y.iter_mut().zip(x).zip(vectors) {
            let normal = x.up().sub(mean).mul(factor);
            *y = T::down(normal.mul(scale.up()).add(offset.up()));
        }
    }
}

/// The mean of a row, and `1 / sqrt(variance + epsilon)`.
pub(super) fn moments<T: Compute<Wide: Special>>(x: &[T], epsilon: T::Wide) -> [T::Wide; 2] {
    let count = <T::Wide as Number>::from_f64(x.len() as f64);
    let mean = sum::<T, Value>(x, T::Wide::ZERO).div(count);
    let variance = sum::<T, SquaredDeviation>(x, mean).div(count);
    [mean, T::Wide::ONE.div(variance.add(epsilon).sqrt())]
}

fn row<T: Compute<Wide: Special>>(x: &[T], vectors: [&[T]; 2], epsilon: T::Wide, y: &mut [T]) {
    let [mean, factor] = moments(x, epsilon);
    normalise(x, vectors[0], vectors[1], mean, factor, y);
}

struct FusedLayerNorm<T> {
    epsilon: f32,
    element: PhantomData<T>,
}

/// Scale or offset, which must be as long as the last dimension.
pub(super) fn vector<'a, T: Compute>(
    c: &ComputeContext<'a>,
    at: usize,
    name: &str,
    len: i64,
) -> Result<&'a [T], KernelError> {
    let vector = c.input::<T>(at)?;
    if vector.dims == [len] {
        return Ok(vector.data);
    }
    Err(KernelError::invalid_argument(format!(
        "{name} must have shape [{len}], a value for each position of the last dimension of x; found {:?}",
        vector.dims
    )))
}

impl<T: Compute<Wide: Special>> Kernel for FusedLayerNorm<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedLayerNorm { epsilon: c.attr("epsilon")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let Some(&len) = x.dims.last() else {
            return Err(KernelError::invalid_argument("x must have at least 1 dimensions, got 0"));
        };
        let vectors = [vector(c, 1, "scale", len)?, vector(c, 2, "offset", len)?];
        let y = c.output::<T>(0, x.dims)?.data;
        let epsilon = <T::Wide as Number>::from_f64(self.epsilon.into());
        let (len, stores) = (len as usize, stores::<T>(y.len()));
        for_rows(c, y, len, 0.5 * len as f64 + 20.0, |first, y| {
            store_rows(y, len, stores, |at, y| {
                row(&x.data[(first + at) * len..][..len], vectors, epsilon, y);
            });
        })
    }
}

register_kernel!("_FusedLayerNorm" on "CPU": FusedLayerNorm<T> for "T" in [f32],
    numerics = Numerics::relative(2e-6, 1e-5).accumulation(DType::FLOAT));
register_kernel!("_FusedLayerNorm" on "CPU": FusedLayerNorm<T> for "T" in [f64],
    numerics = Numerics::relative(1e-14, 1e-13).accumulation(DType::DOUBLE));
register_kernel!("_FusedLayerNorm" on "CPU": FusedLayerNorm<T> for "T" in [f16],
    numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::FLOAT));
register_kernel!("_FusedLayerNorm" on "CPU": FusedLayerNorm<T> for "T" in [bf16],
    numerics = Numerics::relative(8e-3, 1.6e-2).accumulation(DType::FLOAT));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, values};

    fn check<T: Compute<Wide: Special>>(len: usize, absolute: f64, relative: f64) {
        let [x, scale, offset] = [1, 2, 3].map(|seed| values::<T>(len, seed));
        let exact: Vec<f64> = x.iter().map(|x| x.to_f64()).collect();
        let mean = exact.iter().sum::<f64>() / len as f64;
        let variance = exact.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / len as f64;
        let root = (variance + 0.001).sqrt();
        let expected: Vec<T> = (0..len)
            .map(|i| (exact[i] - mean) / root * scale[i].to_f64() + offset[i].to_f64())
            .map(T::from_f64)
            .collect();
        let mut found = vec![T::ZERO; len];
        row(&x, [&scale, &offset], <T::Wide as Number>::from_f64(0.001), &mut found);
        assert_close(&found, &expected, absolute, relative);
    }

    #[test]
    fn rows_agree_with_the_formula_in_double() {
        for len in [1, 2, 31, 32, 65, 768, 10_007] {
            check::<f32>(len, 1e-5, 1e-6);
            check::<f64>(len, 1e-14, 1e-14);
            check::<f16>(len, 1e-3, 2e-3);
            check::<bf16>(len, 1e-2, 1.6e-2);
        }
    }
}
