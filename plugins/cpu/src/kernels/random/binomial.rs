//! `StatefulRandomBinomial` and `StatelessRandomBinomial`.
//!
//! Sources: for few expected successes, sums of geometric numbers (Devroye, "Non-uniform random variate generation", 1986,
//! X.4); else transformed rejection (Hormann, "The generation of binomial random variates", 1993). The numbers are
//! TensorFlow's for equal states (`random_binomial_op.cc`).

use super::{
    distribution::Drawn,
    of_variable::{advance, check_algorithm, generator, scalar},
    shape_input,
    stateless::mixed,
};
use half::f16;
use std::marker::PhantomData;
use tenon_philox::{Philox, RESERVED_PER_OUTPUT};
use tenon_sdk::{
    DType, KernelError, View,
    author::ComputeContext,
    element::Number,
    geometry::{Dims, broadcast_shape, element_count},
    register_kernel,
};

/// The expected number of successes from which on transformed rejection is used.
const FEW: f64 = 10.0;

/// The steps of the generator from one number of few expected successes to the next: TensorFlow's, which are more than ten
/// standard deviations of them need.
const STEPS_OF_FEW: u64 = 42;

/// Uniform numbers, two at a time; the second of a pair is used first.
pub struct Uniforms {
    generator: Philox,
    pair: [f64; 2],
    left: usize,
}

impl Uniforms {
    /// The numbers of a stream.
    pub fn new(generator: Philox) -> Uniforms {
        Uniforms { generator, pair: [0.0; 2], left: 0 }
    }

    /// The next number.
    pub fn next(&mut self) -> f64 {
        if self.left == 0 {
            let [a, b, ..] = <f64 as Drawn>::uniform(self.generator.step());
            (self.pair, self.left) = ([a, b], 2);
        }
        self.left -= 1;
        self.pair[self.left]
    }

    /// How many of `count` trials succeed, of which few do: geometric numbers are added up until they exceed `count`.
    fn few(&mut self, count: f64, prob: f64) -> f64 {
        let (mut sum, mut successes) = (0.0, 0.0);
        loop {
            sum += (self.next().ln() / (-prob).ln_1p()).ceil();
            if sum > count || sum.is_nan() {
                return successes;
            }
            successes += 1.0;
        }
    }

    /// How many of `count` trials succeed.
    fn many(&mut self, count: f64, prob: f64) -> f64 {
        let deviation = (count * prob * (1.0 - prob)).sqrt();
        let b = 1.15 + 2.53 * deviation;
        let a = -0.0873 + 0.0248 * b + 0.01 * prob;
        let c = count * prob + 0.5;
        let tight = 0.92 - 4.2 / b;
        let r = prob / (1.0 - prob);
        let alpha = (2.83 + 5.1 / b) * deviation;
        let m = ((count + 1.0) * prob).floor();
        loop {
            let (u, v) = (self.next() - 0.5, self.next());
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + c).floor();
            if us >= 0.07 && v <= tight || k.is_nan() {
                return k;
            }
            if k < 0.0 || k > count {
                continue;
            }
            let v = (v * alpha / (a / (us * us) + b)).ln();
            let bound = (m + 0.5) * ((m + 1.0) / (r * (count - m + 1.0))).ln()
                + (count + 1.0) * ((count - m + 1.0) / (count - k + 1.0)).ln()
                + (k + 0.5) * (r * (count - k + 1.0) / (k + 1.0)).ln()
                + tail(m)
                + tail(count - m)
                - tail(k)
                - tail(count - k);
            if v <= bound {
                return k;
            }
        }
    }
}

