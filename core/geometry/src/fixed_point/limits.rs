//! What scales, zero points and numbers of terms there may be.

use super::FixedPointError;
use tenon_abi::DType;

/// The least and the greatest value of a quantised type.
///
/// # Errors
/// The type of argument `what` is no quantised type.
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

/// The quantised value that stands for 0: a value of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZeroPoint {
    value: i32,
    range: [i32; 2],
}

impl ZeroPoint {
    /// Zero point `value` of argument `what`.
    ///
    /// # Errors
    /// The type does not hold it, or is no quantised type.
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
    /// The scale of argument `what`, as it is.
    ///
    /// # Errors
    /// It is NaN, infinite or not above 0.
    pub fn new(what: &'static str, value: f32) -> Result<Scale, FixedPointError> {
        if !(value.is_finite() && value > 0.0) {
            return Err(FixedPointError::Scale { what, found: value });
        }
        Ok(Scale { what, value: f64::from(value) })
    }

    /// `left * right / out`, in `f64`; the first two have these names, the third is `out_scale`.
    ///
    /// # Errors
    /// One of them is NaN, infinite or not above 0.
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
    /// As [`super::Multiplier::new`]: both ways take the same scales.
    pub fn as_float(self) -> Result<f32, FixedPointError> {
        super::Multiplier::new(self).map(|_| self.value as f32)
    }

    /// The number, for sums that become real numbers.
    ///
    /// # Errors
    /// It is too small for a normal `f32`, or so large that a sum of 32 bits times it would be infinite.
    pub fn as_real(self) -> Result<f32, FixedPointError> {
        let value = self.value as f32;
        // A power of two: the product is exact unless it overflows.
        let fits = value.is_normal() && (value * 2f32.powi(31)).is_finite();
        let found = self.value;
        if fits { Ok(value) } else { Err(FixedPointError::Real { what: self.what, found }) }
    }
}

/// The products that a sum of 32 bits has room for.
///
/// Every value less its zero point is in `[-reach, reach]`, so that a sum of `depth` products has a magnitude of at
/// most `depth * left * right`, and with its bias of `bias` more. Sums may wrap on the way, as arithmetic modulo 2^32
/// gives the right result whenever that fits. With nothing known of zero points that is
///
/// | factors | zero points | greatest product | most products |
/// |---|---|---|---|
/// | 8 bits, 8 bits | any | 255 * 255 | 33,025 |
/// | unsigned, signed | 0 | 255 * 128 | 65,793 |
/// | signed, signed | 0 | 128 * 128 | 131,071 |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// [`ZeroPoint::reach`] of the left factors.
    pub left: i64,
    /// Of the right ones.
    pub right: i64,
    /// Greatest magnitude of a bias.
    pub bias: i64,
}

impl Depth {
    /// Checks a number of products.
    ///
    /// # Errors
    /// They could leave 32 bits.
    pub fn check(self, depth: usize) -> Result<(), FixedPointError> {
        let Depth { left, right, bias } = self;
        let room = (i64::from(i32::MAX) - bias).max(-1);
        let most = if room < 0 { 0 } else { room / (left * right).max(1) };
        let fits = room >= 0 && i64::try_from(depth).is_ok_and(|depth| depth <= most);
        if fits { Ok(()) } else { Err(FixedPointError::Depth { depth, left, right, bias, most }) }
    }
}
