//! The epilogue of a product or a convolution, on its output: each step rounds like the op of its
//! name.
//!
//! The steps are applied piece by piece of the output, so that a piece stays in the cache from the
//! first step to the last.

use super::functions::{Elu, Gelu, GeluTanh, ReluSlope, SigmoidSlope, Special, TanhSlope};
use crate::{
    arch::{level, vectorised},
    kernels::{
        elementary::Elementary,
        elementwise::{UnaryOp, map_in_place, rows_in_place, zip_in_place},
        linalg::gemm::ending::{Ending, Finish},
        math_binary::Add,
        math_unary::{Sigmoid, Tanh},
        nn::activation::{Relu, Relu6},
    },
    lane::Compute,
    panels::as_itself,
};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext},
    element::Number,
    fused::{Epilogue, EpilogueStep},
    geometry::{ChannelSplit, DataFormat},
};

/// Number of elements to which all steps are applied before the next ones.
const PIECE: usize = 4096;
/// Usual greatest number of steps of a product.
const FEW: usize = 8;

/// The attributes of an epilogue.
pub struct Attributes {
    epilogue: Epilogue,
    epsilon: f32,
    alpha: f32,
}

impl Attributes {
    /// Reads the attributes.
    pub fn new(c: &CreateContext<'_>) -> Result<Attributes, KernelError> {
        let names: Vec<&str> = c.attr("fused_ops")?;
        Ok(Attributes {
            epilogue: Epilogue::parse(&names)?,
            epsilon: c.attr("epsilon")?,
            alpha: c.attr("leakyrelu_alpha")?,
        })
    }

    /// The steps with the inputs of a call, of which theirs begin at index 2. `output` is the
    /// product's shape.
    ///
    /// # Errors
    /// The number of inputs is wrong, or the steps do not accept their shapes; out of memory.
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
            // The attribute, rounded to the element type.
            EpilogueStep::LeakyRelu => Step::Leaky(number::<T>(self.alpha)),
            EpilogueStep::Relu => Step::Clamp(T::HIGHEST, function::<T, Relu>),
            EpilogueStep::Relu6 => {
                Step::Clamp(T::down(<T::Wide as Number>::from_f64(6.0)), function::<T, Relu6>)
            }
            EpilogueStep::Elu => Step::Function(function::<T, Elu>),
            EpilogueStep::Tanh => Step::Function(function::<T, Tanh>),
            EpilogueStep::Sigmoid => Step::Function(function::<T, Sigmoid>),
            EpilogueStep::GeluApproximate => Step::Function(function::<T, GeluTanh>),
            EpilogueStep::GeluExact => Step::Function(function::<T, Gelu>),
            EpilogueStep::ReluGrad => {
                Step::Slope(input(c, step, first, output)?, zip_in_place::<T, ReluSlope>)
            }
            EpilogueStep::TanhGrad => {
                Step::Slope(input(c, step, first, output)?, zip_in_place::<T, TanhSlope>)
            }
            EpilogueStep::SigmoidGrad => {
                Step::Slope(input(c, step, first, output)?, zip_in_place::<T, SigmoidSlope>)
            }
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
    /// Like `affine_rows`, for adjacent values of one channel.
    fn affine_plane[T: Compute](y: &mut [T], mean: T::Wide, factor: T::Wide, offset: T::Wide) {
        for y in y.iter_mut() {
            *y = T::down(y.up().sub(mean).mul(factor).add(offset));
        }
    }
}

