//! What the command says of itself: its version, its manual, and what shells need to complete it.

use crate::{
    args::{Cli, CompletionsArgs, Global, ManArgs},
    error::CliError,
    output::{print, print_json},
};
use clap::CommandFactory;
use serde_json::json;
use std::{fs, sync::LazyLock};
use tenon_runtime::framework::abi::{ABI_MAJOR, ABI_MINOR};

static VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}\nABI {ABI_MAJOR}.{ABI_MINOR}\ncommit {}\ntarget {}",
        env!("CARGO_PKG_VERSION"),
        env!("TENON_COMMIT"),
        env!("TENON_TARGET"),
    )
});

/// What `--version` says; `-V` only the first line.
pub fn version() -> &'static str {
    VERSION.as_str()
}

/// Prints the script by which a shell completes the command.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(global: &Global, args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tenon", &mut script);
    let script = String::from_utf8_lossy(&script);
    match global.json {
        true => print_json(&json!({ "shell": args.shell.to_string(), "script": script })),
        false => print(&script),
    }
}

/// Writes a page of the manual for the command and one for each of its subcommands.
///
/// # Errors
/// The folder cannot be written.
pub fn man(global: &Global, args: &ManArgs) -> Result<(), CliError> {
    let failed = |source| CliError::File { file: args.dir.clone(), done: "written", source };
    fs::create_dir_all(&args.dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.dir).map_err(failed)?;
    match global.json {
        true => print_json(&json!({ "folder": args.dir.display().to_string() })),
        false => print(&format!("{}: see tenon.1\n", args.dir.display())),
    }
}
