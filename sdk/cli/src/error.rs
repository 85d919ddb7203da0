//! Errors of the command.

use crate::{checkpoint::CheckpointError, dev::DevError, trust::ListError};
use std::{io, path::PathBuf};
use tenon_benchkit::BenchError;
use tenon_import::ImportError;
use tenon_monitor::MonitorError;
use tenon_quantize::QuantizeError;
use tenon_runtime::framework::text::{cut, cut_message, cut_text};
use tenon_runtime::{
    RuntimeError,
    framework::{Code, knob::KnobError},
    host::LoadError,
    proto::ProtoError,
};
use tenon_testkit::{TestkitError, npy::NpyError};
use thiserror::Error;

/// Why the command fails.
#[derive(Debug, Error)]
pub enum CliError {
    /// The runtime, a session or a step.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// Figures that cannot be served.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// A graph that cannot be quantised.
    #[error(transparent)]
    Quantize(#[from] QuantizeError),
    /// A plugin.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// `--set`.
    #[error("--set: {0}")]
    Set(KnobError),
    /// An array.
    #[error(transparent)]
    Array(#[from] NpyError),
    /// A file that is not a graph.
    #[error("{}: {source}", file.display())]
    Graph {
        /// The file.
        file: PathBuf,
        /// The problem.
        source: ProtoError,
    },
    /// A file or folder that cannot be read or written.
    #[error("{}: cannot be {done}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// `read` or `written`.
        done: &'static str,
        /// The system's message.
        source: io::Error,
    },
    /// Data that a graph cannot be calibrated with.
    #[error("calibration data {}: {reason}", file.display(), reason = cut_text(.reason))]
    Calibration {
        /// The file or folder.
        file: PathBuf,
        /// The problem.
        reason: String,
    },
    /// Standard output.
    #[error("standard output: {0}")]
    Output(io::Error),
    /// Nothing to do.
    #[error("expected a tensor to fetch or a node to run: give --fetch NAME or --target NAME")]
    NothingToRun,
    /// Two fetches whose files have one name.
    #[error(
        "fetches '{first}' and '{second}' would both be written to {file}: fetch them in two runs, or into \
         two folders",
        first = cut(.first), second = cut(.second), file = cut(.file)
    )]
    SameFile {
        /// The earlier one.
        first: String,
        /// The later one.
        second: String,
        /// Name of the file.
        file: String,
    },
    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),
    /// The server cannot start.
    #[error(transparent)]
    Serve(#[from] tenon_cluster::ClusterError),
    /// Signals cannot be taken.
    #[error("signals cannot be taken: {0}")]
    Signals(io::Error),
    /// Named plugins that are refused; each was reported by itself.
    #[error("{count} of the named plugins cannot be used")]
    Refused {
        /// How many.
        count: usize,
    },
    /// No folder to install to.
    #[error("there is no folder for plugins: set XDG_DATA_HOME or HOME to an absolute path")]
    NoDataHome,
    /// A plugin that loads, but cannot be installed.
    #[error("{}: {reason}", file.display(), reason = cut_text(.reason))]
    Install {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A name that no plugin can have.
    #[error(
        "'{name}' is not a name for a plugin: expected lower-case letters, digits and single '-' between them, \
         beginning with a letter, such as my-op",
        name = cut(.name)
    )]
    NewName {
        /// The name.
        name: String,
    },
    /// A name that the op of a new plugin cannot have.
    #[error(
        "'{op}' is not a name for an op: expected letters and digits in camel case, beginning with a capital letter, \
         such as RmsNorm",
        op = cut(.op)
    )]
    NewOp {
        /// The name.
        op: String,
    },
    /// An option that other new plugins have.
    #[error("{option}: expected with --kind op{language}", language = if *option == "--template" { " --lang rust" } else { "" })]
    NewTemplate {
        /// The option.
        option: &'static str,
    },
    /// The pipe between a plugin's tests and this process.
    #[error("calls of a plugin's tests: {0}")]
    Calls(#[source] std::io::Error),
    /// The folder of a new plugin is there already.
    #[error("{}: is there already: choose another name, or another folder with --path", folder.display())]
    NewExists {
        /// The folder.
        folder: PathBuf,
    },
    /// A kind of plugin for which a language has no template.
    #[error(
        "--kind device --lang cuda: a device type is written in Rust, C or C++, and device type CUDA is there already: \
         expected --kind op or --kind kernel"
    )]
    NewDeviceInCuda,
    /// A place that is to hold the SDK's source, and does not.
    #[error(
        "{said} names {}, expected a clone of the repository, with sdk/author/Cargo.toml in it",
        path.display()
    )]
    NoSdk {
        /// `--sdk` or the variable.
        said: &'static str,
        /// The place.
        path: PathBuf,
    },
    /// A new plugin would have nothing to be built with.
    #[error(
        "no SDK was found, and a plugin in Rust cannot be built without it: name a clone of the repository, or \
         share/tenon/sdk of an archive of tenon, by --sdk or TENON_SDK{}; --lang c and --lang cpp need none",
        looked_in(.looked)
    )]
    NoSdkFound {
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// No plugin of that name is in the user's folder.
    #[error(
        "{}: no plugin '{name}' is installed there{}",
        folder.display(), installed(.there), name = cut(.name)
    )]
    NotInstalled {
        /// The user's folder.
        folder: PathBuf,
        /// What was asked for.
        name: String,
        /// What is there.
        there: Vec<String>,
    },
    /// Nothing is called so.
    #[error("'{name}': there is no {what} of this name{near}", name = cut(.name), near = meant(.near.as_deref()))]
    NothingNamed {
        /// What was looked for.
        what: &'static str,
        /// Its name, or a pattern.
        name: String,
        /// The nearest name.
        near: Option<String>,
    },
    /// A check that cannot be made.
    #[error(transparent)]
    Check(Box<TestkitError>),
    /// A report that cannot be written.
    #[error("the report for JUnit cannot be written: {text}", text = cut_text(.0))]
    Junit(String),
    /// No plugin and no case.
    #[error("expected a plugin to check: give its file, or --case FILE")]
    NothingToCheck,
    /// Nothing can be measured.
    #[error(transparent)]
    Bench(Box<BenchError>),
    /// A process that measures failed.
    #[error("a process that measures failed: {said}", said = cut_message(.said))]
    Child {
        /// What it says.
        said: String,
    },
    /// Nothing to develop.
    #[error(transparent)]
    Dev(#[from] DevError),
    /// A saved model.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// An option, or a command, for another kind of model.
    #[error("{option}: expected {expected}, found {}", file.display())]
    OptionOf {
        /// The option or the command.
        option: &'static str,
        /// The file or the folder that it was given with.
        file: PathBuf,
        /// What it is for.
        expected: &'static str,
    },
    /// A checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The list of trusted files.
    #[error(transparent)]
    Trust(#[from] ListError),
    /// The demo lacks what it shows.
    #[error(
        "the demo needs the devices {missing}, which plugins bring, and found none: in a clone of the \
         repository `cargo run --release -- demo` builds and finds them; elsewhere name their files with \
         --plugin FILE",
        missing = cut_text(.missing)
    )]
    DemoPlugins {
        /// Device types, joined.
        missing: String,
    },
    /// A training cannot be built, or cannot go on.
    #[error(transparent)]
    Train(#[from] tenon_training::TrainError),
    /// The demo's result is not what it should be.
    #[error("the demo failed: {text}", text = cut_text(.0))]
    Demo(String),
}

