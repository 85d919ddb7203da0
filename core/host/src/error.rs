//! What can go wrong with plugins: one variant per step of loading and failure.

mod start;
mod step;

pub use start::StartError;
pub use step::{AbiVersion, Step};

use crate::{loader::permissions::Exposed, trust::TrustError};
use std::{
    fmt, io,
    path::{Path, PathBuf},
};
use tenon_abi::Code;
use tenon_framework::{KernelError, registry::RegistryError};
use thiserror::Error;

/// What is wrong with the text of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// The section is larger than any manifest.
    #[error("the section has {bytes} bytes, expected at most {limit}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The section reaches past the end of the file.
    #[error(
        "the section cannot be read ({detail}): the file is cut short or damaged, build it again"
    )]
    Unreadable {
        /// What the reader says.
        detail: String,
    },
    /// Bytes that are not UTF-8.
    #[error("line {line} is not UTF-8")]
    Utf8 {
        /// The line, from 1.
        line: usize,
    },
    /// A line that is no record.
    #[error("line {line} is no record ({detail}): {text:?}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What the reader says.
        detail: String,
        /// The beginning of the line.
        text: String,
    },
    /// No record of kind `plugin`.
    #[error(
        "no record of kind 'plugin': say export_plugin!() at the crate's root, or TENON_MANIFEST in C"
    )]
    NoPlugin,
    /// Two records of kind `plugin`.
    #[error("two records of kind 'plugin', of {first} and {second}: a library is one plugin")]
    TwoPlugins {
        /// One name.
        first: String,
        /// The other.
        second: String,
    },
}

