//! `FusedBatchNormGrad`, `FusedBatchNormGradV2` and `FusedBatchNormGradV3`.
//!
//! Per channel, with `f = scale / sqrt(variance + epsilon)` and means over the channel: in training
//! `dx = f (dy - mean(dy) - (x - m) mean(dy (x - m)) / (variance + epsilon))`, in inference `dx = f
//! dy`; always `dscale = sum(dy (x - m)) / sqrt(variance + epsilon)` and `doffset = sum(dy)`. Sums
//! are kept in double, in an order that does not depend on the number of threads.

use super::batch_norm::{repeated, rows_at_once};
use crate::{arch::vectorised, lane::Compute, split::for_rows};
use half::{bf16, f16};
use std::{marker::PhantomData, ops::Range};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{ChannelSplit, DataFormat},
    growth,
    reg::Numerics,
    register_kernel,
};

/// The number of elements that one unit of work sums.
const BLOCK: usize = 1 << 15;
/// Approximate nanoseconds of an element.
const COST_NS: f64 = 0.2;
/// The number of sums side by side.
const LANES: usize = 16;

/// Adds `dy` and `dy (x - mean)` of as many elements to sums.
#[inline(always)]
fn add<T: Compute<Wide = f32>>(sums: &mut [[f64; LANES]; 2], dy: &[T], x: &[T], means: &[f64]) {
    let [first, second] = sums;
    let both = first.iter_mut().zip(second.iter_mut());
    for ((first, second), ((dy, x), mean)) in both.zip(dy.iter().zip(x).zip(means)) {
        let dy = f64::from(dy.up());
        *first += dy;
        *second += dy * (f64::from(x.up()) - mean);
    }
}

vectorised! {
    /// Adds the sums of `dy` and of `dy (x - mean)` over rows of `means.len()` channels to the totals.
    fn add_rows[T: Compute<Wide = f32>](dy: &[T], x: &[T], means: &[f64], totals: &mut [[f64; 2]]) {
        let channels = means.len();
        for first in (0..channels).step_by(LANES) {
            let some = first..channels.min(first + LANES);
            let mut sums = [[0.0; LANES]; 2];
            let rows = dy.chunks_exact(channels).zip(x.chunks_exact(channels));
            if some.len() == LANES {
                // The number of channels is known, so that the sums stay in registers.
                let means = &means[first..first + LANES];
                for (dy, x) in rows {
                    let (dy, x) = (&dy[first..first + LANES], &x[first..first + LANES]);
                    add(&mut sums, dy, x, means);
                }
            } else {
                for (dy, x) in rows {
                    add(&mut sums, &dy[some.clone()], &x[some.clone()], &means[some.clone()]);
                }
            }
            for (i, total) in totals[some].iter_mut().enumerate() {
                *total = [total[0] + sums[0][i], total[1] + sums[1][i]];
            }
        }
    }
}

vectorised! {
    /// Adds the sums of `dy` and of `dy (x - mean)` over neighbouring values of one channel to the total.
    fn add_plane[T: Compute<Wide = f32>](dy: &[T], x: &[T], mean: f64, total: &mut [f64; 2]) {
        let (means, mut sums) = ([mean; LANES], [[0.0; LANES]; 2]);
        for (dy, x) in dy.chunks(LANES).zip(x.chunks(LANES)) {
            add(&mut sums, dy, x, &means);
        }
        for (total, sums) in total.iter_mut().zip(&sums) {
            *total += sums.iter().sum::<f64>();
        }
    }
}

/// What `dx` is made of, for each channel: `dx = factor (dy - shift - (x - mean) slope)`.
struct Factors {
    means: Vec<f64>,
    factors: Vec<f64>,
    shifts: Vec<f64>,
    slopes: Vec<f64>,
}

impl Factors {
    /// Those of the channels of `times` neighbouring rows.
    fn repeated(&self, times: usize) -> Result<Factors, KernelError> {
        Ok(Factors {
            means: repeated(&self.means, times)?,
            factors: repeated(&self.factors, times)?,
            shifts: repeated(&self.shifts, times)?,
            slopes: repeated(&self.slopes, times)?,
        })
    }
}

