//! `RandomPoissonV2` and `StatelessRandomPoisson`.
//!
//! Sources: below a rate of 10, products of uniform numbers (Knuth, "The Art of Computer Programming", volume 2, 3.4.1); from
//! there on transformed rejection (Hörmann, "The transformed rejection method for generating Poisson random variables",
//! 1993). The order in which random numbers are used is TensorFlow's, so that equal seeds give equal numbers.

use super::{binomial::Uniforms, shape_input, stateful::stream_of, stateless::mixed};
use crate::split::for_parts;
use half::f16;
use std::marker::PhantomData;
use tenon_philox::{Philox, RESERVED_PER_OUTPUT, Stream, reserved};
use tenon_reference::special::lgamma;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::element_count,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of a number.
const COST_NS: f64 = 80.0;
/// The rate from which on transformed rejection is used.
const MANY: f64 = 10.0;
/// Most tries for a number that fits in the type; then it is the greatest one.
const TRIES: usize = 1000;

/// The greatest finite number of a type.
fn greatest<T: Number>() -> f64 {
    match T::DTYPE {
        DType::HALF => f16::MAX.to_f64(),
        DType::FLOAT => f32::MAX.into(),
        DType::DOUBLE => f64::MAX,
        _ => T::HIGHEST.to_f64(),
    }
}

/// The constants of transformed rejection, by the names that the source gives them.
struct Hat {
    rate: f64,
    log_rate: f64,
    a: f64,
    b: f64,
    inverse_alpha: f64,
    tight: f64,
}

impl Hat {
    fn new(rate: f64) -> Hat {
        let b = 0.931 + 2.53 * rate.sqrt();
        let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
        let tight = 0.9277 - 3.6224 / (b - 2.0);
        Hat { rate, log_rate: rate.ln(), a: -0.059 + 0.02483 * b, b, inverse_alpha, tight }
    }

    /// A number of at most `most`, if one is found.
    fn draw(&self, uniforms: &mut Uniforms, most: f64) -> Option<f64> {
        for _ in 0..TRIES {
            let (u, v) = (uniforms.next() - 0.5, uniforms.next());
            let shifted = 0.5 - u.abs();
            let k = ((2.0 * self.a / shifted + self.b) * u + self.rate + 0.43).floor();
            if k > most {
                continue;
            }
            if shifted >= 0.07 && v <= self.tight {
                return Some(k);
            }
            if k < 0.0 || shifted < 0.013 && v > shifted {
                continue;
            }
            let s = (v * self.inverse_alpha / (self.a / (shifted * shifted) + self.b)).ln();
            if s <= -self.rate + k * self.log_rate - lgamma(k + 1.0) {
                return Some(k);
            }
        }
        None
    }
}

/// A number of the distribution of this rate; NaN where the rate is.
fn draw(generator: Philox, rate: f64, most: f64) -> f64 {
    let mut uniforms = Uniforms::new(generator);
    if rate.is_nan() || rate == f64::INFINITY {
        return rate;
    }
    if rate >= MANY {
        return Hat::new(rate).draw(&mut uniforms, most).unwrap_or(most);
    }
    let (least, mut product, mut count) = ((-rate).exp(), uniforms.next(), 0.0);
    while product > least {
        product *= uniforms.next();
        count += 1.0;
    }
    count
}

/// Fills the output with `samples` numbers for each rate.
fn fill<R: Number, T: Number>(
    c: &ComputeContext<'_>,
    (rates, samples): (&[R], usize),
    y: &mut [T],
    stream: &Philox,
) -> Result<(), KernelError> {
    let (count, most) = (rates.len(), greatest::<T>());
    for_parts(c, y, COST_NS, |first, y| {
        for (at, y) in y.iter_mut().enumerate() {
            let (sample, of) = ((first + at) / count, (first + at) % count);
            // Numbers are counted rate by rate.
            let number = (of * samples + sample) as u64;
            let generator = stream.at(number.wrapping_mul(RESERVED_PER_OUTPUT));
            *y = T::from_f64(draw(generator, rates[of].to_f64(), most));
        }
    })
}

struct RandomPoisson<R, T> {
    stream: Stream,
    element: PhantomData<fn(R) -> T>,
}

impl<R: Number, T: Number> Kernel for RandomPoisson<R, T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(RandomPoisson { stream: stream_of(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (mut dims, rate) = (shape_input(c, 0)?, c.input::<R>(1)?);
        let samples = element_count(&dims)?;
        dims.extend_from_slice(rate.dims);
        let y = c.output::<T>(0, &dims)?.data;
        let stream = self.stream.take(reserved(y.len()));
        fill(c, (rate.data, samples), y, &stream)
    }
}

fn stateless<R: Number, T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (dims, stream, rate) = (shape_input(c, 0)?, mixed(c, 1)?, c.input::<R>(2)?);
    if !dims.ends_with(rate.dims) {
        return Err(KernelError::invalid_argument(format!(
            "shape: expected one that ends with {:?}, the shape of lam, found {dims:?}",
            rate.dims
        )));
    }
    let samples = element_count(&dims[..dims.len() - rate.dims.len()])?;
    let y = c.output::<T>(0, &dims)?.data;
    fill(c, (rate.data, samples), y, &stream)
}

macro_rules! of_rates {
    ($($stateful:ident, $stateless:ident: $rate:ty, $dtype:expr;)*) => {$(
        type $stateful<T> = RandomPoisson<$rate, T>;

        fn $stateless<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            stateless::<$rate, T>(c)
        }

        register_kernel!("RandomPoissonV2" on "CPU": $stateful<T> for "dtype" in
            [f16, f32, f64, i32, i64], types = ("R", &[$dtype]),
            host_memory = &["shape"], numerics = Numerics::EXACT);
        register_kernel!("StatelessRandomPoisson" on "CPU": fn $stateless<T> for "dtype" in
            [f16, f32, f64, i32, i64], types = ("Rtype", &[$dtype]),
            host_memory = &["shape", "seed", "lam"], numerics = Numerics::EXACT);
    )*};
}

of_rates! {
    OfHalf, of_half: f16, DType::HALF;
    OfFloat, of_float: f32, DType::FLOAT;
    OfDouble, of_double: f64, DType::DOUBLE;
    OfInt32, of_int32: i32, DType::INT32;
    OfInt64, of_int64: i64, DType::INT64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distribution() {
        for rate in [0.3, 4.0, 10.0, 200.0] {
            let many = 40_000u64;
            let at = |number: u64| Philox::seeded(5, 6).at(number * RESERVED_PER_OUTPUT);
            let numbers: Vec<f64> = (0..many).map(|n| draw(at(n), rate, f64::MAX)).collect();
            let mean = numbers.iter().sum::<f64>() / many as f64;
            let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / many as f64;
            // Mean and variance are both the rate; five standard deviations of their estimates are allowed.
            assert!((mean - rate).abs() < 5.0 * (rate / many as f64).sqrt(), "{rate}: {mean}");
            let fourth = (2.0 * rate * rate + rate) / many as f64;
            assert!((variance - rate).abs() < 5.0 * fourth.sqrt(), "{rate}: {variance}");
        }
    }

    #[test]
    fn rates_beyond_the_type_give_its_greatest_number() {
        let of = |rate| draw(Philox::seeded(5, 6), rate, greatest::<i32>());
        assert_eq!(of(1e12), f64::from(i32::MAX));
        assert_eq!(of(f64::INFINITY), f64::INFINITY);
        assert!(of(f64::NAN).is_nan());
        assert_eq!(of(-3.0), 0.0);
    }
}
