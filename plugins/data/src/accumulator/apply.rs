//! The kernels that add gradients.

use super::{
    Accumulator,
    state::{State, Total},
    sum::Sum,
};
use crate::place::input;
use tenon_sdk::prelude::*;

/// Adds the gradient whose values are an input, and its indices the one before where it is sparse.
fn add(
    c: &ComputeContext<'_>,
    accumulator: &Accumulator,
    state: &mut State,
    values: usize,
) -> Result<(), KernelError> {
    let indices = match accumulator.is_sparse {
        true => Some(c.input::<i64>(values - 1)?.data),
        false => None,
    };
    let gradient = match accumulator.dtype {
        DType::HALF => Total::Half(Sum::of(&c.input(values)?, indices)?),
        DType::FLOAT => Total::Float(Sum::of(&c.input(values)?, indices)?),
        _ => Total::Double(Sum::of(&c.input(values)?, indices)?),
    };
    state.add(gradient, 1)
}

struct Apply {
    dtype: DType,
}

impl Kernel for Apply {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Apply { dtype: c.attr("dtype")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let accumulator = input::<Accumulator>(c)?;
        accumulator.check_op(self.dtype, false)?;
        let step = c.integer(1, "local_step")?;
        accumulator.attempts.update(|state| {
            if !state.takes(step) {
                return Ok(());
            }
            let (found, before) = (c.dims(2), state.total().map(Total::dims));
            let fits = before.is_none_or(|before| before == found);
            if !fits || !accumulator.shape.accepts(found) {
                return Err(KernelError::invalid_argument(format!(
                    "gradient: expected shape {:?} of {}, or {before:?} of those before, found {found:?}",
                    accumulator.shape,
                    accumulator.label()
                )));
            }
            add(c, &accumulator, state, 2)
        })
    }
}

register_kernel!("AccumulatorApplyGradient" on "CPU": Apply);
register_kernel!("ResourceAccumulatorApplyGradient" on "CPU": Apply);

struct ApplySparse {
    dtype: DType,
    has_known_shape: bool,
}

impl ApplySparse {
    /// Checks a gradient against the accumulator and the gradients before.
    fn check(
        &self,
        c: &ComputeContext<'_>,
        accumulator: &Accumulator,
        before: Option<&[i64]>,
    ) -> Result<(), KernelError> {
        let wrong = |what: &str, expected: &dyn std::fmt::Debug, found: &dyn std::fmt::Debug| {
            Err(KernelError::invalid_argument(format!(
                "{what}: expected {expected:?} of {}, found {found:?}",
                accumulator.label()
            )))
        };
        let (indices, values) = (c.dims(2), c.dims(3));
        if indices.len() != 1 || values.first() != indices.first() {
            return wrong(
                "gradient_values",
                &"a row for each of a list of indices",
                &(values, indices),
            );
        }
        // Of an accumulator of unknown rank nothing is checked.
        let shape = accumulator.shape.dims().unwrap_or_default();
        let differ = |expected: &[i64], found: &[i64]| {
            expected
                .iter()
                .zip(found)
                .any(|(&expected, &found)| expected != -1 && expected != found)
        };
        if self.has_known_shape {
            let found = c.input::<i64>(4)?.data;
            if shape.len() > found.len() || differ(shape, found) {
                return wrong("gradient_shape", &shape, &found);
            }
        }
        if let Some(&rows) = shape.first().filter(|&&rows| rows != -1)
            && let Some(index) = c.input::<i64>(2)?.data.iter().find(|&&index| index >= rows)
        {
            return wrong("gradient_indices", &format!("indices below {rows}"), index);
        }
        let row = values.get(1..).unwrap_or_default();
        match before {
            Some(before) if before.len() != values.len() || before[1..] != *row => {
                wrong("gradient_values", &format!("rows of {:?}", &before[1..]), &row)
            }
            None if shape.len() > values.len()
                || differ(shape.get(1..).unwrap_or_default(), row) =>
            {
                wrong("gradient_values", &format!("rows of {shape:?}"), &row)
            }
            _ => Ok(()),
        }
    }
}

impl Kernel for ApplySparse {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ApplySparse { dtype: c.attr("dtype")?, has_known_shape: c.attr("has_known_shape")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let accumulator = input::<Accumulator>(c)?;
        accumulator.check_op(self.dtype, true)?;
        let step = c.integer(1, "local_step")?;
        accumulator.attempts.update(|state| {
            if !state.takes(step) {
                return Ok(());
            }
            self.check(c, &accumulator, state.total().map(Total::dims))?;
            add(c, &accumulator, state, 3)
        })
    }
}

register_kernel!("SparseAccumulatorApplyGradient" on "CPU": ApplySparse);
