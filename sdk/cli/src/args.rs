//! The command line.

use crate::{
    about, bench, checkpoint, cluster, demo, dev, error::CliError, proxy, quantize, run,
    saved_model, serve, top, trust, tune,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::{num::NonZeroUsize, path::PathBuf};
use tenon_benchkit::wanted::Shapes;
use tenon_runtime::{framework::knob::parse_setting, host::pool::MAX_THREADS};

/// Runs dataflow graphs on kernels and devices that plugins bring.
#[derive(Debug, Parser)]
#[command(name = "tenon", version, long_version = about::version(), arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// What every subcommand takes.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub struct Global {
    /// Load this plugin before those that are found by search; may be repeated
    #[arg(long = "plugin", value_name = "FILE", global = true)]
    pub plugins: Vec<PathBuf>,
    /// Load this plugin into a process of its own, so that its faults are contained; may be repeated
    #[arg(long, value_name = "FILE", global = true)]
    pub isolate: Vec<PathBuf>,
    /// Set a knob, such as accel.fail_command_after=3; may be repeated
    #[arg(long, value_name = "NAME=VALUE", global = true)]
    pub set: Vec<String>,
    /// Run nodes on another device where theirs is not there or has no kernel for them, which else is an error
    #[arg(long, global = true)]
    pub soft_placement: bool,
    /// Print results as one JSON value
    #[arg(long, global = true)]
    pub json: bool,
}

impl Global {
    /// The settings of `--set`, with what other options set; all that starts a runtime takes them from there.
    pub fn settled(self) -> Global {
        let Global { mut set, .. } = self;
        if self.soft_placement {
            set.insert(0, "runtime.soft_placement=true".to_owned());
        }
        Global { set, ..self }
    }

