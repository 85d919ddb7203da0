//! Five hundred kernels of one op, told apart by their labels.
//!
//! The benchmark `load/plugin_500` loads this plugin, to measure the time that loading takes.

use tenon_sdk::prelude::*;

tenon_sdk::export_plugin!();

register_op!(
    "ZooMany",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "Returns x; its kernels differ in nothing but their labels.",
);

fn same(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.share(0, 0, c.dims(0))
}

/// One kernel for each number of three digits that begins with these.
macro_rules! kernels {
    ($($hundreds:literal)*) => { $(kernels!(@tens $hundreds: 0 1 2 3 4 5 6 7 8 9);)* };
    (@tens $hundreds:literal: $($tens:literal)*) => {
        $(kernels!(@ones $hundreds $tens: 0 1 2 3 4 5 6 7 8 9);)*
    };
    (@ones $hundreds:literal $tens:literal: $($ones:literal)*) => {
        $(register_kernel!(
            "ZooMany" on "CPU": fn same,
            label = concat!("k", $hundreds, $tens, $ones),
            on_request = true,
        );)*
    };
}

kernels!(0 1 2 3 4);
