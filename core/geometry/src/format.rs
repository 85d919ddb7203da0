//! The `data_format` and `padding` attributes.

use crate::error::{GeometryError, Result};

/// Order of the dimensions of an image tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DataFormat {
    /// Batch, spatial dimensions, channels: `NHWC`, and `NDHWC` with three spatial dimensions.
    #[default]
    Nhwc,
    /// Batch, channels, spatial dimensions: `NCHW`, and `NCDHW`.
    Nchw,
}

impl DataFormat {
    /// Reads the attribute. `NCHW_VECT_C` exists for GPUs only and is refused.
    pub fn parse(name: &str) -> Result<DataFormat> {
        match name {
            "NHWC" | "NDHWC" => Ok(DataFormat::Nhwc),
            "NCHW" | "NCDHW" => Ok(DataFormat::Nchw),
            _ => Err(GeometryError::Name {
                what: "data_format",
                allowed: "NHWC, NCHW, NDHWC, NCDHW",
                found: name.to_owned(),
            }),
        }
    }

    /// The position of the channels in a tensor with `rank` dimensions (at least 2).
    pub const fn channel_dim(self, rank: usize) -> usize {
        match self {
            DataFormat::Nhwc => rank.saturating_sub(1),
            DataFormat::Nchw => 1,
        }
    }

    /// The position of spatial dimension `i` (0 is the outermost; of two, the height).
    pub const fn spatial_dim(self, i: usize) -> usize {
        match self {
            DataFormat::Nhwc => 1 + i,
            DataFormat::Nchw => 2 + i,
        }
    }

    /// Puts four sizes in the order of this format.
    pub const fn order(self, batch: i64, height: i64, width: i64, channels: i64) -> [i64; 4] {
        match self {
            DataFormat::Nhwc => [batch, height, width, channels],
            DataFormat::Nchw => [batch, channels, height, width],
        }
    }

    /// Strides in elements of (batch, height, width, channels) of a dense tensor with these sizes.
    pub const fn strides(self, height: usize, width: usize, channels: usize) -> [usize; 4] {
        match self {
            DataFormat::Nhwc => [height * width * channels, width * channels, channels, 1],
            DataFormat::Nchw => [channels * height * width, width, 1, height * width],
        }
    }
}

/// The `padding` attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zeros for `ceil(input / stride)` outputs; an odd number has one more at the end.
    Same,
    /// No padding.
    Valid,
    /// The padding in the attribute `explicit_paddings`.
    Explicit,
}

impl Padding {
    /// Reads the attribute.
    pub fn parse(name: &str) -> Result<Padding> {
        match name {
            "SAME" => Ok(Padding::Same),
            "VALID" => Ok(Padding::Valid),
            "EXPLICIT" => Ok(Padding::Explicit),
            _ => Err(GeometryError::Name {
                what: "padding",
                allowed: "SAME, VALID, EXPLICIT",
                found: name.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(DataFormat::parse("NCHW"), Ok(DataFormat::Nchw));
        assert_eq!(Padding::parse("EXPLICIT"), Ok(Padding::Explicit));
        assert_eq!(
            Padding::parse("same").unwrap_err().to_string(),
            "padding must be one of SAME, VALID, EXPLICIT, got \"same\""
        );
        assert!(DataFormat::parse("NCHW_VECT_C").is_err());
    }

    #[test]
    fn dimensions() {
        assert_eq!(DataFormat::Nhwc.channel_dim(4), 3);
        assert_eq!(DataFormat::Nchw.spatial_dim(1), 3);
        assert_eq!(DataFormat::Nchw.order(1, 2, 3, 4), [1, 4, 2, 3]);
        assert_eq!(DataFormat::Nhwc.strides(2, 3, 4), [24, 12, 4, 1]);
        assert_eq!(DataFormat::Nchw.strides(2, 3, 4), [24, 3, 1, 6]);
    }
}
