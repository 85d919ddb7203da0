//! Tensors that a plugin keeps beyond a call: the elements of a stack.

use crate::resources::Named;
use std::sync::{Mutex, PoisonError};
use tenon_sdk::prelude::*;

#[derive(Default)]
struct Stack(Mutex<Vec<Kept>>);

impl ResourceValue for Stack {
    const NAME: &'static str = "zoo.Stack";
}

fn stack(c: &ComputeContext<'_>, named: &Named) -> Result<ResourceHandle<Stack>, KernelError> {
    c.state().find_or_create(&named.container, &named.name, || Ok(Stack::default()))
}

fn empty() -> KernelError {
    KernelError::new(Code::FAILED_PRECONDITION, "the stack is empty: push a tensor first")
}

register_op!(
    "ZooKeptPush",
    inputs = &["x: float"],
    outputs = &["depth: int64"],
    attrs = &["container: string = ''", "shared_name: string"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "Keeps x on a stack; how many are on it.",
);

struct Push(Named);

impl Kernel for Push {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Push)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let stack = stack(c, &self.0)?;
        let kept = c.keep(0)?;
        let mut tensors = stack.0.lock().unwrap_or_else(PoisonError::into_inner);
        tensors.push(kept);
        c.output::<i64>(0, &[])?.data[0] = tensors.len() as i64;
        Ok(())
    }
}

register_kernel!("ZooKeptPush" on "CPU": Push);

register_op!(
    "ZooKeptPeek",
    outputs = &["sum: float"],
    attrs = &["container: string = ''", "shared_name: string"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "The sum of the tensor on top of the stack, which stays there.",
);

struct Peek(Named);

impl Kernel for Peek {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Peek)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let stack = stack(c, &self.0)?;
        let tensors = stack.0.lock().unwrap_or_else(PoisonError::into_inner);
        let top = tensors.last().ok_or_else(empty)?;
        c.output::<f32>(0, &[])?.data[0] = top.view::<f32>()?.data.iter().sum();
        Ok(())
    }
}

register_kernel!("ZooKeptPeek" on "CPU": Peek);

register_op!(
    "ZooKeptPop",
    outputs = &["x: float"],
    attrs = &["container: string = ''", "shared_name: string"],
    stateful = true,
    summary = "Takes the tensor from the top of the stack and returns it, without a copy.",
);

struct Pop(Named);

impl Kernel for Pop {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Pop)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let stack = stack(c, &self.0)?;
        let top = stack.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        c.output_kept(0, &top.ok_or_else(empty)?)
    }
}

register_kernel!("ZooKeptPop" on "CPU": Pop);
