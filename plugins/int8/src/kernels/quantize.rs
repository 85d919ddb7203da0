//! `QuantizeV2`.
//!
//! | mode | code of `x`, clamped to the range |
//! |---|---|
//! | `MIN_COMBINED` | `round((x - min) (2^b - 1) / (max - min) - half)`, `half` being `2^(b - 1)` of a signed type, else 0 |
//! | `MIN_FIRST` | `round(x s) - round(min s) + lowest`, with `s = (2^b - 1) / (max - min)` |
//! | `SCALED` | `round(x s)`, with the largest `s` for which both ends have codes |
//!
//! The range is widened first: so that it contains 0, and is at least `ensure_minimum_range` times
//! its greater end (or 1) wide.

use super::{
    channels::{axis, check_ends, map_channels, split},
    range::{Ends, Range, ToCodes, clamp},
    rounding::{round_away, round_to_even},
};
use std::marker::PhantomData;
use tenon_sdk::{
    Code, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{QInt8, QInt16, QInt32, QUInt8, QUInt16, Quantised},
    growth,
    reg::Numerics,
    register_kernel,
};

const ENDS: Ends = ["min_range", "max_range"];

/// Attribute `mode`.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    /// From the lower end, shifted by half of a signed type.
    MinCombined,
    /// From the lower end, rounded to a level.
    MinFirst,
    /// By a factor alone.
    Scaled,
}

impl Mode {
    /// Reads the attribute.
    pub fn new(c: &CreateContext<'_>) -> Result<Mode, KernelError> {
        match c.attr::<&str>("mode")? {
            "MIN_FIRST" => Ok(Mode::MinFirst),
            "SCALED" => Ok(Mode::Scaled),
            _ => Ok(Mode::MinCombined),
        }
    }

    /// Refuses combinations without a defined formula.
    pub fn check_channels(self, channels: usize) -> Result<(), KernelError> {
        if self == Mode::MinFirst && channels != 1 {
            let message = "mode MIN_FIRST has one range: set axis to -1, or mode to MIN_COMBINED";
            return Err(KernelError::new(Code::UNIMPLEMENTED, message));
        }
        Ok(())
    }
}

struct QuantizeV2<T> {
    mode: Mode,
    to_even: bool,
    narrow: bool,
    axis: Option<i64>,
    least_width: f32,
    of: PhantomData<T>,
}

impl<T: Quantised> Kernel for QuantizeV2<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (mode, least_width) = (Mode::new(c)?, c.attr::<f32>("ensure_minimum_range")?);
        let to_even = c.attr::<&str>("round_mode")? == "HALF_TO_EVEN";
        if to_even && mode != Mode::Scaled {
            let message = "round_mode HALF_TO_EVEN wants mode SCALED, found another";
            return Err(KernelError::invalid_argument(message));
        }
        if !(least_width >= 0.0 && least_width.is_finite()) {
            return Err(KernelError::invalid_argument(format!(
                "ensure_minimum_range must be finite and at least 0, found {least_width}"
            )));
        }
        let (narrow, axis) = (c.attr("narrow_range")?, axis(c)?);
        Ok(QuantizeV2 { mode, to_even, narrow, axis, least_width, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let split = split(c.dims(0), self.axis)?;
        check_ends(ENDS[0], c.dims(1), self.axis, split.len)?;
        check_ends(ENDS[1], c.dims(2), self.axis, split.len)?;
        self.mode.check_channels(split.len)?;
        let (min, max) = (c.input::<f32>(1)?, c.input::<f32>(2)?);
        let ends = min.data.iter().zip(max.data);
        let ranges = ends.map(|(&min, &max)| self.widened(Range::new(min, max, ENDS)?));
        let ranges = growth::try_collected(ranges)?;
        let given = self.convert(c, split.inner, &ranges)?;
        let (low, high) = (c.output::<f32>(1, min.dims)?, c.output::<f32>(2, min.dims)?);
        for ((low, high), range) in low.data.iter_mut().zip(high.data).zip(given) {
            (*low, *high) = (range.min, range.max);
        }
        Ok(())
    }
}

