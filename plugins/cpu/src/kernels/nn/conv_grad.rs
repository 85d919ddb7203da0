//! `Conv2DBackpropInput`, `Conv2DBackpropFilter`, `Conv3DBackpropInputV2`,
//! `Conv3DBackpropFilterV2`.
//!
//! Convolutions of floats over rows and columns have gradients in tiles: see [`by_input`] and
//! [`by_filter`]. Others are by patches. Gradient by the input: with strides of 1 it is a
//! convolution of the gradient; else the gradient times the transposed filter gives patches, which
//! are added to the pixels that they came from. Gradient by the filter: the transposed patches
//! times the gradient, a block of pixels at a time.

pub mod by_filter;
mod by_input;
pub mod phases;

use super::{
    conv_volume::{convolutions, convolve, filter_of},
    volume::{Images, Sizes, gather, images, planar, scatter, wide},
};
use crate::{
    kernels::linalg::{
        gemm::isa::{Isa, chosen},
        product::{Factor, Operand, product_into},
    },
    lane::Compute,
    lists,
    panels::uninitialised,
};
use half::{bf16, f16};
use tenon_sdk::{
    Code, DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{
        Conv2dGeometry, Conv3dGeometry, ConvAttributes, DataFormat, Dims, WindowDim, validate_dims,
    },
    reg::Numerics,
    register_kernel,
};

/// The kind of convolution: its number of dimensions, and whether each channel is separate.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Two dimensions.
    Plain,
    /// Two dimensions, each channel separately.
    Depthwise,
    /// Three dimensions.
    Volume,
}

/// A convolution whose gradient is computed.
pub struct Backprop {
    kind: Kind,
    /// Attributes of the convolution.
    attributes: ConvAttributes,
}

impl Backprop {
    /// Reads the attributes.
    pub fn new(c: &CreateContext<'_>) -> Result<Backprop, KernelError> {
        let format: &str = c.attr("data_format")?;
        let kind = match (format.contains('D'), c.op().starts_with("Depthwise")) {
            (true, _) => Kind::Volume,
            (false, true) => Kind::Depthwise,
            (false, false) => Kind::Plain,
        };
        let attributes = match kind {
            Kind::Depthwise => ConvAttributes::depthwise(c)?,
            _ => ConvAttributes::new(c)?,
        };
        Ok(Backprop { kind, attributes })
    }

    /// Geometry of the convolution with these shapes, whose output must be shaped as input 2.
    pub fn geometry(
        &self,
        c: &ComputeContext<'_>,
        input: &[i64],
        filter: &[i64],
    ) -> Result<Conv3dGeometry, KernelError> {
        // In a list of sizes, -1 is an error, not an unknown size.
        validate_dims(input)?;
        validate_dims(filter)?;
        let params = self.attributes.params(input, filter);
        let two = match self.kind {
            Kind::Volume => None,
            Kind::Plain => Some(Conv2dGeometry::new(&params)?),
            Kind::Depthwise => Some(Conv2dGeometry::depthwise(&params)?),
        };
        let (g, output) = match two {
            Some(g) => (Conv3dGeometry::from(g), Dims::from_slice(&g.output_dims())?),
            None => {
                let g = Conv3dGeometry::new(&params)?;
                (g, Dims::from_slice(&g.output_dims())?)
            }
        };
        if output != *c.dims(2) {
            return Err(KernelError::invalid_argument(format!(
                "out_backprop must have the shape of the convolution's output, {output:?}, found {:?}",
                c.dims(2)
            )));
        }
        Ok(g)
    }

    /// The input's shape: `input_sizes`, which for `Conv2D` may hold rows and columns alone.
    pub fn input_dims(&self, c: &ComputeContext<'_>) -> Result<Dims, KernelError> {
        let mut sizes = sizes(c, 0, "input_sizes")?;
        if let (Kind::Plain, &[rows, columns], [batch, ..], [_, _, channels, _]) =
            (self.kind, &sizes[..], c.dims(2), c.dims(1))
        {
            let order = self.attributes.format().order(*batch, rows, columns, *channels);
            sizes = Dims::from_slice(&order)?;
        }
        Ok(sizes)
    }

