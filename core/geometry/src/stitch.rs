//! Slices that are joined in the order of their indices.

use crate::{Dims, GeometryError};
use tenon_framework::KernelError;

/// The least number that is not an index: the number of slices is an int32.
const END: i64 = i32::MAX as i64;

/// The number of slices of a tensor that holds one for each index: one more than the largest index, 0 without indices.
///
/// # Errors
/// `INVALID_ARGUMENT` for an index below 0 or of 2^31 - 1 and more.
pub fn stitch_rows<'a>(indices: impl IntoIterator<Item = &'a [i64]>) -> Result<i64, KernelError> {
    let mut rows = 0;
    for (list, indices) in indices.into_iter().enumerate() {
        if let Some(at) = indices.iter().position(|index| !(0..END).contains(index)) {
            return Err(KernelError::invalid_argument(format!(
                "indices[{list}]: index {} at position {at} is not in [0, {END})",
                indices[at]
            )));
        }
        rows = indices.iter().fold(rows, |rows, &index| rows.max(index + 1));
    }
    Ok(rows)
}

/// The shape of one slice of `data`: what follows the shape of `prefix`, with which it begins.
///
/// # Errors
/// `INVALID_ARGUMENT` when `data` begins with another shape; `data_name` and `prefix_name` are for the message.
pub fn shape_after(
    data: &[i64],
    prefix: &[i64],
    [data_name, prefix_name]: [&str; 2],
) -> Result<Dims, KernelError> {
    match data.strip_prefix(prefix) {
        Some(rest) => Ok(Dims::from_slice(rest)?),
        None => Err(KernelError::invalid_argument(format!(
            "the shape of {data_name} must begin with the shape of {prefix_name}, {prefix:?}: found {data:?}"
        ))),
    }
}

/// `rest` behind a dimension of size `first`.
///
/// # Errors
/// [`GeometryError::RankTooLarge`].
pub fn shape_behind(first: i64, rest: &[i64]) -> Result<Dims, GeometryError> {
    let all: Vec<i64> = std::iter::once(first).chain(rest.iter().copied()).collect();
    Dims::from_slice(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_reach_to_the_largest_index() {
        assert_eq!(stitch_rows([&[0, 4][..], &[], &[2]]).unwrap(), 5);
        assert_eq!(stitch_rows([&[][..]]).unwrap(), 0);
        for bad in [-1, i64::from(i32::MAX), i64::MIN, i64::MAX] {
            let error = stitch_rows([&[1][..], &[0, bad]]).unwrap_err();
            let expected =
                format!("indices[1]: index {bad} at position 1 is not in [0, 2147483647)");
            assert_eq!(error.message, expected);
        }
    }

    #[test]
    fn a_slice_is_what_follows_the_prefix() {
        assert_eq!(shape_after(&[2, 3, 4], &[2, 3], ["x", "y"]).unwrap(), [4]);
        assert_eq!(shape_after(&[2], &[], ["x", "y"]).unwrap(), [2]);
        let error = shape_after(&[2], &[2, 1], ["x", "y"]).unwrap_err();
        assert_eq!(
            error.message,
            "the shape of x must begin with the shape of y, [2, 1]: found [2]"
        );
        assert_eq!(shape_behind(7, &[2, 3]).unwrap(), [7, 2, 3]);
    }
}
