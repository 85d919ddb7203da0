use tenon_sdk::prelude::*;

fn nothing(_: &GradientContext<'_>) {}

fn kernel(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

register_gradient!("Nothing", nothing);
register_gradient!("Computes", kernel);
register_gradient!("Unknown", missing);

fn main() {}
