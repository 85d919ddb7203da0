//! Resources by their handles.

use tenon_sdk::prelude::*;

/// Removes a resource from its container, and the value of a variable.
struct Destroy {
    ignores_absence: bool,
}

impl Kernel for Destroy {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Destroy { ignores_absence: c.attr("ignore_lookup_error")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        if !state.has_name(0)? {
            return Ok(());
        }
        match state.remove_input(0) {
            Err(error) if error.code == Code::NOT_FOUND && self.ignores_absence => Ok(()),
            result => result,
        }
    }
}

register_kernel!("DestroyResourceOp" on "DEFAULT": Destroy);

fn is_counted(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output::<bool>(0, &[])?.data[0] = !c.state().has_name(0)?;
    Ok(())
}

register_kernel!("IsResourceHandleRefCounting" on "CPU": fn is_counted);

/// Returns a handle of the resource. It keeps the resource as any handle does, so that it stays valid where TensorFlow's
/// would lead nowhere.
fn another(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output_kept(0, &c.keep(0)?)
}

register_kernel!("MakeWeakResourceHandle" on "CPU": fn another);

/// Checks that there is a variable. Reads never copy for longer than they must, so that there is nothing to set.
fn check_variable(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let variable = state.input_variable(0)?;
    if state.lock(&[&variable])?.has_value(0) {
        return Ok(());
    }
    Err(KernelError::new(
        Code::FAILED_PRECONDITION,
        "resource: the variable has no value: run its initialiser first",
    ))
}

register_kernel!("DisableCopyOnRead" on "DEFAULT": fn check_variable);
