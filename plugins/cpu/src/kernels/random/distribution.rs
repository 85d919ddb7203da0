//! Numbers of a distribution made from the words of a generator, as TensorFlow makes them.

use crate::split::for_parts;
use half::{bf16, f16};
use tenon_philox::{Philox, RESERVED_PER_OUTPUT, WORDS, Words, uniform_f32, uniform_f64};
use tenon_sdk::{KernelError, author::ComputeContext, element::Number};

/// Approximate nanoseconds of a number.
const COST_NS: f64 = 5.0;
/// TensorFlow's lower bound for an argument of `ln`, which would give infinity at 0.
const LEAST: f64 = 1e-7;
/// The bound beyond which normal numbers are drawn again.
const CUT: f64 = 2.0;

/// A float type in which random numbers are drawn.
pub trait Drawn: Number {
    /// How many numbers the words of one step make.
    const PER_STEP: usize;
    /// Uniform numbers in `[0, 1)`, [`Drawn::PER_STEP`] of them.
    fn uniform(words: [u32; WORDS]) -> [Self; WORDS];
    /// Normal numbers, [`Drawn::PER_STEP`] of them.
    fn normal(words: [u32; WORDS]) -> [Self; WORDS];
    /// Two normal numbers from the next words.
    fn two_normal(words: &mut Words) -> [Self; 2];
    /// Whether the truncated distribution keeps a normal number.
    fn is_kept(self) -> bool;
}

/// Makes two normal numbers from two uniform ones.
///
/// Source: Box and Muller, "A note on the generation of random normal deviates", 1958.
macro_rules! box_muller {
    ($ty:ty, $first:expr, $second:expr) => {{
        let radius = $first.max(LEAST as $ty);
        let angle = (2.0 * std::f64::consts::PI * f64::from($second)) as $ty;
        let length = (-2.0 * radius.ln()).sqrt();
        [angle.sin() * length, angle.cos() * length]
    }};
}

fn box_muller_f32([a, b]: [u32; 2]) -> [f32; 2] {
    box_muller!(f32, uniform_f32(a), uniform_f32(b))
}

/// Two normal numbers from the words of a step.
pub fn box_muller_f64([a, b, c, d]: [u32; WORDS]) -> [f64; 2] {
    box_muller!(f64, uniform_f64(a, b), uniform_f64(c, d))
}

macro_rules! drawn_from_f32 {
    ($($ty:ty: |$word:ident| $uniform:expr;)*) => {
        $(impl Drawn for $ty {
            const PER_STEP: usize = WORDS;
            #[inline]
            fn uniform(words: [u32; WORDS]) -> [$ty; WORDS] {
                words.map(|$word| $uniform)
            }
            #[inline]
            fn normal([a, b, c, d]: [u32; WORDS]) -> [$ty; WORDS] {
                let ([e, f], [g, h]) = (box_muller_f32([a, b]), box_muller_f32([c, d]));
                [e, f, g, h].map(<$ty as Number>::narrow)
            }
            fn two_normal(words: &mut Words) -> [$ty; 2] {
                let words = [words.next_word(), words.next_word()];
                box_muller_f32(words).map(<$ty as Number>::narrow)
            }
            fn is_kept(self) -> bool {
                self.to_f64().abs() < CUT
            }
        })*
    };
}

drawn_from_f32! {
    f32: |word| uniform_f32(word);
    // Each number has as many random bits as the type's fraction, and takes one word.
    f16: |word| f16::from_bits(15 << 10 | (word & 0x3ff) as u16) - f16::ONE;
    bf16: |word| bf16::from_bits(127 << 7 | (word & 0x7f) as u16) - bf16::ONE;
}

impl Drawn for f64 {
    const PER_STEP: usize = WORDS / 2;
    #[inline]
    fn uniform([a, b, c, d]: [u32; WORDS]) -> [f64; WORDS] {
        [uniform_f64(a, b), uniform_f64(c, d), 0.0, 0.0]
    }
    #[inline]
    fn normal(words: [u32; WORDS]) -> [f64; WORDS] {
        let [a, b] = box_muller_f64(words);
        [a, b, 0.0, 0.0]
    }
    fn two_normal(words: &mut Words) -> [f64; 2] {
        box_muller_f64(std::array::from_fn(|_| words.next_word()))
    }
    fn is_kept(self) -> bool {
        self.abs() < CUT
    }
}

