//! What zoo-second became: its one kernel adds the factor where it multiplied.
//!
//! To the host this is plugin `zoo-second`, version 0.2.0 (see `build.rs`).

use tenon_sdk::prelude::*;

tenon_sdk::export_plugin!();

register_op!(
    "ZooSecondScale",
    inputs = &["handle: resource", "factor: float"],
    stateful = true,
    shape = |_: &ShapeContext<'_>| Ok(()),
    summary = "Adds a number to every element of a variable, in place.",
);

fn add(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let amount =
        *c.input::<f32>(1)?.data.first().ok_or_else(|| {
            KernelError::invalid_argument("factor: expected one element, found none")
        })?;
    let state = c.state();
    let variable = state.input_variable(0)?;
    let owned = [&variable];
    let mut locked = state.lock(&owned)?;
    let value = locked.update(0)?;
    if value.dtype != DType::FLOAT {
        return Err(KernelError::invalid_argument(format!(
            "the variable: expected float, found {}",
            value.dtype
        )));
    }
    // SAFETY: host memory of `elements` floats, which are this call's while the variable is locked.
    let elements = unsafe {
        std::slice::from_raw_parts_mut(value.data.cast::<f32>(), value.elements as usize)
    };
    elements.iter_mut().for_each(|x| *x += amount);
    Ok(())
}

register_kernel!("ZooSecondScale" on "CPU": fn add);
