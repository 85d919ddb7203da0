//! The gradients of an accumulator, and the attempts to take them.

use super::sum::Sum;
use crate::attempts::{Attempt, Progress};
use tenon_sdk::prelude::*;

/// A sum of the types that accumulators have.
#[derive(Debug)]
pub enum Total {
    Half(Sum<f16>),
    Float(Sum<f32>),
    Double(Sum<f64>),
}

/// An expression for the sum of whatever type.
macro_rules! each {
    ($total:expr, $sum:ident => $body:expr) => {
        match $total {
            Total::Half($sum) => $body,
            Total::Float($sum) => $body,
            Total::Double($sum) => $body,
        }
    };
}

impl Total {
    /// Sizes of the values.
    pub fn dims(&self) -> &[i64] {
        each!(self, sum => &sum.dims)
    }

    fn add(&mut self, other: &Total) -> Result<(), KernelError> {
        match (self, other) {
            (Total::Half(sum), Total::Half(other)) => sum.add(other),
            (Total::Float(sum), Total::Float(other)) => sum.add(other),
            (Total::Double(sum), Total::Double(other)) => sum.add(other),
            _ => Err(KernelError::internal("an accumulator has gradients of two types")),
        }
    }

    /// Writes the indices of rows, where there are any, and the values: their mean where `count` says of how
    /// many.
    fn output(&self, c: &ComputeContext<'_>, count: Option<u64>) -> Result<(), KernelError> {
        each!(self, sum => output(c, sum, count))
    }
}

fn output<T: Number>(
    c: &ComputeContext<'_>,
    sum: &Sum<T>,
    count: Option<u64>,
) -> Result<(), KernelError> {
    let mut at = 0;
    if let Some(rows) = &sum.rows {
        let indices = c.output::<i64>(0, &[rows.indices.len() as i64])?.data;
        indices.copy_from_slice(&rows.indices);
        at = 1;
    }
    let values = c.output::<T>(at, &sum.dims)?.data;
    match count {
        Some(count) => sum.average(count, values),
        None => values.copy_from_slice(&sum.values),
    }
    Ok(())
}

/// The gradients of one step, added up.
#[derive(Debug, Default)]
pub struct State {
    step: i64,
    count: u64,
    total: Option<Total>,
}

impl State {
    /// How many gradients were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sets the step.
    pub fn set_step(&mut self, step: i64) {
        self.step = step;
    }

    /// Whether gradients of this step are taken.
    pub fn takes(&self, step: i64) -> bool {
        step >= self.step
    }

    /// What was added, where there is something.
    pub fn total(&self) -> Option<&Total> {
        self.total.as_ref()
    }

    /// Adds gradients.
    ///
    /// # Errors
    /// As [`Sum::add`].
    pub fn add(&mut self, gradients: Total, count: u64) -> Result<(), KernelError> {
        match &mut self.total {
            Some(total) => total.add(&gradients)?,
            none => *none = Some(gradients),
        }
        self.count += count;
        Ok(())
    }
}

/// Takes the gradients.
pub struct Take {
    /// How many have to be there.
    pub required: u64,
    /// Whether their mean is taken, or else their sum.
    pub is_mean: bool,
    /// Of a sparse accumulator, the number of rows of the dense form, or -1.
    pub dense_rows: i64,
    /// What was taken, and the number of gradients.
    pub taken: Option<(Total, u64)>,
}

impl Take {
    fn output(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Some((total, count)) = &self.taken else { return Ok(()) };
        total.output(c, self.is_mean.then_some(*count))?;
        if c.output_count() > 1 {
            let dims = total.dims();
            let shape = c.output::<i64>(2, &[dims.len() as i64])?.data;
            shape.copy_from_slice(dims);
            if let Some(rows) = shape.first_mut() {
                *rows = self.dense_rows;
            }
        }
        Ok(())
    }
}

impl Attempt<State> for Take {
    fn run(&mut self, state: &mut State) -> Progress {
        if state.count < self.required {
            return Progress::Stuck;
        }
        self.taken = state.total.take().map(|total| (total, state.count));
        state.count = 0;
        state.step = state.step.wrapping_add(1);
        Progress::Done(Ok(()))
    }

    fn finish(&mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        let result = self.output(&call.context());
        if result.is_ok() {
            self.taken = None;
        }
        result
    }

    fn abandon(&mut self, state: &mut State) {
        if let Some((total, count)) = self.taken.take() {
            // Without memory for the rows the gradients are lost, as the step's error says.
            let _ = state.add(total, count);
        }
    }
}
