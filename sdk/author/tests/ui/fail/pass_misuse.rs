use tenon_sdk::{author::PassContext, prelude::*};

fn run(_: &PassContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

register_pass!("without_help": run);
register_pass!(run, "Has no name.");
register_pass!(early "when": run, "Runs early.");
register_pass!("a_closure": |graph| Ok(()), "Is no path to a function.");

fn main() {}
