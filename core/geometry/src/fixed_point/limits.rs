//! Limits of scales, zero points and numbers of terms.

use super::FixedPointError;
use tenon_abi::DType;

/// The least and the greatest value of a quantised type.
///
/// # Errors
/// The type of argument `what` is not a quantised type.
pub fn integer_range(what: &'static str, dtype: DType) -> Result<[i32; 2], FixedPointError> {
    Ok(match dtype {
        DType::QUINT8 => [0, 255],
        DType::QINT8 => [-128, 127],
        DType::QUINT16 => [0, 65535],
        DType::QINT16 => [-32768, 32767],
        DType::QINT32 => [i32::MIN, i32::MAX],
        found => return Err(FixedPointError::Type { what, found }),
    })
}

/// The quantised value that represents 0: a value of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZeroPoint {
    value: i32,
    range: [i32; 2],
}

impl ZeroPoint {
    /// Creates the zero point `value` of argument `what`.
    ///
    /// # Errors
    /// The value is outside the type, or the type is not a quantised type.
    pub fn new(what: &'static str, dtype: DType, value: i32) -> Result<ZeroPoint, FixedPointError> {
        let range = integer_range(what, dtype)?;
        let [low, high] = range;
        if value < low || value > high {
            return Err(FixedPointError::ZeroPoint { what, dtype, low, high, found: value });
        }
        Ok(ZeroPoint { value, range })
    }

    /// The value.
    pub const fn value(self) -> i32 {
        self.value
    }

    /// The greatest magnitude of `q - zero_point` over the values of the type.
    pub const fn reach(self) -> i64 {
        let [low, high] = self.range;
        let (down, up) = (self.value as i64 - low as i64, high as i64 - self.value as i64);
        if down > up { down } else { up }
    }
}

/// A positive real number that sums are multiplied by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    pub(super) what: &'static str,
    pub(super) value: f64,
}

impl Scale {
    /// Creates the scale of argument `what`.
    ///
    /// # Errors
    /// The scale is NaN, infinite or not above 0.
    pub fn new(what: &'static str, value: f32) -> Result<Scale, FixedPointError> {
        if !(value.is_finite() && value > 0.0) {
            return Err(FixedPointError::Scale { what, found: value });
        }
        Ok(Scale { what, value: f64::from(value) })
    }

    /// `left * right / out`, in `f64`; the first two have these names, the third is `out_scale`.
    ///
    /// # Errors
    /// One of the scales is NaN, infinite or not above 0.
    pub fn requantize(
        [left_name, what]: [&'static str; 2],
        left: f32,
        right: f32,
        out: f32,
    ) -> Result<Scale, FixedPointError> {
        let (left, right) = (Scale::new(left_name, left)?, Scale::new(what, right)?);
        let out = Scale::new("out_scale", out)?;
        Ok(Scale { what, value: left.value * right.value / out.value })
    }

    /// The number, for sums that are multiplied by a float.
    ///
    /// # Errors
    /// As [`super::Multiplier::new`]: both ways accept the same scales.
    pub fn as_float(self) -> Result<f32, FixedPointError> {
        super::Multiplier::new(self).map(|_| self.value as f32)
    }

    /// The number, for sums that become real numbers.
    ///
    /// # Errors
    /// The scale is too small for a normal `f32`, or so large that a 32-bit sum times the scale
    /// would be infinite.
    pub fn as_real(self) -> Result<f32, FixedPointError> {
        let value = self.value as f32;
        // A power of two: the product is exact unless it overflows.
        let fits = value.is_normal() && (value * 2f32.powi(31)).is_finite();
        let found = self.value;
        if fits { Ok(value) } else { Err(FixedPointError::Real { what: self.what, found }) }
    }
}

/// The number of products that fit in a 32-bit sum.
///
/// Every value minus its zero point is in `[-reach, reach]`, so a sum of `depth` products has a
/// magnitude of at most `depth * left * right`, plus that of its bias. Sums may wrap in between,
/// since arithmetic modulo 2^32 gives the right result whenever that fits. If the zero points are
/// not known, the limits are:
///
/// | factors | zero points | greatest product | most products |
/// |---|---|---|---|
/// | 8 bits, 8 bits | any | 255 * 255 | 33,025 |
/// | unsigned, signed | 0 | 255 * 128 | 65,793 |
/// | signed, signed | 0 | 128 * 128 | 131,071 |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// The [`ZeroPoint::reach`] of the left factors.
    pub left: i64,
    /// The [`ZeroPoint::reach`] of the right factors.
    pub right: i64,
    /// The greatest magnitude of a bias.
    pub bias: i64,
}

impl Depth {
    /// Checks a number of products.
    ///
    /// # Errors
    /// The sum could exceed 32 bits.
    pub fn check(self, depth: usize) -> Result<(), FixedPointError> {
        let Depth { left, right, bias } = self;
        let room = (i64::from(i32::MAX) - bias).max(-1);
        let most = if room < 0 { 0 } else { room / (left * right).max(1) };
        let fits = room >= 0 && i64::try_from(depth).is_ok_and(|depth| depth <= most);
        if fits { Ok(()) } else { Err(FixedPointError::Depth { depth, left, right, bias, most }) }
    }
}
