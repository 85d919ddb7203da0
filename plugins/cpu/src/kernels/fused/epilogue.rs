//! What follows a product or a convolution, on its output: each step rounds as the op of its name does.
//!
//! The steps are applied to a piece of the output after the other, so that it stays in the cache from the first
//! step to the last.

use super::functions::{Elu, Gelu, GeluTanh, Special};
use crate::{
    arch::{level, vectorised},
    kernels::{
        elementary::Elementary,
        elementwise::{UnaryOp, map_in_place, rows_in_place, zip_in_place},
        math_binary::Add,
        math_unary::{Sigmoid, Tanh},
        nn::{
            activation::{Relu, Relu6},
            depthwise::{Ending, floats},
        },
    },
    lane::Compute,
};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext},
    element::Number,
    fused::{Epilogue, EpilogueStep},
    geometry::{ChannelSplit, DataFormat},
};

/// Elements on which all steps are done before the next ones.
const PIECE: usize = 4096;
/// Steps that products usually have at most.
const FEW: usize = 8;

/// The attributes.
pub struct Attributes {
    epilogue: Epilogue,
    epsilon: f32,
    alpha: f32,
}

impl Attributes {
    /// Reads them.
    pub fn new(c: &CreateContext<'_>) -> Result<Attributes, KernelError> {
        let names: Vec<&str> = c.attr("fused_ops")?;
        Ok(Attributes {
            epilogue: Epilogue::parse(&names)?,
            epsilon: c.attr("epsilon")?,
            alpha: c.attr("leakyrelu_alpha")?,
        })
    }

    /// The steps with the inputs of a call, of which theirs begin at number 2. `output` is the product's shape.
    ///
    /// # Errors
    /// Another number of inputs, or shapes that the steps do not take; no memory.
    pub fn bind<'a, T: Compute<Wide: Special>>(
        &self,
        c: &ComputeContext<'a>,
        output: &[i64],
        format: DataFormat,
    ) -> Result<Steps<'a, T>, KernelError> {
        self.epilogue.check_args(c.input_count() - 2)?;
        let split = ChannelSplit::new(output, format)?;
        let mut steps = Steps::new(split.channels, split.inner, format);
        for (step, first) in self.epilogue.placed() {
            steps.push(self.step(c, output, &split, step, 2 + first)?);
        }
        Ok(steps)
    }

    fn step<'a, T: Compute<Wide: Special>>(
        &self,
        c: &ComputeContext<'a>,
        output: &[i64],
        split: &ChannelSplit,
        step: EpilogueStep,
        first: usize,
    ) -> Result<Step<'a, T>, KernelError> {
        let vector = |at: usize| input::<T>(c, step, first + at, &[split.channels as i64]);
        Ok(match step {
            EpilogueStep::BiasAdd => Step::Bias(vector(0)?),
            EpilogueStep::Add => Step::Add(input(c, step, first, output)?),
            EpilogueStep::FusedBatchNorm => {
                let factors = c.scratch_slice::<T::Wide>(split.channels)?;
                let [scale, offset, mean, variance] =
                    [vector(0)?, vector(1)?, vector(2)?, vector(3)?];
                scaled(scale, variance, self.epsilon, factors);
                Step::Affine(Affine { means: mean, factors, offsets: offset })
            }
            // The attribute as the element type has it.
            EpilogueStep::LeakyRelu => Step::Leaky(number::<T>(self.alpha)),
            EpilogueStep::Relu => Step::Relu,
            EpilogueStep::Relu6 => Step::Relu6,
            EpilogueStep::Elu => Step::Function(function::<T, Elu>),
            EpilogueStep::Tanh => Step::Function(function::<T, Tanh>),
            EpilogueStep::Sigmoid => Step::Function(function::<T, Sigmoid>),
            EpilogueStep::GeluApproximate => Step::Function(function::<T, GeluTanh>),
            EpilogueStep::GeluExact => Step::Function(function::<T, Gelu>),
        })
    }
}

/// A further input, which must have this shape.
fn input<'a, T: Compute>(
    c: &ComputeContext<'a>,
    step: EpilogueStep,
    at: usize,
    expected: &[i64],
) -> Result<&'a [T], KernelError> {
    let arg = c.input::<T>(at)?;
    if arg.dims == expected {
        return Ok(arg.data);
    }
    Err(KernelError::invalid_argument(format!(
        "args: {} takes an input of shape {expected:?}, found {:?} as input {at}",
        step.name(),
        arg.dims
    )))
}

fn number<T: Compute>(value: f32) -> T::Wide {
    T::down(<T::Wide as Number>::from_f64(value.into())).up()
}

/// `scale / sqrt(variance + epsilon)` of each channel.
fn scaled<T: Compute<Wide: Special>>(
    scale: &[T],
    variance: &[T],
    epsilon: f32,
    factors: &mut [T::Wide],
) {
    let epsilon = <T::Wide as Number>::from_f64(epsilon.into());
    for ((factor, scale), variance) in factors.iter_mut().zip(scale).zip(variance) {
        let root = variance.up().add(epsilon).sqrt();
        *factor = scale.up().div(root);
    }
}

