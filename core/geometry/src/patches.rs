//! The windows of `ExtractImagePatches` and `ExtractVolumePatches`.

use crate::error::{GeometryError, Result};
use crate::format::Padding;
use crate::size::{Dims, validate_partial_dims};
use crate::window::{WindowDim, check_len, check_one, dim_padding};

/// Windows over images, or over volumes, with channels last. Each window becomes the channels of a pixel, in the order
/// planes, rows, columns, depth.
#[derive(Debug, Clone, Copy)]
pub struct PatchGeometry {
    /// Windows over the planes, the rows and the columns; an image is one plane.
    pub windows: [WindowDim; 3],
    /// Dimensions of the output; -1 is unknown.
    pub output: Dims,
}

const NAMES: [&str; 3] = ["planes", "rows", "columns"];

impl PatchGeometry {
    /// Geometry for images of these dimensions (-1: unknown) and the attributes `ksizes`, `strides`
    /// and `rates`.
    pub fn new(images: &[i64], lists: [&[i64]; 3], padding: Padding) -> Result<PatchGeometry> {
        PatchGeometry::of_rank::<4>("images", images, lists, padding)
    }

    /// Geometry for volumes of these dimensions (-1: unknown) and the attributes `ksizes` and `strides`.
    pub fn of_volumes(
        input: &[i64],
        [ksizes, strides]: [&[i64]; 2],
        padding: Padding,
    ) -> Result<PatchGeometry> {
        PatchGeometry::of_rank::<5>("input", input, [ksizes, strides, &[1; 5]], padding)
    }

    fn of_rank<const RANK: usize>(
        what: &'static str,
        given: &[i64],
        lists: [&[i64]; 3],
        padding: Padding,
    ) -> Result<PatchGeometry> {
        validate_partial_dims(given)?;
        let dims =
            if given.is_empty() { Dims::filled(RANK, -1)? } else { Dims::from_slice(given)? };
        if dims.len() != RANK {
            return Err(GeometryError::Rank { what, expected: RANK, found: dims.len() });
        }
        for (what, list) in ["ksizes", "strides", "rates"].into_iter().zip(lists) {
            check_len(what, RANK, list)?;
            if let Some(&found) = list.iter().find(|&&value| value < 1) {
                return Err(GeometryError::NotPositive { what, found });
            }
            check_one(what, "batch", list[0])?;
            check_one(what, "depth", list[RANK - 1])?;
        }
        let [ksizes, strides, rates] = lists;
        let mut windows = [WindowDim::ONE; 3];
        let space = RANK - 2;
        for at in 0..space {
            let own = 3 - space + at;
            let from = at + 1;
            windows[own] = WindowDim::new(
                NAMES[own],
                dims[from],
                ksizes[from],
                strides[from],
                rates[from],
                dim_padding(padding, &[0; 10], from),
            )?;
        }
        let last = dims[RANK - 1];
        let too_large = || GeometryError::TooLarge { dims: dims.to_vec() };
        let taps = ksizes.iter().try_fold(1i64, |taps, &size| taps.checked_mul(size));
        let taps = taps.ok_or_else(too_large)?;
        let depth = match last {
            -1 => -1,
            depth => depth.checked_mul(taps).ok_or_else(too_large)?,
        };
        let mut output = Dims::from_slice(&dims[..1])?;
        windows[3 - space..].iter().try_for_each(|window| output.push(window.output))?;
        output.push(depth)?;
        validate_partial_dims(&output)?;
        Ok(PatchGeometry { windows, output })
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

    #[test]
    fn volumes() {
        let lists: [&[i64]; 2] = [&[1, 2, 3, 1, 1], &[1, 1, 2, 1, 1]];
        let output =
            |dims: &[i64], padding| PatchGeometry::of_volumes(dims, lists, padding).unwrap().output;
        assert_eq!(output(&[2, 4, 5, 3, 2], Padding::Valid), [2, 3, 2, 3, 12]);
        assert_eq!(output(&[2, 4, 5, 3, 2], Padding::Same), [2, 4, 3, 3, 12]);
        assert!(PatchGeometry::of_volumes(&[1, 2, 3, 4], lists, Padding::Same).is_err());
    }
}
