//! Pooling: `MaxPool` and `AvgPool`; [`crate::Pool3dGeometry`] has those over three dimensions. The
//! spatial formulas are those of [`crate::WindowDim`].
//!
//! TensorFlow's `MaxPool` may also pool over depth: the window then has one row and one column, and
//! the depth stride equals the depth window, which must divide the input's depth.

use crate::error::{GeometryError, Result};
use crate::format::{DataFormat, Padding};
use crate::size::validate_partial_dims;
use crate::window::{
    DimPadding, WindowDim, check_explicit_paddings, check_len, check_one, dim_padding, windows,
};

/// Shape and attributes of a pooling over two or three dimensions.
#[derive(Debug, Clone, Copy)]
pub struct Pool2dParams<'a> {
    /// Dimensions of the input, in the order of the format; -1 is unknown.
    pub input: &'a [i64],
    /// Attribute `ksize`, in the order of the format.
    pub ksize: &'a [i64],
    /// Attribute `strides`, in the order of the format.
    pub strides: &'a [i64],
    /// Attribute `padding`.
    pub padding: Padding,
    /// Attribute `explicit_paddings`: pairs in the order of the format; empty unless explicit.
    pub explicit_paddings: &'a [i64],
    /// Attribute `data_format`.
    pub format: DataFormat,
}

/// Sizes of a pooling; -1 is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool2dGeometry {
    /// Order of the dimensions of input and output.
    pub format: DataFormat,
    /// Images.
    pub batch: i64,
    /// Channels of the input.
    pub in_channels: i64,
    /// Channels of the output: those of the input, divided by `depth_window`.
    pub out_channels: i64,
    /// Neighbouring channels pooled together; 1 unless the pooling is over depth.
    pub depth_window: i64,
    /// Rows.
    pub height: WindowDim,
    /// Columns.
    pub width: WindowDim,
}

impl Pool2dGeometry {
    /// Geometry of `MaxPool`. Fails in the same cases as TensorFlow.
    pub fn max(params: &Pool2dParams<'_>) -> Result<Pool2dGeometry> {
        let geometry = Pool2dGeometry::new(params)?;
        let window = params.ksize[params.format.channel_dim(4)];
        let stride = params.strides[params.format.channel_dim(4)];
        if window == 1 && stride == 1 {
            return Ok(geometry);
        }
        geometry.over_depth(window, stride)
    }

    /// Geometry of `AvgPool`. Fails in the same cases as TensorFlow: no pooling over depth, no
    /// explicit padding.
    pub fn average(params: &Pool2dParams<'_>) -> Result<Pool2dGeometry> {
        if params.padding == Padding::Explicit {
            return Err(GeometryError::Name {
                what: "padding",
                allowed: "SAME, VALID",
                found: "EXPLICIT".to_owned(),
            });
        }
        let geometry = Pool2dGeometry::new(params)?;
        let channel = params.format.channel_dim(4);
        check_one("ksize", "depth", params.ksize[channel])?;
        check_one("strides", "depth", params.strides[channel])?;
        Ok(geometry)
    }

    /// Checks everything except the depth window.
    fn new(params: &Pool2dParams<'_>) -> Result<Pool2dGeometry> {
        let [height, width] = pool_windows(params)?;
        let format = params.format;
        let channels = params.input[format.channel_dim(4)];
        let geometry = Pool2dGeometry {
            format,
            batch: params.input[0],
            in_channels: channels,
            out_channels: channels,
            depth_window: 1,
            height,
            width,
        };
        validate_partial_dims(&geometry.output_dims())?;
        Ok(geometry)
    }

    fn over_depth(self, window: i64, stride: i64) -> Result<Pool2dGeometry> {
        let (rows, cols) = (self.height.kernel, self.width.kernel);
        if window < 1 {
            return Err(GeometryError::TooSmall { what: "ksize", least: 1, found: window });
        }
        if rows != 1 || cols != 1 || stride != window {
            return Err(GeometryError::DepthPooling { rows, cols, depth: window, stride });
        }
        let mut out_channels = -1;
        if self.in_channels >= 0 {
            if self.in_channels % window != 0 {
                return Err(GeometryError::NotDivisible {
                    what: "the depth of the input",
                    value: self.in_channels,
                    divisor_name: "ksize over depth",
                    divisor: window,
                });
            }
            out_channels = self.in_channels / window;
        }
        Ok(Pool2dGeometry { out_channels, depth_window: window, ..self })
    }

    /// Dimensions of the output; -1 is unknown.
    pub fn output_dims(&self) -> [i64; 4] {
        self.format.order(self.batch, self.height.output, self.width.output, self.out_channels)
    }

    /// Whether every size is known, as kernels require.
    pub fn is_known(&self) -> bool {
        self.batch >= 0
            && self.in_channels >= 0
            && self.height.output >= 0
            && self.width.output >= 0
    }
}

