//! `_FusedLayerNormGrad`, row by row: a row of both inputs is read from memory once, and its mean and
//! its root are computed again, which costs less than to store them.
//!
//! With `n = (x - mean) root` and `g = scale dy`, of rows of `d` elements,
//! `dx = root (g - sum(g) / d - n sum(g n) / d)`; the gradients of scale and offset are the sums of
//! `dy n` and `dy` over all rows. These are summed over groups of rows, whose number depends on that
//! of the rows alone, and then over the groups.

use super::{
    functions::Special,
    layer_norm::{moments, vector},
};
use crate::{
    arch::vectorised,
    kernels::elementary::Elementary,
    lane::Compute,
    side::{LANES, merged},
    split::{Parts, for_units},
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

/// The fewest rows of a group, and the most groups.
const ROWS: usize = 32;
const GROUPS: usize = 64;

vectorised! {
    /// The sums of `scale dy` and of `scale dy (x - mean)` over a row.
    fn row_sums[T: Compute](dy: &[T], x: &[T], scale: &[T], mean: T::Wide) -> [T::Wide; 2] {
        let mut sums = [[T::Wide::ZERO; LANES]; 2];
        let [plain, weighted] = &mut sums;
        let rows = dy.chunks(LANES).zip(x.chunks(LANES)).zip(scale.chunks(LANES));
        for ((dy, x), scale) in rows {
            let lanes = plain.iter_mut().zip(weighted.iter_mut());
            for ((plain, weighted), ((&dy, &x), &scale)) in lanes.zip(dy.iter().zip(x).zip(scale)) {
                let gradient = dy.up().mul(scale.up());
                *plain = plain.add(gradient);
                *weighted = weighted.add(gradient.mul(x.up().sub(mean)));
            }
        }
        sums.map(|lanes| merged(lanes, |a, b| a.add(b)))
    }
}

/// What the elements of a row are computed with.
#[derive(Clone, Copy)]
struct Row<W> {
    mean: W,
    root: W,
    /// `sum(g) / d`.
    plain: W,
    /// `sum(g n) / d`.
    weighted: W,
}

vectorised! {
    /// The gradient of a row, and its part of those of scale and offset.
    fn finish[T: Compute](
        inputs: [&[T]; 3], row: Row<T::Wide>, dx: &mut [T], sums: [&mut [T::Wide]; 2],
    ) {
        let [dy, x, scale] = inputs;
        let [of_scale, of_offset] = sums;
        let sums = of_scale.iter_mut().zip(of_offset);
        let inputs = dy.iter().zip(x).zip(scale);
        for ((dx, (of_scale, of_offset)), ((&dy, &x), &scale)) in
            dx.iter_mut().zip(sums).zip(inputs)
        {
            let (dy, normal) = (dy.up(), x.up().sub(row.mean).mul(row.root));
            let rest = dy.mul(scale.up()).sub(row.plain).sub(normal.mul(row.weighted));
            *dx = T::down(rest.mul(row.root));
            *of_scale = of_scale.add(dy.mul(normal));
            *of_offset = of_offset.add(dy);
        }
    }
}

/// The gradient of neighbouring rows; adds to both sums.
fn rows<T: Compute<Wide: Special>>(
    [dy, x, scale]: [&[T]; 3],
    epsilon: T::Wide,
    dx: &mut [T],
    [of_scale, of_offset]: [&mut [T::Wide]; 2],
) {
    let len = scale.len();
    let count = <T::Wide as Number>::from_f64(len as f64);
    let rows = dy.chunks_exact(len).zip(x.chunks_exact(len));
    for ((dy, x), dx) in rows.zip(dx.chunks_exact_mut(len)) {
        let [mean, root] = moments(x, epsilon);
        let [plain, weighted] = row_sums(dy, x, scale, mean).map(|sum| sum.div(count));
        let row = Row { mean, root, plain, weighted: weighted.mul(root) };
        finish([dy, x, scale], row, dx, [&mut *of_scale, &mut *of_offset]);
    }
}

struct FusedLayerNormGrad<T> {
    epsilon: f32,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Special>> Kernel for FusedLayerNormGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedLayerNormGrad { epsilon: c.attr("epsilon")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (dy, x) = (c.input::<T>(0)?, c.input::<T>(1)?);
        if dy.dims != x.dims {
            return Err(KernelError::invalid_argument(format!(
                "dy must have the shape of x, {:?}, found {:?}",
                x.dims, dy.dims
            )));
        }
        let Some(&len) = x.dims.last() else {
            return Err(KernelError::invalid_argument("x must have at least 1 dimensions, got 0"));
        };
        let scale = vector::<T>(c, 2, "scale", len)?;
        let dx = c.output::<T>(0, x.dims)?.data;
        let sums = [c.output::<T>(1, &[len])?.data, c.output::<T>(2, &[len])?.data];
        if dx.is_empty() {
            sums.into_iter().for_each(|sum| sum.fill(T::ZERO));
            return Ok(());
        }
        self.groups(c, [dy.data, x.data, scale], dx, sums)
    }
}

impl<T: Compute<Wide: Special>> FusedLayerNormGrad<T> {
    /// Computes groups of rows, and adds their sums. There are elements.
    fn groups(
        &self,
        c: &ComputeContext<'_>,
        [dy, x, scale]: [&[T]; 3],
        dx: &mut [T],
        [of_scale, of_offset]: [&mut [T]; 2],
    ) -> Result<(), KernelError> {
        let epsilon = <T::Wide as Number>::from_f64(self.epsilon.into());
        let (len, count) = (scale.len(), x.len() / scale.len());
        let group = ROWS.max(count.div_ceil(GROUPS));
        let groups = count.div_ceil(group);
        let partial = c.scratch_slice::<T::Wide>(groups.saturating_mul(2 * len))?;
        let (dx, parts) = (Parts::new(dx), Parts::new(&mut *partial));
        for_units(c, groups, (1.5 * len as f64 + 40.0) * group as f64, |range| {
            for number in range {
                let at = number * group * len..((number + 1) * group).min(count) * len;
                // SAFETY: each group has rows and sums of its own.
                let (dx, sums) = unsafe {
                    (dx.part(at.clone()), parts.part(number * 2 * len..(number + 1) * 2 * len))
                };
                let (of_scale, of_offset) = sums.split_at_mut(len);
                rows([&dy[at.clone()], &x[at], scale], epsilon, dx, [of_scale, of_offset]);
            }
        })?;
        let (first, others) = partial.split_at_mut(2 * len);
        for sums in others.chunks_exact(2 * len) {
            first.iter_mut().zip(sums).for_each(|(sum, &part)| *sum = sum.add(part));
        }
        let sums = of_scale.iter_mut().chain(of_offset);
        sums.zip(&*first).for_each(|(to, &sum)| *to = T::down(sum));
        Ok(())
    }
}

register_kernel!("_FusedLayerNormGrad" on "CPU": FusedLayerNormGrad<T> for "T" in [f32],
    numerics = Numerics::relative(4e-6, 2e-5).accumulation(DType::FLOAT));
register_kernel!("_FusedLayerNormGrad" on "CPU": FusedLayerNormGrad<T> for "T" in [f64],
    numerics = Numerics::relative(2e-14, 2e-13).accumulation(DType::DOUBLE));
register_kernel!("_FusedLayerNormGrad" on "CPU": FusedLayerNormGrad<T> for "T" in [f16],
    numerics = Numerics::relative(2e-3, 4e-3).accumulation(DType::FLOAT));
register_kernel!("_FusedLayerNormGrad" on "CPU": FusedLayerNormGrad<T> for "T" in [bf16],
    numerics = Numerics::relative(1.6e-2, 3.2e-2).accumulation(DType::FLOAT));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, values};

    /// The gradient of x, in doubles, and the products that are summed for scale.
    fn exact([dy, x, scale]: [&[f64]; 3]) -> [Vec<f64>; 2] {
        let (mut dx, mut products) = (Vec::new(), Vec::new());
        let len = scale.len();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / len as f64;
        for (dy, x) in dy.chunks_exact(len).zip(x.chunks_exact(len)) {
            let middle = mean(x);
            let squares: Vec<f64> = x.iter().map(|x| (x - middle).powi(2)).collect();
            let root = 1.0 / (mean(&squares) + 0.001).sqrt();
            let normal: Vec<f64> = x.iter().map(|x| (x - middle) * root).collect();
            let scaled: Vec<f64> = dy.iter().zip(scale).map(|(dy, s)| dy * s).collect();
            let along: Vec<f64> = scaled.iter().zip(&normal).map(|(g, n)| g * n).collect();
            let rest = |i: usize| scaled[i] - mean(&scaled) - normal[i] * mean(&along);
            dx.extend((0..len).map(|i| root * rest(i)));
            products.extend(dy.iter().zip(&normal).map(|(dy, n)| dy * n));
        }
        [dx, products]
    }

    fn check<T: Compute<Wide: Special>>(count: usize, len: usize, absolute: f64, relative: f64) {
        let [dy, x] = [1, 2].map(|seed| values::<T>(count * len, seed));
        let scale = values::<T>(len, 3);
        let wide = |values: &[T]| values.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
        let [expected, products] = exact([&wide(&dy), &wide(&x), &wide(&scale)]);
        let narrow = |values: &[f64]| values.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();
        let column = |all: &[f64], at: usize| all.iter().skip(at).step_by(len).sum::<f64>();
        let columns = |all: &[f64]| (0..len).map(|at| column(all, at)).collect::<Vec<f64>>();
        let mut dx = vec![T::ONE; count * len];
        let [mut of_scale, mut of_offset] = [(); 2].map(|()| vec![T::Wide::ZERO; len]);
        let epsilon = <T::Wide as Number>::from_f64(0.001);
        rows([&dy, &x, &scale], epsilon, &mut dx, [&mut of_scale, &mut of_offset]);
        assert_close(&dx, &narrow(&expected), absolute, relative);
        let sums = [(of_scale, columns(&products)), (of_offset, columns(&wide(&dy)))];
        for (found, expected) in sums {
            let found: Vec<T> = found.into_iter().map(T::down).collect();
            assert_close(&found, &narrow(&expected), absolute * count as f64, relative);
        }
    }

    #[test]
    fn rows_agree_with_the_formula_in_double() {
        for (count, len) in [(1, 2), (3, 31), (2, 64), (5, 65), (7, 768), (2, 10_007)] {
            check::<f32>(count, len, 2e-5, 2e-6);
            check::<f64>(count, len, 5e-14, 5e-14);
            check::<f16>(count, len, 2e-3, 4e-3);
            check::<bf16>(count, len, 2e-2, 3.2e-2);
        }
    }
}
