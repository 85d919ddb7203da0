use tenon_sdk::prelude::*;

fn same(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

register_kernel!("Same" on "CPU": fn same, prioritty = 5);

fn main() {}