    /// The settings of `--set`: each a knob's name and its value.
    ///
    /// # Errors
    /// A setting without `=`.
    pub fn settings(&self) -> Result<Vec<(String, String)>, CliError> {
        self.set.iter().map(|text| parse_setting(text).map_err(CliError::Set)).collect()
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List plugins, devices, ops and kernels
    #[command(after_long_help = "Example:\n  tenon list 'Reduce*' MatMul --device CPU")]
    List(ListArgs),
    /// Show what a plugin's file says, then load it and show what that says
    #[command(long_about = INSPECT, after_long_help = "Example:\n  tenon inspect libmy_ops.so --no-load")]
    Inspect(InspectArgs),
    /// Run a graph, or a signature of a SavedModel
    #[command(long_about = run::ABOUT, after_long_help = run::EXAMPLE)]
    Run(run::RunArgs),
    /// Say for each node which kernels there are, which one runs, and where
    #[command(after_long_help = "Example:\n  tenon explain model.pb layer/y")]
    Explain(ExplainArgs),
    /// Make a graph of 8 bits of a frozen graph of floats
    #[command(long_about = quantize::ABOUT, after_long_help = quantize::EXAMPLE)]
    Quantize(quantize::QuantizeArgs),
    /// Start a cluster on this machine
    #[command(long_about = cluster::ABOUT, after_long_help = cluster::EXAMPLE)]
    Cluster(cluster::ClusterArgs),
    /// Serve sessions to clients of TensorFlow's protocol
    #[command(long_about = serve::ABOUT, after_long_help = serve::EXAMPLE)]
    Serve(Box<serve::ServeArgs>),
    /// Give clients without TLS a local endpoint of a server with TLS
    #[command(long_about = proxy::ABOUT, after_long_help = proxy::EXAMPLE)]
    Proxy(proxy::ProxyArgs),
    /// Show what a running process does
    #[command(long_about = top::ABOUT, after_long_help = top::EXAMPLE)]
    Top(top::TopArgs),
    /// Time the kernels that could run a graph, for policy 'measured'
    #[command(long_about = tune::ABOUT, after_long_help = tune::EXAMPLE)]
    Tune(tune::TuneArgs),
    /// List, show, convert and compare checkpoints
    #[command(long_about = checkpoint::ABOUT, after_long_help = checkpoint::EXAMPLE)]
    Checkpoint(checkpoint::CheckpointArgs),
    /// Show and run models that TensorFlow or Keras saved
    #[command(name = "saved-model", long_about = saved_model::ABOUT, after_long_help = saved_model::EXAMPLE)]
    SavedModel(saved_model::SavedModelArgs),
    /// Run a digit classifier on real images, on each device and on both
    #[command(after_long_help = "Example:\n  tenon demo")]
    Demo(demo::DemoArgs),
    /// Put plugins where every tenon of this user finds them
    #[command(after_long_help = "Example:\n  tenon install libmy_ops.so")]
    Install(InstallArgs),
    /// Take a plugin out of where `install` put it
    #[command(after_long_help = "Example:\n  tenon uninstall my-ops")]
    Uninstall(UninstallArgs),
    /// Keep the list of plugin files that may be loaded
    #[command(long_about = trust::ABOUT, after_long_help = trust::EXAMPLE)]
    Trust(trust::TrustArgs),
    /// Make a folder with a plugin to begin with: it builds, and its tests pass
    #[command(after_long_help = "Example:\n  tenon new my-op --kind op --lang rust --sdk ../tenon")]
    New(NewArgs),
    /// Print the folder of the SDK's source, with the examples that the guides name
    #[command(after_long_help = "Example:\n  tenon sdk")]
    Sdk,
    /// Find out whether a plugin keeps its promises
    #[command(
        long_about = CHECK,
        after_long_help = "Example:\n  tenon check libmy_ops.so --op MyOps --junit check.xml"
    )]
    Check(CheckArgs),
    /// Do the work of `check`, in a process of its own
    #[command(hide = true)]
    CheckWorker,
    /// Watch a plugin's source, and replace it in a running session by each build that is right
    #[command(long_about = dev::ABOUT, after_long_help = dev::EXAMPLE)]
    Dev(Box<dev::DevArgs>),
    /// Compute the calls of a plugin's own tests
    #[command(hide = true)]
    CallServer,
    /// Time two builds for `dev`, in a process of its own
    #[command(hide = true)]
    DevMeasure,
    /// Put a build in the place of another for `dev`, in a process of its own
    #[command(hide = true)]
    DevRehearse,
    /// Measure kernels side by side, and how far each is from the machine's limits
    #[command(long_about = bench::ABOUT, after_long_help = bench::EXAMPLE)]
    Bench(Box<bench::BenchArgs>),
    /// Print the script by which a shell completes this command
    #[command(
        after_long_help = "Example:\n  tenon completions bash > tenon.bash && source ./tenon.bash"
    )]
    Completions(CompletionsArgs),
    /// Write the pages of the manual, for man(1)
    #[command(after_long_help = "Example:\n  tenon man man1")]
    Man(ManArgs),
}

const CHECK: &str = "\
Find out whether a plugin keeps its promises.

Every kernel and device type that the plugin registers is run on generated inputs (empty, scalar, prime, large,
broadcast; ordinary and special values) and held against something independent: golden data, the reference
implementation of the op, or the author's own kernel labelled 'reference'. Besides results, it looks at memory
(bounds, inputs, uninitialised outputs, leaks), shapes, in-place use, calls at the same time, repeated calls,
wrong inputs, cancellation, and at replacing and retiring the plugin; of devices at memory, copies, streams,
events, faults and loss. A crash or an endless loop is a finding, not the end.

Without --full it is a sample: 12 cases of each kernel and element type, fewer (4 at least) where a plugin has
more than 1200 of these; the types of one kernel share the time over which calls are repeated. With --full each
has 60 cases, all golden data is used, nothing is shared, and the report says where the time went.

What fails is made smaller and written to a file, to be run again by --case. --keep-failures writes the inputs,
what was expected and what the kernel gave as arrays for NumPy.

What is known not to work goes into a file of exceptions, in TOML or JSON: --exceptions, else
lib<name>.exceptions.toml beside the plugin or in the current folder. An entry of 'unsupported' is not run, one of
'expected_failure' is run and has to fail:

    [[unsupported]]
    op = \"MyConv\"
    case = \"large*\"
    reason = \"the filter has to fit in the local store\"

    [[expected_failure]]
    op = \"MySoftmax\"
    dtype = \"half\"
    clause = \"values\"
    reason = \"issue 12: the sum is kept in half\"

