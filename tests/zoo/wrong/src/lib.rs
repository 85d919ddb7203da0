//! Ops whose ordinary kernel is wrong, each in one way that a check must find and name.
//!
//! What it is: a test of `tenon check`. Beside its wrong kernel each op has the same kernel done
//! right under the label `right`, for which a check must report nothing, and the specification of
//! both under the label `reference`.
//!
//! What it is not: kernels that a host must survive (`tests/zoo/faulty`, `tests/zoo/fatal`).
//!
//! # Invariants
//! - Each op is wrong in one way, and the test names the clause that must find it.

mod attributes;
mod heap;
mod memory;
mod process;
mod reach;
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

/// 2x as a specification says it; the kernels that are held against it have a way of their own.
fn twice_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    map(c, |x| (2.0 * f64::from(x)) as f32)
}

/// An op on `CPU` from the float `x` to the float `y` of the same shape, with a wrong kernel, a right one and
/// the specification.
macro_rules! wrong_op {
    ($op:literal, $wrong:ident, $right:ident, $reference:path, $summary:literal) => {
        tenon_sdk::prelude::register_op!(
            $op,
            inputs = &["x: float"],
            outputs = &["y: float"],
            shape = crate::same,
            summary = $summary
        );
        crate::wrong_kernels!($op, $wrong, $right, $reference);
    };
}

/// A wrong kernel of an op on `CPU`, a right one and the specification.
macro_rules! wrong_kernels {
    ($op:literal, $wrong:ident, $right:ident, $reference:path $(, $key:ident = $value:expr)*) => {
        const _: () = {
            use $reference as reference;
            tenon_sdk::prelude::register_kernel!($op on "CPU": fn $wrong $(, $key = $value)*);
            tenon_sdk::prelude::register_kernel!(
                $op on "CPU": fn $right, label = "right" $(, $key = $value)*
            );
            tenon_sdk::prelude::register_kernel!(
                $op on "CPU": fn reference, label = "reference", on_request = true
                $(, $key = $value)*
            );
        };
    };
}

pub(crate) use {wrong_kernels, wrong_op};
