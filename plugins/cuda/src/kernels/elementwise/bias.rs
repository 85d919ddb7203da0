//! `BiasAdd` and `BiasAddV1`: a value for each channel.

use super::{binary::Binary, types::NUMBERS};
use tenon_sdk::{
    KernelError,
    geometry::{BroadcastPlan, ChannelSplit, DataFormat},
    prelude::*,
    reg::Numerics,
};

struct BiasAdd {
    format: DataFormat,
    sum: Binary,
}

impl Kernel for BiasAdd {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        // In `BiasAddV1` channels are always last.
        let format = match c.attrs().has("data_format") {
            true => DataFormat::parse(c.attr("data_format")?)?,
            false => DataFormat::Nhwc,
        };
        Ok(BiasAdd { format, sum: Binary::of(c, "AddV2", 0.0)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = c.dims(0);
        let split = ChannelSplit::with_vector(dims, self.format, "bias", c.dims(1))?;
        let [outer, channels, inner] =
            [split.outer, split.channels, split.inner].map(|size| size as i64);
        let plan = BroadcastPlan::new([&[outer, channels, inner], &[channels, 1]]);
        // The dimensions of an empty tensor may have a product that overflows.
        match plan {
            Ok(plan) => self.sum.run_as(c, &plan, dims),
            Err(_) if dims.contains(&0) => c.prepare(0, dims).map(drop),
            Err(error) => Err(error.into()),
        }
    }
}

register_kernel!("BiasAdd" on "CUDA": BiasAdd, types = ("T", NUMBERS), numerics = Numerics::EXACT);
register_kernel!("BiasAddV1" on "CUDA": BiasAdd, types = ("T", NUMBERS),
    numerics = Numerics::EXACT);
