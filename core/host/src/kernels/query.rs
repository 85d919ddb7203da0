//! Ops that return shapes. Their outputs are in host memory.

use super::COST;
use tenon_author::{ComputeContext, reg::Numerics, register_kernel};
use tenon_framework::{KernelError, element::Element};

/// The integer types of returned shapes.
trait Integer: Element {
    /// `None` when the value does not fit.
    fn from_i64(value: i64) -> Option<Self>;
}

impl Integer for i32 {
    fn from_i64(value: i64) -> Option<i32> {
        value.try_into().ok()
    }
}

impl Integer for i64 {
    fn from_i64(value: i64) -> Option<i64> {
        Some(value)
    }
}

fn told<T: Integer>(value: i64) -> Result<T, KernelError> {
    T::from_i64(value).ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "{value} does not fit {}: set out_type to int64",
            T::DTYPE
        ))
    })
}

fn tell_shape<T: Integer>(c: &ComputeContext<'_>, at: usize) -> Result<(), KernelError> {
    let dims = c.dims(at);
    let output = c.output::<T>(at, &[dims.len() as i64])?;
    for (value, &size) in output.data.iter_mut().zip(dims) {
        *value = told(size)?;
    }
    Ok(())
}

fn shape<T: Integer>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    (0..c.input_count()).try_for_each(|at| tell_shape::<T>(c, at))
}

fn size<T: Integer>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let elements = c.slot(0)?.elements as i64;
    c.output::<T>(0, &[])?.data[0] = told(elements)?;
    Ok(())
}

fn rank(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output::<i32>(0, &[])?.data[0] = told(c.dims(0).len() as i64)?;
    Ok(())
}

register_kernel!("Shape" on "DEFAULT": fn shape<T> for "out_type" in [i32, i64],
    host_memory = &["output"], cost = COST, numerics = Numerics::EXACT);
register_kernel!("ShapeN" on "DEFAULT": fn shape<T> for "out_type" in [i32, i64],
    host_memory = &["output"], cost = COST, numerics = Numerics::EXACT);
register_kernel!("Size" on "DEFAULT": fn size<T> for "out_type" in [i32, i64],
    host_memory = &["output"], cost = COST, numerics = Numerics::EXACT);
register_kernel!("Rank" on "DEFAULT": fn rank,
    host_memory = &["output"], cost = COST, numerics = Numerics::EXACT);
