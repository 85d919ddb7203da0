//! Ranges of real numbers, and the codes that represent the numbers in them: TensorFlow's
//! `quantization_utils.h`, with its roundings, as in plugins/int8.

use tenon_sdk::{KernelError, author::ComputeContext, geometry::GeometryError};

/// A range of finite numbers, its ends in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    min: f32,
    max: f32,
}

/// Steps between the codes of quint8.
const STEPS: f64 = 255.0;

fn scalar(c: &ComputeContext<'_>, input: usize, what: &'static str) -> Result<f32, KernelError> {
    let x = c.input::<f32>(input)?;
    match (x.data, x.dims) {
        (&[value], []) => Ok(value),
        (_, dims) => Err(GeometryError::Rank { what, expected: 0, found: dims.len() }.into()),
    }
}

impl Range {
    fn new(min: f32, max: f32, [low, high]: [&'static str; 2]) -> Result<Range, KernelError> {
        let range = Range { min, max };
        if min <= max && range.width().is_finite() {
            return Ok(range);
        }
        Err(KernelError::invalid_argument(format!(
            "{low} and {high} must be finite, {low} at most {high}, and their difference below 3.4e38, found {min} and {max}"
        )))
    }

    /// The range given by inputs `at` and `at + 1`, whose ends must differ.
    ///
    /// # Errors
    /// The inputs are not scalars, or not such a range.
    pub fn wide(
        c: &ComputeContext<'_>,
        at: usize,
        ends: [&'static str; 2],
    ) -> Result<Range, KernelError> {
        let range = Range::new(scalar(c, at, ends[0])?, scalar(c, at + 1, ends[1])?, ends)?;
        if range.min < range.max {
            return Ok(range);
        }
        let [low, high] = ends;
        Err(KernelError::invalid_argument(format!(
            "{high} must be larger than {low}, found {} for both",
            range.min
        )))
    }

    /// The range of 32-bit sums of products of codes with these levels.
    ///
    /// # Errors
    /// The range has no finite ends.
    pub fn of_products(a: f32, b: f32) -> Result<Range, KernelError> {
        let level = a * b;
        let (min, max) = (level * i32::MIN as f32, level * i32::MAX as f32);
        Range::new(min, max, ["the output's minimum", "its maximum"])
    }

    fn width(self) -> f32 {
        self.max - self.min
    }

    /// The difference between the numbers of adjacent codes of quint8.
    pub fn level(self) -> f32 {
        self.width() / STEPS as f32
    }

    /// The code of 0 in quint8, which may be outside the type's range.
    ///
    /// # Errors
    /// The code does not fit in 32 bits.
    pub fn zero(self) -> Result<i32, KernelError> {
        let codes = STEPS + 1.0;
        let scale = codes / (f64::from(self.width()) * (codes / STEPS));
        let zero = 0.0f64 - (f64::from(self.min) * scale).round();
        i32::try_from(zero as i64).map_err(|_| {
            KernelError::invalid_argument(format!(
                "0 must not lie further from [{}, {}] than 2^31 of its levels: widen the range",
                self.min, self.max
            ))
        })
    }

    /// Writes the ends to outputs `at` and `at + 1`, in host memory.
    ///
    /// # Errors
    /// Out of memory.
    pub fn write(self, c: &ComputeContext<'_>, at: usize) -> Result<(), KernelError> {
        c.output::<f32>(at, &[])?.data.fill(self.min);
        c.output::<f32>(at + 1, &[])?.data.fill(self.max);
        Ok(())
    }
}

/// The greatest distance of a code of quint8 from the code of 0.
fn reach(zero: i32) -> u64 {
    u64::from(0i32.abs_diff(zero).max(255i32.abs_diff(zero)))
}

/// Checks that 32 bits hold every sum of `terms` products.
///
/// # Errors
/// There are more than `(2^31 - 1) / (reach_a * reach_b)`.
pub(super) fn check_terms(terms: usize, [a, b]: [i32; 2]) -> Result<(), KernelError> {
    let product = u128::from(reach(a)) * u128::from(reach(b));
    let most = (i32::MAX as u128).checked_div(product).unwrap_or(u128::MAX);
    if terms as u128 <= most {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "sums of products must fit in 32 bits, which holds for at most {most} terms of these ranges (zeros at {a} and {b}), found {terms}: split the sum, or choose ranges with 0 near their middles"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_zero_and_the_bound_of_terms() {
        let range = |min, max| Range::new(min, max, ["min", "max"]).unwrap();
        assert_eq!(range(0.0, 255.0).zero(), Ok(0));
        assert_eq!(range(-255.0, 0.0).zero(), Ok(255));
        assert_eq!(range(-3.0, 4.5).zero(), Ok(102));
        assert!(
            range(1e9, 1e9 + 256.0).zero().is_ok_and(|zero| check_terms(1, [zero, 0]).is_err())
        );
        assert!(range(1e9, 1e9 + 64.0).zero().is_err());
        assert_eq!(check_terms(33025, [0, 255]), Ok(()));
        assert!(check_terms(33026, [0, 0]).unwrap_err().message.contains("at most 33025 terms"));
    }
}