impl<T: Quantised> QuantizeV2<T> {
    /// The range widened to contain 0 and not to be too narrow.
    fn widened(&self, given: Range) -> Result<Range, KernelError> {
        let min = given.min.min(0.0);
        let least = given.min.abs().max(given.max.abs()).max(1.0) * self.least_width;
        Range::new(min, given.max.max(min + least).max(0.0), ENDS)
    }

    /// Writes the codes; returns the ranges in which they represent numbers.
    fn convert(
        &self,
        c: &ComputeContext<'_>,
        inner: usize,
        ranges: &[Range],
    ) -> Result<Vec<Range>, KernelError> {
        let x = c.input::<f32>(0)?;
        let data = (x.data, c.output::<T>(0, x.dims)?.data);
        if self.mode == Mode::Scaled {
            let channels: Vec<Scaled> =
                growth::collected(ranges.iter().map(|range| self.scaled(*range)))?;
            if self.to_even {
                let code = |s: &Scaled, x| as_code(round_to_even(s.times(x)));
                map_channels(c, inner, &channels, data, 2.0, code)?;
            } else {
                let code = |s: &Scaled, x| as_code(round_away(s.times(x)));
                map_channels(c, inner, &channels, data, 2.0, code)?;
            }
            return growth::collected(channels.iter().map(|scaled| scaled.range));
        }
        if self.mode == Mode::MinFirst {
            let channels = growth::collected(ranges.iter().map(|range| ToCodes::<T>::new(*range)))?;
            map_channels(c, inner, &channels, data, 2.0, |codes, x| codes.code(x))?;
        } else {
            let channels = growth::collected(ranges.iter().map(|range| combined::<T>(*range)))?;
            map_channels(c, inner, &channels, data, 2.0, combined_code::<T>)?;
        }
        growth::copied(ranges)
    }

    /// The factor of a range, and the range of all codes by that factor.
    fn scaled(&self, range: Range) -> Scaled {
        let lowest = (i64::from(T::LOWEST) + i64::from(self.narrow)) as f32;
        let highest = T::HIGHEST as f32;
        let factor = |code: f32, end: f32| if code * end > 0.0 { code / end } else { f32::MAX };
        let factor = factor(lowest, range.min).min(factor(highest, range.max));
        Scaled { factor, range: Range { min: lowest / factor, max: highest / factor } }
    }
}

struct Scaled {
    factor: f32,
    range: Range,
}

impl Scaled {
    #[inline(always)]
    fn times(&self, x: f32) -> f32 {
        clamp(x, self.range.min, self.range.max) * self.factor
    }
}

/// A range and the factor of mode `MIN_COMBINED`, 0 if the range is a single number.
fn combined<T: Quantised>(range: Range) -> (Range, f32) {
    let steps = f64::from(T::HIGHEST) - f64::from(T::LOWEST);
    let scale = if range.min == range.max { 0.0 } else { steps / f64::from(range.width()) };
    (range, scale as f32)
}

#[inline(always)]
fn combined_code<T: Quantised>(&(range, scale): &(Range, f32), x: f32) -> T {
    let x = (clamp(x, range.min, range.max) - range.min) * scale;
    // TensorFlow rounds numbers below 0 away from 0, and truncates others after adding a half.
    as_code(if T::SIGNED { round_away(x + T::LOWEST as f32) } else { x + 0.5 })
}

#[inline(always)]
fn as_code<T: Quantised>(x: f32) -> T {
    T::saturated((x as i32).into())
}

register_kernel!("QuantizeV2" on "CPU":
    QuantizeV2<T> for "T" in [QInt8, QUInt8, QInt16, QUInt16, QInt32],
    host_memory = &["min_range", "max_range"], numerics = Numerics::EXACT);
