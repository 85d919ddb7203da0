use tenon_sdk::prelude::*;

fn same<T>(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

register_kernel!("Same" on "CPU": fn same<T> for "T" in [f32, u128]);

fn main() {}