    /// The filter's shape, `filter_sizes`.
    pub fn filter_dims(&self, c: &ComputeContext<'_>) -> Result<Dims, KernelError> {
        sizes(c, 1, "filter_sizes")
    }
}

fn sizes(c: &ComputeContext<'_>, input: usize, name: &str) -> Result<Dims, KernelError> {
    match c.dims(input) {
        [_] => lists::short(c, input),
        dims => Err(KernelError::invalid_argument(format!(
            "{name} must be a vector, found shape {dims:?}"
        ))),
    }
}

/// A group's columns of the gradient at these pixels of an image.
fn gradient_of<'a, W>(
    s: &Sizes,
    dy: &'a [W],
    group: usize,
    first: usize,
    count: usize,
) -> Operand<'a, W> {
    let data = &dy[first * s.outputs + group * s.group_outputs..];
    Operand { data, rows: count, cols: s.group_outputs, strides: [s.outputs, 1] }
}

/// The gradient by the input, by tiles or patches.
pub struct ByInput<T: Compute> {
    backprop: Backprop,
    isa: Option<&'static Isa<T::Wide>>,
}

impl<T: Compute<Wide: Factor>> Kernel for ByInput<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ByInput { backprop: Backprop::new(c)?, isa: chosen(c.knobs())? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = self.backprop.input_dims(c)?;
        let g = self.backprop.geometry(c, &dims, c.dims(1))?;
        let output = Images::<T>::new(c, &dims, g.format)?;
        let (filter, dy) = (wide::<T>(c, 1)?, images::<T>(c, 2, g.format)?);
        if output.values.is_empty() || dy.is_empty() {
            output.zeros();
            return Ok(());
        }
        let planar = planar(&g);
        match self.isa.zip(planar).filter(|(isa, g)| by_input::is_fast(isa, g)) {
            Some((isa, g)) => by_input::by_phases(c, isa, &g, [filter, dy], output.values)?,
            None => match transposed_volume(&g) {
                Some(back) => {
                    let filter = turned(c, &g, filter)?;
                    convolve(c, &back, [dy, filter], output.values)?;
                }
                None => input_by_patches(c, &g, [filter, dy], output.values)?,
            },
        }
        output.finish();
        Ok(())
    }
}

/// The convolution of the outputs' gradient, with the filter of [`turned`], that gives the inputs'
/// gradient: of a convolution with strides of 1 and without groups.
fn transposed_volume(g: &Conv3dGeometry) -> Option<Conv3dGeometry> {
    let is_plain = g.groups == 1 && g.windows.iter().all(|window| window.stride == 1);
    is_plain.then(|| Conv3dGeometry {
        in_channels: g.out_channels,
        out_channels: g.in_channels,
        filter_channels: g.out_channels,
        windows: g.windows.map(|window| {
            let extent = (window.kernel - 1).saturating_mul(window.dilation);
            WindowDim {
                input: window.output,
                output: window.input,
                pad_before: extent - window.pad_before,
                pad_after: extent - window.pad_after,
                ..window
            }
        }),
        ..*g
    })
}

/// The filter with its taps in reverse order, and inputs and outputs exchanged.
fn turned<'a, W: Factor>(
    c: &ComputeContext<'a>,
    g: &Conv3dGeometry,
    filter: &[W],
) -> Result<&'a [W], KernelError> {
    let s = Sizes::new(g);
    let turned = uninitialised::<W>(c, filter.len())?;
    let tap_len = s.channels * s.outputs;
    for (to, tap) in turned.chunks_exact_mut(tap_len).rev().zip(filter.chunks_exact(tap_len)) {
        for (channel, outputs) in tap.chunks_exact(s.outputs).enumerate() {
            for (output, &weight) in outputs.iter().enumerate() {
                to[output * s.channels + channel] = weight;
            }
        }
    }
    Ok(turned)
}

