//! `_QuantizedFusedDepthwiseConv2dNative`.

use super::{
    conv::NAMES,
    parameters::{Attributes, Parameters},
};
use crate::{
    constant::{Constants, RIGHT},
    convolution,
    depthwise::{self, Images, KeptWeights},
    isa::{Isa, chosen},
    kept::{Heap, KeptStage, Room},
};
use std::ops::DerefMut;
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack},
    geometry::Conv2dGeometry,
    reg::Numerics,
    register_kernel,
};

struct QuantizedDepthwise {
    isa: &'static Isa,
    attributes: Attributes,
    windows: convolution::Attributes,
    constants: Constants<Ready<Vec<i32>>>,
}

/// The operands except the images.
struct Ready<M> {
    weights: KeptWeights<M>,
    stage: KeptStage<M>,
    zero: i32,
}

impl QuantizedDepthwise {
    fn ready<M: DerefMut<Target = [i32]>>(
        &self,
        room: &impl Room<Memory = M>,
        parameters: &Parameters<'_>,
        filter: &[u8],
        channels: usize,
    ) -> Result<Ready<M>, KernelError> {
        let filter = parameters.filter(filter);
        let weights = KeptWeights::new(room, self.isa, channels, &filter)?;
        let stage = parameters.stage(room, channels.next_multiple_of(self.isa.columns))?;
        Ok(Ready { weights, stage, zero: filter.left_zero })
    }

    fn run<M: DerefMut<Target = [i32]>>(
        &self,
        c: &ComputeContext<'_>,
        g: &Conv2dGeometry,
        ready: &Ready<M>,
    ) -> Result<(), KernelError> {
        let images =
            Images { data: c.input_bytes(0)?, dtype: self.attributes.types[0], zero: ready.zero };
        let to = c.output_bytes(0, &g.output_dims())?;
        if to.is_empty() {
            return Ok(());
        }
        let (weights, stage) = (ready.weights.view(), ready.stage.view());
        depthwise::compute(c, self.isa, g, images, weights, stage, to)
    }
}

impl Kernel for QuantizedDepthwise {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (attributes, windows) = (Attributes::new(c, NAMES)?, convolution::Attributes::new(c)?);
        Ok(QuantizedDepthwise {
            isa: chosen(c.knobs())?,
            attributes,
            windows,
            constants: Constants::new(),
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = self.windows.depthwise(c)?;
        if let Some(ready) = self.constants.kept() {
            return self.run(c, &g, ready);
        }
        let channels = g.out_channels as usize;
        let parameters = Parameters::read(c, self.attributes, [convolution::depth(&g), channels])?;
        let dims = g.output_dims();
        if dims.contains(&0) {
            return parameters.compute_nothing(c, &dims);
        }
        let filter = c.input_bytes(RIGHT)?;
        if self.constants.has(RIGHT..c.input_count()) {
            let ready = self.ready(&Heap, &parameters, filter, channels)?;
            return self.run(c, &g, self.constants.keep(ready));
        }
        self.run(c, &g, &self.ready(c, &parameters, filter, channels)?)
    }
}

impl Prepack for QuantizedDepthwise {
    fn prepack(&self, input: usize, _view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok((input >= RIGHT).then(Constants::<()>::mark))
    }

    fn attach_packed(&mut self, input: usize, _packed: &Packed) {
        self.constants.attach(input);
    }
}

register_kernel!("_QuantizedFusedDepthwiseConv2dNative" on "CPU": QuantizedDepthwise,
    numerics = Numerics::EXACT.accumulation(DType::QINT32));