Keys: op, kernel (a whole name as the report has it) and device, at least one of them; dtype, any element type of
the kernel; clause and case, by their names in the report; reason, in each entry. In op, kernel, device, dtype and
case a * stands for any text. An entry without clause and case covers all of a kernel. One that covers nothing, and
an expected failure that passes, fail the check.

A kernel of which nothing was run, since this machine lacks a feature that it needs, or since it declines or refuses
every case, is neither right nor broken: it is named, and counted in the last line. With --strict that is a failure,
unless an entry of the exceptions covers the kernel.

A kernel that ends its process is told with the case. Where other kernels ran in that process before, it is tried alone
first, and then they are, in processes that check their heap: the one that corrupts memory is told, not the one that
dies of it.

The exit code is 0 where nothing is broken, else 1.";

const INSPECT: &str = "\
Show what a plugin's file says, then load it and show what that says.

First the file is read and its manifest printed: nothing of the plugin runs. Then the plugin is loaded as any command
would load it, into another process first and then into this one, and taken out again: code of it runs, its static
constructors among it. With --no-load only the file is read.";

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only ops, plugins or, with --knobs, knobs of this name, in which * stands for any text
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Only this device type and kernels for it; may be repeated
    #[arg(long = "device", value_name = "TYPE", conflicts_with = "knobs")]
    pub devices: Vec<String>,
    /// List the knobs with their values instead
    #[arg(long)]
    pub knobs: bool,
}

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The plugin's file
    pub file: PathBuf,
    /// Read the file only: nothing of this or any other plugin runs
    #[arg(long)]
    pub no_load: bool,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The graph: a binary GraphDef
    #[arg(value_name = "GRAPH.pb")]
    pub graph: PathBuf,
    /// Only this node
    pub node: Option<String>,
    /// Show the passes over the graph of a step that fetches these; without it, what no node uses is fetched
    #[arg(long = "fetch", value_name = "NAME", num_args = 1..)]
    pub fetches: Vec<String>,
    /// Shapes of placeholders that leave theirs open
    #[arg(long = "shape", value_name = "NAME=SHAPE,...", value_parser = Shapes::parse)]
    pub shapes: Option<Shapes>,
    /// Tensors that this step feeds; without it, every placeholder
    #[arg(long = "feed", value_name = "NAME", num_args = 1.., requires = "fetches")]
    pub feeds: Vec<String>,
    /// Device for nodes that name none, as for `run`
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
}

#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The plugins' files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct UninstallArgs {
    /// The plugin's name, as `list` and its manifest say it, or the name of its file
    pub name: String,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder for them; it is made where it is not there
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

#[derive(Debug, Args)]
pub struct NewArgs {
    /// Name of the plugin: lower-case letters, digits and '-'
    pub name: String,
    /// What it brings
    #[arg(long, value_enum, default_value = "op")]
    pub kind: NewKind,
    /// What it is written in
    #[arg(long, value_enum, default_value = "rust")]
    pub lang: NewLang,
    /// Name of the op, such as RmsNorm; the plugin's name in camel case without this option
    #[arg(long, value_name = "NAME")]
    pub op: Option<String>,
    /// What the op computes in the beginning (with --kind op, in Rust)
    #[arg(long, value_enum, default_value = "elementwise")]
    pub template: NewTemplate,
    /// Source of the SDK, a clone; else what TENON_SDK names, what came with this command, or the clone that built it
    #[arg(long, value_name = "PATH")]
    pub sdk: Option<PathBuf>,
    /// The folder to make; the name without this option
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
}

/// What a new plugin brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NewKind {
    /// An op with a kernel
    Op,
    /// A kernel of a standard op
    Kernel,
    /// A device type with memory of its own, and a kernel for it
    Device,
}

/// What a new op computes in the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NewTemplate {
    /// Each element by itself
    Elementwise,
    /// Each row by itself: a sum over the last dimension, and what follows from it
    Rowwise,
    /// A product of matrices
    Matmul,
}

