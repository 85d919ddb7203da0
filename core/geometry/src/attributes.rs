//! Attributes of convolutions, poolings and batch normalisation for kernels: read once, and
//! combined with the shapes of each call.

use crate::{
    channel::ChannelSplit,
    conv::Conv2dParams,
    format::{DataFormat, Padding},
    pool::Pool2dParams,
};
use std::fmt;
use tenon_author::CreateContext;
use tenon_framework::{KernelError, attr::FromAttr};

/// Reads an attribute that some ops do not have.
fn optional<'a, T: FromAttr<'a>>(
    c: &CreateContext<'a>,
    name: &str,
) -> Result<Option<T>, KernelError> {
    c.attrs().has(name).then(|| c.attr(name)).transpose()
}

/// Attributes of a convolution over two or three dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvAttributes {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    padding: Padding,
    explicit_paddings: Vec<i64>,
    format: DataFormat,
}

impl fmt::Display for ConvAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConvAttributes { strides, dilations, format, .. } = self;
        write!(f, "strides {strides:?}, dilations {dilations:?}, {format:?}")
    }
}

impl ConvAttributes {
    /// Reads the attributes.
    ///
    /// # Errors
    /// An attribute is missing or has an invalid value.
    pub fn new(c: &CreateContext<'_>) -> Result<ConvAttributes, KernelError> {
        Ok(ConvAttributes {
            strides: c.attr("strides")?,
            dilations: c.attr("dilations")?,
            padding: Padding::parse(c.attr("padding")?)?,
            // Convolutions over three dimensions have no explicit paddings.
            explicit_paddings: optional(c, "explicit_paddings")?.unwrap_or_default(),
            format: DataFormat::parse(c.attr("data_format")?)?,
        })
    }

    /// Like [`ConvAttributes::new`], for a depthwise convolution: TensorFlow then reports strides
    /// over batch or depth as invalid, not as unimplemented.
    ///
    /// # Errors
    /// As [`ConvAttributes::new`]; strides over batch or depth.
    pub fn depthwise(c: &CreateContext<'_>) -> Result<ConvAttributes, KernelError> {
        let attributes = ConvAttributes::new(c)?;
        attributes.check_depthwise()?;
        Ok(attributes)
    }