fn looked_in(folders: &[PathBuf]) -> String {
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    if names.is_empty() { String::new() } else { format!(" (looked in {})", names.join(", ")) }
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |name| format!("; did you mean '{}'?", cut(name)))
}

fn installed(names: &[String]) -> String {
    match names {
        [] => ", and no other".to_owned(),
        names => format!("; there are: {}", cut_text(&names.join(", "))),
    }
}

impl From<BenchError> for CliError {
    fn from(error: BenchError) -> CliError {
        CliError::Bench(Box::new(error))
    }
}

impl CliError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            CliError::Runtime(error) => error.code(),
            CliError::Monitor(error) => error.code(),
            CliError::Quantize(error) => error.code(),
            CliError::Load(error) => error.code(),
            CliError::Set(error) => error.code(),
            CliError::Array(error) => error.code(),
            CliError::Graph { .. }
            | CliError::Calibration { .. }
            | CliError::NothingToRun
            | CliError::OptionOf { .. }
            | CliError::SameFile { .. }
            | CliError::NewDeviceInCuda
            | CliError::NewName { .. }
            | CliError::NewOp { .. }
            | CliError::NewTemplate { .. } => Code::INVALID_ARGUMENT,
            CliError::NewExists { .. } => Code::ALREADY_EXISTS,
            CliError::NoSdk { .. }
            | CliError::NotInstalled { .. }
            | CliError::NothingNamed { .. } => Code::NOT_FOUND,
            CliError::File { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Code::NOT_FOUND
            }
            CliError::File { .. } | CliError::Output(_) => Code::UNAVAILABLE,
            CliError::Check(error) => error.code(),
            CliError::Serve(error) => error.code(),
            CliError::Bench(error) => error.code(),
            CliError::Dev(error) => error.code(),
            CliError::Checkpoint(error) => error.code(),
            CliError::Import(error) => error.code(),
            CliError::Trust(error) => error.code(),
            CliError::Train(error) => error.code(),
            CliError::NothingToCheck | CliError::Usage(_) => Code::INVALID_ARGUMENT,
            CliError::Demo(_) | CliError::Junit(_) | CliError::Child { .. } => Code::INTERNAL,
            _ => Code::FAILED_PRECONDITION,
        }
    }
}
