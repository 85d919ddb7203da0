//! Stacks: a step's tensors, last in, first out.

use crate::tensors::Held;
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
use tenon_sdk::{growth, prelude::*};

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
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let name: &str = c.attr("stack_name")?;
        let name = if name.is_empty() { c.node() } else { name };
        Ok(Make { name: name.to_owned(), dtype: c.attr("elem_type")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let limit = usize::try_from(c.integer(0, "max_size")?).ok();
        let name = format!("{}_{}", self.name, MADE.fetch_add(1, Ordering::Relaxed));
        let (key, state) = (format!("_stacks{name}"), c.state());
        let stack = state.find_or_create(&state.step_container(), &key, || {
            Ok(Stack { name, dtype: self.dtype, limit, tensors: Mutex::new(Some(Vec::new())) })
        })?;
        c.output_handle(0, &stack)
    }
}

register_kernel!("StackV2" on "CPU": Make);

fn push(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let stack = c.state().input_resource::<Stack>(0)?;
    stack.push(Arc::new(c.keep(1)?))?;
    c.share(1, 0, c.dims(1))
}

register_kernel!("StackPushV2" on "CPU": fn push);

struct Pop {
    dtype: DType,
}

impl Kernel for Pop {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Pop { dtype: c.attr("elem_type")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let stack = c.state().input_resource::<Stack>(0)?;
        if stack.dtype != self.dtype {
            return Err(stack.refuse(&format!("cannot pop a tensor of {}", self.dtype)));
        }
        let tensor = stack.pop()?;
        c.output_kept(0, &tensor)
    }
}

register_kernel!("StackPopV2" on "CPU": Pop);

fn close(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let held = c.state().input_resource::<Stack>(0)?.lock().take();
    // Tensors go after the lock does.
    drop(held);
    Ok(())
}

register_kernel!("StackCloseV2" on "CPU": fn close);
