//! `_FusedConv2D` and `_FusedDepthwiseConv2dNative`: the epilogue follows on each block of the output while that is
//! in the cache.

use super::{epilogue, functions::Special};
use crate::{
    kernels::{
        linalg::product::Factor,
        nn::{
            conv::{self, Attributes},
            depthwise,
        },
    },
    lane::Compute,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::Conv2dGeometry,
    reg::Numerics,
    register_kernel,
};

struct FusedConv2d<T> {
    attributes: Attributes,
    epilogue: epilogue::Attributes,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor + Special>> Kernel for FusedConv2d<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (attributes, epilogue) = (Attributes::new(c)?, epilogue::Attributes::new(c)?);
        Ok(FusedConv2d { attributes, epilogue, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv2dGeometry::new(&self.attributes.params(c.dims(0), c.dims(1)))?;
        let steps = self.epilogue.bind::<T>(c, &g.output_dims(), g.format)?;
        conv::convolve::<T>(c, &g, Some(&|start, y| steps.apply(start, y)))
    }
}

struct FusedDepthwise<T> {
    attributes: Attributes,
    epilogue: epilogue::Attributes,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor + Special>> Kernel for FusedDepthwise<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (attributes, epilogue) = (Attributes::depthwise(c)?, epilogue::Attributes::new(c)?);
        Ok(FusedDepthwise { attributes, epilogue, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv2dGeometry::depthwise(&self.attributes.params(c.dims(0), c.dims(1)))?;
        let steps = self.epilogue.bind::<T>(c, &g.output_dims(), g.format)?;
        depthwise::convolve::<T>(c, &g, Some(&|start, y| steps.apply(start, y)))
    }
}

macro_rules! convolutions {
    ($($ty:ident, $accumulation:ident, $absolute:expr, $relative:expr;)*) => {$(
        register_kernel!("_FusedConv2D" on "CPU": FusedConv2d<T> for "T" in [$ty],
            numerics = Numerics::relative($absolute, $relative).accumulation(DType::$accumulation));
        register_kernel!("_FusedDepthwiseConv2dNative" on "CPU": FusedDepthwise<T> for "T" in [$ty],
            numerics = Numerics::relative($absolute, $relative).accumulation(DType::$accumulation));
    )*};
}

// Of the convolution relative to the sum of its absolute terms, and of the functions that follow.
convolutions! {
    f32, FLOAT, 1e-6, 8e-6;
    f64, DOUBLE, 1e-14, 1.6e-14;
    f16, FLOAT, 1e-3, 4e-3;
    bf16, FLOAT, 8e-3, 3.2e-2;
}
