//! `RandomGamma`, `StatelessRandomGammaV2` and `StatelessRandomGammaV3`.
//!
//! Source: Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26
//! (2000). The order in which random numbers are used is TensorFlow's, so that equal seeds give
//! equal numbers.

use super::{
    distribution::{Drawn, box_muller_f64},
    shape_input,
    stateful::stream_of,
    stateless::{mixed, named},
};
use crate::split::for_parts;
use half::f16;
use std::marker::PhantomData;
use tenon_philox::{Philox, RESERVED_PER_OUTPUT, Stream, reserved};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::element_count,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of a number.
const COST_NS: f64 = 60.0;

/// Numbers that are made two at a time; the second of a pair is used first.
struct Pairs {
    numbers: [f64; 2],
    left: usize,
}

impl Pairs {
    const NONE: Pairs = Pairs { numbers: [0.0; 2], left: 0 };

    fn next(&mut self, make: impl FnOnce() -> [f64; 2]) -> f64 {
        if self.left == 0 {
            (self.numbers, self.left) = (make(), 2);
        }
        self.left -= 1;
        self.numbers[self.left]
    }
}

/// One section of a stream, read as uniform and as normal numbers.
struct Numbers {
    generator: Philox,
    uniform: Pairs,
    normal: Pairs,
}

impl Numbers {
    fn uniform(&mut self) -> f64 {
        self.uniform.next(|| {
            let [a, b, ..] = <f64 as Drawn>::uniform(self.generator.step());
            [a, b]
        })
    }

    fn normal(&mut self) -> f64 {
        self.normal.next(|| box_muller_f64(self.generator.step()))
    }

    /// A number of the gamma distribution with scale 1.
    fn gamma(&mut self, alpha: f64) -> f64 {
        if alpha == 1.0 {
            return -(-self.uniform()).ln_1p();
        }
        let below_one = alpha < 1.0;
        let d = alpha + if below_one { 2.0 / 3.0 } else { -1.0 / 3.0 };
        let c = 1.0 / 3.0 / d.sqrt();
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            // NaN, from an invalid alpha, ends the loop too.
            if v <= 0.0 {
                continue;
            }
            let (v, u) = (v * v * v, self.uniform());
            let squeezed = u < 1.0 - 0.0331 * (x * x) * (x * x);
            if squeezed || v.is_nan() || u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
                let boost = if below_one { self.uniform().powf(1.0 / alpha) } else { 1.0 };
                return d * v * boost;
            }
        }
    }
}

struct RandomGamma<T> {
    stream: Stream,
    element: PhantomData<fn(T)>,
}

impl<T: Number> Kernel for RandomGamma<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(RandomGamma { stream: stream_of(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (mut dims, alpha) = (shape_input(c, 0)?, c.input::<T>(1)?);
        let samples = element_count(&dims)?;
        dims.extend_from_slice(alpha.dims);
        let y = c.output::<T>(0, &dims)?.data;
        let stream = self.stream.take(reserved(y.len()));
        fill(c, (alpha.data, samples), y, &stream)
    }
}

/// Fills the output with `samples` numbers for each alpha.
fn fill<T: Number>(
    c: &ComputeContext<'_>,
    (alphas, samples): (&[T], usize),
    y: &mut [T],
    stream: &Philox,
) -> Result<(), KernelError> {
    let count = alphas.len();
    for_parts(c, y, COST_NS, |first, y| {
        for (at, y) in y.iter_mut().enumerate() {
            let (sample, of) = ((first + at) / count, (first + at) % count);
            // Numbers are counted alpha by alpha.
            let number = (of * samples + sample) as u64;
            let generator = stream.at(number.wrapping_mul(RESERVED_PER_OUTPUT));
            let mut numbers = Numbers { generator, uniform: Pairs::NONE, normal: Pairs::NONE };
            *y = T::from_f64(numbers.gamma(alphas[of].to_f64()));
        }
    })
}

/// Numbers of a stream, for the alphas in an input, whose shape ends that of the output.
fn of_stream<T: Number>(
    c: &ComputeContext<'_>,
    input: usize,
    stream: &Philox,
) -> Result<(), KernelError> {
    let (dims, alpha) = (shape_input(c, 0)?, c.input::<T>(input)?);
    if !dims.ends_with(alpha.dims) {
        return Err(KernelError::invalid_argument(format!(
            "shape: expected one that ends with {:?}, the shape of alpha, found {dims:?}",
            alpha.dims
        )));
    }
    let samples = element_count(&dims[..dims.len() - alpha.dims.len()])?;
    fill(c, (alpha.data, samples), c.output::<T>(0, &dims)?.data, stream)
}

fn of_seed<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_stream::<T>(c, 2, &mixed(c, 1)?)
}

fn of_key<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    of_stream::<T>(c, 4, &named(c)?)
}

register_kernel!("StatelessRandomGammaV2" on "CPU": fn of_seed<T> for "dtype" in [f16, f32, f64],
    host_memory = &["shape", "seed"], numerics = Numerics::relative(0.0, 1e-6));
register_kernel!("StatelessRandomGammaV3" on "CPU": fn of_key<T> for "dtype" in [f16, f32, f64],
    host_memory = &["shape", "alg"], numerics = Numerics::relative(0.0, 1e-6));
register_kernel!("RandomGamma" on "CPU": RandomGamma<T> for "T" in [f16, f32, f64],
    host_memory = &["shape"], numerics = Numerics::relative(0.0, 1e-6));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distribution() {
        for alpha in [0.3, 1.0, 2.5, 20.0] {
            let many = 40_000u64;
            let draw = |number: u64| {
                let generator = Philox::seeded(5, 6).at(number * RESERVED_PER_OUTPUT);
                Numbers { generator, uniform: Pairs::NONE, normal: Pairs::NONE }.gamma(alpha)
            };
            let numbers: Vec<f64> = (0..many).map(draw).collect();
            let mean = numbers.iter().sum::<f64>() / many as f64;
            let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / many as f64;
            // Mean and variance are both alpha; five standard deviations of their estimates are
            // allowed.
            let deviation = (alpha / many as f64).sqrt();
            assert!((mean - alpha).abs() < 5.0 * deviation, "{alpha}: mean {mean}");
            let fourth = (2.0 * alpha * alpha + 6.0 * alpha) / many as f64;
            assert!((variance - alpha).abs() < 5.0 * fourth.sqrt(), "{alpha}: variance {variance}");
        }
    }

    #[test]
    fn what_is_no_parameter_gives_nan() {
        let generator = Philox::seeded(5, 6);
        let mut numbers = Numbers { generator, uniform: Pairs::NONE, normal: Pairs::NONE };
        assert!(numbers.gamma(-3.0).is_nan() && numbers.gamma(f64::NAN).is_nan());
    }
}
