//! Rows whose elements are ranked, for `TopK` and similar ops.

use crate::size::{Dims, element_count};
use tenon_framework::KernelError;

/// Rows of the last dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedRows {
    /// Elements of a row: at most `u32::MAX`.
    pub len: usize,
    /// Rows.
    pub count: usize,
}

impl RankedRows {
    /// The rows whose `k` greatest elements are requested, and the shape of these elements.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a scalar, `k` below 0, and rows that are shorter than `k` or too long.
    pub fn greatest(input: &[i64], k: i64) -> Result<(RankedRows, Dims), KernelError> {
        if k < 0 {
            return Err(KernelError::invalid_argument(format!("k must be at least 0, got {k}")));
        }
        let rows = RankedRows::new(input, k, "k")?;
        let mut dims = Dims::from_slice(&input[..input.len() - 1])?;
        dims.push(k)?;
        Ok((rows, dims))
    }

    /// The rows whose element with rank `n`, from the least, is requested.
    ///
    /// # Errors
    /// As [`RankedRows::greatest`]: `n` must be below the length.
    pub fn with_place(input: &[i64], n: i64) -> Result<RankedRows, KernelError> {
        if n < 0 {
            return Err(KernelError::invalid_argument(format!("n must be at least 0, got {n}")));
        }
        RankedRows::new(input, n.saturating_add(1), "n")
    }

    /// Rows of predictions, with a target for each.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for other shapes.
    pub fn of_predictions(predictions: &[i64], targets: &[i64]) -> Result<RankedRows, KernelError> {
        let &[rows, classes] = predictions else {
            return Err(KernelError::invalid_argument(format!(
                "predictions must have 2 dimensions, got shape {predictions:?}"
            )));
        };
        if targets != [rows] {
            return Err(KernelError::invalid_argument(format!(
                "targets must be a vector of {rows}, one for each row of predictions, got shape {targets:?}"
            )));
        }
        Ok(RankedRows { len: classes as usize, count: rows as usize })
    }

    /// Creates the rows; `least` is their minimum length.
    fn new(dims: &[i64], least: i64, what: &str) -> Result<RankedRows, KernelError> {
        let Some((&last, outer)) = dims.split_last() else {
            let message = "input must have at least 1 dimensions, got 0";
            return Err(KernelError::invalid_argument(message));
        };
        if last < least {
            return Err(KernelError::invalid_argument(format!(
                "the last dimension of input must be at least {least}, which {what} asks for, got {last}"
            )));
        }
        if u32::try_from(last).is_err() {
            return Err(KernelError::invalid_argument(format!(
                "the last dimension of input is {last}, at most {} are supported",
                u32::MAX
            )));
        }
        Ok(RankedRows { len: last as usize, count: element_count(outer)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_is_asked_for() {
        let (rows, dims) = RankedRows::greatest(&[2, 3, 5], 4).unwrap();
        assert_eq!((rows.len, rows.count, &dims[..]), (5, 6, &[2, 3, 4][..]));
        assert_eq!(RankedRows::with_place(&[5], 4).unwrap(), RankedRows { len: 5, count: 1 });
        let words = |found: Result<RankedRows, KernelError>| found.unwrap_err().message;
        let of = |dims: &[i64], k| words(RankedRows::greatest(dims, k).map(|it| it.0));
        assert!(of(&[5], 6).contains("must be at least 6, which k asks for, got 5"));
        assert_eq!(of(&[5], -1), "k must be at least 0, got -1");
        assert!(of(&[], 0).contains("at least 1 dimensions"));
        assert!(of(&[1 << 32], 0).contains("at most 4294967295"));
        assert!(words(RankedRows::with_place(&[5], i64::MAX)).contains("which n asks for"));
        assert!(words(RankedRows::of_predictions(&[5], &[5])).contains("2 dimensions"));
        assert!(words(RankedRows::of_predictions(&[5, 2], &[2])).contains("a vector of 5"));
    }
}
