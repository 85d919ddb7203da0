//! Scale and zero point of a range of real numbers.

use super::{FixedPointError, integer_range};
use tenon_abi::DType;

/// A scale and a zero point: `q` represents `scale * (q - zero_point)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    /// The step between two values.
    pub scale: f32,
    /// The value that represents 0.
    pub zero_point: i32,
}

impl Affine {
    /// The scale and zero point with which the values of a type represent the numbers from `min` to
    /// `max`, including 0:
    ///
    /// - the range is widened to include 0;
    /// - `scale` is its width over the number of steps, divided in `f64` and rounded once; 1 if
    ///   that is not a normal float;
    /// - `zero_point` is `lowest - min / scale`, in `f64`, rounded to nearest with ties to even,
    ///   clamped to the type.
    ///
    /// ```
    /// use tenon_framework::DType;
    /// use tenon_geometry::fixed_point::Affine;
    ///
    /// let affine = Affine::of_range(DType::QUINT8, -1.0, 1.5)?;
    /// assert_eq!((affine.scale, affine.zero_point), (2.5 / 255.0, 102));
    /// # Ok::<(), tenon_geometry::fixed_point::FixedPointError>(())
    /// ```
    ///
    /// # Errors
    /// An end is NaN or infinite, or the type is not a quantised type.
    pub fn of_range(dtype: DType, min: f32, max: f32) -> Result<Affine, FixedPointError> {
        let [lowest, highest] = integer_range("the output", dtype)?.map(f64::from);
        if !(min.is_finite() && max.is_finite() && min <= max) {
            return Err(FixedPointError::Range { min, max });
        }
        let (min, max) = (f64::from(min.min(0.0)), f64::from(max.max(0.0)));
        let step = ((max - min) / (highest - lowest)) as f32;
        let scale = if step.is_normal() { step } else { 1.0 };
        let zero = (lowest - min / f64::from(scale)).round_ties_even();
        Ok(Affine { scale, zero_point: zero.clamp(lowest, highest) as i32 })
    }

    /// The number that a value represents, as kernels compute it.
    #[inline(always)]
    pub fn real(self, value: i32) -> f32 {
        (value - self.zero_point) as f32 * self.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_widened_to_hold_0() {
        let affine = |min, max| {
            let affine = Affine::of_range(DType::QINT8, min, max).unwrap();
            (affine.scale, affine.zero_point)
        };
        assert_eq!(affine(2.0, 255.0), (1.0, -128));
        assert_eq!(affine(-255.0, -2.0), (1.0, 127));
        assert_eq!(affine(0.0, 0.0), (1.0, -128));
        assert_eq!(affine(0.0, 1e-44), (1.0, -128));
        let widest = affine(f32::MIN, f32::MAX);
        assert!(widest.0.is_finite() && widest.1 == 0, "{widest:?}");
    }

    #[test]
    fn a_range_that_is_none_is_refused() {
        for (min, max) in [(f32::NAN, 1.0), (0.0, f32::INFINITY), (1.0, -1.0)] {
            let error = Affine::of_range(DType::QUINT8, min, max).unwrap_err().to_string();
            assert!(error.starts_with("expected a range of finite numbers"), "{error}");
        }
        assert!(Affine::of_range(DType::FLOAT, 0.0, 1.0).is_err());
    }

    proptest! {
        #[test]
        fn every_number_of_the_range_is_within_a_step_of_a_value(
            a in -1e6f32..1e6, b in -1e6f32..1e6, at in 0f64..=1.0,
        ) {
            let (min, max) = (a.min(b), a.max(b));
            let affine = Affine::of_range(DType::QUINT8, min, max).unwrap();
            let x = f64::from(min) + at * (f64::from(max) - f64::from(min));
            let steps = (x / f64::from(affine.scale)).round_ties_even() as i32;
            let value = (steps + affine.zero_point).clamp(0, 255);
            let scale = f64::from(affine.scale);
            prop_assert!((f64::from(affine.real(value)) - x).abs() <= scale * 1.01);
            prop_assert_eq!(affine.real(affine.zero_point), 0.0);
        }
    }
}
