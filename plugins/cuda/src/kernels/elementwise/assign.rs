//! `AssignAddVariableOp` and `AssignSubVariableOp`: sums and differences in place. What only passes
//! values on, as `AssignVariableOp` does, is registered by plugins/data for every device type.

use super::{binary::Binary, types::NUMBERS};
use crate::launch::Launch;
use tenon_sdk::{Code, DType, KernelError, prelude::*, reg::Numerics};

struct Update {
    dtype: DType,
    sum: Binary,
}

impl Kernel for Update {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let dtype = c.attr("dtype")?;
        let op = if c.op() == "AssignAddVariableOp" { "AddV2" } else { "Sub" };
        Ok(Update { dtype, sum: Binary::in_types(op, dtype, dtype, 0.0)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (state, launch) = (c.state(), Launch::new(c)?);
        let variable = state.input_variable(0)?;
        let variables = [&variable];
        let mut locked = state.lock(&variables)?;
        let found = launch.variable(&mut locked, 0, self.dtype).map_err(|error| {
            match error.code == Code::FAILED_PRECONDITION && !locked.has_value(0) {
                true => KernelError::new(
                    Code::NOT_FOUND,
                    "the variable does not exist: run its initialiser first",
                ),
                false => error,
            }
        });
        let ((x, dims), y) = (found?, launch.input(1)?);
        if dims != c.dims(1) {
            return Err(KernelError::invalid_argument(format!(
                "value: expected the shape of the variable, {dims:?}, found {:?}",
                c.dims(1)
            )));
        }
        self.sum.run_same(&launch, [x, y, x])
    }
}

register_kernel!("AssignAddVariableOp" on "CUDA": Update, types = ("dtype", NUMBERS),
    numerics = Numerics::EXACT);
register_kernel!("AssignSubVariableOp" on "CUDA": Update, types = ("dtype", NUMBERS),
    numerics = Numerics::EXACT);
