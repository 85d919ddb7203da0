//! Pooling by ratios that need not be whole numbers.

use crate::error::{GeometryError, Result};
use crate::size::{Dims, validate_partial_dims};

/// The dimensions of the windows over images of these dimensions (-1: unknown): each is divided by its ratio and rounded
/// down. Batch and channels have a ratio of 1.
pub fn fractional_dims(value: &[i64], ratio: &[f32]) -> Result<Dims> {
    validate_partial_dims(value)?;
    if value.len() != 4 {
        return Err(GeometryError::Rank { what: "value", expected: 4, found: value.len() });
    }
    if ratio.len() != 4 {
        let found = ratio.len();
        return Err(GeometryError::Length { what: "pooling_ratio", expected: 4, found });
    }
    if !ratio.iter().all(|ratio| (1.0..f32::INFINITY).contains(ratio)) {
        let (expected, found) = ("be 1 or more", format!("{ratio:?}"));
        return Err(GeometryError::PoolingRatio { expected, found });
    }
    if ratio[0] != 1.0 || ratio[3] != 1.0 {
        return Err(GeometryError::RatioOutside { found: format!("{ratio:?}") });
    }
    let mut output = Dims::from_slice(value)?;
    for at in [1, 2] {
        if value[at] >= 0 {
            output[at] = (value[at] as f32 / ratio[at]).floor() as i64;
            if output[at] < 1 {
                let expected = "be no more than the sizes of value";
                let found = format!("{ratio:?} for {value:?}");
                return Err(GeometryError::PoolingRatio { expected, found });
            }
        }
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_down() {
        let dims = |value: &[i64], ratio: &[f32]| fractional_dims(value, ratio);
        assert_eq!(dims(&[2, 7, -1, 3], &[1.0, 1.5, 1.25, 1.0]).unwrap(), [2, 4, -1, 3]);
        assert!(dims(&[2, 7, 6, 3], &[1.0, 0.5, 1.0, 1.0]).is_err());
        assert!(dims(&[2, 7, 6, 3], &[1.0, f32::NAN, 1.0, 1.0]).is_err());
        assert!(dims(&[2, 7, 6, 3], &[2.0, 1.0, 1.0, 1.0]).is_err());
        assert!(dims(&[2, 1, 6, 3], &[1.0, 1.5, 1.0, 1.0]).is_err());
        assert!(dims(&[2, 7, 6], &[1.0, 1.5, 1.0, 1.0]).is_err());
    }
}
