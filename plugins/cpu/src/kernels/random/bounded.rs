//! `ParameterizedTruncatedNormal` and `StatelessParameterizedTruncatedNormal`.
//!
//! Source: C. Robert, "Simulation of truncated normal variables" (1995). The order in which random numbers are used, the
//! proposals and the rounding to the type at each step are those of TensorFlow on one thread, so that equal seeds give
//! equal numbers; they are drawn one after the other.

use super::{
    binomial::broadcast_index, distribution::Drawn, shape_input, stateful::stream_of,
    stateless::mixed,
};
use half::f16;
use std::{
    marker::PhantomData,
    ops::{Add, Div, Mul, Neg, Sub},
};
use tenon_philox::{Philox, Stream};
use tenon_sdk::{
    KernelError, View,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{broadcast_shape, element_count},
    reg::Numerics,
    register_kernel,
};

/// Most tries for a number.
const TRIES: usize = 1000;
/// The distance of a bound from the mean from which on normal numbers are proposed.
const FAR: f64 = 1.3;
/// Numbers of a group that share a stretch of the stream where all parameters are scalars.
const GROUP: usize = 100;
/// Numbers between checks whether the step was cancelled.
const LOOK: usize = 1 << 10;

/// A type with the arithmetic of the distribution, each step of which rounds.
trait Real:
    Drawn
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    fn number(value: f64) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
}

macro_rules! real {
    ($($ty:ty as $wide:ty, $up:expr, $down:expr;)*) => {$(
        impl Real for $ty {
            fn number(value: f64) -> $ty {
                <$ty as tenon_sdk::element::Number>::from_f64(value)
            }
            fn exp(self) -> $ty {
                $down(<$wide>::exp($up(self)))
            }
            fn ln(self) -> $ty {
                $down(<$wide>::ln($up(self)))
            }
            fn sqrt(self) -> $ty {
                $down(<$wide>::sqrt($up(self)))
            }
        }
    )*};
}

real! {
    f16 as f32, f16::to_f32, f16::from_f32;
    f32 as f32, |x| x, |x| x;
    f64 as f64, |x| x, |x| x;
}

/// How numbers are proposed.
enum Proposal<T> {
    /// Normal ones.
    Normal,
    /// Uniform ones; `plus` is twice the logarithm of the density at zero or at the lower bound.
    Uniform { plus: T },
    /// Exponentially distributed ones from the lower bound on.
    Exponential { alpha: T },
}

/// A distribution, as one with mean 0 and deviation 1 whose lower bound is the nearer one, or whose
/// bounds are on both sides of 0.
struct Bounded<T> {
    mean: T,
    deviation: T,
    low: T,
    high: T,
    proposal: Proposal<T>,
}

impl<T: Real> Bounded<T> {
    fn new([mean, deviation, low, high]: [T; 4]) -> Result<Bounded<T>, KernelError> {
        let (zero, number) = (T::ZERO, T::number);
        let is_finite = |x: T| x.to_f64().is_finite();
        if !(deviation > zero && low < high && (is_finite(low) || is_finite(high))) {
            return Err(KernelError::invalid_argument(format!(
                "minvals and maxvals: expected a deviation above 0 and a lower bound below the upper one, not both infinite, \
                 found {deviation:?}, {low:?} and {high:?}"
            )));
        }
        if !is_finite(mean) || !is_finite(deviation) {
            return Err(KernelError::invalid_argument(format!(
                "means: expected finite means and deviations, found {mean:?} and {deviation:?}"
            )));
        }
        let turns = low.to_f64() == f64::NEG_INFINITY || high < mean;
        let (low, high, deviation) =
            if turns { (high, low, -deviation) } else { (low, high, deviation) };
        let (low, high) = ((low - mean) / deviation, (high - mean) / deviation);
        let root = (low * low + number(4.0)).sqrt();
        let exponent = number(0.5) + (low * (low - root)) / number(4.0);
        let cutoff = number(2.0) * exponent.exp() / (low + root);
        let far = number(FAR);
        let proposal = if low < -far && high >= zero || high > far && low <= zero {
            Proposal::Normal
        } else if high - low < cutoff {
            Proposal::Uniform { plus: if low < zero { zero } else { low * low } }
        } else {
            Proposal::Exponential { alpha: (low + root) / number(2.0) }
        };
        Ok(Bounded { mean, deviation, low, high, proposal })
    }

