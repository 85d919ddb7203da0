//! `FusedBatchNormGrad` and `FusedBatchNormGradV3`.
//!
//! Per channel, with `f = scale / sqrt(variance + epsilon)` and means over the channel: in training
//! `dx = f (dy - mean(dy) - (x - m) mean(dy (x - m)) / (variance + epsilon))`, in inference `dx = f
//! dy`; always `dscale = sum(dy (x - m)) / sqrt(variance + epsilon)` and `doffset = sum(dy)`. Sums
//! are kept in double, in an order that does not depend on the number of threads.

use crate::{lane::Compute, split::for_rows};
use half::{bf16, f16};
use std::marker::PhantomData;
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
const COST_NS: f64 = 1.5;

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
        let mut partial = growth::filled(outer.div_ceil(images) * channels, [0.0; 2])?;
        let cost = COST_NS * (images * image) as f64;
        for_rows(c, &mut partial, channels, cost, |first, partial| {
            for (block, totals) in (first..).zip(partial.chunks_exact_mut(channels)) {
                for at in block * images..((block + 1) * images).min(outer) {
                    self.add_image(at * image, totals);
                }
            }
        })?;
        for partial in partial.chunks_exact(channels) {
            for (total, sums) in totals.iter_mut().zip(partial) {
                (total[0], total[1]) = (total[0] + sums[0], total[1] + sums[1]);
            }
        }
        Ok(totals)
    }

    /// Adds the elements from `first` on, once through the channels, to the totals.
    fn add_image(&self, first: usize, totals: &mut [[f64; 2]]) {
        let inner = self.split.inner;
        for ((channel, total), &mean) in totals.iter_mut().enumerate().zip(self.mean) {
            let at = first + channel * inner..first + (channel + 1) * inner;
            for (dy, x) in self.dy[at.clone()].iter().zip(&self.x[at]) {
                let dy = f64::from(dy.up());
                total[0] += dy;
                total[1] += dy * (f64::from(x.up()) - f64::from(mean));
            }
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

    /// Per channel `[f, a, b]` with `dx = f (dy - a - (x - mean) b)`.
    fn factors(
        &self,
        given: &Given<'_, T>,
        sums: &[[f64; 2]],
    ) -> Result<Vec<[f64; 3]>, KernelError> {
        let count = given.split.per_channel() as f64;
        let channels = given.scale.iter().zip(given.variance).zip(sums);
        let factors = channels.map(|((&scale, &variance), sums)| {
            let spread = f64::from(variance) + f64::from(self.epsilon);
            let factor = f64::from(scale) / spread.sqrt();
            match self.is_training {
                true => [factor, sums[0] / count, sums[1] / count / spread],
                false => [factor, 0.0, 0.0],
            }
        });
        growth::collected(factors)
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
        let factors = self.factors(&given, &sums)?;
        let image = channels * inner;
        for_rows(c, dx, image, COST_NS * image as f64, |first, dx| {
            for (at, dx) in (first * image..).step_by(image.max(1)).zip(dx.chunks_exact_mut(image))
            {
                for (i, dx) in dx.iter_mut().enumerate() {
                    let (dy, x) =
                        (f64::from(given.dy[at + i].up()), f64::from(given.x[at + i].up()));
                    let mean = f64::from(given.mean[i / inner]);
                    let [factor, a, b] = factors[i / inner];
                    *dx = T::down((factor * (dy - a - (x - mean) * b)) as f32);
                }
            }
        })
    }
}

register_kernel!("FusedBatchNormGrad" on "CPU": FusedBatchNormGrad<T> for "T" in [f32],
    numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormGradV3" on "CPU": FusedBatchNormGrad<T> for "T" in [f32],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormGradV3" on "CPU": FusedBatchNormGrad<T> for "T" in [f16],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormGradV3" on "CPU": FusedBatchNormGrad<T> for "T" in [bf16],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::DOUBLE));
