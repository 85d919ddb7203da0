//! Common parts of convolutions of quantised images: attributes, geometry, and the image as the
//! left factor of a product.

pub use crate::windows::depth;
use crate::{
    pack::{Left, Source},
    windows::Windows,
};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext},
    geometry::{Conv2dGeometry, Conv2dParams, DataFormat, GeometryError, Padding, check_windows},
};

/// Attributes of a convolution with channels last.
pub struct Attributes {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    padding: Padding,
    explicit_paddings: Vec<i64>,
}

impl Attributes {
    /// Reads the attributes.
    ///
    /// # Errors
    /// An invalid attribute.
    pub fn new(c: &CreateContext<'_>) -> Result<Attributes, KernelError> {
        // TensorFlow's own ops on quantised types have neither a format nor paddings.
        let attrs = c.attrs();
        if attrs.has("data_format")
            && DataFormat::parse(c.attr("data_format")?)? != DataFormat::Nhwc
        {
            return Err(KernelError::invalid_argument(
                "data_format must be NHWC, found NCHW: transpose the images",
            ));
        }
        Ok(Attributes {
            strides: c.attr("strides")?,
            dilations: c.attr("dilations")?,
            padding: Padding::parse(c.attr("padding")?)?,
            explicit_paddings: match attrs.has("explicit_paddings") {
                true => c.attr("explicit_paddings")?,
                false => Vec::new(),
            },
        })
    }

    fn params<'a>(&'a self, c: &ComputeContext<'a>) -> Conv2dParams<'a> {
        Conv2dParams {
            input: c.dims(0),
            filter: c.dims(1),
            strides: &self.strides,
            dilations: &self.dilations,
            padding: self.padding,
            explicit_paddings: &self.explicit_paddings,
            format: DataFormat::Nhwc,
        }
    }

    /// Sizes of a call, whose first inputs are the images and the filter.
    ///
    /// # Errors
    /// Sizes that do not match; a filter for groups of channels.
    pub fn geometry(&self, c: &ComputeContext<'_>) -> Result<Conv2dGeometry, KernelError> {
        let g = Conv2dGeometry::new(&self.params(c))?;
        if g.groups > 1 {
            let (expected, found) = (g.in_channels, g.filter_channels);
            let what = "the input depth of the filter";
            return Err(GeometryError::SizeMismatch { what, expected, found }.into());
        }
        check_windows(&[g.height, g.width], self.padding)?;
        Ok(g)
    }

    /// Like [`Attributes::geometry`], for a depthwise convolution.
    ///
    /// # Errors
    /// Sizes that do not match.
    pub fn depthwise(&self, c: &ComputeContext<'_>) -> Result<Conv2dGeometry, KernelError> {
        let g = Conv2dGeometry::depthwise(&self.params(c))?;
        check_windows(&[g.height, g.width], self.padding)?;
        Ok(g)
    }
}

/// Whether windows reach outside of their images.
pub fn is_padded(g: &Conv2dGeometry) -> bool {
    [g.height, g.width].iter().any(|w| w.pad_before > 0 || w.pad_after > 0)
}

/// Whether output pixel `i` depends on input pixel `i` alone.
fn is_pointwise(g: &Conv2dGeometry) -> bool {
    !is_padded(g) && [g.height, g.width].iter().all(|w| w.kernel == 1 && w.stride == 1)
}

/// The images of input 0 as a left factor, whose rows are windows, or pixels where a window is a
/// single pixel. `zero` is the code of 0; every byte is XORed with `flip`.
///
/// # Errors
/// Out of memory.
pub fn left<'a>(
    c: &ComputeContext<'a>,
    g: &Conv2dGeometry,
    zero: u8,
    flip: u8,
) -> Result<Left<'a>, KernelError> {
    let images = c.input_bytes(0)?;
    let channels = g.in_channels as usize;
    if is_pointwise(g) {
        let pixels = images.len() / channels;
        return Ok(Source::new(images, [pixels, channels], false, flip).into());
    }
    let padding = c.scratch_slice::<u8>(if is_padded(g) { channels } else { 0 })?;
    padding.fill(zero);
    Ok(Left::Windows(Windows::new(images, padding, *g, flip)))
}
