//! `FusedBatchNorm`, `FusedBatchNormV2`, `FusedBatchNormV3`. The last has one more output, which a
//! CPU does not use.
//!
//! `y = (x - mean) / sqrt(variance + epsilon) * scale + offset` per channel. In training, mean and
//! variance are those of the batch, in two passes: block sums in float, added up in double, in an
//! order that does not depend on the number of threads.

use crate::{
    arch::vectorised,
    lane::Compute,
    split::{Parts, for_units},
};
use half::{bf16, f16};
use std::{iter, marker::PhantomData};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{BatchNormAttributes, ChannelSplit},
    growth,
    reg::Numerics,
    register_kernel,
};

/// The number of elements that are summed in float before they are added in double.
const BLOCK: usize = 1 << 12;
/// The number of channels that are summed side by side.
const LANES: usize = 64;

/// Approximate nanoseconds of an element.
const COST_NS: f64 = 0.15;

/// A term that is summed: the value, or the square of its distance from the mean.
trait Term {
    fn of(x: f32, mean: f32) -> f32;
}

enum Value {}
impl Term for Value {
    #[inline(always)]
    fn of(x: f32, _mean: f32) -> f32 {
        x
    }
}

enum Square {}
impl Term for Square {
    #[inline(always)]
    fn of(x: f32, mean: f32) -> f32 {
        (x - mean) * (x - mean)
    }
}

/// Adds the terms of as many values to sums.
#[inline(always)]
fn add<T: Compute<Wide = f32>, K: Term>(sums: &mut [f32; LANES], x: &[T], means: &[f32]) {
    for (sum, (x, &mean)) in sums.iter_mut().zip(x.iter().zip(means)) {
        *sum += K::of(x.up(), mean);
    }
}

vectorised! {
    /// Adds the terms of rows of `means.len()` channels to `totals`.
    fn add_rows[T: Compute<Wide = f32>, K: Term](x: &[T], means: &[f32], totals: &mut [f64]) {
        let channels = means.len();
        let rows = (BLOCK / channels).max(1);
        for block in x.chunks(rows * channels) {
            for first in (0..channels).step_by(LANES) {
                let some = first..channels.min(first + LANES);
                let mut sums = [0f32; LANES];
                if some.len() == LANES {
                    // The number of channels is known, so that the loop is unrolled.
                    let means = &means[first..first + LANES];
                    for row in block.chunks_exact(channels) {
                        add::<T, K>(&mut sums, &row[first..first + LANES], means);
                    }
                } else {
                    for row in block.chunks_exact(channels) {
                        add::<T, K>(&mut sums, &row[some.clone()], &means[some.clone()]);
                    }
                }
                for (total, &sum) in totals[some].iter_mut().zip(&sums) {
                    *total += f64::from(sum);
                }
            }
        }
    }
}

vectorised! {
    /// The sum of the terms of neighbouring values of one channel.
    fn sum_plane[T: Compute<Wide = f32>, K: Term](x: &[T], mean: f32) -> f64 {
        let mut total = 0.0;
        for block in x.chunks(BLOCK) {
            let mut sums = [0f32; LANES];
            for values in block.chunks(LANES) {
                for (sum, x) in sums.iter_mut().zip(values) {
                    *sum += K::of(x.up(), mean);
                }
            }
            total += sums.iter().map(|&sum| f64::from(sum)).sum::<f64>();
        }
        total
    }
}

vectorised! {
    /// `y = (x - mean) * factor + offset` for rows of channels.
    fn normalise_rows[T: Compute<Wide = f32>](
        x: &[T], means: &[f32], factors: &[f32], offsets: &[f32], y: &mut [T],
    ) {
        let channels = means.len();
        for (x, y) in x.chunks_exact(channels).zip(y.chunks_exact_mut(channels)) {
            let affine = means.iter().zip(factors).zip(offsets);
            for ((y, x), ((&mean, &factor), &offset)) in y.iter_mut().zip(x).zip(affine) {
                *y = T::down((x.up() - mean) * factor + offset);
            }
        }
    }
}

vectorised! {
    /// [`normalise_rows`] for neighbouring values of one channel.
    fn normalise_plane[T: Compute<Wide = f32>](x: &[T], mean: f32, factor: f32, offset: f32, y: &mut [T]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = T::down((x.up() - mean) * factor + offset);
        }
    }
}

/// The number of neighbouring rows of so few channels that are computed as one row, whose loop is longer.
pub fn rows_at_once(channels: usize) -> usize {
    LANES.div_ceil(channels.max(1))
}

/// The values of the channels of `times` neighbouring rows.
pub fn repeated<T: Copy>(channels: &[T], times: usize) -> Result<Vec<T>, KernelError> {
    growth::collected(iter::repeat_n(channels, times).flatten().copied())
}

