//! Ops that count values: `Bincount` and `HistogramFixedWidth`.

use tenon_framework::{KernelError, element::Number};

/// Checks the shapes of `Bincount`: the weights are empty, or there is one for each number.
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

/// A range that is divided into bins of equal width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistogramRange<T> {
    /// The start of the first bin.
    pub low: T,
    /// The width of each bin, in double precision.
    pub step: f64,
}

impl<T: Number> HistogramRange<T> {
    /// Divides the range between two numbers into `parts` bins.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there are no bins, or not two ascending numbers.
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
        // The comparison also refuses NaN.
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
