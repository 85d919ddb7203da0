//! Activations as bounds of quantised values.

use super::{FixedPointError, Scale, ZeroPoint, integer_range};
use tenon_abi::DType;

/// The activation of a real result before it is quantised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// No activation.
    None,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `min(max(x, low), high)`.
    Clamp {
        /// The minimum.
        low: f32,
        /// The maximum.
        high: f32,
    },
}

impl Activation {
    /// Reads attributes `activation`, `clamp_min` and `clamp_max`.
    ///
    /// # Errors
    /// The activation is unknown, or a bound is NaN, or the bounds leave no value.
    pub fn parse(name: &str, [low, high]: [f32; 2]) -> Result<Activation, FixedPointError> {
        match name {
            "NONE" => Ok(Activation::None),
            "RELU" => Ok(Activation::Relu),
            "RELU6" => Ok(Activation::Relu6),
            "CLAMP" if low < high => Ok(Activation::Clamp { low, high }),
            "CLAMP" => Err(FixedPointError::Clamp { low, high }),
            found => Err(FixedPointError::Activation { found: found.to_owned() }),
        }
    }

    /// The least and the greatest real result.
    pub const fn bounds(self) -> [f32; 2] {
        match self {
            Activation::None => [f32::NEG_INFINITY, f32::INFINITY],
            Activation::Relu => [0.0, f32::INFINITY],
            Activation::Relu6 => [0.0, 6.0],
            Activation::Clamp { low, high } => [low, high],
        }
    }
}

/// The range of output values: the values of the type that the activation allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantizedRange {
    /// The value that represents 0.
    pub zero_point: i32,
    /// The minimum.
    pub low: i32,
    /// The maximum.
    pub high: i32,
}

impl QuantizedRange {
    /// Each bound of the activation is quantised like a result: divided by the scale in `f64`,
    /// rounded to nearest with ties to even, moved by the zero point, and clamped to the type.
    ///
    /// # Errors
    /// The scale, the zero point or the type is invalid.
    pub fn new(
        activation: Activation,
        dtype: DType,
        scale: f32,
        zero_point: i32,
    ) -> Result<QuantizedRange, FixedPointError> {
        let zero = ZeroPoint::new("out_zero_point", dtype, zero_point)?;
        let scale = Scale::new("out_scale", scale)?;
        let [least, greatest] = integer_range("the output", dtype)?.map(f64::from);
        let quantized = |bound: f32| {
            let steps = (f64::from(bound) / scale.value).round_ties_even();
            (steps + f64::from(zero.value())).clamp(least, greatest) as i32
        };
        let [low, high] = activation.bounds().map(quantized);
        Ok(QuantizedRange { zero_point, low, high })
    }

    /// The bounds before the zero point is added.
    pub const fn steps(self) -> [i32; 2] {
        let zero = self.zero_point;
        [self.low.saturating_sub(zero), self.high.saturating_sub(zero)]
    }
}
