//! `QuantizeAndDequantizeV2`, `QuantizeAndDequantizeV3` and `QuantizeAndDequantizeV4`: `round(x s)
//! / s`, with the largest factor `s` for which both ends of the range have integers of this many
//! bits.

use super::{
    channels::{axis, check_ends, map_channels, split},
    range::{clamp, scalar},
    rounding,
};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::AxisSplit,
    growth,
    reg::Numerics,
    register_kernel,
};

/// Operations of the formulas on a float type besides sums and products.
trait Real: Number {
    const GREATEST: Self;
    fn of(x: i64) -> Self;
    fn div(self, other: Self) -> Self;
    fn round_to_even(self) -> Self;
    fn floor(self) -> Self;
    fn is_finite(self) -> bool;
}

macro_rules! real {
    ($($ty:ident, $round_to_even:path, $floor:path;)*) => {$(
        impl Real for $ty {
            const GREATEST: Self = $ty::MAX;
            fn of(x: i64) -> Self { x as $ty }
            fn div(self, other: Self) -> Self { self / other }
            #[inline(always)]
            fn round_to_even(self) -> Self { $round_to_even(self) }
            #[inline(always)]
            fn floor(self) -> Self { $floor(self) }
            fn is_finite(self) -> bool { $ty::is_finite(self) }
        }
    )*};
}

real! {
    f32, rounding::round_to_even, rounding::floor;
    f64, f64::round_ties_even, f64::floor;
}

/// Parameters that are fixed when the kernel is created; `bits` is `None` if they are an input.
struct RoundTrip<T> {
    signed: bool,
    bits: Option<i64>,
    given: bool,
    to_even: bool,
    narrow: bool,
    axis: Option<i64>,
    of: PhantomData<T>,
}

/// The least and the greatest integer.
type Codes = [i64; 2];

impl<T: Real> Kernel for RoundTrip<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let has = |name: &str| c.attrs().has(name);
        let kernel = RoundTrip {
            signed: c.attr("signed_input")?,
            bits: if has("num_bits") { Some(c.attr("num_bits")?) } else { None },
            given: c.attr("range_given")?,
            to_even: !has("round_mode") || c.attr::<&str>("round_mode")? == "HALF_TO_EVEN",
            narrow: c.attr("narrow_range")?,
            axis: axis(c)?,
            of: PhantomData,
        };
        kernel.bits.map_or(Ok(()), |bits| kernel.codes(bits).map(drop))?;
        Ok(kernel)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let bits = match self.bits {
            Some(bits) => bits,
            None => scalar::<i32>(c, 3, "num_bits")?.into(),
        };
        let codes = self.codes(bits)?;
        let split = split(c.dims(0), self.axis)?;
        check_ends("input_min", c.dims(1), self.axis, split.len)?;
        check_ends("input_max", c.dims(2), self.axis, split.len)?;
        let x = c.input::<T>(0)?;
        let ranges = if self.given { given::<T>(c)? } else { found(x.data, split)? };
        let channels =
            growth::collected(ranges.into_iter().map(|range| Levels::<T>::new(range, codes)))?;
        let y = c.output::<T>(0, x.dims)?.data;
        let clamped = |levels: &Levels<T>, x| {
            if self.given { clamp(x, levels.min, levels.max) } else { x }
        };
        let data = (x.data, y);
        if self.to_even {
            return map_channels(c, split.inner, &channels, data, 2.0, |levels, x| {
                clamped(levels, x).mul(levels.scale).round_to_even().mul(levels.inverse)
            });
        }
        let half = T::from_f64(0.5);
        map_channels(c, split.inner, &channels, data, 2.0, |levels, x| {
            clamped(levels, x).mul(levels.scale).add(half).floor().mul(levels.inverse)
        })
    }
}

impl<T> RoundTrip<T> {
    fn codes(&self, bits: i64) -> Result<Codes, KernelError> {
        let (signed, most) = if self.signed { ("signed", 61) } else { ("unsigned", 62) };
        let least = if self.signed && self.narrow { 2 } else { 1 };
        if !(least..=most).contains(&bits) {
            return Err(KernelError::invalid_argument(format!(
                "num_bits must be from {least} to {most} for {signed} numbers, found {bits}"
            )));
        }
        Ok(match self.signed {
            true => [i64::from(self.narrow) - (1 << (bits - 1)), (1 << (bits - 1)) - 1],
            false => [0, (1 << bits) - 1],
        })
    }
}

/// The ranges in inputs 1 and 2.
fn given<T: Real>(c: &ComputeContext<'_>) -> Result<Vec<[T; 2]>, KernelError> {
    let (min, max) = (c.input::<T>(1)?.data, c.input::<T>(2)?.data);
    let ordered = |(&min, &max): (&T, &T)| {
        if min <= max && min.is_finite() && max.is_finite() {
            return Ok([min, max]);
        }
        Err(KernelError::invalid_argument(format!(
            "input_min and input_max must be finite, and input_min at most input_max, found {min:?} and {max:?}"
        )))
    };
    growth::try_collected(min.iter().zip(max).map(ordered))
}

/// The ranges of the channels' values.
fn found<T: Real>(x: &[T], split: AxisSplit) -> Result<Vec<[T; 2]>, KernelError> {
    let mut ranges = growth::filled(split.len, [T::HIGHEST, T::LOWEST])?;
    if x.is_empty() {
        return Ok(ranges);
    }
    for (at, part) in x.chunks_exact(split.inner).enumerate() {
        let [min, max] = &mut ranges[at % split.len];
        for &x in part {
            *min = if x < *min { x } else { *min };
            *max = if x > *max { x } else { *max };
        }
    }
    Ok(ranges)
}

/// The factor, and the ends of the numbers with integers.
struct Levels<T> {
    min: T,
    max: T,
    scale: T,
    inverse: T,
}

impl<T: Real> Levels<T> {
    fn new([min, max]: [T; 2], [lowest, highest]: Codes) -> Levels<T> {
        let (lowest, highest) = (T::of(lowest), T::of(highest));
        let scale = |code: T, end: T| {
            if code.mul(end) > T::ZERO { code.div(end) } else { T::GREATEST }
        };
        let (low, high) = (scale(lowest, min), scale(highest, max));
        // The end that determines the factor is preserved exactly.
        if low < high {
            let inverse = min.div(lowest);
            return Levels { min, max: highest.mul(inverse), scale: low, inverse };
        }
        let inverse = max.div(highest);
        Levels { min: lowest.mul(inverse), max, scale: high, inverse }
    }
}

macro_rules! round_trips {
    ($($op:literal, $host:expr;)*) => {$(
        register_kernel!($op on "CPU": RoundTrip<T> for "T" in [f32, f64],
            host_memory = $host, numerics = Numerics::EXACT);
    )*};
}

round_trips! {
    "QuantizeAndDequantizeV2", &["input_min", "input_max"];
    "QuantizeAndDequantizeV3", &["input_min", "input_max", "num_bits"];
    "QuantizeAndDequantizeV4", &["input_min", "input_max"];
}