/// Why a plugin was not loaded, replaced or retired.
#[derive(Debug, Clone, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("plugin file {}: {kind}: {detail}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What kind of failure.
        kind: io::ErrorKind,
        /// What the system says.
        detail: String,
        /// The step that needed it.
        step: Step,
    },
    /// Something else than a regular file.
    #[error("plugin file {}: expected a regular file, found {found}", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// No shared library of this system.
    #[error("plugin file {}: expected a shared library of this system, found something else ({detail})", .path.display())]
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        detail: String,
    },
    /// A library without a door.
    #[error("{} is not a plugin: it exports neither {}* nor {}; say export_plugin!() at the crate's root", .path.display(), tenon_abi::door::ROOT_PREFIX, tenon_abi::door::C_SYMBOL)]
    NotAPlugin {
        /// The file.
        path: PathBuf,
    },
    /// Two plugins in one file.
    #[error("{} exports two root symbols, {first} and {second}: a library is one plugin; link the other as a library that does not say export_plugin!()", .path.display())]
    TwoRoots {
        /// The file.
        path: PathBuf,
        /// One symbol.
        first: String,
        /// The other.
        second: String,
    },
    /// A library with a door and no manifest.
    #[error("plugin file {}: no section '{section}': build it again without removing sections", .path.display())]
    NoManifest {
        /// The file.
        path: PathBuf,
        /// The section's name on this system.
        section: &'static str,
    },
    /// A malformed manifest.
    #[error("plugin file {}: manifest: {problem}", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: ManifestError,
    },
    /// A file that the dynamic linker could not follow.
    #[error("plugin file {}: it is damaged: {detail}: build it again, or copy it again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What contradicts what.
        detail: String,
    },
    /// Built for another processor.
    #[error("plugin {plugin} ({}) is built for {found}, this machine is {expected}: build it for this machine", .path.display())]
    Architecture {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// This machine's.
        expected: &'static str,
        /// The file's.
        found: String,
    },
    /// Compiled for CPU features that are not there.
    #[error("plugin {plugin} ({}) is compiled for CPU features that this machine lacks: {}; build it without target-cpu=native or on this machine", .path.display(), .missing.join(", "))]
    CpuFeatures {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// What is missing.
        missing: Vec<String>,
    },
    /// A panic in it would end the process.
    #[error("plugin {plugin} ({}) is built with panic = \"{found}\", expected \"unwind\": a panic in it would end the process; build it with panic = \"unwind\" or set host.allow_panic_abort=true", .path.display())]
    PanicStrategy {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// Its strategy.
        found: String,
    },
    /// The digest is not on the list.
    #[error("plugin {plugin} ({}) has digest {digest}, which is not among the {allowed} allowed ones: if you trust the file, {}", .path.display(), admit(.trust_file, .path))]
    Digest {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// SHA-256, in hexadecimal.
        digest: String,
        /// Length of the list.
        allowed: usize,
        /// The trust file in force.
        trust_file: Option<PathBuf>,
    },
    /// The trust file does not say what may be loaded.
    #[error("plugin {plugin} ({}): host.trust_file is {}, and nothing is loaded: {error}", .path.display(), .file.display())]
    TrustFile {
        /// The plugin's file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The trust file.
        file: PathBuf,
        /// What is wrong with it.
        error: TrustError,
    },
    /// Others may write the file, or put another in its place.
    #[error("plugin file {}: {exposed}", .path.display())]
    Writable {
        /// The file.
        path: PathBuf,
        /// Who else may write it, or a folder above it.
        exposed: Exposed,
    },
    /// The dynamic linker refuses the library.
    #[error("plugin {plugin} ({}): the system cannot open the library: {detail}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// What the dynamic linker says.
        detail: String,
    },
    /// It ended the process that was to try it, or held it up.
    #[error("plugin {plugin} ({}): a process that opened the library to try it {how}: mend what runs as the library is opened, such as constructors of static objects ('tenon inspect' tries the file anew)", .path.display())]
    Probe {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// What became of the process.
        how: String,
    },
    /// Another version of the boundary.
    #[error("plugin {plugin} ({}): its {place} says ABI {found}, this host has {expected}: build the plugin with this host's tenon-sdk or tenon.h", .path.display())]
    Abi {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// `manifest` or `table`.
        place: &'static str,
        /// The host's.
        expected: AbiVersion,
        /// The plugin's.
        found: AbiVersion,
    },
    /// The plugin does not want this host.
    #[error("plugin {plugin} ({}) declines a host of ABI {host}: build it with this host's tenon.h", .path.display())]
    Declined {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The host's version.
        host: AbiVersion,
    },
    /// The plugin's table has another size.
    #[error("plugin {plugin} ({}): struct_size of its table is {found}, expected {expected}: build the plugin with this host's tenon-sdk or tenon.h", .path.display())]
    TableSize {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The host's.
        expected: usize,
        /// The plugin's.
        found: u32,
    },
    /// The table lacks a required entry or holds a malformed one.
    #[error("plugin {plugin} ({}): field '{field}' of its table is {found}, which the boundary does not allow", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The field.
        field: &'static str,
        /// What is there.
        found: String,
    },
    /// The library was made by another version of `abi_stable`.
    #[error("plugin {plugin} ({}): its root module was refused: {detail}", .path.display())]
    Root {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// What was said.
        detail: String,
    },
    /// A shared type has another layout.
    #[error("plugin {plugin} ({}): a shared type has another layout: {difference}: build the plugin with this host's tenon-sdk", .path.display())]
    Layout {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The way through the fields to the first difference; the whole report is in the log.
        difference: String,
    },
    /// The plugin's own `open` failed.
    #[error("plugin {plugin} ({}) failed to open: {error}", .path.display())]
    Start {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// Its code and message.
        error: KernelError,
    },
    /// The plugin's own `register_all` failed.
    #[error("plugin {plugin} ({}) failed to register: {error}", .path.display())]
    Register {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// Its code and message.
        error: KernelError,
    },
    /// Manifest and registrations differ.
    #[error("plugin {plugin} ({}): {}", .path.display(), differences(.missing, .surplus))]
    Differs {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// What the manifest has and was not registered.
        missing: Vec<String>,
        /// What was registered and the manifest has not.
        surplus: Vec<String>,
    },
    /// Registrations that are wrong, or do not go together with what is there.
    #[error("plugin {plugin} ({}): {}", .path.display(), list(.errors))]
    Commit {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// All that is wrong.
        errors: Vec<RegistryError>,
    },
    /// A plugin that was to run in a process of its own.
    #[error("plugin {plugin} ({}), in a process of its own: {message}", .path.display())]
    Isolated {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The step that refused it.
        step: Step,
        /// The canonical code.
        code: Code,
        /// What is wrong.
        message: String,
    },
    /// Another plugin of this name is in use.
    #[error("plugin {plugin} ({}): a plugin of this name is {}", .path.display(), taken(.loaded))]
    NameTaken {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// File of the other; `None` when it is linked into the host.
        loaded: Option<PathBuf>,
    },
    /// No plugin of this name is in use.
    #[error("no plugin named '{plugin}' is loaded; loaded are: {}", .loaded.join(", "))]
    NotLoaded {
        /// The name.
        plugin: String,
        /// The names that are.
        loaded: Vec<String>,
    },
    /// A plugin that is part of the host.
    #[error("plugin {plugin} is linked into the host: it can be neither replaced nor retired")]
    Linked {
        /// The name.
        plugin: String,
    },
    /// The registry refuses to take a plugin out.
    #[error("plugin {plugin} cannot be retired: {}", list(.errors))]
    Retire {
        /// The name.
        plugin: String,
        /// Why.
        errors: Vec<RegistryError>,
    },
}

