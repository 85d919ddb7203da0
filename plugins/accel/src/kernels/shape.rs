//! Kernels that move elements.

use super::Launch;
use tenon_reference::array;
use tenon_sdk::{
    KernelError, author::ComputeContext, element::Number, geometry::TransposePlan, register_kernel,
};

fn transpose<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    if c.dims(1).len() != 1 {
        let found = c.dims(1);
        return Err(KernelError::invalid_argument(format!(
            "perm: expected a vector, found shape {found:?}"
        )));
    }
    let plan = TransposePlan::new(c.dims(0), &c.integers(1)?)?;
    let launch = Launch::new(c)?;
    let (x, y) = (launch.input::<T>(0)?, launch.output::<T>(0, plan.output_dims())?);
    launch.enqueue("transpose", move |memory| {
        let x = x.read(memory)?;
        y.write(memory, |y| array::transpose(&plan, &x, y))
    })
}

register_kernel!(
    "Transpose" on "ACCEL": fn transpose<T> for "T" in [f32, f64, i32, i64],
    host_memory = &["perm"]
);
