//! `_QuantizedFusedDepthwiseConv2dNative`.

use super::{
    conv::NAMES,
    parameters::{Attributes, Parameters},
};
use crate::{
    convolution, depthwise,
    isa::{Isa, chosen},
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    reg::Numerics,
    register_kernel,
};

struct QuantizedDepthwise {
    isa: &'static Isa,
    attributes: Attributes,
    windows: convolution::Attributes,
}

impl Kernel for QuantizedDepthwise {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (attributes, windows) = (Attributes::new(c, NAMES)?, convolution::Attributes::new(c)?);
        Ok(QuantizedDepthwise { isa: chosen()?, attributes, windows })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.windows.depthwise(c)?;
        let channels = g.out_channels as usize;
        let sizes = [convolution::depth(&g), channels];
        let parameters = Parameters::read(c, self.attributes, sizes)?;
        let dims = g.output_dims();
        if dims.contains(&0) {
            return parameters.compute_nothing(c, &dims);
        }
        let stage = parameters.stage(c, channels.next_multiple_of(self.isa.columns))?;
        let factors = parameters.factors([c.input_bytes(0)?, c.input_bytes(1)?]);
        depthwise::compute(c, self.isa, &g, &factors, stage, c.output_bytes(0, &dims)?)
    }
}

register_kernel!("_QuantizedFusedDepthwiseConv2dNative" on "CPU": QuantizedDepthwise,
    numerics = Numerics::EXACT.accumulation(DType::QINT32));
