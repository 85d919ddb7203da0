//! The command line.

use crate::bench;
use clap::{Args, Parser, Subcommand};
use std::{num::NonZeroUsize, path::PathBuf};

/// Runs dataflow graphs on kernels and devices that plugins bring.
#[derive(Debug, Parser)]
#[command(name = "tenon", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// What every subcommand takes.
#[derive(Debug, Args)]
pub struct Global {
    /// Load this plugin before those that are found by search; may be repeated
    #[arg(long = "plugin", value_name = "FILE", global = true)]
    pub plugins: Vec<PathBuf>,
    /// Set a knob, such as accel.fail_command_after=3; may be repeated
    #[arg(long, value_name = "NAME=VALUE", global = true)]
    pub set: Vec<String>,
    /// Print results as one JSON value
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List plugins, devices, ops and kernels
    List(ListArgs),
    /// Show what a plugin's file says, without running it, and what loading it says
    Inspect(InspectArgs),
    /// Run a graph
    Run(RunArgs),
    /// Say for each node which kernels there are, which one runs, and where
    Explain(ExplainArgs),
    /// Run a digit classifier on real images, on each device and on both
    Demo,
    /// Put a plugin where every tenon of this user finds it
    Install(InstallArgs),
    /// Measure kernels side by side, and how far each is from the machine's limits
    #[command(long_about = bench::ABOUT)]
    Bench(bench::BenchArgs),
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// List the knobs with their values instead
    #[arg(long)]
    pub knobs: bool,
}

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The plugin's file
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The graph: a binary GraphDef
    #[arg(value_name = "GRAPH.pb")]
    pub graph: PathBuf,
    /// Feed a tensor from a file
    #[arg(long = "feed", value_name = "NAME=FILE.npy", num_args = 1.., value_parser = feed)]
    pub feeds: Vec<(String, PathBuf)>,
    /// Fetch a tensor; NAME alone is NAME:0
    #[arg(long = "fetch", value_name = "NAME", num_args = 1..)]
    pub fetches: Vec<String>,
    /// Run a node without fetching anything of it
    #[arg(long = "target", value_name = "NAME", num_args = 1..)]
    pub targets: Vec<String>,
    /// Write each fetched tensor to a .npy file in this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Device for nodes that name none, such as ACCEL:0
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Threads that compute, the caller's included; one per core without this option
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Run so many steps
    #[arg(long, value_name = "N", default_value = "1")]
    pub repeat: NonZeroUsize,
    /// Write a trace of the last step, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The graph: a binary GraphDef
    #[arg(value_name = "GRAPH.pb")]
    pub graph: PathBuf,
    /// Only this node
    pub node: Option<String>,
    /// Device for nodes that name none, as for `run`
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
}

#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The plugin's file
    pub file: PathBuf,
}

fn feed(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(file)))
        }
        _ => Err("expected NAME=FILE.npy".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_feed_is_cut_at_the_first_equals_sign() {
        assert_eq!(feed("x:0=a=b.npy"), Ok(("x:0".to_owned(), PathBuf::from("a=b.npy"))));
        assert!(feed("x").is_err() && feed("=f.npy").is_err() && feed("x=").is_err());
    }
}