fn function<T: Compute, O: UnaryOp<T::Wide>>(y: &mut [T]) {
    map_in_place::<T, O>(level(), y);
}

vectorised! {
    /// `y = (y - mean) * factor + offset` for rows of channels.
    fn affine_rows[T: Compute](y: &mut [T], means: &[T], factors: &[T::Wide], offsets: &[T]) {
        for y in y.chunks_exact_mut(means.len()) {
            let affine = means.iter().zip(factors).zip(offsets);
            for (y, ((&mean, &factor), &offset)) in y.iter_mut().zip(affine) {
                *y = T::down(y.up().sub(mean.up()).mul(factor).add(offset.up()));
            }
        }
    }
}

vectorised! {
    /// The same for neighbouring values of one channel.
    fn affine_plane[T: Compute](y: &mut [T], mean: T::Wide, factor: T::Wide, offset: T::Wide) {
        for y in y.iter_mut() {
            *y = T::down(y.up().sub(mean).mul(factor).add(offset));
        }
    }
}

vectorised! {
    /// `y` where it is above 0, else `alpha * y`.
    fn leaky[T: Compute](y: &mut [T], alpha: T::Wide) {
        for y in y.iter_mut() {
            let x = y.up();
            let below = T::down(x.mul(alpha));
            *y = if x > T::Wide::ZERO { *y } else { below };
        }
    }
}

/// `(x - mean) * factor + offset` of each channel.
#[derive(Clone, Copy)]
struct Affine<'a, T: Compute> {
    means: &'a [T],
    factors: &'a [T::Wide],
    offsets: &'a [T],
}

