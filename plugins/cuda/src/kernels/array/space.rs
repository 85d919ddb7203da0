//! `SpaceToDepth` and `DepthToSpace`, which are transpositions.

use super::{NUMBERS, transpose::Turner};
use crate::launch::Launch;
use tenon_sdk::{
    DType, KernelError,
    geometry::{DepthFormat, Dims, TransposePlan},
    prelude::*,
    reg::{Numerics, join_types},
};

/// Attributes of both ops.
struct Depth {
    block: i64,
    format: DepthFormat,
    turner: Turner,
}

impl Depth {
    fn new(c: &CreateContext<'_>) -> Result<Depth, KernelError> {
        let format = DepthFormat::parse(c.attr("data_format")?)?;
        Ok(Depth { block: c.attr("block_size")?, format, turner: Turner::new(c)? })
    }

    /// Transposes the input: its dimensions, split, in their order in the output.
    fn write(
        &self,
        c: &ComputeContext<'_>,
        output: &Dims,
        (parts, order): &(Dims, Dims),
    ) -> Result<(), KernelError> {
        let plan = TransposePlan::new(parts, order)?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, output)?);
        self.turner.turn(&launch, (&y, &x), &plan)
    }
}

struct SpaceToDepth(Depth);

impl Kernel for SpaceToDepth {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SpaceToDepth(Depth::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (Depth { block, format, .. }, dims) = (&self.0, c.dims(0));
        let output = format.space_to_depth_dims(dims, *block)?;
        self.0.write(c, &output, &format.space_to_depth_parts(dims, *block)?)
    }
}

struct DepthToSpace(Depth);

impl Kernel for DepthToSpace {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(DepthToSpace(Depth::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (Depth { block, format, .. }, dims) = (&self.0, c.dims(0));
        let output = format.depth_to_space_dims(dims, *block)?;
        self.0.write(c, &output, &format.depth_to_space_parts(dims, *block)?)
    }
}

/// Types that TensorFlow moves into the depth.
const DEEP: &[DType] = &join_types::<{ NUMBERS.len() + 1 }>(NUMBERS, &[DType::QINT8]);

register_kernel!("SpaceToDepth" on "CUDA": SpaceToDepth, types = ("T", DEEP),
    numerics = Numerics::EXACT);
register_kernel!("DepthToSpace" on "CUDA": DepthToSpace, types = ("T", DEEP),
    numerics = Numerics::EXACT);
