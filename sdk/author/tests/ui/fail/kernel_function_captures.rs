use tenon_sdk::prelude::*;

fn same(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

// A pointer says nothing at compile time about which function it is: the kernel would have to keep it.
const POINTER: fn(&ComputeContext<'_>) -> Result<(), KernelError> = same;

register_kernel!("Same" on "CPU": fn POINTER);

fn main() {}