    fn check_depthwise(&self) -> Result<(), KernelError> {
        let channel = self.format.channel_dim(4);
        match self.strides.get(0..4) {
            Some(strides) if strides[0] != 1 || strides[channel] != 1 => {
                Err(KernelError::invalid_argument(format!(
                    "strides must be 1 in the batch and depth dimensions, found {strides:?}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether all strides and dilations are 1.
    pub fn is_dense(&self) -> bool {
        self.strides.iter().chain(&self.dilations).all(|step| *step == 1)
    }

    /// The attribute `data_format`.
    pub fn format(&self) -> DataFormat {
        self.format
    }

    /// Combines the attributes with the shapes of a call.
    pub fn params<'a>(&'a self, input: &'a [i64], filter: &'a [i64]) -> Conv2dParams<'a> {
        Conv2dParams {
            input,
            filter,
            strides: &self.strides,
            dilations: &self.dilations,
            padding: self.padding,
            explicit_paddings: &self.explicit_paddings,
            format: self.format,
        }
    }
}

/// Attributes of a pooling over two or three dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolAttributes {
    ksize: Vec<i64>,
    strides: Vec<i64>,
    padding: Padding,
    explicit_paddings: Vec<i64>,
    format: DataFormat,
}

impl PoolAttributes {
    /// Reads the attributes; `MaxPoolV2` has windows and strides as inputs instead.
    ///
    /// # Errors
    /// An attribute is missing or has an invalid value.
    pub fn new(c: &CreateContext<'_>) -> Result<PoolAttributes, KernelError> {
        Ok(PoolAttributes {
            ksize: optional(c, "ksize")?.unwrap_or_default(),
            strides: optional(c, "strides")?.unwrap_or_default(),
            padding: Padding::parse(c.attr("padding")?)?,
            explicit_paddings: optional(c, "explicit_paddings")?.unwrap_or_default(),
            format: match optional(c, "data_format")? {
                Some(name) => DataFormat::parse(name)?,
                None => DataFormat::Nhwc,
            },
        })
    }

    /// The attribute `data_format`.
    pub fn format(&self) -> DataFormat {
        self.format
    }

    /// Combines the attributes with the shape of a call.
    pub fn params<'a>(&'a self, input: &'a [i64]) -> Pool2dParams<'a> {
        Pool2dParams {
            input,
            ksize: &self.ksize,
            strides: &self.strides,
            padding: self.padding,
            explicit_paddings: &self.explicit_paddings,
            format: self.format,
        }
    }
}

/// Attributes of `FusedBatchNorm` and its later versions.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchNormAttributes {
    /// The number added to the variance.
    pub epsilon: f32,
    /// `exponential_avg_factor`: the share of this batch in the running statistics.
    pub factor: f32,
    /// Whether to normalise by the statistics of the batch.
    pub is_training: bool,
    format: DataFormat,
    rank: usize,
}

impl BatchNormAttributes {
    /// Reads the attributes.
    ///
    /// # Errors
    /// An attribute is missing or has an invalid value.
    pub fn new(c: &CreateContext<'_>) -> Result<BatchNormAttributes, KernelError> {
        let format: &str = c.attr("data_format")?;
        Ok(BatchNormAttributes {
            epsilon: c.attr("epsilon")?,
            factor: c.attr("exponential_avg_factor")?,
            is_training: c.attr("is_training")?,
            format: DataFormat::parse(format)?,
            // The name has one letter per dimension.
            rank: format.len(),
        })
    }

    /// Whether `mean` and `variance` are read.
    pub fn reads_statistics(&self) -> bool {
        !self.is_training || self.factor != 1.0
    }

    /// Splits `x` at its channels, and checks the vectors of a call. The dimensions are in the
    /// order of the inputs (`x`, `scale`, `offset`, `mean`, `variance`): each vector has one value
    /// per channel; `mean` and `variance` may be of any length if they are not read.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for other shapes.
    pub fn split(&self, dims: [&[i64]; 5]) -> Result<ChannelSplit, KernelError> {
        let [x, scale, offset, mean, variance] = dims;
        if x.len() != self.rank {
            return Err(KernelError::invalid_argument(format!(
                "x must have {} dimensions, as data_format says, found {}",
                self.rank,
                x.len()
            )));
        }
        let split = ChannelSplit::with_vector(x, self.format, "scale", scale)?;
        ChannelSplit::with_vector(x, self.format, "offset", offset)?;
        for (name, found) in [("mean", mean), ("variance", variance)] {
            let fits = match found {
                &[len] => !self.reads_statistics() || len == split.channels as i64,
                _ => false,
            };
            if !fits {
                return Err(KernelError::invalid_argument(format!(
                    "{name} must have shape [{}], a value per channel of x, or in training with an \
                     exponential_avg_factor of 1 be any vector; found {found:?}",
                    split.channels
                )));
            }
        }
        Ok(split)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_of_a_depthwise_convolution_are_over_pixels() {
        let of = |strides: &[i64], format| ConvAttributes {
            strides: strides.to_vec(),
            dilations: vec![1; 4],
            padding: Padding::Same,
            explicit_paddings: Vec::new(),
            format,
        };
        let last = of(&[1, 2, 3, 1], DataFormat::Nhwc);
        assert!(last.check_depthwise().is_ok() && !last.is_dense());
        assert_eq!(last.to_string(), "strides [1, 2, 3, 1], dilations [1, 1, 1, 1], Nhwc");
        let error = of(&[1, 2, 3, 1], DataFormat::Nchw).check_depthwise().unwrap_err();
        assert!(error.message.contains("found [1, 2, 3, 1]"), "{}", error.message);
        // Lists that are too short are refused together with the shapes of a call.
        assert!(of(&[2], DataFormat::Nhwc).check_depthwise().is_ok());
        assert!(of(&[1; 4], DataFormat::Nhwc).is_dense());
    }

    #[test]
    fn lists_of_a_normalisation_have_a_value_per_channel_where_they_are_read() {
        let attributes = |is_training, factor| BatchNormAttributes {
            epsilon: 1e-3,
            factor,
            is_training,
            format: DataFormat::Nhwc,
            rank: 4,
        };
        let (x, three, none): (&[i64], &[i64], &[i64]) = (&[2, 4, 5, 3], &[3], &[0]);
        let training = attributes(true, 1.0);
        assert_eq!(training.split([x, three, three, none, none]).unwrap().outer, 40);
        for (found, part) in [
            (training.split([&x[1..], three, three, three, three]), "x must have 4 dimensions"),
            (training.split([x, none, three, three, three]), "scale must be 3, got 0"),
            (training.split([x, three, none, three, three]), "offset must be 3, got 0"),
            (training.split([x, three, three, &[], three]), "mean must have shape [3]"),
            (attributes(true, 0.5).split([x, three, three, none, three]), "found [0]"),
            (attributes(false, 1.0).split([x, three, three, three, none]), "variance must have"),
        ] {
            let error = found.unwrap_err();
            assert!(error.message.contains(part), "expected '{part}' in: {}", error.message);
        }
    }
}
