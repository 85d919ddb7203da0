//! Stacks: a step's tensors, last in, first out.

use crate::{
    handle_of_step::{self, Way},
    tensors::Held,
};
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
use tenon_sdk::{growth, prelude::*};

/// What names of stacks begin with in the container of the step.
const STACKS: &str = "_stacks";

/// A stack. Once it is closed it holds nothing, and takes and gives nothing.
struct Stack {
    name: String,
    dtype: DType,
    /// How many tensors it may hold; `None` for any number.
    limit: Option<usize>,
    /// What it holds; `None` once it is closed.
    tensors: Mutex<Option<Vec<Held>>>,
}

impl ResourceValue for Stack {
    const NAME: &'static str = "tensorflow::Stack";
}

impl Stack {
    fn refuse(&self, why: &str) -> KernelError {
        let Stack { name, dtype, .. } = self;
        KernelError::invalid_argument(format!("stack '{name}' of {dtype}: {why}"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Held>>> {
        // Its users return errors before they change it.
        self.tensors.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn push(&self, tensor: Held) -> Result<(), KernelError> {
        if tensor.dtype() != self.dtype {
            return Err(self.refuse(&format!("cannot push a tensor of {}", tensor.dtype())));
        }
        let mut tensors = self.lock();
        let tensors = tensors.as_mut().ok_or_else(|| self.refuse("it is closed"))?;
        if self.limit.is_some_and(|limit| tensors.len() >= limit) {
            let held = tensors.len();
            return Err(self.refuse(&format!("it is full: it holds {held} tensors, its max_size")));
        }
        growth::push(tensors, tensor)
    }

    fn pop(&self) -> Result<Held, KernelError> {
        let mut tensors = self.lock();
        let tensors = tensors.as_mut().ok_or_else(|| self.refuse("it is closed"))?;
        tensors.pop().ok_or_else(|| self.refuse("it is empty"))
    }
}

/// Makes a stack under a name of its own in the container of the step.
struct Make {
    name: String,
    dtype: DType,
    way: Way,
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let name: &str = c.attr("stack_name")?;
        let name = if name.is_empty() { c.node() } else { name };
        Ok(Make { name: name.to_owned(), dtype: c.attr("elem_type")?, way: Way::of(c) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        // The first version has no limit.
        let limit = match c.input_count() {
            0 => None,
            _ => usize::try_from(c.integer(0, "max_size")?).ok(),
        };
        let name = format!("{}_{}", self.name, MADE.fetch_add(1, Ordering::Relaxed));
        let (key, state) = (format!("{STACKS}{name}"), c.state());
        let told = name.clone();
        let stack = state.find_or_create(&state.step_container(), &key, || {
            Ok(Stack { name, dtype: self.dtype, limit, tensors: Mutex::new(Some(Vec::new())) })
        })?;
        self.way.output(c, &stack, [STACKS, &told])
    }
}

register_kernel!("Stack" on "CPU": Make);
register_kernel!("StackV2" on "CPU": Make);

fn push(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let stack = handle_of_step::input::<Stack>(c)?;
    stack.push(Arc::new(c.keep(1)?))?;
    c.share(1, 0, c.dims(1))
}

register_kernel!("StackPush" on "CPU": fn push);
register_kernel!("StackPushV2" on "CPU": fn push);

struct Pop {
    dtype: DType,
}

impl Kernel for Pop {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Pop { dtype: c.attr("elem_type")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let stack = handle_of_step::input::<Stack>(c)?;
        if stack.dtype != self.dtype {
            return Err(stack.refuse(&format!("cannot pop a tensor of {}", self.dtype)));
        }
        let tensor = stack.pop()?;
        c.output_kept(0, &tensor)
    }
}

register_kernel!("StackPop" on "CPU": Pop);
register_kernel!("StackPopV2" on "CPU": Pop);

fn close(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let held = handle_of_step::input::<Stack>(c)?.lock().take();
    // Tensors go after the lock does.
    drop(held);
    Ok(())
}

register_kernel!("StackClose" on "CPU": fn close);
register_kernel!("StackCloseV2" on "CPU": fn close);
