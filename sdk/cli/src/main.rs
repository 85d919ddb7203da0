//! The `tenon` command: makes, lists, checks and measures plugins, and runs, explains and quantises
//! graphs.
//!
//! What it is: one module for each subcommand, with the arguments in `args`, the output in `output`
//! and `table`, and the start of the runtime in `start`.
//!
//! What it is not: the work itself. Sessions are in `tenon-runtime`, checks in `tenon-testkit`,
//! timing in `tenon-benchkit`, figures over HTTP in `tenon-monitor`, quantisation in
//! `tenon-quantize`, files of checkpoints in `tenon-bundle`, saved models in `tenon-import`; a subcommand reads arguments, calls these, and prints. Plugins are loaded from
//! their files; no plugin is linked in.
//!
//! # Invariants
//! - Results go to standard output, as aligned tables or, with `--json`, as one JSON value (in
//!   `tenon dev`, one for each event); everything else goes to standard error.
//! - The exit code is 0, or 1 after an error, or 2 for a command line that is wrong.
//! - Text of plugins, graphs and other processes is escaped before it reaches a terminal
//!   (`output`).
//! - Files are written whole or not at all.
//! - The first call of `main` is `tenon_runtime::isolate::work`: a process that was started to run
//!   an isolated plugin goes no further.

mod about;
mod args;
mod bench;
mod calls;
mod check;
mod checkpoint;
mod cluster;
mod demo;
mod dev;
mod error;
mod explain;
mod inspect;
mod install;
mod list;
mod new;
mod output;
mod profiler;
mod progress;
mod proxy;
mod quantize;
mod run;
mod saved_model;
mod sdk;
mod serve;
mod start;
mod table;
mod top;
mod trust;
mod tune;

use args::{Cli, Command};
use clap::Parser;
use error::CliError;
use std::process::ExitCode;
use tenon_runtime::host::ExitGuard;
use tenon_testkit::check::worker;

fn main() -> ExitCode {
    tenon_runtime::isolate::work();
    let Cli { global, command } = Cli::parse();
    let cli = Cli { global: global.settled(), command };
    match dispatch(&cli) {
        Ok(code) => code,
        Err(error) => {
            output::complain(&format!("error [{}]: {error}", error.code().name()));
            match error {
                CliError::Usage(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn dispatch(cli: &Cli) -> Result<ExitCode, CliError> {
    let global = &cli.global;
    // What ends by `exit` from here on has not done what it was asked for. A process that examines or measures another
    // one's plugin says so itself.
    let _guard = match &cli.command {
        Command::CheckWorker | Command::DevMeasure | Command::DevRehearse | Command::CallServer => {
            None
        }
        _ => Some(ExitGuard::new()),
    };
    match &cli.command {
        Command::Check(args) => return check::check(global, args),
        Command::Checkpoint(args) => return checkpoint::checkpoint(global, args),
        Command::CheckWorker => return Ok(worker::main()),
        Command::CallServer => calls::serve(global),
        Command::Dev(args) => return dev::dev(global, args),
        Command::DevMeasure => return Ok(dev::measure_worker()),
        Command::DevRehearse => return Ok(dev::rehearse_worker()),
        Command::Bench(args) => return bench::bench(global, args),
        Command::List(args) => list::list(global, args),
        Command::Inspect(args) => inspect::inspect(global, args),
        Command::Run(args) => run::run(global, args),
        Command::SavedModel(args) => saved_model::saved_model(global, args),
        Command::Explain(args) => explain::explain(global, args),
        Command::Demo(args) => demo::demo(global, args),
        Command::Install(args) => install::install(global, args),
        Command::Uninstall(args) => install::uninstall(global, args),
        Command::Completions(args) => about::completions(global, args),
        Command::Man(args) => about::man(global, args),
        Command::Trust(args) => trust::trust(global, args),
        Command::New(args) => new::new(global, args),
        Command::Sdk => sdk::sdk(global),
        Command::Quantize(args) => quantize::quantize(global, args),
        Command::Tune(args) => tune::tune(global, args),
        Command::Cluster(args) => cluster::cluster(global, args),
        Command::Serve(args) => serve::serve(global, args),
        Command::Proxy(args) => proxy::proxy(global, args),
        Command::Top(args) => top::top(global, args),
    }?;
    Ok(ExitCode::SUCCESS)
}
