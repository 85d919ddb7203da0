//! The `tenon` command: makes, lists, checks and measures plugins, runs, explains and quantises graphs, shows what
//! the project does.
//!
//! Results go to standard output, as aligned tables or, with `--json`, as one JSON value; everything else
//! goes to standard error. The exit code is 0, or 1 after an error, or 2 for a command line that is wrong.

mod about;
mod args;
mod bench;
mod calls;
mod check;
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
mod quantize;
mod run;
mod sdk;
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
            ExitCode::FAILURE
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
        Command::CheckWorker => return Ok(worker::main()),
        Command::CallServer => calls::serve(global),
        Command::Dev(args) => return dev::dev(global, args),
        Command::DevMeasure => return Ok(dev::measure_worker()),
        Command::DevRehearse => return Ok(dev::rehearse_worker()),
        Command::Bench(args) => return bench::bench(global, args),
        Command::List(args) => list::list(global, args),
        Command::Inspect(args) => inspect::inspect(global, args),
        Command::Run(args) => run::run(global, args),
        Command::Explain(args) => explain::explain(global, args),
        Command::Demo => demo::demo(global),
        Command::Install(args) => install::install(global, args),
        Command::Uninstall(args) => install::uninstall(global, args),
        Command::Completions(args) => about::completions(global, args),
        Command::Man(args) => about::man(global, args),
        Command::Trust(args) => trust::trust(global, args),
        Command::New(args) => new::new(global, args),
        Command::Sdk => sdk::sdk(global),
        Command::Quantize(args) => quantize::quantize(global, args),
        Command::Tune(args) => tune::tune(global, args),
        Command::Top(args) => top::top(global, args),
    }?;
    Ok(ExitCode::SUCCESS)
}
