//! The command line of `tenon dev`.

use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub const ABOUT: &str = "\
Watch a plugin's source, and have each build of it take the place of the last one in a running session.

A round goes: build; check, in processes apart; time new against old, in a process apart; run the session's steps in a
process apart; replace the plugin in the session, which runs steps all the while; say what differs. Where one of these
fails, or a process dies or does not come back, the old build goes on running, and the reason is told, with the signal
and the kernel. The session has a node for each op, kernel and element type of the plugin, or is a graph of your own
(--graph).

The command that builds is yours: `cargo build --release` where the folder has a Cargo.toml, `make` where it has a
Makefile, else what --build says. target/, hidden files and what compilers write are not watched.

Kernels that failed when they were looked at last, in this run or one before, are looked at in full first; then every
kernel and element type is called, however long that takes. What is left of --check-time goes to looking at kernels in
full: those that are registered in the files that changed first, then ops that --op names, then those whose registration
changed. What was left out comes first in the next round, and is told: \"right\" is said where every kernel was looked at
in full. `tenon check` has more cases of each.";

pub const EXAMPLE: &str = "\
Example:
  tenon dev ../my-ops --once";

#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub struct DevArgs {
    /// Folder with the plugin's source
    #[arg(value_name = "PATH", default_value = ".")]
    pub path: PathBuf,
    /// The command that builds, run by the shell in that folder
    #[arg(long, value_name = "COMMAND", requires = "artifact")]
    pub build: Option<String>,
    /// The plugin's file that a build makes; found without this option by cargo and make
    #[arg(long, value_name = "FILE")]
    pub artifact: Option<PathBuf>,
    /// Have cargo build without --release
    #[arg(long)]
    pub debug: bool,
    /// Watch this folder too; may be repeated
    #[arg(long = "watch", value_name = "DIR")]
    pub watched: Vec<PathBuf>,
    /// Check and time this op first; may be repeated
    #[arg(long = "op", value_name = "NAME")]
    pub ops: Vec<String>,
    /// Run this graph, not one made of the plugin's ops
    #[arg(long, value_name = "GRAPH.pb")]
    pub graph: Option<PathBuf>,
    /// Feed the graph from a file
    #[arg(long = "feed", value_name = "NAME=FILE.npy", num_args = 1.., requires = "graph", value_parser = crate::args::feed)]
    pub feeds: Vec<(String, PathBuf)>,
    /// Fetch a tensor of the graph
    #[arg(long = "fetch", value_name = "NAME", num_args = 1.., requires = "graph")]
    pub fetches: Vec<String>,
    /// Run a node of the graph without fetching anything of it
    #[arg(long = "target", value_name = "NAME", num_args = 1.., requires = "graph")]
    pub targets: Vec<String>,
    /// Seconds to look at kernels in full, once each was called; the kernel that is begun is ended
    #[arg(long, value_name = "S", default_value = "2", value_parser = crate::args::seconds)]
    pub check_time: f64,
    /// Seconds to time in
    #[arg(long, value_name = "S", default_value = "1", value_parser = crate::args::seconds)]
    pub bench_time: f64,
    /// Seconds within which every step of a check has to return
    #[arg(long, value_name = "S", default_value = "5", value_parser = crate::args::seconds)]
    pub timeout: f64,
    /// Folder with golden data; as for `check`
    #[arg(long, value_name = "DIR")]
    pub goldens: Option<PathBuf>,
    /// What is known to be unsupported or broken; as for `check`
    #[arg(long, value_name = "FILE")]
    pub exceptions: Option<PathBuf>,
    /// One round; the exit code is 0 where the build is right
    #[arg(long)]
    pub once: bool,
    /// Look at the files every 0.3 seconds, where the system tells of no changes
    #[arg(long)]
    pub poll: bool,
}