vectorised! {
    /// The gradient by rows of channels.
    fn gradient_rows[T: Compute<Wide = f32>](dy: &[T], x: &[T], of: &Factors, dx: &mut [T]) {
        let channels = of.means.len();
        let rows = dy.chunks_exact(channels).zip(x.chunks_exact(channels));
        for (dx, (dy, x)) in dx.chunks_exact_mut(channels).zip(rows) {
            let channel = of.means.iter().zip(&of.factors).zip(of.shifts.iter().zip(&of.slopes));
            for ((dx, (dy, x)), ((mean, factor), (shift, slope))) in
                dx.iter_mut().zip(dy.iter().zip(x)).zip(channel)
            {
                let (dy, x) = (f64::from(dy.up()), f64::from(x.up()));
                *dx = T::down((factor * (dy - shift - (x - mean) * slope)) as f32);
            }
        }
    }
}

vectorised! {
    /// The gradient by neighbouring values of one channel.
    fn gradient_plane[T: Compute<Wide = f32>](
        dy: &[T], x: &[T], of: &Factors, channel: usize, dx: &mut [T],
    ) {
        let (mean, factor) = (of.means[channel], of.factors[channel]);
        let (shift, slope) = (of.shifts[channel], of.slopes[channel]);
        for (dx, (dy, x)) in dx.iter_mut().zip(dy.iter().zip(x)) {
            let (dy, x) = (f64::from(dy.up()), f64::from(x.up()));
            *dx = T::down((factor * (dy - shift - (x - mean) * slope)) as f32);
        }
    }
}

struct FusedBatchNormGrad<T> {
    epsilon: f32,
    format: DataFormat,
    rank: usize,
    is_training: bool,
    element: PhantomData<T>,
}

/// The inputs of a call.
struct Given<'a, T> {
    split: ChannelSplit,
    dy: &'a [T],
    x: &'a [T],
    scale: &'a [f32],
    mean: &'a [f32],
    variance: &'a [f32],
}

impl<'a, T: Compute<Wide = f32>> Given<'a, T> {
    /// Sums of `dy` and of `dy (x - mean)` per channel.
    fn sums(&self, c: &ComputeContext<'_>) -> Result<Vec<[f64; 2]>, KernelError> {
        let ChannelSplit { outer, channels, inner } = self.split;
        let mut totals = growth::filled(channels, [0.0; 2])?;
        if self.x.is_empty() {
            return Ok(totals);
        }
        let image = channels * inner;
        let images = (BLOCK / image).max(1);
        let means = growth::collected(self.mean.iter().map(|&mean| f64::from(mean)))?;
        let mut partial = growth::filled(outer.div_ceil(images) * channels, [0.0; 2])?;
        let cost = COST_NS * (images * image) as f64;
        for_rows(c, &mut partial, channels, cost, |first, partial| {
            for (block, totals) in (first..).zip(partial.chunks_exact_mut(channels)) {
                let at = block * images * image..((block + 1) * images).min(outer) * image;
                self.add_images(at, &means, totals);
            }
        })?;
        for partial in partial.chunks_exact(channels) {
            for (total, sums) in totals.iter_mut().zip(partial) {
                (total[0], total[1]) = (total[0] + sums[0], total[1] + sums[1]);
            }
        }
        Ok(totals)
    }

    /// Adds the elements of whole images to the totals.
    fn add_images(&self, at: Range<usize>, means: &[f64], totals: &mut [[f64; 2]]) {
        let (dy, x) = (&self.dy[at.clone()], &self.x[at]);
        let ChannelSplit { channels, inner, .. } = self.split;
        if inner == 1 {
            return add_rows(dy, x, means, totals);
        }
        for (plane, (dy, x)) in dy.chunks_exact(inner).zip(x.chunks_exact(inner)).enumerate() {
            add_plane(dy, x, means[plane % channels], &mut totals[plane % channels]);
        }
    }

