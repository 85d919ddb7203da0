//! Images resized: `[batch, height, width, channels]`.

use crate::{
    error::{GeometryError, Result},
    size::{Dims, validate_partial_dims},
};
use tenon_abi::Code;
use tenon_framework::KernelError;

/// Shape of resized images; -1 is an unknown dimension. Sizes are at least 1.
pub fn resized_dims(images: &[i64], size: &[i64]) -> Result<Dims> {
    validate_partial_dims(images)?;
    if images.len() != 4 {
        return Err(GeometryError::Rank { what: "images", expected: 4, found: images.len() });
    }
    let &[height, width] = size else {
        return Err(GeometryError::Length { what: "size", expected: 2, found: size.len() });
    };
    for found in [height, width] {
        if found != -1 && !(1..=i64::from(i32::MAX)).contains(&found) {
            return Err(GeometryError::TooSmall { what: "size", least: 1, found });
        }
    }
    for &found in &images[1..] {
        if found == 0 {
            let what = "each dimension of images but the first";
            return Err(GeometryError::TooSmall { what, least: 1, found });
        }
    }
    let dims = Dims::from_slice(&[images[0], height, width, images[3]])?;
    validate_partial_dims(&dims)?;
    Ok(dims)
}

/// Checks that pixels have three colour channels; TensorFlow uses another code here than elsewhere.
pub fn check_colour(found: i64) -> std::result::Result<(), KernelError> {
    if found == 3 {
        return Ok(());
    }
    let what = "the last dimension of images";
    let error = GeometryError::SizeMismatch { what, expected: 3, found };
    Err(KernelError::new(Code::FAILED_PRECONDITION, error.to_string()))
}

/// The mapping from pixels of a resized image to the original, along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelGrid {
    /// The first pixels coincide.
    Legacy,
    /// The first and the last pixels coincide.
    AlignCorners,
    /// The image borders coincide, and pixels are located by their centres.
    HalfPixelCenters,
}

impl PixelGrid {
    /// Reads the two attributes, which exclude each other.
    pub fn new(align_corners: bool, half_pixel_centers: bool) -> Result<PixelGrid> {
        match (align_corners, half_pixel_centers) {
            (true, true) => {
                Err(GeometryError::Exclusive { a: "align_corners", b: "half_pixel_centers" })
            }
            (true, false) => Ok(PixelGrid::AlignCorners),
            (false, true) => Ok(PixelGrid::HalfPixelCenters),
            (false, false) => Ok(PixelGrid::Legacy),
        }
    }

    /// The number of original pixels per result pixel, in single precision as in TensorFlow.
    pub fn scale(self, original: i64, resized: i64) -> f32 {
        match self {
            PixelGrid::AlignCorners if resized > 1 => (original - 1) as f32 / (resized - 1) as f32,
            _ => original as f32 / resized as f32,
        }
    }

    /// The position in the original of a result pixel.
    pub fn place(self, pixel: usize, scale: f32) -> f32 {
        match self {
            PixelGrid::HalfPixelCenters => (pixel as f32 + 0.5) * scale - 0.5,
            _ => pixel as f32 * scale,
        }
    }

    /// The nearest of `count` original pixels.
    pub fn nearest(self, pixel: usize, scale: f32, count: i64) -> usize {
        let place = match self {
            PixelGrid::Legacy => (pixel as f32 * scale).floor(),
            PixelGrid::AlignCorners => (pixel as f32 * scale).round(),
            PixelGrid::HalfPixelCenters => ((pixel as f32 + 0.5) * scale).floor(),
        };
        (place as i64).clamp(0, count - 1) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_positive() {
        assert_eq!(resized_dims(&[2, 3, -1, 4], &[5, -1]).unwrap(), [2, 5, -1, 4]);
        assert_eq!(resized_dims(&[0, 3, 3, 1], &[5, 6]).unwrap(), [0, 5, 6, 1]);
        for (images, size) in [(&[2, 3, 0, 4], &[5, 5]), (&[2, 3, 3, 4], &[5, 0])] {
            assert!(matches!(resized_dims(images, size), Err(GeometryError::TooSmall { .. })));
        }
        assert!(resized_dims(&[2, 3, 3], &[5, 5]).is_err());
        assert!(resized_dims(&[2, 3, 3, 1], &[5]).is_err());
        assert!(resized_dims(&[1 << 40, 3, 3, 1], &[1 << 30, 1 << 30]).is_err());
    }

    #[test]
    fn grids_differ_in_where_pixels_lie() {
        let last = |grid: PixelGrid| grid.place(3, grid.scale(2, 4));
        assert_eq!(last(PixelGrid::Legacy), 1.5);
        assert_eq!(last(PixelGrid::AlignCorners), 1.0);
        assert_eq!(last(PixelGrid::HalfPixelCenters), 1.25);
        assert_eq!(PixelGrid::AlignCorners.nearest(2, 0.5, 2), 1);
        assert_eq!(PixelGrid::Legacy.nearest(9, 1.0, 4), 3);
        assert!(PixelGrid::new(true, true).is_err());
    }
}
