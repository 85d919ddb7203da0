//! `_QuantizedFusedConv2D`.

use super::{
    parameters::Names,
    product::{FusedProduct, PARAMETERS},
};
use crate::{constant::Constants, convolution};
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack},
    reg::Numerics,
    register_kernel,
};

/// Names of the parameters.
pub const NAMES: Names = ["input_scale", "input_zero_point", "filter_scale", "filter_zero_point"];

/// The product of windows and the filter, which in memory is a matrix with a column for each output
/// channel.
struct QuantizedConv2D {
    windows: convolution::Attributes,
    product: FusedProduct,
}

impl Kernel for QuantizedConv2D {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let product = FusedProduct::new(c, NAMES, false)?;
        Ok(QuantizedConv2D { windows: convolution::Attributes::new(c)?, product })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.windows.geometry(c)?;
        let sizes = [convolution::depth(&g), g.out_channels as usize];
        self.product
            .compute(c, sizes, &g.output_dims(), |zero, flip| convolution::left(c, &g, zero, flip))
    }
}

impl Prepack for QuantizedConv2D {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(match input {
            PARAMETERS.. => Some(Constants::<()>::mark()),
            _ => self.product.right.prepack_filter(input, view),
        })
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.product.attach(input, packed);
    }
}

register_kernel!("_QuantizedFusedConv2D" on "CPU": QuantizedConv2D,
    numerics = Numerics::EXACT.accumulation(DType::QINT32));