    /// Writes the gradient of whole images, from element `first` on. `rows` are the factors of neighbouring
    /// rows of channels.
    fn write_images(&self, first: usize, [of, rows]: [&Factors; 2], dx: &mut [T]) {
        let at = first..first + dx.len();
        let (dy, x) = (&self.dy[at.clone()], &self.x[at]);
        let ChannelSplit { channels, inner, .. } = self.split;
        if inner == 1 {
            let whole = dx.len() / rows.means.len() * rows.means.len();
            let ((dy, last_dy), (x, last_x)) = (dy.split_at(whole), x.split_at(whole));
            let (dx, last_dx) = dx.split_at_mut(whole);
            gradient_rows(dy, x, rows, dx);
            return gradient_rows(last_dy, last_x, of, last_dx);
        }
        let planes = dy.chunks_exact(inner).zip(x.chunks_exact(inner));
        for (plane, (dx, (dy, x))) in dx.chunks_exact_mut(inner).zip(planes).enumerate() {
            gradient_plane(dy, x, of, plane % channels, dx);
        }
    }
}

impl<T: Compute<Wide = f32>> FusedBatchNormGrad<T> {
    /// Checks the inputs: two of one shape, and vectors of a value per channel.
    fn given<'a>(&self, c: &ComputeContext<'a>) -> Result<Given<'a, T>, KernelError> {
        let dims = c.dims(1);
        if dims.len() != self.rank || c.dims(0) != dims {
            return Err(KernelError::invalid_argument(format!(
                "y_backprop and x must have one shape of {} dimensions, as data_format says, found {:?} and {dims:?}",
                self.rank,
                c.dims(0)
            )));
        }
        let split = ChannelSplit::with_vector(dims, self.format, "scale", c.dims(2))?;
        ChannelSplit::with_vector(dims, self.format, "reserve_space_1", c.dims(3))?;
        ChannelSplit::with_vector(dims, self.format, "reserve_space_2", c.dims(4))?;
        Ok(Given {
            split,
            dy: c.input::<T>(0)?.data,
            x: c.input::<T>(1)?.data,
            scale: c.input::<f32>(2)?.data,
            mean: c.input::<f32>(3)?.data,
            variance: c.input::<f32>(4)?.data,
        })
    }

    fn factors(&self, given: &Given<'_, T>, sums: &[[f64; 2]]) -> Result<Factors, KernelError> {
        let count = given.split.per_channel() as f64;
        let spread = |variance: f32| f64::from(variance) + f64::from(self.epsilon);
        let factor = |(&scale, &variance): (&f32, &f32)| f64::from(scale) / spread(variance).sqrt();
        let of_mean = |sums: &[f64; 2]| if self.is_training { sums[0] / count } else { 0.0 };
        let of_distance = |(sums, &variance): (&[f64; 2], &f32)| {
            if self.is_training { sums[1] / count / spread(variance) } else { 0.0 }
        };
        Ok(Factors {
            means: growth::collected(given.mean.iter().map(|&mean| f64::from(mean)))?,
            factors: growth::collected(given.scale.iter().zip(given.variance).map(factor))?,
            shifts: growth::collected(sums.iter().map(of_mean))?,
            slopes: growth::collected(sums.iter().zip(given.variance).map(of_distance))?,
        })
    }
}

