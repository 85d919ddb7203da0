//! The sum of two quantised values of different scales.

use super::{FixedPointError, Scale};

/// Multipliers have at most this many bits: with summands of 9 bits, two products and half a step fit in 32 bits.
const BITS: i32 = 21;
/// The maximum shift.
const MAX_SHIFT: i32 = 30;

/// The conversion of two summands, each minus its zero point, to the steps of the output:
///
/// `(a * a_multiplier + b * b_multiplier + 2^(shift - 1)) >> shift`
///
/// This is their sum, rounded once, with ties upwards. With `m` the greater of
/// `a_scale / out_scale` and `b_scale / out_scale`, `shift` is the greatest number up to 30 for
/// which `m * 2^shift` rounds to at most 2^21; the multipliers are both quotients times `2^shift`,
/// rounded to nearest.
///
/// ```
/// use tenon_geometry::fixed_point::Addition;
///
/// let addition = Addition::new([0.5, 0.25], 0.125)?;
/// assert_eq!(addition.apply(3, -1), 4 * 3 - 2);
/// # Ok::<(), tenon_geometry::fixed_point::FixedPointError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addition {
    multipliers: [i32; 2],
    shift: u32,
}

impl Addition {
    /// Creates the addition of summands with these scales to an output with scale `out`.
    ///
    /// # Errors
    /// A scale is NaN, infinite or not above 0, or a summand's scale is at least 2^20 times that of
    /// the output.
    pub fn new(scales: [f32; 2], out: f32) -> Result<Addition, FixedPointError> {
        let out = Scale::new("out_scale", out)?.value;
        let a = Scale::new("a_scale", scales[0])?.value / out;
        let b = Scale::new("b_scale", scales[1])?.value / out;
        let (what, most) = if a < b { ("b_scale", b) } else { ("a_scale", a) };
        let fits = |shift: &i32| (most * 2f64.powi(*shift)).round() <= 2f64.powi(BITS);
        let Some(shift) = (1..=MAX_SHIFT).rev().find(fits) else {
            return Err(FixedPointError::Summand { what, found: most });
        };
        let multiplier = |quotient: f64| (quotient * 2f64.powi(shift)).round() as i32;
        Ok(Addition { multipliers: [multiplier(a), multiplier(b)], shift: shift.unsigned_abs() })
    }

    /// The sum of two summands in `[-255, 255]`, in steps of the output.
    #[inline(always)]
    pub const fn apply(self, a: i32, b: i32) -> i32 {
        let [a_multiplier, b_multiplier] = self.multipliers;
        (a * a_multiplier + b * b_multiplier + (1 << (self.shift - 1))) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tie_is_rounded_upwards() {
        let halves = Addition::new([0.5, 0.5], 1.0).unwrap();
        let sums = [(1, 0), (3, 0), (-1, 0), (-3, 0), (1, 1), (-255, -255)];
        assert_eq!(sums.map(|(a, b)| halves.apply(a, b)), [1, 2, 0, -1, 1, -255]);
    }

    #[test]
    fn scales_too_far_apart_are_refused() {
        assert!(Addition::new([1e6, 1e-30], 1.0).is_ok());
        let error = Addition::new([1.0, 3e6], 1.0).unwrap_err().to_string();
        assert!(
            error.starts_with("b_scale: the scale of a summand over that of the output"),
            "{error}"
        );
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(Addition::new([scale, 1.0], 1.0).is_err());
            assert!(Addition::new([1.0, 1.0], scale).is_err());
        }
    }

    proptest! {
        /// Multipliers are rounded to 2^-21 of the greater one, so 510 of them deviate by less than
        /// 2^-12 of it.
        #[test]
        fn the_sum_is_the_exact_one_but_for_its_rounding(
            a in -255i32..=255, b in -255i32..=255, x in -20f32..19.9, y in -20f32..19.9,
        ) {
            let (x, y) = (x.exp2(), y.exp2());
            let sum = f64::from(a) * f64::from(x) + f64::from(b) * f64::from(y);
            let found = Addition::new([x, y], 1.0).unwrap().apply(a, b);
            let slack = 0.5 + f64::from(x.max(y)) * 2f64.powi(-12) + 2f64.powi(-21);
            prop_assert!((f64::from(found) - sum).abs() <= slack, "{found} for {sum}");
        }
    }
}
