//! Local response normalisation (`LRN`): each channel by its neighbours, for images with channels
//! last.

use crate::error::{GeometryError, Result};

/// The attribute `depth_radius`: the number of neighbouring channels on either side. Below 2^31.
pub fn response_radius(depth_radius: i64) -> Result<u32> {
    let high = 1 << 31;
    match u32::try_from(depth_radius) {
        Ok(radius) if depth_radius < high => Ok(radius),
        _ => Err(GeometryError::Axis { what: "depth_radius", low: 0, high, axis: depth_radius }),
    }
}

/// The number of channels of an input with four dimensions.
pub fn response_channels(dims: &[i64]) -> Result<i64> {
    match dims {
        &[_, _, _, channels] => Ok(channels),
        _ => Err(GeometryError::Rank { what: "the input", expected: 4, found: dims.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radii_and_channels() {
        assert_eq!(response_radius((1 << 31) - 1), Ok((1 << 31) - 1));
        for radius in [-1, 1 << 31, i64::MIN] {
            assert_eq!(
                response_radius(radius).unwrap_err().to_string(),
                format!("depth_radius must lie in [0, 2147483648), got {radius}")
            );
        }
        assert_eq!(response_channels(&[2, 3, 4, 5]), Ok(5));
        assert_eq!(
            response_channels(&[2, 3, 4]).unwrap_err().to_string(),
            "the input must have 4 dimensions, got 3"
        );
    }
}
