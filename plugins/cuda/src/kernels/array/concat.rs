//! `Concat`, `ConcatV2`, `Pack`.

use super::{
    JOINED,
    pieces::{Direction, Part, Pieces},
};
use crate::launch::Launch;
use std::ops::Range;
use tenon_sdk::{KernelError, geometry::ConcatPlan, prelude::*, reg::Numerics};

fn shapes<'a>(c: &ComputeContext<'a>, inputs: Range<usize>) -> Vec<&'a [i64]> {
    inputs.map(|i| c.dims(i)).collect()
}

fn write(
    c: &ComputeContext<'_>,
    pieces: &Pieces,
    inputs: Range<usize>,
    plan: &ConcatPlan,
) -> Result<(), KernelError> {
    let launch = Launch::new(c)?;
    let (mut parts, mut row) = (Vec::with_capacity(inputs.len()), 0);
    for input in inputs {
        let piece = plan.piece(c.dims(input)) as u64;
        parts.push(Part { operand: launch.input(input)?, start: row, piece });
        row += piece;
    }
    let whole = launch.output(0, &plan.output)?;
    // SAFETY: the plan's pieces fill the rows of its output.
    unsafe { pieces.run(&launch, &whole, row, &parts) }
}

fn plan_of(
    c: &ComputeContext<'_>,
    axis: i64,
    inputs: Range<usize>,
) -> Result<ConcatPlan, KernelError> {
    if c.dims(inputs.start).is_empty() {
        return Err(KernelError::invalid_argument(
            "values must have at least 1 dimension to be concatenated along an axis, found scalars: use Pack",
        ));
    }
    Ok(ConcatPlan::concat(&shapes(c, inputs), axis)?)
}

/// `ConcatV2`: the axis is the last input.
struct ConcatV2(Pieces);

impl Kernel for ConcatV2 {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ConcatV2(Pieces::new(c, Direction::Join)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let axis = c.input_count().saturating_sub(1);
        let plan = plan_of(c, c.integer(axis, "axis")?, 0..axis)?;
        write(c, &self.0, 0..axis, &plan)
    }
}

/// `Concat`: the axis is the first input.
struct Concat(Pieces);

impl Kernel for Concat {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Concat(Pieces::new(c, Direction::Join)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let inputs = 1..c.input_count();
        let plan = plan_of(c, c.integer(0, "concat_dim")?, inputs.clone())?;
        write(c, &self.0, inputs, &plan)
    }
}

struct Pack {
    axis: i64,
    pieces: Pieces,
}

impl Kernel for Pack {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Pack { axis: c.attr("axis")?, pieces: Pieces::new(c, Direction::Join)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let inputs = 0..c.input_count();
        let plan = ConcatPlan::pack(&shapes(c, inputs.clone()), self.axis)?;
        if inputs.len() == 1 {
            return c.share(0, 0, &plan.output);
        }
        write(c, &self.pieces, inputs, &plan)
    }
}

register_kernel!("ConcatV2" on "CUDA": ConcatV2, types = ("T", JOINED), host_memory = &["axis"],
    numerics = Numerics::EXACT);
register_kernel!("Concat" on "CUDA": Concat, types = ("T", JOINED), host_memory = &["concat_dim"],
    numerics = Numerics::EXACT);
register_kernel!("Pack" on "CUDA": Pack, types = ("T", JOINED), numerics = Numerics::EXACT);