/// Returns the sum of a term for each channel.
fn sums<T: Compute<Wide = f32>, K: Term>(
    c: &ComputeContext<'_>,
    split: &ChannelSplit,
    x: &[T],
    means: &[f32],
) -> Result<Vec<f64>, KernelError> {
    let ChannelSplit { outer, channels, inner } = *split;
    let mut totals = growth::filled(channels, 0f64)?;
    if inner != 1 {
        let parts = Parts::new(&mut totals);
        for_units(c, channels, COST_NS * (outer * inner) as f64, |range| {
            for channel in range {
                let planes = (0..outer).map(|o| &x[(o * channels + channel) * inner..][..inner]);
                let total = planes.map(|x| sum_plane::<T, K>(x, means[channel])).sum::<f64>();
                // SAFETY: each unit has a total of its own.
                unsafe { parts.part(channel..channel + 1)[0] = total };
            }
        })?;
        return Ok(totals);
    }
    let group = rows_at_once(channels);
    let (wide, means_of_group) = (group * channels, repeated(means, group)?);
    let rows = (8 * BLOCK / wide).max(1) * group;
    let chunks = outer.div_ceil(rows);
    let mut partial = growth::filled(chunks * wide, 0f64)?;
    let parts = Parts::new(&mut partial);
    for_units(c, chunks, COST_NS * (rows * channels) as f64, |range| {
        for chunk in range {
            let end = ((chunk + 1) * rows).min(outer);
            // SAFETY: each unit has totals of its own.
            let totals = unsafe { parts.part(chunk * wide..(chunk + 1) * wide) };
            let x = &x[chunk * rows * channels..end * channels];
            let (groups, rest) = x.split_at(x.len() / wide * wide);
            add_rows::<T, K>(groups, &means_of_group, totals);
            add_rows::<T, K>(rest, means, &mut totals[..channels]);
        }
    })?;
    for partial in partial.chunks_exact(channels) {
        totals.iter_mut().zip(partial).for_each(|(total, sum)| *total += sum);
    }
    Ok(totals)
}

/// Normalises every channel.
fn normalise<T: Compute<Wide = f32>>(
    c: &ComputeContext<'_>,
    split: &ChannelSplit,
    x: &[T],
    [means, factors, offsets]: [&[f32]; 3],
    y: &mut [T],
) -> Result<(), KernelError> {
    let ChannelSplit { outer, channels, inner } = *split;
    let y = Parts::new(y);
    if inner == 1 {
        let group = rows_at_once(channels);
        let [wide_means, wide_factors] = [repeated(means, group)?, repeated(factors, group)?];
        let wide_offsets = repeated(offsets, group)?;
        return for_units(c, outer, COST_NS * channels as f64, |rows| {
            let at = rows.start * channels..rows.end * channels;
            let first = rows.len() / group * group * channels;
            // SAFETY: ranges of one split are disjoint.
            let (groups, rest) = unsafe { y.part(at.clone()) }.split_at_mut(first);
            let (x_groups, x_rest) = x[at].split_at(first);
            normalise_rows(x_groups, &wide_means, &wide_factors, &wide_offsets, groups);
            normalise_rows(x_rest, means, factors, offsets, rest);
        });
    }
    for_units(c, outer * channels, COST_NS * inner as f64, |range| {
        for plane in range {
            let (at, channel) = (plane * inner..(plane + 1) * inner, plane % channels);
            // SAFETY: each unit has a plane of its own.
            let y = unsafe { y.part(at.clone()) };
            normalise_plane(&x[at], means[channel], factors[channel], offsets[channel], y);
        }
    })
}

/// Statistics per channel (mean, variance): those to normalise by, the running ones, and those for
/// the gradient.
struct Statistics {
    used: [Vec<f32>; 2],
    running: [Vec<f32>; 2],
    reserved: [Vec<f32>; 2],
}

fn copies([a, b]: &[Vec<f32>; 2]) -> Result<[Vec<f32>; 2], KernelError> {
    Ok([growth::copied(a)?, growth::copied(b)?])
}

struct FusedBatchNorm<T> {
    attributes: BatchNormAttributes,
    element: PhantomData<T>,
}

impl<T: Compute<Wide = f32>> FusedBatchNorm<T> {
    /// The statistics in the inputs. In training with a factor of 1 they are not read, and may be
    /// empty.
    fn given(&self, c: &ComputeContext<'_>, channels: usize) -> Result<[Vec<f32>; 2], KernelError> {
        if !self.attributes.reads_statistics() {
            return Ok([growth::filled(channels, 0.0)?, growth::filled(channels, 0.0)?]);
        }
        Ok([growth::copied(c.input::<f32>(3)?.data)?, growth::copied(c.input::<f32>(4)?.data)?])
    }