/// What Stirling's approximation of `ln(k!)` lacks.
fn tail(k: f64) -> f64 {
    const SMALL: [f64; 10] = [
        0.081_061_466_795_327_2,
        0.041_340_695_955_409_2,
        0.027_677_925_684_998_3,
        0.020_790_672_103_765_09,
        0.016_644_691_189_821_1,
        0.013_876_128_823_070_7,
        0.011_896_709_945_891_7,
        0.010_411_265_261_972_0,
        0.009_255_462_182_712_73,
        0.008_330_563_433_362_87,
    ];
    if k <= 9.0 {
        return SMALL[k as usize];
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}

/// The parameters of one number, in the arithmetic of their type.
#[derive(Clone, Copy)]
struct Trials<T> {
    count: f64,
    /// The probability of the rarer outcome, at most a half.
    rare: f64,
    /// Whether that is a failure.
    is_failure: bool,
    /// Whether few outcomes are expected to be the rarer one.
    is_few: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Number> Trials<T> {
    /// `None` where there is no success.
    fn new(count: T, prob: T) -> Option<Trials<T>> {
        let (count, prob) = (count.to_f64(), prob.to_f64());
        if count <= 0.0 || prob <= 0.0 {
            return None;
        }
        let is_failure = prob > 0.5;
        let rare = if is_failure { T::from_f64(1.0 - prob).to_f64() } else { prob };
        let is_few = T::from_f64(count * rare).to_f64() < FEW;
        Some(Trials { count, rare, is_failure, is_few, of: PhantomData })
    }

    /// The number at this place of a stream; NaN for parameters that are not numbers.
    fn draw(self, stream: &Philox, place: u64) -> f64 {
        let Trials { count, rare, is_failure, is_few, .. } = self;
        if count.is_nan() || rare.is_nan() {
            return f64::NAN;
        }
        let steps = if is_few { STEPS_OF_FEW } else { RESERVED_PER_OUTPUT };
        let generator = stream.at(place.wrapping_mul(steps));
        let mut uniforms = Uniforms::new(generator);
        let drawn = if is_few { uniforms.few(count, rare) } else { uniforms.many(count, rare) };
        if is_failure { count - drawn } else { drawn }
    }
}

/// The number of the element of a tensor of shape `dims` that belongs to element `at` of one that it broadcasts to.
pub fn broadcast_index(mut at: usize, dims: &[i64], to: &[i64]) -> usize {
    let (mut index, mut stride) = (0, 1);
    let missing = to.len() - dims.len();
    for axis in (0..to.len()).rev() {
        let size = to[axis] as usize;
        if axis >= missing {
            let own = dims[axis - missing] as usize;
            index += if own == 1 { 0 } else { at % size * stride };
            stride *= own;
        }
        at /= size;
    }
    index
}

/// The steps of the generator that TensorFlow reserves for a call.
fn reserved(batches: usize, samples: usize) -> u64 {
    let samples = (samples as u64).wrapping_add(3);
    ((batches as u64).wrapping_mul(200).wrapping_mul(samples) / 4).wrapping_mul(RESERVED_PER_OUTPUT)
}

/// Counts, probabilities and the shape that they broadcast to, which ends that of the output.
struct Parameters<'a, T> {
    counts: View<'a, T>,
    probs: View<'a, T>,
    batch: Dims,
    dims: Vec<i64>,
}

impl<'a, T: Number> Parameters<'a, T> {
    /// Those in two inputs from `first` on, for a shape in an input.
    fn new(
        c: &ComputeContext<'a>,
        shape: usize,
        first: usize,
    ) -> Result<Parameters<'a, T>, KernelError> {
        let dims = shape_input(c, shape)?;
        let (counts, probs) = (c.input::<T>(first)?, c.input::<T>(first + 1)?);
        let batch = broadcast_shape(counts.dims, probs.dims)
            .map_err(|error| error.of("counts and probs"))?;
        if !dims.ends_with(&batch) {
            return Err(KernelError::invalid_argument(format!(
                "shape: expected one that ends with {batch:?}, the shape of counts and probs, found {dims:?}"
            )));
        }
        Ok(Parameters { counts, probs, batch, dims })
    }

    /// How many parameters there are, and how many numbers of each.
    fn counts(&self) -> Result<(usize, usize), KernelError> {
        let own = self.dims.len() - self.batch.len();
        Ok((element_count(&self.batch)?, element_count(&self.dims[..own])?))
    }

    fn fill<U: Number>(
        &self,
        c: &ComputeContext<'_>,
        y: &mut [U],
        stream: &Philox,
    ) -> Result<(), KernelError> {
        let (batches, samples) = self.counts()?;
        let watch = c.watch();
        for at in 0..batches {
            watch.check()?;
            let count = self.counts.data[broadcast_index(at, self.counts.dims, &self.batch)];
            let prob = self.probs.data[broadcast_index(at, self.probs.dims, &self.batch)];
            let trials = Trials::new(count, prob);
            for sample in 0..samples {
                let place = (at * samples + sample) as u64;
                let number = trials.map_or(0.0, |trials| trials.draw(stream, place));
                y[sample * batches + at] = U::from_f64(number);
            }
        }
        Ok(())
    }
}

