//! Reference slots, for graphs whose clients use variables by reference.

use crate::resources::Named;
use tenon_sdk::prelude::*;

register_op!(
    "ZooRefVariable",
    outputs = &["ref: Ref(float)"],
    attrs = &["container: string = ''", "shared_name: string = ''"],
    stateful = true,
    summary = "A reference to a variable of floats.",
);

struct RefVariable(Named);

impl Kernel for RefVariable {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(RefVariable)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.variable(&self.0.container, &self.0.name, DType::FLOAT)?;
        state.output_ref(&variable, 0)
    }
}

register_kernel!("ZooRefVariable" on "CPU": RefVariable);

register_op!(
    "ZooRefAssign",
    inputs = &["ref: Ref(float)", "value: float"],
    outputs = &["out: Ref(float)"],
    stateful = true,
    allows_uninitialized_input = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(1)),
    summary = "Gives the variable behind a reference a value, and the reference on.",
);

fn assign(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_ref(0)?;
    state.lock(&[&variable])?.assign(0, 1)?;
    state.output_ref(&variable, 0)
}

register_kernel!("ZooRefAssign" on "CPU": fn assign);

register_op!(
    "ZooRefRead",
    inputs = &["ref: Ref(float)"],
    outputs = &["value: float"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "The value behind a reference.",
);

fn read(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_ref(0)?;
    state.lock(&[&variable])?.output(0, 0)
}

register_kernel!("ZooRefRead" on "CPU": fn read);
