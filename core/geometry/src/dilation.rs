//! Grey-scale dilation, `Dilation2D`: the greatest sum of pixel and filter element over each window. Images are
//! channels last.

use crate::error::{GeometryError, Result};
use crate::format::Padding;
use crate::size::validate_partial_dims;
use crate::window::{WindowDim, check_len, check_one, dim_padding};

/// Shapes and attributes of a dilation.
#[derive(Debug, Clone, Copy)]
pub struct Dilation2dParams<'a> {
    /// Dimensions of the input: batch, rows, columns, channels; -1 is unknown.
    pub input: &'a [i64],
    /// Dimensions of the filter: rows, columns, channels; -1 is unknown.
    pub filter: &'a [i64],
    /// Attribute `strides`.
    pub strides: &'a [i64],
    /// Attribute `rates`: inputs between neighbouring taps.
    pub rates: &'a [i64],
    /// Attribute `padding`.
    pub padding: Padding,
}

/// Sizes; -1 is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dilation2dGeometry {
    /// Images.
    pub batch: i64,
    /// Channels of input, filter and output.
    pub channels: i64,
    /// Rows.
    pub height: WindowDim,
    /// Columns.
    pub width: WindowDim,
}

impl Dilation2dGeometry {
    /// Fails in the same cases as TensorFlow: strides or rates over batch or depth, different
    /// numbers of channels, or a window that does not fit.
    pub fn new(params: &Dilation2dParams<'_>) -> Result<Dilation2dGeometry> {
        let ranks = [
            ("the input of a dilation", 4, params.input),
            ("the filter of a dilation", 3, params.filter),
        ];
        for (what, expected, dims) in ranks {
            if dims.len() != expected {
                return Err(GeometryError::Rank { what, expected, found: dims.len() });
            }
            validate_partial_dims(dims)?;
        }
        for (what, list) in [("strides", params.strides), ("rates", params.rates)] {
            check_len(what, 4, list)?;
            check_one(what, "batch", list[0])?;
            check_one(what, "depth", list[3])?;
        }
        let (channels, found) = (params.input[3], params.filter[2]);
        if channels >= 0 && found >= 0 && channels != found {
            let what = "the depth of input and filter";
            return Err(GeometryError::SizeMismatch { what, expected: channels, found });
        }
        let window = |i: usize, name| {
            let padding = dim_padding(params.padding, &[], i);
            let (stride, rate) = (params.strides[i], params.rates[i]);
            WindowDim::new(name, params.input[i], params.filter[i - 1], stride, rate, padding)
        };
        let (height, width) = (window(1, "rows")?, window(2, "columns")?);
        let channels = channels.max(found);
        let geometry = Dilation2dGeometry { batch: params.input[0], channels, height, width };
        validate_partial_dims(&geometry.output_dims())?;
        Ok(geometry)
    }

    /// Dimensions of the output; -1 is unknown.
    pub fn output_dims(&self) -> [i64; 4] {
        [self.batch, self.height.output, self.width.output, self.channels]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_refusals() {
        let params = Dilation2dParams {
            input: &[2, 7, 8, 3],
            filter: &[2, 3, 3],
            strides: &[1, 2, 1, 1],
            rates: &[1, 2, 1, 1],
            padding: Padding::Valid,
        };
        let dims = |p: &Dilation2dParams<'_>| Dilation2dGeometry::new(p).map(|g| g.output_dims());
        assert_eq!(dims(&params), Ok([2, 3, 6, 3]));
        assert_eq!(dims(&Dilation2dParams { padding: Padding::Same, ..params }), Ok([2, 4, 8, 3]));
        let channels = Dilation2dParams { filter: &[2, 3, 4], ..params };
        assert_eq!(
            dims(&channels).unwrap_err().to_string(),
            "the depth of input and filter must be 3, got 4"
        );
        for rates in [&[1, 0, 1, 1], &[2, 1, 1, 1]] {
            assert!(dims(&Dilation2dParams { rates, ..params }).is_err());
        }
    }
}
