//! Reads of rows and slices of a variable behind a handle: only what is asked for is copied.

use crate::update::check_there;
use std::marker::PhantomData;
use tenon_sdk::{
    geometry::{GatherPlan, SlicePlan},
    growth,
    prelude::*,
};

/// A list of runs of a variable's elements: each has `len` from one of the positions on.
struct Runs {
    output: Vec<i64>,
    starts: Vec<usize>,
    len: usize,
}

/// The rows that input 1 names.
fn rows(c: &ComputeContext<'_>, value: &[i64], batch_dims: i64) -> Result<Runs, KernelError> {
    if batch_dims < 0 {
        return Err(KernelError::invalid_argument(format!(
            "batch_dims: expected at least 0, found {batch_dims}"
        )));
    }
    let plan = GatherPlan::new(value, c.dims(1), batch_dims, batch_dims)?;
    let indices = c.integers(1)?;
    let bound = plan.size as i64;
    if let Some(at) = indices.iter().position(|index| !(0..bound).contains(index)) {
        return Err(KernelError::invalid_argument(format!(
            "indices: expected values in [0, {bound}), found {} as element {at}",
            indices[at]
        )));
    }
    let start = |(at, &index): (usize, &i64)| {
        // With as many batch dimensions as the axis there are no steps between both.
        (at / plan.count * plan.size + index as usize) * plan.inner
    };
    let starts = growth::collected(indices.iter().enumerate().map(start))?;
    Ok(Runs { output: plan.output.to_vec(), starts, len: plan.inner })
}

/// The slices that the index vectors of input 1 name.
fn slices(c: &ComputeContext<'_>, value: &[i64]) -> Result<Runs, KernelError> {
    if value.is_empty() {
        return Err(KernelError::invalid_argument(
            "the variable: expected at least 1 dimension, found a scalar",
        ));
    }
    let plan = SlicePlan::new(value, c.dims(1))?;
    if plan.count > 0 && value.contains(&0) {
        return Err(KernelError::invalid_argument(format!(
            "indices name {} slices of an empty variable of shape {value:?}",
            plan.count
        )));
    }
    let indices = c.integers(1)?;
    let start = |at: usize| {
        let vector = &indices[at * plan.depth..(at + 1) * plan.depth];
        plan.slice(vector).map(|slice| slice * plan.len).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "indices: expected vectors into shape {value:?}, found {vector:?} as number {at}"
            ))
        })
    };
    let mut starts = growth::with_room(plan.count)?;
    for at in 0..plan.count {
        starts.push(start(at)?);
    }
    Ok(Runs { output: plan.slices.to_vec(), starts, len: plan.len })
}

type Plan<'a> = &'a dyn Fn(&[i64]) -> Result<Runs, KernelError>;

fn read<T: Element>(c: &ComputeContext<'_>, plan: Plan<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    let variables = [&variable];
    let shared = state.share(&variables)?;
    check_there(shared.read(0).is_ok())?;
    let value = shared.cells::<T>(0)?;
    let runs = plan(value.dims())?;
    let output = c.output::<T>(0, &runs.output)?.data;
    for (at, output) in output.iter_mut().enumerate() {
        *output = value.get(runs.starts[at / runs.len] + at % runs.len);
    }
    Ok(())
}

/// Strings are written under the exclusive lock, so that they are read under it.
fn read_strings(c: &ComputeContext<'_>, plan: Plan<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    let variables = [&variable];
    let locked = state.lock(&variables)?;
    let dims = locked.dims(0);
    check_there(dims.is_some())?;
    let (value, runs) = (locked.strings(0)?, plan(&dims.unwrap_or_default())?);
    let count = runs.starts.len() * runs.len;
    c.set_strings(
        0,
        &runs.output,
        (0..count).map(|at| value[runs.starts[at / runs.len] + at % runs.len]),
    )
}

struct Gather<T> {
    batch_dims: i64,
    of: PhantomData<fn(T)>,
}

impl<T: Element> Kernel for Gather<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Gather { batch_dims: c.attr("batch_dims")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        read::<T>(c, &|value| rows(c, value, self.batch_dims))
    }
}

struct GatherStrings {
    batch_dims: i64,
}

impl Kernel for GatherStrings {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(GatherStrings { batch_dims: c.attr("batch_dims")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        read_strings(c, &|value| rows(c, value, self.batch_dims))
    }
}

fn gather_nd<T: Element>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    read::<T>(c, &|value| slices(c, value))
}

fn gather_nd_strings(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    read_strings(c, &|value| slices(c, value))
}

register_kernel!("ResourceGather" on "CPU": Gather<T> for "dtype" in
    [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64]);
register_kernel!("ResourceGather" on "CPU": GatherStrings, types = ("dtype", &[DType::STRING]));
register_kernel!("ResourceGatherNd" on "CPU": fn gather_nd<T> for "dtype" in
    [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64]);
register_kernel!("ResourceGatherNd" on "CPU": fn gather_nd_strings,
    types = ("dtype", &[DType::STRING]));
