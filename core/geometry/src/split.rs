//! Cuts a tensor along one dimension: `Split`, `SplitV`, `Unpack`; and takes a box of it: `Slice`.

use crate::error::{GeometryError, Result};
use crate::reduce::normalize_axis;
use crate::size::{Dims, validate_partial_dims};
use crate::window::check_len;

/// Shape of each of `count` equal pieces along an axis; -1 is an unknown dimension.
pub fn split_dims(input: &[i64], axis: i64, count: i64) -> Result<Dims> {
    validate_partial_dims(input)?;
    let axis = normalize_axis("split_dim", axis, input.len())?;
    at_least("num_split", 1, count)?;
    let mut output = Dims::from_slice(input)?;
    if output[axis] % count != 0 && output[axis] >= 0 {
        return Err(GeometryError::NotDivisible {
            what: "the size of value along split_dim",
            value: output[axis],
            divisor_name: "num_split",
            divisor: count,
        });
    }
    if output[axis] >= 0 {
        output[axis] /= count;
    }
    Ok(output)
}

/// Checks the sizes of the pieces of a dimension of `total` elements (-1: unknown), and replaces a
/// single -1 among them by the remaining size.
pub fn split_sizes(total: i64, sizes: &mut [i64]) -> Result<()> {
    let (mut open, mut sum) = (None, 0i64);
    for (index, &value) in sizes.iter().enumerate() {
        match value {
            -1 if open.is_some() => {
                let (what, dims) = ("size_splits", sizes.to_vec());
                return Err(GeometryError::ManyUnknown { what, dims });
            }
            -1 => open = Some(index),
            found if found < 0 => return at_least("size_splits", 0, found),
            value => {
                let too_large = || GeometryError::TooLarge { dims: vec![sum, value] };
                sum = sum.checked_add(value).ok_or_else(too_large)?;
            }
        }
    }
    let fits = if open.is_some() { sum <= total } else { sum == total };
    if total >= 0 && !fits {
        let what = "the sum of size_splits";
        return Err(GeometryError::SizeMismatch { what, expected: total, found: sum });
    }
    if let Some(open) = open.filter(|_| total >= 0) {
        sizes[open] = total - sum;
    }
    Ok(())
}

/// Shape of each of the `count` parts that `Unpack` makes of a dimension of that size.
pub fn unpack_dims(input: &[i64], axis: i64, count: i64) -> Result<Dims> {
    validate_partial_dims(input)?;
    let axis = normalize_axis("axis", axis, input.len())?;
    at_least("num", 0, count)?;
    if input[axis] >= 0 && input[axis] != count {
        let what = "num, the size of value along axis,";
        return Err(GeometryError::SizeMismatch { what, expected: input[axis], found: count });
    }
    let mut output = Dims::from_slice(&input[..axis])?;
    input[axis + 1..].iter().try_for_each(|&size| output.push(size))?;
    validate_partial_dims(&output)?;
    Ok(output)
}

/// Shape of a `Slice`. A size of -1 reaches to the end of its dimension. In the input and in the
/// result, -1 is an unknown dimension.
pub fn slice_dims(input: &[i64], begin: &[i64], size: &[i64]) -> Result<Dims> {
    validate_partial_dims(input)?;
    check_len("begin", input.len(), begin)?;
    check_len("size", input.len(), size)?;
    let mut output = Dims::from_slice(size)?;
    for (index, &dim) in input.iter().enumerate() {
        let (begin, size) = (begin[index], size[index]);
        let known = dim >= 0;
        let bad = GeometryError::SliceRange { index, begin, size, dim };
        if begin < 0 || size < -1 || (known && begin > dim) {
            return Err(bad);
        }
        if known {
            output[index] = if size == -1 { dim - begin } else { size };
            if output[index] > dim - begin {
                return Err(bad);
            }
        }
    }
    validate_partial_dims(&output)?;
    Ok(output)
}

pub(crate) fn at_least(what: &'static str, least: i64, found: i64) -> Result<()> {
    if found < least { Err(GeometryError::TooSmall { what, least, found }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces() {
        assert_eq!(split_dims(&[6, -1], 0, 3).unwrap(), [2, -1]);
        assert_eq!(split_dims(&[6, -1], -1, 3).unwrap(), [6, -1]);
        assert_eq!(
            split_dims(&[7], 0, 2).unwrap_err().to_string(),
            "the size of value along split_dim (7) must be a multiple of num_split (2)"
        );
        assert!(split_dims(&[], 0, 1).is_err());
        assert_eq!(unpack_dims(&[2, 3], 1, 3).unwrap(), [2]);
        assert!(unpack_dims(&[2, 3], 1, 2).is_err());
    }

    #[test]
    fn one_size_is_what_is_left() {
        let solved = |total, sizes: &[i64]| {
            let mut sizes = sizes.to_vec();
            split_sizes(total, &mut sizes).map(|()| sizes)
        };
        assert_eq!(solved(7, &[2, -1, 1]).unwrap(), [2, 4, 1]);
        assert_eq!(solved(-1, &[2, -1, 1]).unwrap(), [2, -1, 1]);
        assert_eq!(solved(7, &[7, 0]).unwrap(), [7, 0]);
        let error = solved(7, &[2, 3]).unwrap_err().to_string();
        assert_eq!(error, "the sum of size_splits must be 7, got 5");
        assert!(solved(7, &[8, -1]).is_err());
        assert!(solved(7, &[-1, -1]).is_err());
        assert!(solved(7, &[-2]).is_err());
        assert!(solved(7, &[i64::MAX, 1]).is_err());
    }

    #[test]
    fn boxes() {
        assert_eq!(slice_dims(&[5, -1, -1], &[1, 0, 2], &[-1, -1, 3]).unwrap(), [4, -1, 3]);
        assert_eq!(
            slice_dims(&[5], &[3], &[3]).unwrap_err().to_string(),
            "a slice must lie in its dimension: dimension 0 has size 5, got begin 3 and size 3"
        );
        assert!(slice_dims(&[5], &[6], &[-1]).is_err());
        assert!(slice_dims(&[5], &[i64::MIN], &[0]).is_err());
        assert!(slice_dims(&[-1], &[i64::MAX], &[i64::MAX]).is_ok());
    }
}
