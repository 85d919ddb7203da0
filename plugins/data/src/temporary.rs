//! References that are passed on, and reference variables of one step.

use tenon_sdk::prelude::*;

fn identity(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    state.output_ref(&state.input_ref(0)?, 0)
}

register_kernel!("RefIdentity" on "CPU": fn identity);

fn select(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let index = c.input::<i32>(0)?;
    let (&[index], []) = (index.data, index.dims) else {
        return Err(KernelError::invalid_argument(format!(
            "index: expected a scalar, found shape {:?}",
            index.dims
        )));
    };
    let count = c.input_count() - 1;
    let at = usize::try_from(index).ok().filter(|&at| at < count).ok_or_else(|| {
        KernelError::invalid_argument(format!("index: expected one in [0, {count}), found {index}"))
    })?;
    let state = c.state();
    state.output_ref(&state.input_ref(at + 1)?, 0)
}

register_kernel!("RefSelect" on "CPU": fn select);

/// Which variable of its step a node means.
struct Temporary {
    name: String,
}

impl Temporary {
    fn new(c: &CreateContext<'_>) -> Result<Temporary, KernelError> {
        let name: &str = c.attr("var_name")?;
        let name = if name.is_empty() { c.node() } else { name };
        Ok(Temporary { name: name.to_owned() })
    }

    /// Each iteration of a loop has a variable of its own.
    fn name(&self, c: &ComputeContext<'_>) -> String {
        let (frame, iteration) = c.frame_iteration();
        format!("{}/{frame}:{iteration}", self.name)
    }
}

struct Make {
    which: Temporary,
    dtype: DType,
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Make { which: Temporary::new(c)?, dtype: c.attr("dtype")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let name = self.which.name(c);
        state.output_ref(&state.variable(&state.step_container(), &name, self.dtype)?, 0)
    }
}

register_kernel!("TemporaryVariable" on "CPU": Make);

struct Destroy(Temporary);

impl Kernel for Destroy {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Temporary::new(c).map(Destroy)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.input_ref(0)?;
        state.lock(&[&variable])?.output(0, 0)?;
        let (container, name) = (state.step_container(), self.0.name(c));
        if state.remove_variable(&container, &name)? {
            return Ok(());
        }
        Err(KernelError::new(
            Code::NOT_FOUND,
            format!(
                "var_name: expected that of a TemporaryVariable of this step, found '{}', which there is not, or \
                 not any more",
                self.0.name
            ),
        ))
    }
}

register_kernel!("DestroyTemporaryVariable" on "CPU": Destroy);
