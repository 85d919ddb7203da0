//! Windows over three spatial dimensions: `Conv3D`, `MaxPool3D`, `AvgPool3D`. Two dimensions are a
//! case of three whose first is 1, so code that need not be fast is written once.

use crate::conv::{Conv2dGeometry, Conv2dParams, Sizes, groups, positive};
use crate::error::{GeometryError, Result};
use crate::format::DataFormat;
use crate::pool::{Pool2dGeometry, Pool2dParams, pool_windows};
use crate::size::validate_partial_dims;
use crate::window::{WindowDim, check_one};

/// Sizes of a convolution over planes, rows and columns; -1 is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv3dGeometry {
    /// Order of the dimensions of input and output.
    pub format: DataFormat,
    /// Images.
    pub batch: i64,
    /// Channels of the input.
    pub in_channels: i64,
    /// Channels of the output.
    pub out_channels: i64,
    /// Groups that `in_channels` and `out_channels` split into.
    pub groups: i64,
    /// Input channels per group.
    pub filter_channels: i64,
    /// Planes, rows, columns.
    pub windows: [WindowDim; 3],
}

impl Conv3dGeometry {
    /// Geometry of `Conv3D`: like [`Conv3dGeometry::new`], but the filter must have outputs.
    /// TensorFlow requires that for this op only, not for its gradients or for `Conv2D`.
    pub fn forward(params: &Conv2dParams<'_>) -> Result<Conv3dGeometry> {
        let geometry = Conv3dGeometry::new(params)?;
        positive("the output depth of the filter", geometry.out_channels)?;
        Ok(geometry)
    }

    /// Geometry of `Conv3D` and its gradients; the filter is (planes, rows, columns, channels per group, outputs).
    /// Fails like [`Conv2dGeometry::new`].
    pub fn new(params: &Conv2dParams<'_>) -> Result<Conv3dGeometry> {
        let channel = params.format.channel_dim(5);
        // TensorFlow reports these as invalid here, and as unimplemented for `Conv2D`.
        for (list, batch, depth) in [
            (params.strides, "strides over the batch", "strides over the depth"),
            (params.dilations, "the dilation over the batch", "the dilation over the depth"),
        ] {
            for (dim, what) in [(0, batch), (channel, depth)] {
                if let Some(&found) = list.get(dim).filter(|&&value| value != 1) {
                    return Err(GeometryError::SizeMismatch { what, expected: 1, found });
                }
            }
        }
        let sizes = Sizes::<3>::new(params)?;
        let (filter_channels, out_channels) = (params.filter[3], params.filter[4]);
        let geometry = Conv3dGeometry {
            format: params.format,
            batch: sizes.batch,
            in_channels: sizes.channels,
            out_channels,
            groups: groups(sizes.channels, filter_channels, out_channels)?,
            filter_channels,
            windows: sizes.windows,
        };
        validate_partial_dims(&geometry.output_dims())?;
        Ok(geometry)
    }

    /// Dimensions of the output; -1 is unknown.
    pub fn output_dims(&self) -> [i64; 5] {
        order(self.format, self.batch, &self.windows, self.out_channels)
    }
}

impl From<Conv2dGeometry> for Conv3dGeometry {
    fn from(g: Conv2dGeometry) -> Conv3dGeometry {
        Conv3dGeometry {
            format: g.format,
            batch: g.batch,
            in_channels: g.in_channels,
            out_channels: g.out_channels,
            groups: g.groups,
            filter_channels: g.filter_channels,
            windows: [WindowDim::ONE, g.height, g.width],
        }
    }
}

/// Sizes of a pooling over planes, rows and columns; -1 is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool3dGeometry {
    /// Order of the dimensions of input and output.
    pub format: DataFormat,
    /// Images.
    pub batch: i64,
    /// Channels of input and output.
    pub channels: i64,
    /// Planes, rows, columns.
    pub windows: [WindowDim; 3],
}

impl Pool3dGeometry {
    /// Geometry of `MaxPool3D` and `AvgPool3D`. Fails in the same cases as TensorFlow; neither
    /// pools over depth.
    pub fn new(params: &Pool2dParams<'_>) -> Result<Pool3dGeometry> {
        let windows = pool_windows(params)?;
        let channel = params.format.channel_dim(5);
        check_one("ksize", "depth", params.ksize[channel])?;
        check_one("strides", "depth", params.strides[channel])?;
        let (batch, channels) = (params.input[0], params.input[channel]);
        let geometry = Pool3dGeometry { format: params.format, batch, channels, windows };
        validate_partial_dims(&geometry.output_dims())?;
        Ok(geometry)
    }

