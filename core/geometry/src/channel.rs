//! A tensor seen as (outer, channels, inner), for ops that work per channel.
//!
//! Channels last: outer is the product of all dimensions but the last, inner is 1. Channels first: outer is
//! the batch, inner the product of the spatial dimensions. Element `(o, c, i)` has offset
//! `(o * channels + c) * inner + i`.

use crate::error::{GeometryError, Result};
use crate::format::DataFormat;
use crate::size::{element_count, index, validate_dims};

/// Sizes of the three parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelSplit {
    /// Elements before the channel dimension.
    pub outer: usize,
    /// Channels.
    pub channels: usize,
    /// Elements after the channel dimension.
    pub inner: usize,
}

impl ChannelSplit {
    /// Splits the dimensions of a tensor. It must have at least 2, since both formats have batch
    /// and channels.
    pub fn new(dims: &[i64], format: DataFormat) -> Result<ChannelSplit> {
        validate_dims(dims)?;
        if dims.len() < 2 {
            return Err(GeometryError::RankTooSmall {
                what: "an input with channels",
                expected: 2,
                found: dims.len(),
            });
        }
        let channel = format.channel_dim(dims.len());
        Ok(ChannelSplit {
            outer: part(&dims[..channel]),
            channels: index(dims[channel]),
            inner: part(&dims[channel + 1..]),
        })
    }

    /// Like [`ChannelSplit::new`], and checks that a vector with one value per channel has these
    /// dimensions.
    pub fn with_vector(
        dims: &[i64],
        format: DataFormat,
        what: &'static str,
        vector: &[i64],
    ) -> Result<ChannelSplit> {
        let split = ChannelSplit::new(dims, format)?;
        let &[size] = vector else {
            return Err(GeometryError::Rank { what, expected: 1, found: vector.len() });
        };
        if index(size.max(0)) != split.channels {
            let expected = split.channels as i64;
            return Err(GeometryError::SizeMismatch { what, expected, found: size });
        }
        Ok(split)
    }

    /// Values per channel: `outer * inner`.
    pub fn per_channel(&self) -> usize {
        self.outer.saturating_mul(self.inner)
    }
}

/// The product of some of the dimensions; it saturates if others contain a 0, so that nothing is
/// visited.
fn part(dims: &[i64]) -> usize {
    element_count(dims).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_both_formats() {
        let split = |outer, channels, inner| ChannelSplit { outer, channels, inner };
        assert_eq!(ChannelSplit::new(&[2, 3, 4, 5], DataFormat::Nhwc), Ok(split(24, 5, 1)));
        assert_eq!(ChannelSplit::new(&[2, 3, 4, 5], DataFormat::Nchw), Ok(split(2, 3, 20)));
        assert_eq!(ChannelSplit::new(&[2, 3], DataFormat::Nchw), Ok(split(2, 3, 1)));
        assert_eq!(ChannelSplit::new(&[2, 3, 4], DataFormat::Nhwc).unwrap().per_channel(), 6);
    }

    #[test]
    fn a_vector_of_another_length_is_refused() {
        let error = ChannelSplit::with_vector(&[2, 3], DataFormat::Nhwc, "bias", &[4]).unwrap_err();
        assert_eq!(error.to_string(), "bias must be 3, got 4");
        assert!(ChannelSplit::with_vector(&[2, 3], DataFormat::Nhwc, "bias", &[3, 1]).is_err());
        assert!(ChannelSplit::new(&[3], DataFormat::Nhwc).is_err());
    }
}
