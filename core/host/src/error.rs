//! Errors of plugins: one variant for each kind of failure in each step of loading.

mod manifest;
mod start;
mod step;
mod words;

pub use manifest::ManifestError;
pub use start::StartError;
pub use step::{AbiVersion, Step};
use words::{admit, at, differences, joined, list, taken};

use crate::{permissions::Exposed, trust::TrustError};
use std::{io, path::PathBuf};
use tenon_abi::Code;
use tenon_framework::{
    KernelError,
    registry::RegistryError,
    text::{cut, cut_message, cut_text},
};
use thiserror::Error;

/// Why a plugin was not loaded, replaced or retired.
#[derive(Debug, Clone, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("plugin file {}: {kind}: {detail}", .path.display(), detail = cut_text(.detail))]
    File {
        /// The file.
        path: PathBuf,
        /// What kind of failure.
        kind: io::ErrorKind,
        /// The system's message.
        detail: String,
        /// The step that needed it.
        step: Step,
    },
    /// The path is not a regular file.
    #[error("plugin file {}: expected a regular file, found {found}", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The file is not a shared library of this system.
    #[error(
        "plugin file {}: expected a shared library of this system, found something else ({detail})",
        .path.display(), detail = cut_text(.detail)
    )]
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// The reader's message.
        detail: String,
    },
    /// The library exports no root symbol.
    #[error("{} is not a plugin: it exports neither {}* nor {}; say export_plugin!() at the crate's root", .path.display(), tenon_abi::door::ROOT_PREFIX, tenon_abi::door::C_SYMBOL)]
    NotAPlugin {
        /// The file.
        path: PathBuf,
    },
    /// The file exports two root symbols.
    #[error(
        "{} exports two root symbols, {first} and {second}: a library is one plugin; link the other as a library that does not say export_plugin!()",
        .path.display(), first = cut(.first), second = cut(.second)
    )]
    TwoRoots {
        /// The file.
        path: PathBuf,
        /// One symbol.
        first: String,
        /// The other.
        second: String,
    },
    /// The library has a root symbol and no manifest.
    #[error("plugin file {}: no section '{section}': build it again without removing sections", .path.display())]
    NoManifest {
        /// The file.
        path: PathBuf,
        /// The section's name on this system.
        section: &'static str,
    },
    /// The manifest is malformed.
    #[error("plugin file {}: manifest: {problem}", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: ManifestError,
    },
    /// The dynamic linker could not process the file safely.
    #[error(
        "plugin file {}: it is damaged: {}: build it again, or copy it again",
        .path.display(), cut_message(.detail)
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The contradiction that was found.
        detail: String,
    },
    /// The library is built for another processor.
    #[error(
        "{} is built for {found}, this machine is {expected}: build it for this machine",
        at(.plugin, .path), found = cut_text(.found)
    )]
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
    /// The library is compiled for CPU features that this machine lacks.
    #[error(
        "{} is compiled for CPU features that this machine lacks: {}; build it without target-cpu=native or on this machine",
        at(.plugin, .path), joined(.missing, ", ")
    )]
    CpuFeatures {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The missing features.
        missing: Vec<String>,
    },
    /// The library aborts on panics, which would end the process.
    #[error(
        "{} is built with panic = \"{found}\", expected \"unwind\": a panic in it would end the process; build it with panic = \"unwind\" or set host.allow_panic_abort=true",
        at(.plugin, .path), found = cut_text(.found)
    )]
    PanicStrategy {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// Its panic strategy.
        found: String,
    },
    /// The digest is not on the allow-list.
    #[error(
        "{} has digest {digest}, which is not among the {allowed} allowed ones: if you trust the file, {}",
        at(.plugin, .path), admit(.trust_file, .path), digest = cut(.digest)
    )]
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
    /// The trust file is unreadable or invalid, so that nothing may be loaded.
    #[error(
        "{}: host.trust_file is {}, and nothing is loaded: {error}",
        at(.plugin, .path), .file.display()
    )]
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
    /// Other users may write the file or replace it.
    #[error("plugin file {}: {exposed}", .path.display())]
    Writable {
        /// The file.
        path: PathBuf,
        /// The others who can write the file or a folder above it.
        exposed: Exposed,
    },
    /// The dynamic linker refuses the library.
    #[error(
        "{}: the system cannot open the library: {detail}",
        at(.plugin, .path), detail = cut_text(.detail)
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The dynamic linker's message.
        detail: String,
    },
    /// The library ended or blocked the process that opened it for a trial.
    #[error(
        "{}: a process that opened the library to try it {}: mend what runs as the library is opened, such as constructors of static objects ('tenon inspect' tries the file anew)",
        at(.plugin, .path), cut_message(.how)
    )]
    Probe {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// How the trial process ended.
        how: String,
    },
    /// The plugin has an incompatible version of the boundary.
    #[error(
        "{}: its {place} says ABI {found}, this host has {expected}: build the plugin with this host's tenon-sdk or tenon.h",
        at(.plugin, .path)
    )]
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
    /// The plugin declines this host.
    #[error(
        "{} declines a host of ABI {host}: build it with this host's tenon.h",
        at(.plugin, .path)
    )]
    Declined {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The host's version.
        host: AbiVersion,
    },
    /// The plugin's table has another size.
    #[error(
        "{}: struct_size of its table is {found}, expected {expected}: build the plugin with this host's tenon-sdk or tenon.h",
        at(.plugin, .path)
    )]
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
    #[error(
        "{}: field '{field}' of its table is {found}, which the boundary does not allow",
        at(.plugin, .path), found = cut_text(.found)
    )]
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
    #[error(
        "{}: its root module was refused: {detail}",
        at(.plugin, .path), detail = cut_text(.detail)
    )]
    Root {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The reason.
        detail: String,
    },
    /// A shared type has another layout.
    #[error(
        "{}: a shared type has another layout: {difference}: build the plugin with this host's tenon-sdk",
        at(.plugin, .path), difference = cut_text(.difference)
    )]
    Layout {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// The path of fields to the first difference; the whole report is in the log.
        difference: String,
    },
    /// The plugin's own `open` failed.
    #[error("{} failed to open: {error}", at(.plugin, .path))]
    Start {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// Its code and message.
        error: KernelError,
    },
    /// The plugin's own `register_all` failed.
    #[error("{} failed to register: {error}", at(.plugin, .path))]
    Register {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// Its code and message.
        error: KernelError,
    },
    /// Manifest and registrations differ.
    #[error("{}: {}", at(.plugin, .path), differences(.missing, .surplus))]
    Differs {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// Entries of the manifest that were not registered.
        missing: Vec<String>,
        /// Registrations that the manifest lacks.
        surplus: Vec<String>,
    },
    /// The registrations are invalid, or conflict with existing ones.
    #[error("{}: {}", at(.plugin, .path), list(.errors))]
    Commit {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// All errors.
        errors: Vec<RegistryError>,
    },
    /// A plugin that is to be isolated failed in its own process.
    #[error(
        "{}, in a process of its own: {message}",
        at(.plugin, .path), message = cut_message(.message)
    )]
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
    #[error("{}: a plugin of this name is {}", at(.plugin, .path), taken(.loaded))]
    NameTaken {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// File of the other plugin; `None` when it is linked into the host.
        loaded: Option<PathBuf>,
    },
    /// No plugin of this name is in use.
    #[error(
        "no plugin named '{plugin}' is loaded; loaded are: {}",
        joined(.loaded, ", "), plugin = cut(.plugin)
    )]
    NotLoaded {
        /// The name.
        plugin: String,
        /// The names of the loaded plugins.
        loaded: Vec<String>,
    },
    /// The plugin is part of the host.
    #[error(
        "plugin {plugin} is linked into the host: it can be neither replaced nor retired",
        plugin = cut(.plugin)
    )]
    Linked {
        /// The name.
        plugin: String,
    },
    /// The registry refuses to remove the plugin.
    #[error("plugin {plugin} cannot be retired: {}", list(.errors), plugin = cut(.plugin))]
    Retire {
        /// The name.
        plugin: String,
        /// The reasons.
        errors: Vec<RegistryError>,
    },
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
