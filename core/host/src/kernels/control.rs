//! `NoOp` and `ControlTrigger`, which only have control edges.

use super::COST;
use tenon_author::{ComputeContext, reg::Numerics, register_kernel};
use tenon_framework::KernelError;

fn nothing(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

register_kernel!("NoOp" on "DEFAULT": fn nothing, cost = COST, numerics = Numerics::EXACT);
register_kernel!("ControlTrigger" on "DEFAULT": fn nothing, cost = COST, numerics = Numerics::EXACT);