/// A distribution of floats, which fills a part of the outputs. The part begins at `first`, a
/// multiple of the numbers of a step; it gets the numbers that the stream of all outputs has there.
pub trait Distribution<T>: 'static {
    /// Fills `y`, which is the part.
    fn fill(stream: &Philox, first: usize, y: &mut [T]);
}

/// Uniform in `[0, 1)`.
pub struct Uniform;
/// Normal with mean 0 and deviation 1.
pub struct Normal;
/// Normal as [`Normal`], limited to between -2 and 2.
pub struct Truncated;

/// Fills `y` with the numbers that each step's words make.
pub fn fill_steps<T: Copy>(
    stream: &Philox,
    (first, per_step): (usize, usize),
    y: &mut [T],
    draw: impl Fn([u32; WORDS]) -> [T; WORDS],
) {
    let mut generator = stream.at((first / per_step) as u64);
    for y in y.chunks_mut(per_step) {
        y.copy_from_slice(&draw(generator.step())[..y.len()]);
    }
}

impl<T: Drawn> Distribution<T> for Uniform {
    fn fill(stream: &Philox, first: usize, y: &mut [T]) {
        fill_steps(stream, (first, T::PER_STEP), y, T::uniform);
    }
}

impl<T: Drawn> Distribution<T> for Normal {
    fn fill(stream: &Philox, first: usize, y: &mut [T]) {
        fill_steps(stream, (first, T::PER_STEP), y, T::normal);
    }
}

impl<T: Drawn> Distribution<T> for Truncated {
    fn fill(stream: &Philox, first: usize, y: &mut [T]) {
        // The number of redraws is not known in advance: each group of outputs has a section of the
        // stream of its own.
        let stretch = RESERVED_PER_OUTPUT * T::PER_STEP as u64 / WORDS as u64;
        for (group, y) in y.chunks_mut(T::PER_STEP).enumerate() {
            let group = (first / T::PER_STEP + group) as u64;
            let mut words = Words::new(stream.at(group.wrapping_mul(stretch)));
            let mut filled = 0;
            while filled < y.len() {
                for number in T::two_normal(&mut words).into_iter().filter(|x| x.is_kept()) {
                    if let Some(y) = y.get_mut(filled) {
                        *y = number;
                    }
                    filled += 1;
                }
            }
        }
    }
}

/// Fills the only output with numbers of a distribution.
pub fn fill<T: Drawn, D: Distribution<T>>(
    c: &ComputeContext<'_>,
    dims: &[i64],
    stream: &Philox,
) -> Result<(), KernelError> {
    let y = c.output::<T>(0, dims)?.data;
    for_parts(c, y, COST_NS, |first, y| D::fill(stream, first, y))
}

/// An integer type in which random numbers are drawn.
pub trait DrawnInteger: Number {
    /// How many numbers the words of one step make.
    const PER_STEP: usize;
    /// Numbers from `low` to below `high`, which is greater.
    fn between(words: [u32; WORDS], low: Self, high: Self) -> [Self; WORDS];
}

impl DrawnInteger for i32 {
    const PER_STEP: usize = WORDS;
    fn between(words: [u32; WORDS], low: i32, high: i32) -> [i32; WORDS] {
        let range = high.wrapping_sub(low) as u32;
        words.map(|word| low.wrapping_add((word % range) as i32))
    }
}

impl DrawnInteger for i64 {
    const PER_STEP: usize = WORDS / 2;
    fn between(words: [u32; WORDS], low: i64, high: i64) -> [i64; WORDS] {
        let range = high.wrapping_sub(low) as u64;
        long_numbers(words).map(|bits| low.wrapping_add((bits % range) as i64))
    }
}

