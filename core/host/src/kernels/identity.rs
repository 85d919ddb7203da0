//! Ops that return their inputs.

use super::{COST, pass_on};
use tenon_author::{ComputeContext, CreateContext, Kernel, reg::Numerics, register_kernel};
use tenon_framework::{KernelError, PartialShape};

fn identity(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    pass_on(c, 0)
}

fn identity_n(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    (0..c.input_count()).try_for_each(|at| pass_on(c, at))
}

/// Returns the input if its shape is compatible with the attribute.
struct EnsureShape {
    shape: PartialShape,
}

impl Kernel for EnsureShape {
    fn new(context: &CreateContext<'_>) -> Result<EnsureShape, KernelError> {
        Ok(EnsureShape { shape: context.attr("shape")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = c.dims(0);
        if self.shape.accepts(dims) {
            return pass_on(c, 0);
        }
        Err(KernelError::invalid_argument(format!(
            "the shape must be compatible with {}, found {dims:?}",
            self.shape
        )))
    }
}

register_kernel!("Identity" on "DEFAULT": fn identity, cost = COST, numerics = Numerics::EXACT);
register_kernel!("GuaranteeConst" on "DEFAULT": fn identity, cost = COST, numerics = Numerics::EXACT);
register_kernel!("StopGradient" on "DEFAULT": fn identity, cost = COST, numerics = Numerics::EXACT);
register_kernel!("PreventGradient" on "DEFAULT": fn identity, cost = COST, numerics = Numerics::EXACT);
register_kernel!("Snapshot" on "DEFAULT": fn identity, cost = COST, numerics = Numerics::EXACT);
register_kernel!("PlaceholderWithDefault" on "DEFAULT": fn identity, cost = COST, numerics = Numerics::EXACT);
register_kernel!("IdentityN" on "DEFAULT": fn identity_n, cost = COST, numerics = Numerics::EXACT);
register_kernel!("EnsureShape" on "DEFAULT": EnsureShape, cost = COST, numerics = Numerics::EXACT);
