//! Kernels that update variables. Those that only pass values on, as `ReadVariableOp` does, come
//! with `tenon-data` for every device type.
//!
//! The value lies in the device's memory, and the command writes it there, after the call has
//! given up the lock: the host lets nobody else use the value before the command is done.

use super::{Launch, Operand};
use tenon_sdk::{KernelError, author::ComputeContext, element::Number, register_kernel};

fn update<T: Number>(
    c: &ComputeContext<'_>,
    name: &'static str,
    combine: fn(T, T) -> T,
) -> Result<(), KernelError> {
    let (state, launch) = (c.state(), Launch::new(c)?);
    let variable = state.input_variable(0)?;
    let variables = [&variable];
    let mut locked = state.lock(&variables)?;
    let value = Operand::<T>::new(&locked.update(0)?)?;
    let dims = locked.dims(0).unwrap_or_default();
    if dims != c.dims(1) {
        return Err(KernelError::invalid_argument(format!(
            "value: expected the shape of the variable, {dims:?}, found {:?}",
            c.dims(1)
        )));
    }
    let by = launch.input::<T>(1)?;
    launch.enqueue(name, move |memory| {
        let (before, by) = (value.read(memory)?, by.read(memory)?);
        value.write(memory, |value| {
            for ((value, before), by) in value.iter_mut().zip(before).zip(by) {
                *value = combine(before, by);
            }
        })
    })
}

fn assign_add<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    update::<T>(c, "assign_add", |value, by| value.add(by))
}

fn assign_sub<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    update::<T>(c, "assign_sub", |value, by| value.sub(by))
}

register_kernel!(
    "AssignAddVariableOp" on "ACCEL": fn assign_add<T> for "dtype" in [f32, f64, i32]
);
register_kernel!(
    "AssignSubVariableOp" on "ACCEL": fn assign_sub<T> for "dtype" in [f32, f64, i32]
);
