//! Reference variables: the variables of older graphs, whose outputs are references.

use crate::{
    naming::Named,
    update::{Sum, check_shape, count_up, elementwise},
};
use tenon_sdk::prelude::*;

struct Variable(Named);

impl Kernel for Variable {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Variable)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Named { container, name, dtype } = &self.0;
        let state = c.state();
        let variable = state.variable(container, name, *dtype)?;
        state.output_ref(&variable, 0)
    }
}

register_kernel!("Variable" on "CPU": Variable);
register_kernel!("VariableV2" on "CPU": Variable);

fn is_initialized(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_ref(0)?;
    let is_set = state.lock(&[&variable])?.has_value(0);
    c.output::<bool>(0, &[])?.data[0] = is_set;
    Ok(())
}

register_kernel!("IsVariableInitialized" on "CPU": fn is_initialized);

struct Assign {
    validate_shape: bool,
}

impl Kernel for Assign {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Assign { validate_shape: c.attr("validate_shape")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.input_ref(0)?;
        let variables = [&variable];
        let mut locked = state.lock(&variables)?;
        if self.validate_shape {
            check_shape(c, &locked, 1)?;
        }
        locked.assign(0, 1)?;
        drop(locked);
        state.output_ref(&variable, 0)
    }
}

register_kernel!("Assign" on "CPU": Assign);

fn update<T: Element>(
    c: &ComputeContext<'_>,
    combine: impl Fn(T, T) -> T,
) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_ref(0)?;
    let variables = [&variable];
    elementwise(c, &mut state.lock(&variables)?, 1, combine)?;
    state.output_ref(&variable, 0)
}

fn assign_add<T: Sum>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    update(c, T::plus)
}

fn assign_sub<T: Sum>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    update(c, T::minus)
}

register_kernel!("AssignAdd" on "CPU": fn assign_add<T> for "T" in
    [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64]);
register_kernel!("AssignSub" on "CPU": fn assign_sub<T> for "T" in
    [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64]);

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
        let variable = state.input_ref(0)?;
        let variables = [&variable];
        let before = count_up::<T>(&mut state.lock(&variables)?, self.limit)?;
        c.output::<T>(0, &[])?.data[0] = before;
        Ok(())
    }
}

register_kernel!("CountUpTo" on "CPU": CountUpTo<T> for "T" in [i32, i64]);
