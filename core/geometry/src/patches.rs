//! The windows of `ExtractImagePatches`.

use crate::error::{GeometryError, Result};
use crate::format::Padding;
use crate::size::{Dims, validate_partial_dims};
use crate::window::{WindowDim, check_len, check_one, dim_padding};

/// Windows over NHWC images. Each window becomes the channels of a pixel, in the order rows,
/// columns, depth.
#[derive(Debug, Clone, Copy)]
pub struct PatchGeometry {
    /// Windows over the rows.
    pub height: WindowDim,
    /// Windows over the columns.
    pub width: WindowDim,
    /// Dimensions of the output; -1 is unknown.
    pub output: Dims,
}

impl PatchGeometry {
    /// Geometry for images of these dimensions (-1: unknown) and the attributes `ksizes`, `strides`
    /// and `rates`.
    pub fn new(images: &[i64], lists: [&[i64]; 3], padding: Padding) -> Result<PatchGeometry> {
        validate_partial_dims(images)?;
        let images =
            if images.is_empty() { Dims::filled(4, -1)? } else { Dims::from_slice(images)? };
        if images.len() != 4 {
            return Err(GeometryError::Rank { what: "images", expected: 4, found: images.len() });
        }
        for (what, list) in ["ksizes", "strides", "rates"].into_iter().zip(lists) {
            check_len(what, 4, list)?;
            if let Some(&found) = list.iter().find(|&&value| value < 1) {
                return Err(GeometryError::NotPositive { what, found });
            }
            check_one(what, "batch", list[0])?;
            check_one(what, "depth", list[3])?;
        }
        let [ksizes, strides, rates] = lists;
        let window = |at: usize, name| {
            WindowDim::new(
                name,
                images[at],
                ksizes[at],
                strides[at],
                rates[at],
                dim_padding(padding, &[0; 8], at),
            )
        };
        let (height, width) = (window(1, "rows")?, window(2, "columns")?);
        let too_large = || GeometryError::TooLarge { dims: vec![ksizes[1], ksizes[2], images[3]] };
        let taps = ksizes[1].checked_mul(ksizes[2]).ok_or_else(too_large)?;
        let depth = match images[3] {
            -1 => -1,
            depth => depth.checked_mul(taps).ok_or_else(too_large)?,
        };
        let output = Dims::from_slice(&[images[0], height.output, width.output, depth])?;
        validate_partial_dims(&output)?;
        Ok(PatchGeometry { height, width, output })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let lists: [&[i64]; 3] = [&[1, 2, 3, 1], &[1, 1, 2, 1], &[1, 2, 1, 1]];
        let output =
            |images: &[i64], padding| PatchGeometry::new(images, lists, padding).unwrap().output;
        assert_eq!(output(&[2, 5, 7, 3], Padding::Valid), [2, 3, 3, 18]);
        assert_eq!(output(&[2, 5, 7, 3], Padding::Same), [2, 5, 4, 18]);
        assert_eq!(output(&[2, -1, 7, -1], Padding::Same), [2, -1, 4, -1]);
        let bad: [&[i64]; 3] = [&[2, 2, 3, 1], lists[1], lists[2]];
        assert!(PatchGeometry::new(&[1, 2, 3, 4], bad, Padding::Same).is_err());
        assert!(PatchGeometry::new(&[1, 2, 3], lists, Padding::Same).is_err());
    }
}