/// Fills the only output with integers between the values of two inputs, the second of which is
/// above the first.
pub fn fill_integers<T: DrawnInteger>(
    c: &ComputeContext<'_>,
    dims: &[i64],
    bounds: [usize; 2],
    stream: impl FnOnce(usize) -> Result<Philox, KernelError>,
) -> Result<(), KernelError> {
    let [low, high] = [scalar::<T>(c, bounds[0], "minval")?, scalar::<T>(c, bounds[1], "maxval")?];
    let y = c.output::<T>(0, dims)?.data;
    if y.is_empty() {
        return Ok(());
    }
    if low >= high {
        return Err(KernelError::invalid_argument(format!(
            "minval must be below maxval, got {low:?} and {high:?}"
        )));
    }
    let stream = stream(y.len())?;
    for_parts(c, y, COST_NS, |first, y| {
        fill_steps(&stream, (first, T::PER_STEP), y, |words| T::between(words, low, high));
    })
}

/// An integer type of which every number is as likely as any other.
pub trait Whole: Number {
    /// How many numbers the words of one step make.
    const PER_STEP: usize;
    /// Numbers of any size.
    fn whole(words: [u32; WORDS]) -> [Self; WORDS];
}

macro_rules! whole {
    ($per_step:expr, |$words:ident| $numbers:expr; $($ty:ty),*) => {$(
        impl Whole for $ty {
            const PER_STEP: usize = $per_step;
            #[inline]
            fn whole($words: [u32; WORDS]) -> [$ty; WORDS] {
                $numbers.map(|number| number as $ty)
            }
        }
    )*};
}

whole!(WORDS, |words| words; i32, u32);
whole!(WORDS / 2, |words| long_numbers(words); i64, u64);

/// The numbers of 64 bits of a step, lower words first.
fn long_numbers([a, b, c, d]: [u32; WORDS]) -> [u64; WORDS] {
    let number = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    [number(a, b), number(c, d), 0, 0]
}

/// Fills the only output with integers of any size.
pub fn fill_whole<T: Whole>(
    c: &ComputeContext<'_>,
    dims: &[i64],
    stream: &Philox,
) -> Result<(), KernelError> {
    let y = c.output::<T>(0, dims)?.data;
    for_parts(c, y, COST_NS, |first, y| fill_steps(stream, (first, T::PER_STEP), y, T::whole))
}

fn scalar<T: Number>(c: &ComputeContext<'_>, input: usize, name: &str) -> Result<T, KernelError> {
    let view = c.input::<T>(input)?;
    match (view.data, view.dims) {
        (&[value], []) => Ok(value),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "{name} must be a scalar, found shape {dims:?}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of many numbers of a distribution.
    fn moments<T: Drawn, D: Distribution<T>>() -> (f64, f64) {
        let mut y = vec![T::ZERO; 100_000];
        D::fill(&Philox::keyed(11, [5, 0]), 0, &mut y);
        let mean = y.iter().map(|y| y.to_f64()).sum::<f64>() / y.len() as f64;
        let square = y.iter().map(|y| (y.to_f64() - mean).powi(2)).sum::<f64>();
        (mean, square / y.len() as f64)
    }

    fn check<T: Drawn>(coarse: f64) {
        let near = |(mean, variance): (f64, f64), expected: (f64, f64)| {
            assert!((mean - expected.0).abs() < 0.01 + coarse, "{mean} {expected:?}");
            assert!((variance - expected.1).abs() < 0.02 + coarse, "{variance} {expected:?}");
        };
        near(moments::<T, Uniform>(), (0.5, 1.0 / 12.0));
        near(moments::<T, Normal>(), (0.0, 1.0));
        // 1 - 4 f(2) / (2 F(2) - 1), with density and distribution function of the normal
        // distribution
        near(moments::<T, Truncated>(), (0.0, 0.7737));
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        check::<f32>(0.0);
        check::<f64>(0.0);
        check::<f16>(0.005);
        check::<bf16>(0.01);
    }

    #[test]
    fn a_part_is_the_same_in_the_whole() {
        fn part<T: Drawn, D: Distribution<T>>() {
            let stream = Philox::seeded(3, 4);
            let (mut whole, mut part) = (vec![T::ZERO; 50], vec![T::ZERO; 34]);
            D::fill(&stream, 0, &mut whole);
            D::fill(&stream, 16, &mut part);
            assert_eq!(whole[16..], part);
        }
        part::<f32, Uniform>();
        part::<f64, Normal>();
        part::<f32, Truncated>();
        part::<f64, Truncated>();
    }
}
