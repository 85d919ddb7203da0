//! Tensors that a plugin keeps beyond a call: the elements of a stack.

use crate::resources::Named;
use std::sync::{Mutex, PoisonError};
use tenon_sdk::{
    abi::{KeptTensor, ResourceType, Slot},
    author::{Ref, host, resource_type},
    prelude::*,
};

/// A tensor of the host that this plugin holds.
struct Kept(*mut KeptTensor);

// SAFETY: the host's services for kept tensors take any thread, and a kept tensor is not changed.
unsafe impl Send for Kept {}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: `keep` gave it, and it is given back once.
        unsafe { host().release.expect("the host fills every entry")(self.0) };
    }
}

impl Kept {
    fn of(slot: &Slot) -> Result<Kept, KernelError> {
        // SAFETY: a set slot of the running call.
        let kept = unsafe { host().keep.expect("the host fills every entry")(slot) };
        if kept.is_null() {
            return Err(KernelError::invalid_argument("x: there is no tensor to keep"));
        }
        Ok(Kept(kept))
    }

    fn view(&self) -> Slot {
        let mut slot = Slot::EMPTY;
        // SAFETY: a kept tensor, and a place for what it shows.
        unsafe { host().view.expect("the host fills every entry")(self.0, &mut slot) };
        slot
    }
}

type Stack = Mutex<Vec<Kept>>;

static STACK: ResourceType = resource_type::<Stack>("zoo.Stack");

fn stack(c: &ComputeContext<'_>, named: &Named) -> Result<Ref<Stack>, KernelError> {
    // SAFETY: `STACK` is the type of boxed `Stack`s.
    unsafe {
        c.state().find_or_make(&named.container, &named.name, &STACK, || Ok(Stack::default()))
    }
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
        let kept = Kept::of(c.slot(0)?)?;
        let mut tensors = stack.lock().unwrap_or_else(PoisonError::into_inner);
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
        let tensors = stack.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = tensors.last().ok_or_else(empty)?.view();
        // SAFETY: the op takes floats only; the tensor is kept while the stack is locked.
        let x =
            unsafe { std::slice::from_raw_parts(slot.data.cast::<f32>(), slot.elements as usize) };
        c.output::<f32>(0, &[])?.data[0] = x.iter().sum();
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
        let top = stack.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let kept = top.ok_or_else(empty)?;
        // SAFETY: the call's own services, and a tensor that is kept until the end of this function.
        let code = unsafe {
            let services = &*c.raw().services;
            services.output_kept.expect("the host fills every entry")(c.raw().record, 0, kept.0)
        };
        if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, "cannot return the tensor")) }
    }
}

register_kernel!("ZooKeptPop" on "CPU": Pop);
