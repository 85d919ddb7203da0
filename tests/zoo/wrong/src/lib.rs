//! Ops whose ordinary kernel is wrong, each in one way that a check has to find and to name.
//!
//! Beside it each op has the same kernel done right: under the label `right`, of which a check must say
//! nothing, and under `reference`, the specification that both are held against.

mod memory;
mod process;
mod state;
mod values;

use tenon_sdk::prelude::*;

tenon_sdk::export_plugin!();

/// A vector or whatever else, in and out.
fn same(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.input(0))
}

/// y from x, element by element, whatever the plugin's way.
fn map(c: &ComputeContext<'_>, f: impl Fn(f32) -> f32) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = f(*x));
    Ok(())
}

/// An op on `CPU` from the float `x` to the float `y` of the same shape, with a wrong kernel and two right ones.
macro_rules! wrong_op {
    ($op:literal, $wrong:ident, $right:ident, $summary:literal $(, $key:ident = $value:expr)*) => {
        tenon_sdk::prelude::register_op!(
            $op,
            inputs = &["x: float"],
            outputs = &["y: float"],
            shape = crate::same,
            summary = $summary
            $(, $key = $value)*
        );
        crate::wrong_kernels!($op, $wrong, $right);
    };
}

/// A wrong kernel of an op on `CPU`, and two right ones.
macro_rules! wrong_kernels {
    ($op:literal, $wrong:ident, $right:ident $(, $key:ident = $value:expr)*) => {
        tenon_sdk::prelude::register_kernel!($op on "CPU": fn $wrong $(, $key = $value)*);
        tenon_sdk::prelude::register_kernel!(
            $op on "CPU": fn $right, label = "right" $(, $key = $value)*
        );
        tenon_sdk::prelude::register_kernel!(
            $op on "CPU": fn $right, label = "reference", on_request = true $(, $key = $value)*
        );
    };
}

pub(crate) use {wrong_kernels, wrong_op};
