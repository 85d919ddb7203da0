//! Values that are counted: `Bincount` and `HistogramFixedWidth`.

use tenon_framework::{KernelError, element::Number};

/// Checks the shapes of `Bincount`: weights are empty or one for each number.
///
/// # Errors
/// `INVALID_ARGUMENT` for another shape, and a size below 0.
pub fn check_bincount(size: i64, arr: &[i64], weights: &[i64]) -> Result<(), KernelError> {
    if size < 0 {
        return Err(KernelError::invalid_argument(format!("size must be at least 0, got {size}")));
    }
    if !weights.contains(&0) && weights != arr {
        return Err(KernelError::invalid_argument(format!(
            "weights must be empty or have the shape of arr, which is {arr:?}: got {weights:?}"
        )));
    }
    Ok(())
}

/// Parts of equal width of a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistogramRange<T> {
    /// Where the first begins.
    pub low: T,
    /// Width of each, in double precision.
    pub step: f64,
}

impl<T: Number> HistogramRange<T> {
    /// `parts` parts of the range that two numbers are.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` unless there are parts, and two numbers that ascend.
    pub fn new(range: &[T], dims: &[i64], parts: i64) -> Result<HistogramRange<T>, KernelError> {
        let (&[low, high], [2]) = (range, dims) else {
            return Err(KernelError::invalid_argument(format!(
                "value_range must be a vector of 2, got shape {dims:?}"
            )));
        };
        if parts < 1 {
            return Err(KernelError::invalid_argument(format!(
                "nbins must be at least 1, got {parts}"
            )));
        }
        // So that NaN is refused too.
        if low.partial_cmp(&high) != Some(std::cmp::Ordering::Less) {
            return Err(KernelError::invalid_argument(format!(
                "value_range must ascend, got [{low:?}, {high:?}]"
            )));
        }
        Ok(HistogramRange { low, step: (high.to_f64() - low.to_f64()) / parts as f64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_ranges_are_checked() {
        assert!(check_bincount(0, &[2, 3], &[0]).is_ok() && check_bincount(3, &[2], &[2]).is_ok());
        assert!(check_bincount(-1, &[2], &[0]).is_err() && check_bincount(3, &[2], &[3]).is_err());
        let range = HistogramRange::new(&[1.0f32, 3.0], &[2], 4).unwrap();
        assert_eq!((range.low, range.step), (1.0, 0.5));
        assert!(HistogramRange::new(&[1, 3], &[2], 0).is_err());
        assert!(HistogramRange::new(&[3, 3], &[2], 1).is_err());
        assert!(HistogramRange::new(&[f64::NAN, 3.0], &[2], 1).is_err());
        assert!(HistogramRange::new(&[1, 2], &[2, 1], 1).is_err());
    }
}
