//! `_QuantizedFusedConv2D`.

use super::parameters::{Attributes, Names, Parameters};
use crate::{constant::RightFactor, convolution, isa::chosen};
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed},
    reg::Numerics,
    register_kernel,
};

/// What the parameters are called.
pub const NAMES: Names = ["input_scale", "input_zero_point", "filter_scale", "filter_zero_point"];

/// The product of windows and the filter, whose memory is a matrix of one column for each output channel.
struct QuantizedConv2D {
    attributes: Attributes,
    windows: convolution::Attributes,
    left_flip: u8,
    filter: RightFactor,
}

impl Kernel for QuantizedConv2D {
    const PREPACKS: bool = true;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let isa = chosen()?;
        let attributes = Attributes::new(c, NAMES)?;
        let [left_flip, right_flip] = attributes.flips(isa);
        let filter = RightFactor::new(isa, right_flip, false);
        let windows = convolution::Attributes::new(c)?;
        Ok(QuantizedConv2D { attributes, windows, left_flip, filter })
    }

    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.filter.prepack_filter(input, view))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.filter.attach(input, packed);
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.windows.geometry(c)?;
        let sizes = [convolution::depth(&g), g.out_channels as usize];
        let parameters = Parameters::read(c, self.attributes, sizes)?;
        let dims = g.output_dims();
        if dims.contains(&0) {
            return parameters.compute_nothing(c, &dims);
        }
        let left = convolution::left(c, &g, parameters.left_zero(), self.left_flip)?;
        parameters.compute(c, left, self.filter.get(c, sizes)?, &dims)
    }
}

register_kernel!("_QuantizedFusedConv2D" on "CPU": QuantizedConv2D,
    numerics = Numerics::EXACT.accumulation(DType::QINT32));