    /// Draws so many numbers one after the other.
    fn draw(
        &self,
        generator: &mut Philox,
        count: usize,
        mut take: impl FnMut(usize, T) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let (mut drawn, mut tries) = (0, 0);
        while drawn < count {
            let proposed = self.proposed(generator);
            for number in &proposed.numbers[..proposed.count] {
                let Some(number) = number else {
                    tries += 1;
                    if tries >= TRIES {
                        return Err(KernelError::invalid_argument(format!(
                            "minvals and maxvals: expected bounds between which numbers are drawn, found none in {TRIES} tries"
                        )));
                    }
                    continue;
                };
                take(drawn, *number * self.deviation + self.mean)?;
                (drawn, tries) = (drawn + 1, 0);
                if drawn == count {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The next proposals, those that are kept.
    fn proposed(&self, generator: &mut Philox) -> Proposed<T> {
        let mut numbers = [None; 4];
        match self.proposal {
            Proposal::Normal => {
                let normal = T::normal(generator.step());
                for (number, x) in numbers.iter_mut().zip(normal).take(T::PER_STEP) {
                    *number = (x >= self.low && x <= self.high).then_some(x);
                }
                Proposed { numbers, count: T::PER_STEP }
            }
            Proposal::Uniform { plus } => {
                let (places, limits) = (T::uniform(generator.step()), T::uniform(generator.step()));
                for ((number, place), limit) in numbers.iter_mut().zip(places).zip(limits) {
                    let z = place * (self.high - self.low) + self.low;
                    let density = ((plus - z * z) / T::number(2.0)).exp();
                    *number = (limit <= density).then_some(z);
                }
                Proposed { numbers, count: T::PER_STEP }
            }
            Proposal::Exponential { alpha } => {
                let uniform = T::uniform(generator.step());
                for (number, pair) in numbers.iter_mut().zip(uniform[..T::PER_STEP].chunks_exact(2))
                {
                    let z = -pair[0].ln() / alpha + self.low;
                    let x = if self.low < alpha { alpha - z } else { self.low - alpha };
                    let density = (-x * x / T::number(2.0)).exp();
                    *number = (pair[1] <= density && z < self.high).then_some(z);
                }
                Proposed { numbers, count: T::PER_STEP / 2 }
            }
        }
    }
}

/// Proposals of one step; what is not kept is `None`.
struct Proposed<T> {
    numbers: [Option<T>; 4],
    count: usize,
}

struct OfSeed<T> {
    stream: Stream,
    element: PhantomData<fn(T)>,
}

impl<T: Real> Kernel for OfSeed<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(OfSeed { stream: stream_of(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = shape_input(c, 0)?;
        let Some((&batches, rest)) = dims.split_first() else {
            return Err(KernelError::invalid_argument("shape must have at least 1 element, got 0"));
        };
        let parameters = parameters::<T>(c, 1)?;
        for (view, name) in parameters.iter().zip(NAMES) {
            if view.dims.len() > 1 || !matches!(view.data.len() as i64, n if n == 1 || n == batches)
            {
                return Err(KernelError::invalid_argument(format!(
                    "{name} must be a scalar or a vector of 1 or {batches}, found shape {:?}",
                    view.dims
                )));
            }
        }
        let y = c.output::<T>(0, &dims)?.data;
        let [means, deviations, low, high] = &parameters;
        let is_one = means.data.len() == 1
            && deviations.data.len() == 1
            && low.dims.is_empty()
            && high.dims.is_empty();
        let samples = if is_one { GROUP } else { element_count(rest)? };
        let groups = if is_one { y.len().div_ceil(GROUP) } else { batches as usize };
        let steps = (groups as u64).wrapping_mul(2 * TRIES as u64);
        let mut generator = self.stream.take(steps.wrapping_mul(samples as u64 + 3) / 4);
        if y.is_empty() {
            return Ok(());
        }
        for (group, y) in y.chunks_mut(samples).enumerate() {
            c.watch().check()?;
            let of = parameters
                .each_ref()
                .map(|view| view.data[if view.data.len() == 1 { 0 } else { group }]);
            Bounded::new(of)?.draw(&mut generator, y.len(), |at, number| {
                y[at] = number;
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// The names of the parameters in messages.
const NAMES: [&str; 4] = ["means", "stddevs", "minvals", "maxvals"];

/// The parameters from an input on.
fn parameters<'a, T: Real>(
    c: &ComputeContext<'a>,
    first: usize,
) -> Result<[View<'a, T>; 4], KernelError> {
    Ok([c.input(first)?, c.input(first + 1)?, c.input(first + 2)?, c.input(first + 3)?])
}

fn stateless<T: Real>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (dims, mut generator) = (shape_input(c, 0)?, mixed(c, 1)?);
    let parameters = parameters::<T>(c, 2)?;
    let mut batch = broadcast_shape(parameters[0].dims, parameters[1].dims)?;
    for view in &parameters[2..] {
        batch = broadcast_shape(&batch, view.dims)?;
    }
    if !dims.ends_with(&batch) {
        return Err(KernelError::invalid_argument(format!(
            "shape: expected one that ends with {batch:?}, the shape of the parameters, found {dims:?}"
        )));
    }
    let batches = element_count(&batch)?;
    let samples = element_count(&dims[..dims.len() - batch.len()])?;
    let y = c.output::<T>(0, &dims)?.data;
    if y.is_empty() {
        return Ok(());
    }
    for at in 0..batches {
        let of =
            parameters.each_ref().map(|view| view.data[broadcast_index(at, view.dims, &batch)]);
        Bounded::new(of)?.draw(&mut generator, samples, |sample, number| {
            if sample % LOOK == 0 {
                c.watch().check()?;
            }
            y[sample * batches + at] = number;
            Ok(())
        })?;
    }
    Ok(())
}

register_kernel!("ParameterizedTruncatedNormal" on "CPU": OfSeed<T> for "dtype" in [f16, f32, f64],
    host_memory = &["shape"], numerics = Numerics::ulps(4.0));
register_kernel!("StatelessParameterizedTruncatedNormal" on "CPU": fn stateless<T>
    for "dtype" in [f16, f32, f64],
    host_memory = &["shape", "seed", "means", "stddevs", "minvals", "maxvals"],
    numerics = Numerics::ulps(4.0));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_between_the_bounds() {
        let infinite = f64::INFINITY;
        for of in [
            [0.0, 1.0, -2.0, 3.0],
            [1.0, 2.0, 5.0, 5.5],
            [0.0, 1.0, 3.0, infinite],
            [0.0, 1.0, -infinite, -4.0],
        ] {
            let bounded = Bounded::new(of).unwrap();
            let mut numbers = Vec::new();
            let keep = |_, number: f64| {
                numbers.push(number);
                Ok(())
            };
            bounded.draw(&mut Philox::seeded(5, 6), 1000, keep).unwrap();
            assert!(numbers.len() == 1000 && numbers.iter().all(|&x| (of[2]..=of[3]).contains(&x)));
            let mean = numbers.iter().sum::<f64>() / 1000.0;
            assert!(
                mean > of[2] && mean < of[3] && (mean - of[0]).abs() < 5.0 * of[1],
                "{of:?}: {mean}"
            );
        }
    }
}
