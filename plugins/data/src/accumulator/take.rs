//! The kernels that take gradients.

use super::{
    Accumulator,
    state::{State, Take},
};
use crate::{
    attempts::{Answer, Async, Begins, Begun, TAKE},
    place::input,
};
use std::sync::Arc;
use tenon_sdk::prelude::*;

struct TakeGradient {
    dtype: DType,
    is_sparse: bool,
}

impl Begins for TakeGradient {
    type State = State;
    type Attempt = Take;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let is_sparse = c.op() == "SparseAccumulatorTakeGradient";
        Ok(TakeGradient { dtype: c.attr("dtype")?, is_sparse })
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<State, Take> {
        let accumulator = input::<Accumulator>(c)?;
        accumulator.check_op(self.dtype, self.is_sparse)?;
        let found = c.integer(1, "num_required")?;
        let required = u64::try_from(found).ok().filter(|&required| required > 0);
        let required = required.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "num_required: expected at least 1 gradient of {}, found {found}",
                accumulator.label()
            ))
        })?;
        let rows = accumulator.shape.dims().and_then(|dims| dims.first().copied());
        let attempt = Take {
            required,
            is_mean: accumulator.is_mean,
            dense_rows: rows.unwrap_or(-1),
            taken: None,
        };
        let attempts = Arc::clone(&accumulator.attempts);
        Ok(Some(Begun { attempts, list: TAKE, attempt }))
    }
}

register_kernel!("AccumulatorTakeGradient" on "CPU": Async<TakeGradient>);
register_kernel!("SparseAccumulatorTakeGradient" on "CPU": Async<TakeGradient>);
register_kernel!("ResourceAccumulatorTakeGradient" on "CPU": Async<TakeGradient>);