fn list<E: fmt::Display>(errors: &[E]) -> String {
    errors.iter().map(E::to_string).collect::<Vec<_>>().join("; ")
}

fn admit(trust_file: &Option<PathBuf>, path: &Path) -> String {
    match trust_file {
        Some(list) => format!("tenon trust add {} --file {}", path.display(), list.display()),
        None => "add it to host.allowed_digests".to_owned(),
    }
}

fn taken(loaded: &Option<PathBuf>) -> String {
    match loaded {
        Some(path) => format!("loaded from {}: replace it, or retire it first", path.display()),
        None => "linked into the host: leave the file out".to_owned(),
    }
}

fn differences(missing: &[String], surplus: &[String]) -> String {
    let absent = missing.iter().map(|entry| format!("{entry} is in the manifest, not registered"));
    let extra = surplus.iter().map(|entry| format!("{entry} is registered, not in the manifest"));
    let all: Vec<String> = absent.chain(extra).collect();
    format!("manifest and registrations differ: {}; build the plugin again", all.join("; "))
}

impl LoadError {
    /// The step that refused the plugin.
    pub fn step(&self) -> Step {
        match self {
            LoadError::File { step, .. } => *step,
            LoadError::NotAFile { .. } => Step::Find,
            LoadError::NotALibrary { .. }
            | LoadError::NotAPlugin { .. }
            | LoadError::TwoRoots { .. }
            | LoadError::NoManifest { .. }
            | LoadError::Manifest { .. }
            | LoadError::Damaged { .. }
            | LoadError::Architecture { .. }
            | LoadError::CpuFeatures { .. }
            | LoadError::PanicStrategy { .. } => Step::Manifest,
            LoadError::Digest { .. } | LoadError::TrustFile { .. } | LoadError::Writable { .. } => {
                Step::Trust
            }
            LoadError::Open { .. } | LoadError::Probe { .. } => Step::Open,
            LoadError::Isolated { step, .. } => *step,
            LoadError::Abi { .. }
            | LoadError::Declined { .. }
            | LoadError::TableSize { .. }
            | LoadError::Table { .. }
            | LoadError::Root { .. } => Step::Handshake,
            LoadError::Layout { .. } => Step::Layout,
            LoadError::Start { .. } => Step::Start,
            LoadError::Register { .. } => Step::Register,
            LoadError::Differs { .. } => Step::Compare,
            LoadError::Commit { .. } | LoadError::NameTaken { .. } => Step::Commit,
            LoadError::NotLoaded { .. } | LoadError::Linked { .. } | LoadError::Retire { .. } => {
                Step::Retire
            }
        }
    }

    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            LoadError::File { kind: io::ErrorKind::NotFound, .. } => Code::NOT_FOUND,
            LoadError::File { kind: io::ErrorKind::PermissionDenied, .. } => {
                Code::PERMISSION_DENIED
            }
            LoadError::File { .. } => Code::UNAVAILABLE,
            LoadError::NotAFile { .. }
            | LoadError::NotALibrary { .. }
            | LoadError::NotAPlugin { .. }
            | LoadError::TwoRoots { .. } => Code::INVALID_ARGUMENT,
            LoadError::NoManifest { .. }
            | LoadError::Manifest { .. }
            | LoadError::Damaged { .. } => Code::DATA_LOSS,
            LoadError::Digest { .. } | LoadError::TrustFile { .. } | LoadError::Writable { .. } => {
                Code::PERMISSION_DENIED
            }
            LoadError::Isolated { code, .. } => *code,
            LoadError::Start { error, .. } | LoadError::Register { error, .. } => error.code,
            LoadError::Differs { .. } | LoadError::Table { .. } => Code::INTERNAL,
            LoadError::Commit { errors, .. } | LoadError::Retire { errors, .. } => {
                errors.first().map_or(Code::INTERNAL, RegistryError::code)
            }
            LoadError::NameTaken { .. } => Code::ALREADY_EXISTS,
            LoadError::NotLoaded { .. } => Code::NOT_FOUND,
            LoadError::Architecture { .. }
            | LoadError::CpuFeatures { .. }
            | LoadError::PanicStrategy { .. }
            | LoadError::Open { .. }
            | LoadError::Probe { .. }
            | LoadError::Abi { .. }
            | LoadError::Declined { .. }
            | LoadError::TableSize { .. }
            | LoadError::Root { .. }
            | LoadError::Layout { .. }
            | LoadError::Linked { .. } => Code::FAILED_PRECONDITION,
        }
    }
}