#[derive(Clone, Copy)]
enum Step<'a, T: Compute> {
    Bias(&'a [T]),
    Affine(Affine<'a, T>),
    Add(&'a [T]),
    Leaky(T::Wide),
    Relu,
    Relu6,
    Function(fn(&mut [T])),
}

/// The steps of one call.
pub struct Steps<'a, T: Compute> {
    /// In place, so that a call allocates nothing; what is beyond stands in `more`.
    few: [Option<Step<'a, T>>; FEW],
    more: Vec<Step<'a, T>>,
    channels: usize,
    inner: usize,
    format: DataFormat,
}

impl<'a, T: Compute> Steps<'a, T> {
    fn new(channels: usize, inner: usize, format: DataFormat) -> Steps<'a, T> {
        Steps { few: [None; FEW], more: Vec::new(), channels, inner, format }
    }

    fn push(&mut self, step: Step<'a, T>) {
        match self.few.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(step),
            None => self.more.push(step),
        }
    }

    fn steps(&self) -> impl Iterator<Item = &Step<'a, T>> {
        self.few.iter().flatten().chain(&self.more)
    }

    /// The steps as they follow on each sum of floats, channels last: a bias, a rectifier, or both.
    pub fn ending(&self) -> Option<Ending<'a>> {
        let mut ending = Ending::default();
        for step in self.steps() {
            let is_open = ending.high.is_none() && self.format == DataFormat::Nhwc;
            match step {
                Step::Bias(bias) if is_open && ending.bias.is_none() => {
                    ending.bias = Some(floats(bias)?);
                }
                Step::Relu if is_open => ending.high = Some(f32::INFINITY),
                Step::Relu6 if is_open => ending.high = Some(6.0),
                _ => return None,
            }
        }
        Some(ending)
    }

    /// Applies all steps to some neighbours of the output, the first of which is number `start`. With channels last
    /// they are whole pixels, or some channels of one.
    pub fn apply(&self, start: usize, y: &mut [T]) {
        if y.is_empty() || self.few[0].is_none() {
            return;
        }
        let piece = match self.format {
            DataFormat::Nhwc if y.len() < self.channels => y.len(),
            DataFormat::Nhwc => (PIECE / self.channels).max(1) * self.channels,
            DataFormat::Nchw => PIECE,
        };
        for (at, y) in y.chunks_mut(piece).enumerate() {
            self.steps().for_each(|step| self.step(step, start + at * piece, y));
        }
    }

    fn step(&self, step: &Step<'_, T>, start: usize, y: &mut [T]) {
        match step {
            Step::Function(function) => function(y),
            Step::Relu => function::<T, Relu>(y),
            Step::Relu6 => function::<T, Relu6>(y),
            Step::Leaky(alpha) => leaky(y, *alpha),
            Step::Add(other) => zip_in_place::<T, Add>(y, &other[start..start + y.len()]),
            Step::Bias(bias) if self.format == DataFormat::Nhwc => {
                rows_in_place::<T, Add>(y, self.channels_of(bias, start, y.len()));
            }
            Step::Bias(bias) => {
                self.planes(start, y, |y, channel| {
                    rows_in_place::<T, Add>(y, &bias[channel..=channel]);
                });
            }
            Step::Affine(a) if self.format == DataFormat::Nhwc => {
                let [means, offsets] =
                    [a.means, a.offsets].map(|values| self.channels_of(values, start, y.len()));
                affine_rows(y, means, self.channels_of(a.factors, start, y.len()), offsets);
            }
            Step::Affine(a) => self.planes(start, y, |y, channel| {
                let [mean, offset] = [a.means[channel].up(), a.offsets[channel].up()];
                affine_plane(y, mean, a.factors[channel], offset);
            }),
        }
    }

    /// Channels last: what belongs to the channels of some neighbours.
    fn channels_of<'v, V>(&self, values: &'v [V], start: usize, count: usize) -> &'v [V] {
        let first = start % self.channels;
        &values[first..self.channels.min(first + count)]
    }

    /// Channels first: calls with the values of each channel.
    fn planes(&self, start: usize, mut y: &mut [T], each: impl Fn(&mut [T], usize)) {
        let mut at = start;
        while !y.is_empty() {
            let count = (self.inner - at % self.inner).min(y.len());
            let (plane, rest) = y.split_at_mut(count);
            each(plane, at / self.inner % self.channels);
            (at, y) = (at + count, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_ulps, values};
    use half::bf16;

    fn check<T: Compute<Wide: Special>>(
        format: DataFormat,
        channels: usize,
        inner: usize,
        outer: usize,
    ) {
        let len = outer * channels * inner;
        let (x, residual) = (values::<T>(len, 1), values::<T>(len, 2));
        let vectors: Vec<Vec<T>> = (3..8).map(|seed| values(channels, seed)).collect();
        let variance: Vec<T> = vectors[3].iter().map(|v| v.mul(*v)).collect();
        let mut factors = vec![T::Wide::ZERO; channels];
        scaled(&vectors[0], &variance, 0.25, &mut factors);
        let affine = Affine { means: &vectors[2], factors: &factors, offsets: &vectors[1] };
        let alpha = number::<T>(0.2);
        let all = [
            Step::Bias(&vectors[4]),
            Step::Affine(affine),
            Step::Add(&residual),
            Step::Leaky(alpha),
            Step::Relu6,
        ];
        let mut steps = Steps::new(channels, inner, format);
        all.into_iter().for_each(|step| steps.push(step));
        let wide = |x: f64| <T::Wide as Number>::from_f64(x);
        let expected: Vec<T> = (0..len)
            .map(|i| {
                let channel = i / inner % channels;
                let [scale, offset, mean, _, bias] =
                    [0, 1, 2, 3, 4].map(|v| vectors[v][channel].up());
                let y = T::down(x[i].up().add(bias)).up();
                let root = variance[channel].up().add(wide(0.25)).sqrt();
                let y = T::down(y.sub(mean).mul(scale.div(root)).add(offset)).up();
                let y = T::down(y.add(residual[i].up())).up();
                let y = if y > T::Wide::ZERO { y } else { T::down(y.mul(alpha)).up() };
                T::down(wide(y.to_f64().clamp(0.0, 6.0)))
            })
            .collect();
        // Parts that begin in the middle, as blocks of a convolution do.
        let cut = match format {
            DataFormat::Nhwc => len / channels / 3 * channels,
            DataFormat::Nchw => len / 3 + 1,
        };
        let mut found = x.clone();
        let (first, second) = found.split_at_mut(cut);
        steps.apply(0, first);
        steps.apply(cut, second);
        assert_ulps(&found, &expected, 0.0);
    }

    #[test]
    fn biases_and_rectifiers_follow_on_single_sums() {
        let ending = |steps: &[Step<'static, f32>], format| {
            let mut all = Steps::new(2, 1, format);
            steps.iter().for_each(|step| all.push(*step));
            all.ending().map(|ending| (ending.bias.map(<[f32]>::to_vec), ending.high))
        };
        let (last, bias, six) = (DataFormat::Nhwc, Step::Bias(&[1.0, 2.0]), Some(6.0));
        let values = Some(vec![1.0, 2.0]);
        assert_eq!(ending(&[], last), Some((None, None)));
        assert_eq!(ending(&[bias], last), Some((values.clone(), None)));
        assert_eq!(ending(&[bias, Step::Relu], last), Some((values.clone(), Some(f32::INFINITY))));
        assert_eq!(ending(&[bias, Step::Relu6], last), Some((values, six)));
        assert_eq!(ending(&[Step::Relu6], last), Some((None, six)));
        for others in [&[Step::Relu, bias][..], &[bias, bias], &[Step::Leaky(0.5)]] {
            assert_eq!(ending(others, last), None);
        }
        assert_eq!(ending(&[bias], DataFormat::Nchw), None);
    }

    #[test]
    fn steps_round_as_single_ops_do_in_both_formats() {
        check::<f32>(DataFormat::Nhwc, 7, 1, 1500);
        check::<f32>(DataFormat::Nchw, 5, 1300, 2);
        check::<f32>(DataFormat::Nchw, 5, 1, 2);
        check::<bf16>(DataFormat::Nhwc, 3, 1, 11);
        check::<f64>(DataFormat::Nchw, 4, 10, 3);
    }
}
