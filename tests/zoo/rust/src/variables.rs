//! Variables: resources of the host that hold one tensor, and that kernels of every plugin may update.

use crate::resources::Named;
use std::sync::atomic::{AtomicI64, Ordering};
use tenon_sdk::prelude::*;

register_op!(
    "ZooVariable",
    outputs = &["handle: resource"],
    attrs = &["container: string = ''", "shared_name: string = ''", "shape: shape"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        let shape: PartialShape = c.attr("shape")?;
        let of_value = match shape.dims() {
            Some(dims) => c.shape_of(dims),
            None => c.unknown(),
        };
        c.add_output_handle(0, DType::FLOAT, of_value)?;
        c.set_output(0, c.scalar())
    },
    summary = "The handle of a variable of floats.",
);

struct Variable(Named);

impl Kernel for Variable {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Variable)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.variable(&self.0.container, &self.0.name, DType::FLOAT)?;
        c.output_handle(0, &variable)
    }
}

register_kernel!("ZooVariable" on "CPU": Variable);

register_op!(
    "ZooVariableAssign",
    inputs = &["handle: resource", "value: float"],
    stateful = true,
    shape = |_: &ShapeContext<'_>| Ok(()),
    summary = "Gives the variable a value.",
);

fn assign(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    state.lock(&[&variable])?.assign(0, 1)
}

register_kernel!("ZooVariableAssign" on "CPU": fn assign);

register_op!(
    "ZooVariableRead",
    inputs = &["handle: resource"],
    outputs = &["value: float"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| match c.input_handle(0).first() {
        Some(&(_, shape)) => c.set_output(0, shape),
        None => c.set_output(0, c.unknown()),
    },
    summary = "The variable's value, without a copy.",
);

fn read(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    state.lock(&[&variable])?.output(0, 0)
}

register_kernel!("ZooVariableRead" on "CPU": fn read);

register_op!(
    "ZooVariableValue",
    inputs = &["handle: resource"],
    outputs = &["value: float"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.unknown()),
    summary = "The variable's value, which the host reads under no lock of the call.",
);

fn value(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    state.output_value(&state.input_variable(0)?, 0)
}

register_kernel!("ZooVariableValue" on "CPU": fn value);

register_op!(
    "ZooVariableSum",
    inputs = &["handle: resource"],
    outputs = &["sum: float"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "The sum of the variable's value, which is looked at under its lock.",
);

fn sum(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    let owned = [&variable];
    let locked = state.lock(&owned)?;
    c.output::<f32>(0, &[])?.data[0] = locked.view::<f32>(0)?.data.iter().sum();
    Ok(())
}

register_kernel!("ZooVariableSum" on "CPU": fn sum);

register_op!(
    "ZooVariableSnapshot",
    inputs = &["handle: resource", "amount: float"],
    outputs = &["before: float", "after: float"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.scalar())?;
        c.set_output(1, c.scalar())
    },
    summary = "Adds an amount to every element; the sum of a snapshot taken before, and the one of the value.",
);

fn snapshot(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (state, amount) = (c.state(), amount(c, 1)?);
    let variable = state.input_variable(0)?;
    let before = state.snapshot(&variable)?;
    let owned = [&variable];
    let mut locked = state.lock(&owned)?;
    let value = locked.view_mut::<f32>(0)?.data;
    value.iter_mut().for_each(|x| *x += amount);
    c.output::<f32>(1, &[])?.data[0] = value.iter().sum();
    c.output::<f32>(0, &[])?.data[0] = before.view::<f32>()?.data.iter().sum();
    Ok(())
}

register_kernel!("ZooVariableSnapshot" on "CPU": fn snapshot);

register_op!(
    "ZooVariableAdd",
    inputs = &["handle: resource", "amount: float"],
    stateful = true,
    shape = |_: &ShapeContext<'_>| Ok(()),
    summary = "Adds an amount to every element of the variable, in place.",
);

/// The single element of an amount.
fn amount(c: &ComputeContext<'_>, input: usize) -> Result<f32, KernelError> {
    c.input::<f32>(input)?
        .data
        .first()
        .copied()
        .ok_or_else(|| KernelError::invalid_argument("amount: expected one element, found none"))
}

fn add(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (state, amount) = (c.state(), amount(c, 1)?);
    let variable = state.input_variable(0)?;
    let owned = [&variable];
    let mut locked = state.lock(&owned)?;
    locked.view_mut::<f32>(0)?.data.iter_mut().for_each(|x| *x += amount);
    Ok(())
}

register_kernel!("ZooVariableAdd" on "CPU": fn add);

register_op!(
    "ZooVariableMove",
    inputs = &["from: resource", "to: resource", "amount: float"],
    stateful = true,
    shape = |_: &ShapeContext<'_>| Ok(()),
    summary = "Takes an amount from every element of one variable and adds it to another's.",
);

/// Two of these with the variables the other way round would deadlock, did the host not order the locks.
fn transfer(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (state, amount) = (c.state(), amount(c, 2)?);
    let (from, to) = (state.input_variable(0)?, state.input_variable(1)?);
    let owned = [&from, &to];
    let mut locked = state.lock(&owned)?;
    locked.view_mut::<f32>(0)?.data.iter_mut().for_each(|x| *x -= amount);
    locked.view_mut::<f32>(1)?.data.iter_mut().for_each(|x| *x += amount);
    Ok(())
}

register_kernel!("ZooVariableMove" on "CPU": fn transfer);

register_op!(
    "ZooCallCount",
    outputs = &["count: int64"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "How often this node's kernel was called: it is created once per session.",
);

#[derive(Default)]
struct CallCount {
    calls: AtomicI64,
}

impl Kernel for CallCount {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(CallCount::default())
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.output::<i64>(0, &[])?.data[0] = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(())
    }
}

register_kernel!("ZooCallCount" on "CPU": CallCount);
