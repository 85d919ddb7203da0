//! Dimensions, element counts and strides, with checked arithmetic.
//!
//! The number of elements is the product of the dimensions; it and the number of bytes must fit in an `i64`.
//! As in TensorFlow, the product is checked from the front, so `[2^40, 2^40, 0]` is too large although it is
//! empty, and `[0, 2^40, 2^40]` is not. The row-major stride of a dimension is the product of those after it.

use crate::error::{GeometryError, Result};
use std::fmt;
use std::ops::{Deref, DerefMut};
use tenon_abi::MAX_RANK;

/// Up to [`MAX_RANK`] dimensions (or strides, or axes), without allocation. Derefs to a slice.
#[derive(Clone, Copy, Default)]
pub struct Dims {
    values: [i64; MAX_RANK],
    len: usize,
}

impl Dims {
    /// No dimensions: the shape of a scalar.
    pub const EMPTY: Dims = Dims { values: [0; MAX_RANK], len: 0 };

    /// Copies a slice. Fails for more than [`MAX_RANK`] values.
    pub fn from_slice(values: &[i64]) -> Result<Dims> {
        let mut dims = Dims::filled(values.len(), 0)?;
        dims.copy_from_slice(values);
        Ok(dims)
    }

    /// Creates `len` copies of a value. Fails for more than [`MAX_RANK`].
    pub fn filled(len: usize, value: i64) -> Result<Dims> {
        if len > MAX_RANK {
            return Err(GeometryError::RankTooLarge { rank: len });
        }
        let mut values = [0; MAX_RANK];
        values[..len].fill(value);
        Ok(Dims { values, len })
    }

    /// Appends a value. Fails if there are [`MAX_RANK`] already.
    pub fn push(&mut self, value: i64) -> Result<()> {
        let slot = self
            .values
            .get_mut(self.len)
            .ok_or(GeometryError::RankTooLarge { rank: self.len + 1 })?;
        *slot = value;
        self.len += 1;
        Ok(())
    }

    /// The values.
    pub fn as_slice(&self) -> &[i64] {
        self
    }
}

impl Deref for Dims {
    type Target = [i64];
    fn deref(&self) -> &[i64] {
        &self.values[..self.len]
    }
}

impl DerefMut for Dims {
    fn deref_mut(&mut self) -> &mut [i64] {
        &mut self.values[..self.len]
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for Dims {
    fn eq(&self, other: &Dims) -> bool {
        **self == **other
    }
}

impl Eq for Dims {}

impl PartialEq<[i64]> for Dims {
    fn eq(&self, other: &[i64]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<[i64; N]> for Dims {
    fn eq(&self, other: &[i64; N]) -> bool {
        **self == other[..]
    }
}

fn too_large(dims: &[i64]) -> GeometryError {
    GeometryError::TooLarge { dims: dims.to_vec() }
}

/// Checks that the rank is allowed, that no dimension is negative and that the element count fits.
pub fn validate_dims(dims: &[i64]) -> Result<()> {
    element_count(dims).map(|_| ())
}

/// Like [`validate_dims`], where -1 is an unknown dimension; the known ones must still fit
/// together.
pub fn validate_partial_dims(dims: &[i64]) -> Result<()> {
    if dims.len() > MAX_RANK {
        return Err(GeometryError::RankTooLarge { rank: dims.len() });
    }
    let mut count = 1i64;
    for (index, &value) in dims.iter().enumerate() {
        if value < -1 {
            return Err(GeometryError::NegativeDim { index, value });
        }
        if value >= 0 {
            count = count.checked_mul(value).ok_or_else(|| too_large(dims))?;
        }
    }
    Ok(())
}

/// Number of elements of these dimensions.
pub fn element_count(dims: &[i64]) -> Result<usize> {
    if dims.len() > MAX_RANK {
        return Err(GeometryError::RankTooLarge { rank: dims.len() });
    }
    let mut count = 1i64;
    for (index, &value) in dims.iter().enumerate() {
        if value < 0 {
            return Err(GeometryError::NegativeDim { index, value });
        }
        count = count.checked_mul(value).ok_or_else(|| too_large(dims))?;
    }
    usize::try_from(count).map_err(|_| too_large(dims))
}

/// Number of elements, or `None` if a dimension is unknown (-1).
pub fn known_element_count(dims: &[i64]) -> Result<Option<usize>> {
    validate_partial_dims(dims)?;
    if dims.contains(&-1) { Ok(None) } else { element_count(dims).map(Some) }
}

/// Number of bytes of these dimensions, with elements of `element_size` bytes.
pub fn byte_size(dims: &[i64], element_size: usize) -> Result<usize> {
    element_count(dims)?
        .checked_mul(element_size)
        .filter(|&bytes| i64::try_from(bytes).is_ok())
        .ok_or_else(|| too_large(dims))
}

/// Row-major strides in elements, for dimensions that [`validate_dims`] accepts. The strides of an
/// empty tensor, which are never used, saturate at `i64::MAX`.
pub fn row_major_strides(dims: &[i64]) -> Result<Dims> {
    let mut strides = Dims::filled(dims.len(), 1)?;
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(dims[i]);
    }
    Ok(strides)
}

/// A validated dimension as `usize`.
pub(crate) fn index(value: i64) -> usize {
    debug_assert!(value >= 0, "validated dimension");
    value as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_strides() {
        assert_eq!(element_count(&[]), Ok(1));
        assert_eq!(element_count(&[2, 3, 4]), Ok(24));
        assert_eq!(element_count(&[2, 0, 4]), Ok(0));
        assert_eq!(byte_size(&[3, 5], 8), Ok(120));
        assert_eq!(known_element_count(&[2, -1]), Ok(None));
        assert_eq!(known_element_count(&[2, 7]), Ok(Some(14)));
        assert_eq!(row_major_strides(&[2, 3, 4]).unwrap(), [12, 4, 1]);
        assert_eq!(row_major_strides(&[]).unwrap(), []);
    }

    #[test]
    fn overflow_and_negative_dimensions_are_errors() {
        let big = 1i64 << 40;
        assert_eq!(
            element_count(&[big, big, 0]),
            Err(GeometryError::TooLarge { dims: vec![big, big, 0] })
        );
        assert_eq!(element_count(&[0, big, big]), Ok(0));
        assert!(matches!(byte_size(&[1 << 61], 8), Err(GeometryError::TooLarge { .. })));
        assert_eq!(
            element_count(&[2, -1]),
            Err(GeometryError::NegativeDim { index: 1, value: -1 })
        );
        assert_eq!(
            validate_partial_dims(&[-1, -2]),
            Err(GeometryError::NegativeDim { index: 1, value: -2 })
        );
        assert_eq!(element_count(&[1; 17]), Err(GeometryError::RankTooLarge { rank: 17 }));
    }

    #[test]
    fn a_full_list_takes_no_more() {
        let mut dims = Dims::filled(MAX_RANK, 2).unwrap();
        assert_eq!(dims.push(1), Err(GeometryError::RankTooLarge { rank: MAX_RANK + 1 }));
        assert_eq!(dims.len(), MAX_RANK);
    }
}