impl<T: Compute<Wide = f32>> Kernel for FusedBatchNormGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let format: &str = c.attr("data_format")?;
        Ok(FusedBatchNormGrad {
            epsilon: c.attr("epsilon")?,
            format: DataFormat::parse(format)?,
            // One letter per dimension.
            rank: format.len(),
            is_training: c.attr("is_training")?,
            element: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let given = self.given(c)?;
        let ChannelSplit { channels, inner, .. } = given.split;
        let sums = given.sums(c)?;
        let per_channel = [channels as i64];
        let scales = c.output::<f32>(1, &per_channel)?.data;
        for ((scale, sums), &variance) in scales.iter_mut().zip(&sums).zip(given.variance) {
            *scale = (sums[1] / (f64::from(variance) + f64::from(self.epsilon)).sqrt()) as f32;
        }
        let offsets = c.output::<f32>(2, &per_channel)?.data;
        offsets.iter_mut().zip(&sums).for_each(|(offset, sums)| *offset = sums[0] as f32);
        c.output::<f32>(3, &[0])?;
        c.output::<f32>(4, &[0])?;
        let dx = c.output::<T>(0, c.dims(1))?.data;
        if dx.is_empty() {
            return Ok(());
        }
        let factors = self.factors(&given, &sums)?;
        let rows = factors.repeated(rows_at_once(channels))?;
        let image = channels * inner;
        for_rows(c, dx, image, COST_NS * image as f64, |first, dx| {
            given.write_images(first * image, [&factors, &rows], dx);
        })
    }
}

register_kernel!("FusedBatchNormGrad" on "CPU": FusedBatchNormGrad<T> for "T" in [f32],
    numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormGradV2" on "CPU": FusedBatchNormGrad<T> for "T" in [f32],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormGradV2" on "CPU": FusedBatchNormGrad<T> for "T" in [f16],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormGradV2" on "CPU": FusedBatchNormGrad<T> for "T" in [bf16],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormGradV3" on "CPU": FusedBatchNormGrad<T> for "T" in [f32],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormGradV3" on "CPU": FusedBatchNormGrad<T> for "T" in [f16],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormGradV3" on "CPU": FusedBatchNormGrad<T> for "T" in [bf16],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::DOUBLE));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::values;

    /// The sums by their definition.
    fn expected(dy: &[f32], x: &[f32], mean: f32) -> [f64; 2] {
        let terms = dy.iter().zip(x).map(|(&dy, &x)| (f64::from(dy), f64::from(x)));
        let distance = |x: f64| x - f64::from(mean);
        terms.fold([0.0; 2], |[a, b], (dy, x)| [a + dy, b + dy * distance(x)])
    }

    #[test]
    fn sums_and_gradients_by_rows_are_those_by_planes() {
        // Channels that fill vectors, and some more.
        let (rows, channels) = (37, 2 * LANES + 5);
        let (dy, x) = (values::<f32>(rows * channels, 1), values::<f32>(rows * channels, 2));
        let means: Vec<f32> = (0..channels).map(|c| c as f32 / 100.0).collect();
        let wide: Vec<f64> = means.iter().map(|&mean| f64::from(mean)).collect();
        let mut sums = vec![[1.0; 2]; channels];
        add_rows(&dy, &x, &wide, &mut sums);
        let factors = Factors {
            means: wide.clone(),
            factors: (0..channels).map(|c| 1.0 + c as f64 / 7.0).collect(),
            shifts: (0..channels).map(|c| c as f64 / 11.0).collect(),
            slopes: (0..channels).map(|c| c as f64 / 13.0 - 1.0).collect(),
        };
        let mut dx = vec![0.0; rows * channels];
        gradient_rows(&dy, &x, &factors, &mut dx);
        for channel in 0..channels {
            let own = |all: &[f32]| all.iter().skip(channel).step_by(channels).copied().collect();
            let (dy, x, dx): (Vec<f32>, Vec<f32>, Vec<f32>) = (own(&dy), own(&x), own(&dx));
            let mut plane = [1.0; 2];
            add_plane(&dy, &x, wide[channel], &mut plane);
            let exact = expected(&dy, &x, means[channel]);
            for (found, exact) in
                sums[channel].iter().chain(&plane).zip([exact, exact].as_flattened())
            {
                assert!((found - 1.0 - exact).abs() < 1e-12, "channel {channel}: {found}, {exact}");
            }
            let mut of_plane = vec![0.0; rows];
            gradient_plane(&dy, &x, &factors, channel, &mut of_plane);
            assert_eq!(dx, of_plane, "channel {channel}");
        }
    }
}
