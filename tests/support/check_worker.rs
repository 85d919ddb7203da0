//! What a check of the tests starts as its worker: the command of the same name, without the command.

use std::process::ExitCode;

fn main() -> ExitCode {
    tenon_testkit::check::worker::main()
}