fn binomial<T: Number, U: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_algorithm(scalar::<i64>(c, 1, "algorithm")?)?;
    let parameters = Parameters::<T>::new(c, 2, 3)?;
    let (batches, samples) = parameters.counts()?;
    let y = c.output::<U>(0, &parameters.dims)?.data;
    // As in TensorFlow, the generator advances for a result without elements too.
    let stream = generator(advance(c, false, reserved(batches, samples))?);
    parameters.fill(c, y, &stream)
}

fn stateless<T: Number, U: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (parameters, stream) = (Parameters::<T>::new(c, 0, 2)?, mixed(c, 1)?);
    let y = c.output::<U>(0, &parameters.dims)?.data;
    parameters.fill(c, y, &stream)
}

macro_rules! of_counts {
    ($($name:ident, $stateless:ident: $count:ty, $dtype:expr;)*) => {$(
        fn $name<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            binomial::<$count, T>(c)
        }

        fn $stateless<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            stateless::<$count, T>(c)
        }

        register_kernel!("StatefulRandomBinomial" on "CPU": fn $name<T> for "dtype" in
            [f16, f32, f64, i32, i64], types = ("T", &[$dtype]));
        register_kernel!("StatelessRandomBinomial" on "CPU": fn $stateless<T> for "dtype" in
            [f16, f32, f64, i32, i64], types = ("T", &[$dtype]),
            host_memory = &["shape", "seed", "counts", "probs"]);
    )*};
}

of_counts! {
    of_half, stateless_of_half: f16, DType::HALF;
    of_float, stateless_of_float: f32, DType::FLOAT;
    of_double, stateless_of_double: f64, DType::DOUBLE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distribution() {
        for (count, prob) in [(7.0, 0.3), (40.0, 0.1), (40.0, 0.5), (1000.0, 0.02), (90.0, 0.85)] {
            let trials = Trials::<f64>::new(count, prob).expect("some succeed");
            let many = 40_000u64;
            let stream = Philox::seeded(5, 6);
            let numbers: Vec<f64> = (0..many).map(|place| trials.draw(&stream, place)).collect();
            assert!(numbers.iter().all(|x| (0.0..=count).contains(x) && x.fract() == 0.0));
            let mean = numbers.iter().sum::<f64>() / many as f64;
            let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / many as f64;
            let expected = count * prob * (1.0 - prob);
            // Five standard deviations of the estimates are allowed.
            assert!(
                (mean - count * prob).abs() < 5.0 * (expected / many as f64).sqrt(),
                "{count} {prob}: {mean}"
            );
            let fourth = expected * (1.0 + 3.0 * expected);
            assert!(
                (variance - expected).abs() < 5.0 * (fourth / many as f64).sqrt(),
                "{count} {prob}: {variance}"
            );
        }
    }

    #[test]
    fn parameters_that_are_not_numbers_give_nan() {
        let draw = |count, prob| {
            Trials::<f64>::new(count, prob).map(|it| it.draw(&Philox::seeded(5, 6), 0))
        };
        assert_eq!([draw(-1.0, 0.5), draw(0.0, 0.5), draw(9.0, 0.0), draw(9.0, -0.5)], [None; 4]);
        assert_eq!(draw(9.0, 1.0), Some(9.0));
        assert!(
            draw(f64::NAN, 0.5).is_some_and(f64::is_nan)
                && draw(9.0, f64::NAN).is_some_and(f64::is_nan)
        );
        assert!(draw(f64::INFINITY, 0.5).is_some_and(f64::is_nan));
    }
}
