//! `_FusedConv2D` and `_FusedDepthwiseConv2dNative`: the epilogue is applied to each block of the
//! output while that is in the cache.

use super::{epilogue, functions::Special};
use crate::{
    kernels::{
        linalg::product::Factor,
        nn::{
            conv::{self, Filter},
            depthwise,
            winograd::{
                contract::{self, Role},
                kernel::{self as winograd, Convolution},
                transforms::{Four, Transform, Two, TwoOfFive},
            },
        },
    },
    lane::Compute,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack, Supported, Supports},
    geometry::{Conv2dGeometry, ConvAttributes},
    reg::Numerics,
    register_kernel,
};

struct FusedConv2d<T: Compute> {
    attributes: ConvAttributes,
    filter: Filter<T>,
    epilogue: epilogue::Attributes,
}

impl<T: Compute<Wide: Factor + Special>> Kernel for FusedConv2d<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (attributes, epilogue) = (ConvAttributes::new(c)?, epilogue::Attributes::new(c)?);
        Ok(FusedConv2d { attributes, filter: Filter::new(c)?, epilogue })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv2dGeometry::new(&self.attributes.params(c.dims(0), c.dims(1)))?;
        let steps = self.epilogue.bind::<T>(c, &g.output_dims(), g.format)?;
        steps.ending(|ending| conv::convolve::<T>(c, &g, &self.filter, ending))
    }
}

impl<T: Compute<Wide: Factor + Special>> Prepack for FusedConv2d<T> {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.filter.prepack(&self.attributes, input, view))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.filter.attach(input, packed);
    }
}

/// [`FusedConv2d`] by Winograd's algorithm.
struct FusedWinograd<T> {
    convolution: Convolution<T>,
    epilogue: epilogue::Attributes,
}

impl<T: Transform> Kernel for FusedWinograd<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (convolution, epilogue) = (Convolution::new(c)?, epilogue::Attributes::new(c)?);
        Ok(FusedWinograd { convolution, epilogue })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.convolution.geometry(c)?;
        let steps = self.epilogue.bind::<f32>(c, &g.output_dims(), g.format)?;
        self.convolution.compute(c, &g, Some(&|start, y| steps.apply(start, y)))
    }
}

impl<T: Transform> Supports for FusedWinograd<T> {
    fn supports(c: &CreateContext<'_>) -> Supported {
        contract::supports::<T>(c, Role::Forward)
    }
}

impl<T: Transform> Prepack for FusedWinograd<T> {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        self.convolution.prepack(input, view)
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.convolution.attach(input, packed);
    }
}

struct FusedDepthwise<T> {
    attributes: ConvAttributes,
    epilogue: epilogue::Attributes,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor + Special>> Kernel for FusedDepthwise<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (attributes, epilogue) = (ConvAttributes::depthwise(c)?, epilogue::Attributes::new(c)?);
        Ok(FusedDepthwise { attributes, epilogue, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv2dGeometry::depthwise(&self.attributes.params(c.dims(0), c.dims(1)))?;
        let steps = self.epilogue.bind::<T>(c, &g.output_dims(), g.format)?;
        steps.ending(|ending| depthwise::convolve::<T>(c, &g, ending))
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

// Bounds of the convolution relative to the sum of its absolute terms, plus those of the functions
// that follow.
convolutions! {
    f32, FLOAT, 1e-6, 8e-6;
    f64, DOUBLE, 1e-14, 1.6e-14;
    f16, FLOAT, 1e-3, 4e-3;
    bf16, FLOAT, 8e-3, 3.2e-2;
}

register_kernel!("_FusedConv2D" on "CPU": FusedWinograd<Four>, types = ("T", &[DType::FLOAT]),
    label = "winograd4", priority = 2, numerics = winograd::fused_numerics::<Four>());
register_kernel!("_FusedConv2D" on "CPU": FusedWinograd<Two>, types = ("T", &[DType::FLOAT]),
    label = "winograd2", priority = 1, numerics = winograd::fused_numerics::<Two>());
register_kernel!("_FusedConv2D" on "CPU": FusedWinograd<TwoOfFive>, types = ("T", &[DType::FLOAT]),
    label = "winograd5", priority = 3, numerics = winograd::fused_numerics::<TwoOfFive>());