fn input_by_patches<W: Factor>(
    c: &ComputeContext<'_>,
    g: &Conv3dGeometry,
    [filter, dy]: [&[W]; 2],
    dx: &mut [W],
) -> Result<(), KernelError> {
    let s = Sizes::new(g);
    let patches = uninitialised::<W>(c, s.block_len())?;
    let image_len = s.input_pixels * s.channels;
    dx.fill(W::ZERO);
    for (image, pixels) in s.blocks() {
        let dx = &mut dx[image * image_len..][..image_len];
        for group in 0..s.groups {
            let patches = &mut patches[..pixels.len() * s.patch()];
            let a = gradient_of(&s, dy, group, image * s.pixels + pixels.start, pixels.len());
            let b = filter_of(&s, filter, group).transposed();
            product_into(c, a, b, patches, s.patch())?;
            scatter(g, group, pixels.clone(), patches, dx);
        }
    }
    Ok(())
}

/// The gradient by the filter, by tiles or patches.
pub struct ByFilter<T: Compute> {
    backprop: Backprop,
    isa: Option<&'static Isa<T::Wide>>,
}

impl<T: Compute<Wide: Factor>> Kernel for ByFilter<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ByFilter { backprop: Backprop::new(c)?, isa: chosen(c.knobs())? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = self.backprop.filter_dims(c)?;
        // Strides over batch or depth are invalid here, and unimplemented for the gradient by the
        // input.
        let g =
            self.backprop.geometry(c, c.dims(0), &dims).map_err(|error| match error.code() {
                Code::UNIMPLEMENTED => KernelError::invalid_argument(error.message),
                _ => error,
            })?;
        // A filter's memory is that of an image whose channels are the outputs, whatever the
        // images' format.
        let output = Images::<T>::new(c, &dims, DataFormat::Nhwc)?;
        let (x, dy) = (images::<T>(c, 0, g.format)?, images::<T>(c, 2, g.format)?);
        if x.is_empty() || dy.is_empty() {
            output.zeros();
            return Ok(());
        }
        let planar = planar(&g);
        match self.isa.zip(planar).filter(|(_, g)| by_filter::is_possible(g, x)) {
            Some((isa, g)) => by_filter::by_lines(c, isa, &g, [x, dy], output.values)?,
            None => filter_by_patches(c, &g, [x, dy], output.values)?,
        }
        output.finish();
        Ok(())
    }
}

fn filter_by_patches<W: Factor>(
    c: &ComputeContext<'_>,
    g: &Conv3dGeometry,
    [x, dy]: [&[W]; 2],
    filter: &mut [W],
) -> Result<(), KernelError> {
    let s = Sizes::new(g);
    let patches = uninitialised::<W>(c, s.block_len())?;
    let products = uninitialised::<W>(c, s.patch() * s.group_outputs)?;
    let image_len = s.input_pixels * s.channels;
    filter.fill(W::ZERO);
    for (image, pixels) in s.blocks() {
        let patches = &mut patches[..pixels.len() * s.patch()];
        for group in 0..s.groups {
            gather(g, group, pixels.clone(), &x[image * image_len..][..image_len], patches);
            let a = Operand::dense(patches, pixels.len(), s.patch()).transposed();
            let b = gradient_of(&s, dy, group, image * s.pixels + pixels.start, pixels.len());
            product_into(c, a, b, products, s.group_outputs)?;
            let sums = filter.chunks_exact_mut(s.outputs);
            for (sums, parts) in sums.zip(products.chunks_exact(s.group_outputs)) {
                let sums = &mut sums[group * s.group_outputs..];
                sums.iter_mut().zip(parts).for_each(|(sum, &part)| *sum = sum.add(part));
            }
        }
    }
    Ok(())
}

convolutions! {
    "Conv2DBackpropInput" ByInput, host_memory = &["input_sizes"];
    "Conv3DBackpropInputV2" ByInput, host_memory = &["input_sizes"];
    "Conv2DBackpropFilter" ByFilter, host_memory = &["filter_sizes"];
    "Conv3DBackpropFilterV2" ByFilter, host_memory = &["filter_sizes"];
}

register_kernel!("Conv2DBackpropInput" on "CPU": ByInput<T> for "T" in [i32],
    host_memory = &["input_sizes"], numerics = Numerics::EXACT);
