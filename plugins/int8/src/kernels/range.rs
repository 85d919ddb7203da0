//! Ranges of real numbers, and the codes that represent the numbers in them.
//!
//! A type of `b` bits splits a range `[min, max]` into `2^b - 1` steps; its least code represents
//! `min`, its greatest `max`. The formulas, and the precision in which each step is rounded, are
//! those of TensorFlow's `quantization_utils.h`, so that codes agree exactly.

use super::rounding::round_away;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    element::{Element, Quantised},
    geometry::GeometryError,
};

/// The only element of a scalar input.
pub fn scalar<T: Element>(
    c: &ComputeContext<'_>,
    input: usize,
    what: &'static str,
) -> Result<T, KernelError> {
    let x = c.input::<T>(input)?;
    match (x.data, x.dims) {
        (&[value], []) => Ok(value),
        (_, dims) => Err(GeometryError::Rank { what, expected: 0, found: dims.len() }.into()),
    }
}

/// Names of the arguments that hold the ends of a range.
pub type Ends = [&'static str; 2];

/// The ends of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower end.
    pub min: f32,
    /// The upper end.
    pub max: f32,
}

impl Range {
    /// A range with finite ends in order, whose width is finite as a float.
    pub fn new(min: f32, max: f32, [low, high]: Ends) -> Result<Range, KernelError> {
        let range = Range { min, max };
        if min <= max && range.width().is_finite() {
            return Ok(range);
        }
        Err(KernelError::invalid_argument(format!(
            "{low} and {high} must be finite, {low} at most {high}, and their difference below 3.4e38, found {min} and {max}"
        )))
    }

    /// The range in inputs `at` and `at + 1`.
    pub fn of(c: &ComputeContext<'_>, at: usize, ends: Ends) -> Result<Range, KernelError> {
        Range::new(scalar(c, at, ends[0])?, scalar(c, at + 1, ends[1])?, ends)
    }

    /// Like [`Range::of`], with different ends.
    pub fn wide(c: &ComputeContext<'_>, at: usize, ends: Ends) -> Result<Range, KernelError> {
        let range = Range::of(c, at, ends)?;
        if range.min < range.max {
            return Ok(range);
        }
        let [low, high] = ends;
        Err(KernelError::invalid_argument(format!(
            "{high} must be larger than {low}, found {} for both",
            range.min
        )))
    }

    /// The range from `-end` to `end`, as the result of an op.
    pub fn symmetric(end: f32) -> Result<Range, KernelError> {
        Range::new(-end, end, ["the output's minimum", "its maximum"])
    }

    /// Writes the ends to outputs `at` and `at + 1`.
    pub fn write(self, c: &ComputeContext<'_>, at: usize) -> Result<(), KernelError> {
        c.output::<f32>(at, &[])?.data.fill(self.min);
        c.output::<f32>(at + 1, &[])?.data.fill(self.max);
        Ok(())
    }

    /// `max - min`, rounded.
    pub fn width(self) -> f32 {
        self.max - self.min
    }

    /// The code of a number, which may be outside the type; the least code if the range is a single
    /// number.
    pub fn unclamped<T: Quantised>(self, x: f32) -> i64 {
        if self.min == self.max {
            return T::LOWEST.into();
        }
        let codes = steps::<T>() + 1.0;
        let scale = codes / (f64::from(self.width()) * (codes / steps::<T>()));
        let offset = (f64::from(x) * scale).round() - (f64::from(self.min) * scale).round();
        (offset as i64).saturating_add(T::LOWEST.into())
    }

    /// The code of a number, clamped to the type.
    pub fn code<T: Quantised>(self, x: f32) -> T {
        T::saturated(self.unclamped::<T>(x))
    }

    /// The number that a code represents.
    pub fn real<T: Quantised>(self, code: T) -> f32 {
        if self.min == self.max {
            return self.min;
        }
        let codes = steps::<T>() + 1.0;
        let scale = f64::from(self.width()) * (codes / steps::<T>()) / codes;
        let step = scale as f32;
        let lowest = (self.min / step).round() * step;
        (f64::from(lowest) + (f64::from(code.code()) - f64::from(T::LOWEST)) * scale) as f32
    }

    /// The difference between the numbers of adjacent codes.
    pub fn level<T: Quantised>(self) -> f32 {
        self.width() / steps::<T>() as f32
    }
}

/// Number of steps between the codes of a type.
fn steps<T: Quantised>() -> f64 {
    f64::from(T::HIGHEST) - f64::from(T::LOWEST)
}

/// The range of 32-bit sums of products of codes, of two types with these levels.
pub fn product_range(a: f32, b: f32) -> Result<Range, KernelError> {
    let level = a * b;
    let (min, max) = (level * i32::MIN as f32, level * i32::MAX as f32);
    Range::new(min, max, ["the output's minimum", "its maximum"])
}

/// Converts codes to numbers in single precision: one product and one sum.
pub struct ToReals<T> {
    scale: f32,
    offset: f32,
    of: PhantomData<T>,
}

impl<T: Quantised> ToReals<T> {
    /// The conversion for a range.
    pub fn new(range: Range) -> ToReals<T> {
        let scale = (f64::from(range.width()) / steps::<T>()) as f32;
        let lowest =
            if range.min == range.max { range.min } else { (range.min / scale).round() * scale };
        ToReals { scale, offset: lowest - T::LOWEST as f32 * scale, of: PhantomData }
    }

    /// The number that a code represents.
    #[inline(always)]
    pub fn real(&self, code: T) -> f32 {
        self.offset + code.code() as f32 * self.scale
    }
}

/// Converts numbers to codes in single precision: one product, rounded half away from 0, and one
/// sum.
pub struct ToCodes<T> {
    scale: f32,
    shift: f32,
    of: PhantomData<T>,
}

impl<T: Quantised> ToCodes<T> {
    /// The greatest float not above the greatest 32-bit code.
    const TOP: f32 = 2_147_483_520.0;

    /// The conversion for a range.
    pub fn new(range: Range) -> ToCodes<T> {
        let scale = match range.min == range.max {
            true => 0.0,
            false => (steps::<T>() / f64::from(range.width())) as f32,
        };
        let shift = (range.min * scale).round() - T::LOWEST as f32;
        ToCodes { scale, shift, of: PhantomData }
    }

    /// The code of a number, clamped to the type; the least one for NaN.
    #[inline(always)]
    pub fn code(&self, x: f32) -> T {
        let code = round_away(x * self.scale) - self.shift;
        let code = code.max(T::LOWEST as f32).min((T::HIGHEST as f32).min(Self::TOP));
        T::saturated((code as i32).into())
    }
}

/// `x` clamped to the range; NaN is preserved.
#[inline(always)]
pub fn clamp<F: PartialOrd>(x: F, min: F, max: F) -> F {
    let x = if x > max { max } else { x };
    if x < min { min } else { x }
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
