//! Resource variables: handles lead to them.
//!
//! What only passes values on is registered for every device type: the value of a variable lies in the memory of the device
//! that its nodes are placed on. What computes with elements is for the CPU, and for devices whose plugins have such kernels.

use crate::{
    naming::Named,
    update::{Sum, check_shape, check_there, count_up, elementwise},
};
use tenon_sdk::prelude::*;

struct VarHandle(Named);

/// The shared name by which a node asks for a variable without a name; it is TensorFlow's.
const ANONYMOUS: &str = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

impl Kernel for VarHandle {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let mut named = Named::new(c)?;
        if named.name == ANONYMOUS {
            named.name.clear();
        }
        Ok(VarHandle(named))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Named { container, name, dtype } = &self.0;
        let variable = c.state().variable(container, name, *dtype)?;
        c.output_handle(0, &variable)
    }
}

register_kernel!("VarHandleOp" on "DEFAULT": VarHandle);

fn read(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    state.output_value(&state.input_variable(0)?, 0)
}

register_kernel!("ReadVariableOp" on "DEFAULT": fn read);

struct Assign {
    validate_shape: bool,
}

impl Kernel for Assign {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Assign { validate_shape: c.attr("validate_shape")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.input_variable(0)?;
        let variables = [&variable];
        let mut locked = state.lock(&variables)?;
        if self.validate_shape {
            check_shape(c, &locked, 1)?;
        }
        locked.assign(0, 1)
    }
}

register_kernel!("AssignVariableOp" on "DEFAULT": Assign);

fn update<T: Element>(
    c: &ComputeContext<'_>,
    combine: impl Fn(T, T) -> T,
) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    let variables = [&variable];
    let mut locked = state.lock(&variables)?;
    let updated = elementwise(c, &mut locked, 1, combine);
    updated.or_else(|error| check_there(locked.has_value(0)).and(Err(error)))
}

fn assign_add<T: Sum>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    update(c, T::plus)
}

fn assign_sub<T: Sum>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    update(c, T::minus)
}

register_kernel!("AssignAddVariableOp" on "CPU": fn assign_add<T> for "dtype" in
    [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64]);
register_kernel!("AssignSubVariableOp" on "CPU": fn assign_sub<T> for "dtype" in
    [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64]);

fn is_initialized(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    let is_set = state.lock(&[&variable])?.has_value(0);
    c.output::<bool>(0, &[])?.data[0] = is_set;
    Ok(())
}

register_kernel!("VarIsInitializedOp" on "DEFAULT": fn is_initialized,
    host_memory = &["is_initialized"]);

fn shape<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    let variables = [&variable];
    let locked = state.lock(&variables)?;
    check_there(locked.has_value(0))?;
    let dims = locked.dims(0).unwrap_or_default();
    let sizes = c.output::<T>(0, &[dims.len() as i64])?.data;
    for (size, &dim) in sizes.iter_mut().zip(&dims) {
        *size = T::from_f64(dim as f64);
        if size.to_f64() as i64 != dim {
            return Err(KernelError::invalid_argument(format!(
                "out_type: a dimension of {dim} does not fit it, set it to int64"
            )));
        }
    }
    Ok(())
}

register_kernel!("VariableShape" on "DEFAULT": fn shape<T> for "out_type" in [i32, i64],
    host_memory = &["output"]);

struct CountUpTo<T> {
    limit: i64,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T: Number> Kernel for CountUpTo<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(CountUpTo { limit: c.attr("limit")?, of: std::marker::PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.input_variable(0)?;
        let variables = [&variable];
        let before = count_up::<T>(&mut state.lock(&variables)?, self.limit)?;
        c.output::<T>(0, &[])?.data[0] = before;
        Ok(())
    }
}

register_kernel!("ResourceCountUpTo" on "CPU": CountUpTo<T> for "T" in [i32, i64]);