/// What a new plugin is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NewLang {
    /// Rust
    Rust,
    /// C11
    C,
    /// C++17
    Cpp,
    /// CUDA C++ for NVIDIA's GPUs, with kernels that nvcc builds
    Cuda,
}

impl NewLang {
    /// Whether cargo builds it.
    pub fn is_rust(self) -> bool {
        self == NewLang::Rust
    }

    /// The commands that build and test it.
    pub fn commands(self) -> (&'static str, &'static str) {
        match self {
            NewLang::Rust => ("cargo build --release", "cargo test"),
            NewLang::C | NewLang::Cpp | NewLang::Cuda => ("make", "make test"),
        }
    }

    /// The file with the plugin.
    pub fn source(self) -> &'static str {
        match self {
            NewLang::Rust => "src/lib.rs",
            NewLang::C => "plugin.c",
            NewLang::Cpp | NewLang::Cuda => "plugin.cpp",
        }
    }
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The plugin's file; with --case, the one that the case names, unless another is given
    #[arg(value_name = "PLUGIN", required_unless_present = "case")]
    pub file: Option<PathBuf>,
    /// Check only this op; may be repeated
    #[arg(long = "op", value_name = "NAME")]
    pub ops: Vec<String>,
    /// Check only this device type and kernels for it; may be repeated
    #[arg(long = "device", value_name = "TYPE")]
    pub devices: Vec<String>,
    /// Write a report for continuous integration, in JUnit's form
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Check more cases of each kernel and for longer, not a sample
    #[arg(long)]
    pub full: bool,
    /// Fail where nothing of a kernel or device was run, unless an exception says why
    #[arg(long)]
    pub strict: bool,
    /// What is known to be unsupported or broken, in TOML or JSON
    #[arg(long, value_name = "FILE")]
    pub exceptions: Option<PathBuf>,
    /// Folder with golden data
    #[arg(long, value_name = "DIR")]
    pub goldens: Option<PathBuf>,
    /// Generate other cases
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Processes that check; one per core without this option
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Seconds within which every step has to return
    #[arg(long, value_name = "S", default_value = "20", value_parser = seconds)]
    pub timeout: f64,
    /// Seconds after which no further kernel is begun; those that are left fail the check
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub time: Option<f64>,
    /// Folder for what reproduces failures; tenon-check without this option
    #[arg(long, value_name = "DIR")]
    pub reproducers: Option<PathBuf>,
    /// Write inputs, expectation and result of each failing case into a folder under DIR, as .npy files
    #[arg(long, value_name = "DIR")]
    pub keep_failures: Option<PathBuf>,
    /// Run again what such a file holds
    #[arg(long, value_name = "FILE")]
    pub case: Option<PathBuf>,
}

pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds, from 0.001 to 86400".to_owned()),
    }
}

/// A number of threads.
pub fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let expected = || format!("expected a number of threads, from 1 to {MAX_THREADS}");
    text.parse()
        .ok()
        .filter(|&threads: &NonZeroUsize| threads.get() <= MAX_THREADS)
        .ok_or_else(expected)
}

pub fn feed(text: &str) -> Result<(String, PathBuf), String> {
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
    fn a_number_of_threads_has_a_limit() {
        assert_eq!(threads("1024").map(NonZeroUsize::get), Ok(MAX_THREADS));
        for text in ["0", "1025", "1000000000", "-1", "many"] {
            assert!(threads(text).unwrap_err().contains("from 1 to 1024"), "{text}");
        }
    }

    #[test]
    fn a_time_limit_is_a_number_of_seconds() {
        assert_eq!(seconds("1.5"), Ok(1.5));
        for text in ["0", "-1", "nan", "1e9", "soon"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_feed_is_cut_at_the_first_equals_sign() {
        assert_eq!(feed("x:0=a=b.npy"), Ok(("x:0".to_owned(), PathBuf::from("a=b.npy"))));
        assert!(feed("x").is_err() && feed("=f.npy").is_err() && feed("x=").is_err());
    }
}