    /// Dimensions of the output; -1 is unknown.
    pub fn output_dims(&self) -> [i64; 5] {
        order(self.format, self.batch, &self.windows, self.channels)
    }
}

impl From<Pool2dGeometry> for Pool3dGeometry {
    /// Converts a pooling that is not over depth.
    fn from(g: Pool2dGeometry) -> Pool3dGeometry {
        Pool3dGeometry {
            format: g.format,
            batch: g.batch,
            channels: g.in_channels,
            windows: [WindowDim::ONE, g.height, g.width],
        }
    }
}

fn order(format: DataFormat, batch: i64, windows: &[WindowDim; 3], channels: i64) -> [i64; 5] {
    let [planes, rows, columns] = windows.map(|window| window.output);
    match format {
        DataFormat::Nhwc => [batch, planes, rows, columns, channels],
        DataFormat::Nchw => [batch, channels, planes, rows, columns],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Padding;

    const CONV: Conv2dParams<'static> = Conv2dParams {
        input: &[2, 5, 7, 8, 4],
        filter: &[2, 3, 3, 2, 6],
        strides: &[1, 1, 2, 2, 1],
        dilations: &[1, 1, 1, 1, 1],
        padding: Padding::Same,
        explicit_paddings: &[],
        format: DataFormat::Nhwc,
    };

    #[test]
    fn convolutions_over_three_dimensions() {
        let g = Conv3dGeometry::new(&CONV).unwrap();
        assert_eq!(g.output_dims(), [2, 5, 4, 4, 6]);
        assert_eq!((g.groups, g.windows[0].pad_after), (2, 1));
        let input = &[2, 4, -1, 7, 8];
        let valid = Padding::Valid;
        let first = Conv2dParams { input, format: DataFormat::Nchw, padding: valid, ..CONV };
        let strides = &[1, 1, 1, 2, 2];
        let g = Conv3dGeometry::new(&Conv2dParams { strides, ..first }).unwrap();
        assert_eq!(g.output_dims(), [2, 6, -1, 3, 3]);
        assert_eq!(
            Conv3dGeometry::new(&Conv2dParams { input: &[2, 5, 7, 8], ..CONV }).unwrap_err(),
            GeometryError::Rank { what: "the input of a convolution", expected: 5, found: 4 }
        );
        assert!(Conv3dGeometry::new(&Conv2dParams { strides: &[1, 1, 1, 1], ..CONV }).is_err());
    }

    #[test]
    fn a_filter_without_outputs_has_gradients_alone() {
        let empty = Conv2dParams { filter: &[2, 3, 3, 2, 0], ..CONV };
        assert_eq!(Conv3dGeometry::new(&empty).unwrap().output_dims(), [2, 5, 4, 4, 0]);
        assert_eq!(
            Conv3dGeometry::forward(&empty).unwrap_err().to_string(),
            "the output depth of the filter must be at least 1, got 0"
        );
        assert!(Conv3dGeometry::forward(&CONV).is_ok());
    }

    #[test]
    fn poolings_over_three_dimensions() {
        let pool = Pool2dParams {
            input: &[2, 5, 7, 8, 4],
            ksize: &[1, 2, 2, 3, 1],
            strides: &[1, 2, 1, 3, 1],
            padding: Padding::Valid,
            explicit_paddings: &[],
            format: DataFormat::Nhwc,
        };
        assert_eq!(Pool3dGeometry::new(&pool).unwrap().output_dims(), [2, 2, 6, 2, 4]);
        let depth = Pool2dParams { ksize: &[1, 2, 2, 3, 2], ..pool };
        assert!(matches!(Pool3dGeometry::new(&depth), Err(GeometryError::NotSpatial { .. })));
    }

    #[test]
    fn two_dimensions_are_three() {
        let conv = Conv2dParams {
            input: &[2, 7, 8, 4],
            filter: &[3, 3, 4, 6],
            strides: &[1, 2, 2, 1],
            dilations: &[1, 1, 1, 1],
            ..CONV
        };
        let g = Conv3dGeometry::from(Conv2dGeometry::new(&conv).unwrap());
        assert_eq!(g.output_dims(), [2, 1, 4, 4, 6]);
    }
}