    fn statistics(
        &self,
        c: &ComputeContext<'_>,
        split: &ChannelSplit,
        x: &[T],
    ) -> Result<Statistics, KernelError> {
        let given = self.given(c, split.channels)?;
        let count = split.per_channel() as f64;
        if x.is_empty() {
            let one = |value: f32| growth::filled(split.channels, value);
            let all = |value: f32| Ok::<_, KernelError>([one(value)?, one(value)?]);
            return Ok(Statistics { used: given, running: all(f32::NAN)?, reserved: all(0.0)? });
        }
        if !self.attributes.is_training {
            let (used, running) = (copies(&given)?, copies(&given)?);
            return Ok(Statistics { used, running, reserved: given });
        }
        let zeros = growth::filled(split.channels, 0.0)?;
        let divide =
            |sums: Vec<f64>| growth::collected(sums.into_iter().map(|sum| (sum / count) as f32));
        let mean = divide(sums::<T, Value>(c, split, x, &zeros)?)?;
        let variance = divide(sums::<T, Square>(c, split, x, &mean)?)?;
        let unbiased = (count / (count - 1.0).max(1.0)) as f32;
        let update = |old: &[f32], new: &[f32], by: f32| {
            let mix = |(&old, &new): (&f32, &f32)| {
                let factor = self.attributes.factor;
                if factor == 1.0 { new * by } else { (1.0 - factor) * old + factor * (new * by) }
            };
            growth::collected(old.iter().zip(new).map(mix))
        };
        let running = [update(&given[0], &mean, 1.0)?, update(&given[1], &variance, unbiased)?];
        let reserved = [mean, variance];
        Ok(Statistics { used: copies(&reserved)?, running, reserved })
    }
}

impl<T: Compute<Wide = f32>> Kernel for FusedBatchNorm<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedBatchNorm { attributes: BatchNormAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let (scale, offset) = (c.input::<f32>(1)?, c.input::<f32>(2)?);
        let split = self.attributes.split(std::array::from_fn(|input| c.dims(input)))?;
        let Statistics { used: [mean, variance], running, reserved } =
            self.statistics(c, &split, x.data)?;
        let per_channel = [split.channels as i64];
        let lists = running.iter().chain(&reserved);
        for (output, list) in (1..).zip(lists) {
            c.output::<f32>(output, &per_channel)?.data.copy_from_slice(list);
        }
        if c.output_count() == 6 {
            // A CPU reserves nothing here: its gradient takes the two other reserved outputs.
            c.output::<f32>(5, &[])?.data.fill(0.0);
        }
        let epsilon = self.attributes.epsilon;
        let channels = variance.iter().zip(scale.data);
        let factors = channels.map(|(&variance, &scale)| scale / (variance + epsilon).sqrt());
        let factors = growth::collected(factors)?;
        let y = c.output::<T>(0, x.dims)?.data;
        if y.is_empty() {
            return Ok(());
        }
        normalise(c, &split, x.data, [&mean, &factors, offset.data], y)
    }
}

register_kernel!("FusedBatchNorm" on "CPU": FusedBatchNorm<T> for "T" in [f32],
    numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormV2" on "CPU": FusedBatchNorm<T> for "T" in [f32],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormV2" on "CPU": FusedBatchNorm<T> for "T" in [f16],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormV2" on "CPU": FusedBatchNorm<T> for "T" in [bf16],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormV3" on "CPU": FusedBatchNorm<T> for "T" in [f32],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormV3" on "CPU": FusedBatchNorm<T> for "T" in [f16],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::DOUBLE));
register_kernel!("FusedBatchNormV3" on "CPU": FusedBatchNorm<T> for "T" in [bf16],
    types = ("U", &[DType::FLOAT]), numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::DOUBLE));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, values};

    #[test]
    fn sums_by_rows_and_by_planes_are_those_of_double() {
        let (rows, channels) = (1000, 70);
        let x = values::<f32>(rows * channels, 1);
        let means: Vec<f32> = (0..channels).map(|c| c as f32 / 100.0).collect();
        let mut found = vec![0f64; channels];
        add_rows::<f32, Square>(&x, &means, &mut found);
        let term = |x: f32, mean: f32| (f64::from(x) - f64::from(mean)).powi(2);
        let expected: Vec<f64> = (0..channels)
            .map(|c| (0..rows).map(|r| term(x[r * channels + c], means[c])).sum())
            .collect();
        assert_close(&found, &expected, 0.0, 1e-5);
        let plane = sum_plane::<f32, Square>(&x, 0.25);
        let exact: f64 = x.iter().map(|&x| term(x, 0.25)).sum();
        assert!((plane - exact).abs() <= 1e-5 * exact, "{plane} {exact}");
        let sum = sum_plane::<f32, Value>(&x, 9.0);
        assert!((sum - x.iter().map(|&x| f64::from(x)).sum::<f64>()).abs() < 1e-1);
    }
}
