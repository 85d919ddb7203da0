//! Accumulators: gradients are added up until enough of them are there, and taken as their mean or sum.
//!
//! Each take is a step: it empties the accumulator and moves its step on by one. Gradients of earlier
//! steps are dropped. `sum` adds up, `state` is what the attempts of takes work on, `apply` and `take`
//! are kernels; the others are here.

mod apply;
mod state;
mod sum;
mod take;

use crate::{
    attempts::{Attempts, Order},
    place::{Maker, Place, Shared, input},
};
use state::State;
use std::sync::Arc;
use tenon_sdk::prelude::*;

/// An accumulator.
struct Accumulator {
    place: Place,
    dtype: DType,
    /// What is known of the shape of a gradient.
    shape: PartialShape,
    is_sparse: bool,
    is_mean: bool,
    attempts: Arc<Attempts<State>>,
}

impl Shared for Accumulator {
    const NAME: &'static str = "tenon_data.Accumulator";
    const WHAT: &'static str = "accumulator";

    fn place(&self) -> &Place {
        &self.place
    }
}

impl Accumulator {
    fn label(&self) -> &str {
        self.attempts.label()
    }

    /// Checks the type and form of what an op gives or takes.
    fn check_op(&self, dtype: DType, is_sparse: bool) -> Result<(), KernelError> {
        let form = |is_sparse| if is_sparse { "sparse" } else { "dense" };
        if (self.dtype, self.is_sparse) == (dtype, is_sparse) {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "expected {} gradients of {} of {}, found {} ones of {dtype}",
            form(self.is_sparse),
            self.dtype,
            self.label(),
            form(is_sparse)
        )))
    }
}

struct Make {
    maker: Maker<Accumulator>,
    dtype: DType,
    shape: PartialShape,
    is_sparse: bool,
    is_mean: bool,
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Make {
            maker: Maker::new(c)?,
            dtype: c.attr("dtype")?,
            shape: c.attr("shape")?,
            is_sparse: c.op() == "SparseConditionalAccumulator",
            is_mean: c.attr::<&str>("reduction_type")? == "MEAN",
        })
    }

    /// One under a shared name is taken as it is; ops check what they give and take.
    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let accumulator = self.maker.get(c, |place| {
            let (label, orders) = (place.label::<Accumulator>(), [Order::First, Order::First]);
            Ok(Accumulator {
                place,
                dtype: self.dtype,
                shape: self.shape.clone(),
                is_sparse: self.is_sparse,
                is_mean: self.is_mean,
                attempts: Arc::new(Attempts::new(label, State::default(), orders)),
            })
        })?;
        self.maker.output(c, &accumulator)
    }
}

/// A [`Make`] for one element type.
struct MakeOf<T>(Make, std::marker::PhantomData<fn() -> T>);

impl<T: Number> Kernel for MakeOf<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MakeOf(Make::new(c)?, std::marker::PhantomData))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.compute(c)
    }
}

register_kernel!("ConditionalAccumulator" on "CPU": MakeOf<T> for "dtype" in [f16, f32, f64]);
register_kernel!("SparseConditionalAccumulator" on "CPU": MakeOf<T> for "dtype" in [f16, f32, f64]);
register_kernel!("ResourceConditionalAccumulator" on "CPU": MakeOf<T> for "dtype" in [f16, f32, f64]);

fn num_accumulated(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let count = input::<Accumulator>(c)?.attempts.read(State::count);
    c.output::<i32>(0, &[])?.data[0] = i32::try_from(count).unwrap_or(i32::MAX);
    Ok(())
}

register_kernel!("AccumulatorNumAccumulated" on "CPU": fn num_accumulated);
register_kernel!("ResourceAccumulatorNumAccumulated" on "CPU": fn num_accumulated);

fn set_global_step(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let step = c.integer(1, "new_global_step")?;
    input::<Accumulator>(c)?.attempts.update(|state| state.set_step(step));
    Ok(())
}

register_kernel!("AccumulatorSetGlobalStep" on "CPU": fn set_global_step);
register_kernel!("ResourceAccumulatorSetGlobalStep" on "CPU": fn set_global_step);