vectorised! {
    /// `y` if it is above 0, else `alpha * y`.
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
    /// `min(max(y, 0), high)`, with `high` and the function that does it.
    Clamp(T, fn(&mut [T])),
    Function(fn(&mut [T])),
    /// A function of the product and of the output of an activation.
    Slope(&'a [T], fn(&mut [T], &[T])),
}

/// The steps of one call.
pub struct Steps<'a, T: Compute> {
    /// Stored inline, so that a call allocates nothing; further steps are in `more`.
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

    /// Calls `body` with the steps as the ending of a product.
    pub fn ending<R>(&self, body: impl FnOnce(Ending<'_, T>) -> R) -> R {
        let (finish, done) = self.in_registers();
        let (rest, all) = (
            |start: usize, y: &mut [T]| self.apply_from(done, start, y),
            |start: usize, y: &mut [T]| self.apply(start, y),
        );
        let is_left = self.steps().nth(done).is_some();
        body(Ending { finish, rest: is_left.then_some(&rest), all: Some(&all) })
    }

    /// As many of the first steps as products perform in registers, and their number.
    fn in_registers(&self) -> (Finish<'_, T::Wide>, usize) {
        let (mut finish, mut done) = (Finish::NONE, 0);
        if self.format != DataFormat::Nhwc {
            return (finish, done);
        }
        for step in self.steps() {
            let Finish { bias, affine, other, high } = finish;
            let is_before = [bias.is_none(), affine.is_none(), other.is_none()];
            let is_done = high.is_none()
                && match step {
                    Step::Bias(x) if is_before == [true; 3] => {
                        finish.bias = as_itself(x);
                        finish.bias.is_some()
                    }
                    Step::Affine(a) if is_before[1..] == [true; 2] => {
                        finish.affine = as_itself(a.means)
                            .zip(as_itself(a.offsets))
                            .map(|(means, offsets)| [means, a.factors, offsets]);
                        finish.affine.is_some()
                    }
                    Step::Add(x) if is_before[2] => {
                        finish.other = as_itself(x);
                        finish.other.is_some()
                    }
                    Step::Clamp(most, _) if as_itself::<T>(&[]).is_some() => {
                        finish.high = Some(most.up());
                        true
                    }
                    _ => false,
                };
            if !is_done {
                break;
            }
            done += 1;
        }
        (finish, done)
    }

    /// Applies all steps to some adjacent elements of the output, the first of which is number
    /// `start`. With channels last they are whole pixels, or some channels of one.
    pub fn apply(&self, start: usize, y: &mut [T]) {
        self.apply_from(0, start, y);
    }

    /// Applies the steps after the first `done`.
    fn apply_from(&self, done: usize, start: usize, y: &mut [T]) {
        if y.is_empty() || self.few[0].is_none() {
            return;
        }
        let piece = match self.format {
            DataFormat::Nhwc if y.len() < self.channels => y.len(),
            DataFormat::Nhwc => (PIECE / self.channels).max(1) * self.channels,
            DataFormat::Nchw => PIECE,
        };
        for (at, y) in y.chunks_mut(piece).enumerate() {
            self.steps().skip(done).for_each(|step| self.step(step, start + at * piece, y));
        }
    }

    fn step(&self, step: &Step<'_, T>, start: usize, y: &mut [T]) {
        match step {
            Step::Clamp(_, function) | Step::Function(function) => function(y),
            Step::Leaky(alpha) => leaky(y, *alpha),
            Step::Slope(of, function) => function(y, &of[start..start + y.len()]),
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

    /// Channels last: the values for the channels of some adjacent elements.
    fn channels_of<'v, V>(&self, values: &'v [V], start: usize, count: usize) -> &'v [V] {
        let first = start % self.channels;
        &values[first..self.channels.min(first + count)]
    }

    /// Channels first: calls `each` with the elements and the index of each channel.
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
            Step::Function(function::<T, Relu6>),
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
    fn steps_round_as_single_ops_do_in_both_formats() {
        check::<f32>(DataFormat::Nhwc, 7, 1, 1500);
        check::<f32>(DataFormat::Nchw, 5, 1300, 2);
        check::<f32>(DataFormat::Nchw, 5, 1, 2);
        check::<bf16>(DataFormat::Nhwc, 3, 1, 11);
        check::<f64>(DataFormat::Nchw, 4, 10, 3);
    }
}
