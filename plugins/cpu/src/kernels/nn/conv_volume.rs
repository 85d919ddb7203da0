//! `Conv3D`: patches of the image times the filter, a block of pixels at a time.

use super::volume::{Images, Sizes, gather, images, wide};
use crate::{
    kernels::linalg::product::{Factor, Operand, product_into},
    lane::Compute,
    panels::uninitialised,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{Conv3dGeometry, ConvAttributes},
    reg::Numerics,
    register_kernel,
};

struct Conv3d<T> {
    attributes: ConvAttributes,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor>> Kernel for Conv3d<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Conv3d { attributes: ConvAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv3dGeometry::forward(&self.attributes.params(c.dims(0), c.dims(1)))?;
        let s = Sizes::new(&g);
        let output = Images::<T>::new(c, &g.output_dims(), g.format)?;
        if output.values.is_empty() {
            return Ok(());
        }
        if s.patch() == 0 {
            output.zeros();
            return Ok(());
        }
        let (x, filter) = (images::<T>(c, 0, g.format)?, wide::<T>(c, 1)?);
        convolve(c, &g, [x, filter], output.values)?;
        output.finish();
        Ok(())
    }
}

/// Computes a convolution with patches, channels last, into `y`, whose elements it overwrites.
///
/// # Errors
/// Out of memory; the call was cancelled.
pub fn convolve<W: Factor>(
    c: &ComputeContext<'_>,
    g: &Conv3dGeometry,
    [x, filter]: [&[W]; 2],
    y: &mut [W],
) -> Result<(), KernelError> {
    let s = Sizes::new(g);
    let patches = uninitialised::<W>(c, s.block_len())?;
    let image_len = s.input_pixels * s.channels;
    for (image, pixels) in s.blocks() {
        let patches = &mut patches[..pixels.len() * s.patch()];
        for group in 0..s.groups {
            gather(g, group, pixels.clone(), &x[image * image_len..][..image_len], patches);
            let first = (image * s.pixels + pixels.start) * s.outputs + group * s.group_outputs;
            let a = Operand::dense(patches, pixels.len(), s.patch());
            product_into(c, a, filter_of(&s, filter, group), &mut y[first..], s.outputs)?;
        }
    }
    Ok(())
}

/// The columns of the filter for a group.
pub fn filter_of<'a, W>(s: &Sizes, filter: &'a [W], group: usize) -> Operand<'a, W> {
    Operand {
        data: &filter[group * s.group_outputs..],
        rows: s.patch(),
        cols: s.group_outputs,
        strides: [s.outputs, 1],
    }
}

/// Lists the numerics of a convolution's sums of products for each type.
macro_rules! convolutions {
    ($($op:literal $kernel:ident$(, $option:ident = $value:expr)*;)*) => {$(
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f32]$(, $option = $value)*,
            numerics = Numerics::relative(1e-30, 1e-5).accumulation(DType::FLOAT));
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f64]$(, $option = $value)*,
            numerics = Numerics::relative(1e-300, 1e-13).accumulation(DType::DOUBLE));
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f16]$(, $option = $value)*,
            numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
        register_kernel!($op on "CPU": $kernel<T> for "T" in [bf16]$(, $option = $value)*,
            numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT));
    )*};
}

pub(super) use convolutions;

convolutions! {
    "Conv3D" Conv3d;
}