/// Checks the common properties of poolings over `N` dimensions: everything except the window over
/// depth.
pub(crate) fn pool_windows<const N: usize>(params: &Pool2dParams<'_>) -> Result<[WindowDim; N]> {
    if params.input.len() != N + 2 {
        let found = params.input.len();
        return Err(GeometryError::Rank { what: "the input of a pooling", expected: N + 2, found });
    }
    validate_partial_dims(params.input)?;
    for (what, list) in [("ksize", params.ksize), ("strides", params.strides)] {
        check_len(what, N + 2, list)?;
        check_one(what, "batch", list[0])?;
    }
    let format = params.format;
    let channel = format.channel_dim(N + 2);
    check_explicit_paddings(params.padding, params.explicit_paddings, channel)?;
    windows(|i, name| {
        let dim = format.spatial_dim(i);
        let padding = dim_padding(params.padding, params.explicit_paddings, dim);
        let kernel = params.ksize[dim];
        check_padding(padding, kernel)?;
        WindowDim::new(name, params.input[dim], kernel.max(0), params.strides[dim], 1, padding)
    })
}

/// Refuses a padding as large as the window, which would pool over padding only.
fn check_padding(padding: DimPadding, window: i64) -> Result<()> {
    let DimPadding::Explicit { before, after } = padding else {
        return Ok(());
    };
    let found = before.max(after);
    if found >= window {
        let what = "explicit_paddings";
        return Err(GeometryError::PaddingTooLarge { what, window, found });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Pool2dParams<'static> = Pool2dParams {
        input: &[2, 5, 7, 6],
        ksize: &[1, 2, 3, 1],
        strides: &[1, 2, 2, 1],
        padding: Padding::Same,
        explicit_paddings: &[],
        format: DataFormat::Nhwc,
    };

    #[test]
    fn spatial_pooling() {
        let g = Pool2dGeometry::average(&BASE).unwrap();
        assert_eq!(g.output_dims(), [2, 3, 4, 6]);
        assert_eq!((g.height.pad_before, g.height.pad_after), (0, 1));
        assert_eq!((g.width.pad_before, g.width.pad_after), (1, 1));
        let g = Pool2dGeometry::max(&Pool2dParams { padding: Padding::Valid, ..BASE }).unwrap();
        assert_eq!(g.output_dims(), [2, 2, 3, 6]);
        let g = Pool2dGeometry::max(&Pool2dParams { input: &[-1, -1, 7, 6], ..BASE }).unwrap();
        assert_eq!(g.output_dims(), [-1, -1, 4, 6]);
    }

    #[test]
    fn depth_pooling() {
        let depth = Pool2dParams { ksize: &[1, 1, 1, 3], strides: &[1, 1, 1, 3], ..BASE };
        assert_eq!(Pool2dGeometry::max(&depth).unwrap().output_dims(), [2, 5, 7, 2]);
        assert!(Pool2dGeometry::average(&depth).is_err());
        let both = Pool2dParams { ksize: &[1, 2, 1, 3], ..depth };
        assert!(matches!(
            Pool2dGeometry::max(&both),
            Err(GeometryError::DepthPooling { rows: 2, cols: 1, depth: 3, stride: 3 })
        ));
        let uneven = Pool2dParams { ksize: &[1, 1, 1, 4], strides: &[1, 1, 1, 4], ..BASE };
        assert!(matches!(Pool2dGeometry::max(&uneven), Err(GeometryError::NotDivisible { .. })));
    }

    #[test]
    fn bad_windows_are_refused() {
        let fails = |p: Pool2dParams<'_>| Pool2dGeometry::max(&p).is_err();
        assert!(fails(Pool2dParams { ksize: &[2, 2, 2, 1], ..BASE }));
        assert!(fails(Pool2dParams { ksize: &[1, 0, 2, 1], ..BASE }));
        assert!(fails(Pool2dParams { ksize: &[1, -1, 2, 1], ..BASE }));
        assert!(fails(Pool2dParams { strides: &[1, 2, 0, 1], ..BASE }));
        assert!(fails(Pool2dParams { input: &[2, 5, 7], ..BASE }));
        let explicit = Pool2dParams { padding: Padding::Explicit, ..BASE };
        let pads = Pool2dParams { explicit_paddings: &[0, 0, 1, 1, 2, 0, 0, 0], ..explicit };
        assert_eq!(Pool2dGeometry::max(&pads).unwrap().output_dims(), [2, 3, 4, 6]);
        let pads = Pool2dParams { explicit_paddings: &[0, 0, 2, 1, 2, 0, 0, 0], ..explicit };
        assert_eq!(
            Pool2dGeometry::max(&pads).unwrap_err().to_string(),
            "explicit_paddings must be smaller than the window of 2, got 2"
        );
        assert!(Pool2dGeometry::average(&explicit).is_err());
    }
}
