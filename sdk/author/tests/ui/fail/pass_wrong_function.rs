use tenon_sdk::{author::PassContext, prelude::*};

fn nothing(_: &PassContext<'_>) {}

fn kernel(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

register_pass!("gives_nothing": nothing, "Gives no result.");
register_pass!("computes": kernel, "Is a kernel.");
register_pass!("unknown": missing, "Is not there.");

fn main() {}
