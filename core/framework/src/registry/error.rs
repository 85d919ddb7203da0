//! What can be wrong with registrations, and what is worth a warning.

use super::plugin::PluginId;
use crate::text::{cut, cut_text};
use crate::{
    fusion::FusionError,
    knob::KnobError,
    op::{LinkError, OpError, RawError, SourceInfo},
};
use tenon_abi::{Code, DType};
use thiserror::Error;

/// What is wrong with a registration. A transaction reports all of them.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RegistryError {
    /// A plugin handed over a malformed struct.
    #[error(transparent)]
    Raw(#[from] RawError),
    /// A malformed op.
    #[error(transparent)]
    Op(#[from] OpError),
    /// A malformed fusion.
    #[error(transparent)]
    Fusion(#[from] FusionError),
    /// A malformed knob, or one declared twice.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// Two different definitions of one op.
    #[error(
        "op '{op}' is defined by {first} and otherwise by {second}: they differ in {difference}",
        op = cut(.op), difference = cut_text(.difference)
    )]
    OpConflict {
        /// The op.
        op: String,
        /// Where it is defined.
        first: Box<SourceInfo>,
        /// Where it is defined differently.
        second: Box<SourceInfo>,
        /// The part in which they differ.
        difference: String,
    },
    /// A kernel for an op that no plugin or crate defines.
    #[error(
        "{kernel}: no op '{op}' is registered: load the plugin that defines it first or too",
        kernel = cut_text(.kernel), op = cut(.op)
    )]
    UnknownOp {
        /// The kernel.
        kernel: String,
        /// The op.
        op: String,
    },
    /// A constraint on an attribute that the op does not have.
    #[error(
        "{kernel}: constraint on '{attr}', which op '{op}' does not have",
        kernel = cut_text(.kernel), attr = cut(.attr), op = cut(.op)
    )]
    UnknownAttr {
        /// The kernel.
        kernel: String,
        /// The op.
        op: String,
        /// The attribute.
        attr: String,
    },
    /// A constraint on an attribute that is not a type.
    #[error(
        "{kernel}: constraint on '{attr}' of type {found}, expected a type or list(type)",
        kernel = cut_text(.kernel), attr = cut(.attr)
    )]
    NotTypeAttr {
        /// The kernel.
        kernel: String,
        /// The attribute.
        attr: String,
        /// Its type.
        found: crate::attr::AttrType,
    },
    /// A constraint that names an attribute twice or allows no type.
    #[error(
        "{kernel}: constraint on '{attr}' {problem}",
        kernel = cut_text(.kernel), attr = cut(.attr)
    )]
    Constraint {
        /// The kernel.
        kernel: String,
        /// The attribute.
        attr: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A type that the op does not allow.
    #[error(
        "{kernel}: constraint on '{attr}' takes {found}, the op allows {allowed}",
        kernel = cut_text(.kernel), attr = cut(.attr), allowed = cut_text(.allowed)
    )]
    TypeNotAllowed {
        /// The kernel.
        kernel: String,
        /// The attribute.
        attr: String,
        /// The type.
        found: DType,
        /// Those that the op allows.
        allowed: String,
    },
    /// Host memory for an argument that the op does not have.
    #[error(
        "{kernel}: host memory for argument '{arg}', the arguments are {known}",
        kernel = cut_text(.kernel), arg = cut(.arg), known = cut_text(.known)
    )]
    UnknownArg {
        /// The kernel.
        kernel: String,
        /// The argument.
        arg: String,
        /// Those of the op.
        known: String,
    },
    /// An in-place pair that names no argument.
    #[error(
        "{kernel}: in-place pair ({input}, {output}) is out of range: the op has {inputs} inputs and {outputs} outputs",
        kernel = cut_text(.kernel)
    )]
    InPlaceRange {
        /// The kernel.
        kernel: String,
        /// Input of the pair.
        input: u32,
        /// Output of the pair.
        output: u32,
        /// Input arguments.
        inputs: usize,
        /// Output arguments.
        outputs: usize,
    },
    /// An in-place pair of types that never agree.
    #[error(
        "{kernel}: in-place pair of '{input}' and '{output}': no type of one is a type of the other",
        kernel = cut_text(.kernel), input = cut(.input), output = cut(.output)
    )]
    InPlaceType {
        /// The kernel.
        kernel: String,
        /// Input argument.
        input: String,
        /// Output argument.
        output: String,
    },
    /// Two kernels of one plugin between which no rule decides.
    #[error(
        "{first} and {second} have the same key and priority {priority}: change a priority or a label",
        first = cut_text(.first), second = cut_text(.second)
    )]
    SameKey {
        /// One.
        first: String,
        /// The other.
        second: String,
        /// Their priority.
        priority: i32,
    },
    /// A bad name.
    #[error(
        "{kernel}: the {what} follows {rule}, found '{name}'",
        kernel = cut_text(.kernel), name = cut(.name)
    )]
    KernelName {
        /// The kernel.
        kernel: String,
        /// What is named.
        what: &'static str,
        /// The name.
        name: String,
        /// The rule, as a regular expression.
        rule: &'static str,
    },
    /// A feature that no processor has: the kernel would never run.
    #[error(
        "{kernel}: no processor has a feature '{feature}'{meant}; the names are {known}",
        kernel = cut_text(.kernel), feature = cut(.feature), known = cut_text(.known),
        meant = .meant.map(|meant| format!(": is '{meant}' meant?")).unwrap_or_default()
    )]
    UnknownFeature {
        /// The kernel.
        kernel: String,
        /// The name.
        feature: String,
        /// A name that is near.
        meant: Option<&'static str>,
        /// The names that are known.
        known: String,
    },
    /// A kernel's table lacks an entry.
    #[error("{kernel}: the table has no '{entry}', which is required", kernel = cut_text(.kernel))]
    KernelEntry {
        /// The kernel.
        kernel: String,
        /// The entry.
        entry: &'static str,
    },
    /// Figures that say nothing.
    #[error("{kernel}: {problem}", kernel = cut_text(.kernel), problem = cut_text(.problem))]
    Numerics {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        problem: String,
    },
    /// A link of another layout than this host's.
    #[error("{kernel}: {link}", kernel = cut_text(.kernel))]
    Link {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        link: LinkError,
    },
    /// A device type lacks an entry.
    #[error(
        "device type '{device_type}' ({source_at}): '{entry}' is null, which is required",
        device_type = cut(.device_type)
    )]
    DeviceEntry {
        /// The device type.
        device_type: String,
        /// The entry.
        entry: &'static str,
        /// Where it is registered.
        source_at: SourceInfo,
    },
    /// A bad name of a device type.
    #[error(
        "device types follow [A-Z][A-Z0-9_]* and are not DEFAULT, found '{name}' ({source_at})",
        name = cut(.name)
    )]
    DeviceName {
        /// The name.
        name: String,
        /// Where it is registered.
        source_at: SourceInfo,
    },
    /// A device type that two register.
    #[error(
        "device type '{name}' is registered by {first} and by {second}: load one of them",
        name = cut(.name)
    )]
    DeviceConflict {
        /// The name.
        name: String,
        /// One.
        first: Box<SourceInfo>,
        /// The other.
        second: Box<SourceInfo>,
    },
    /// A number of a plugin that is already in use.
    #[error(
        "plugin number {} is taken by {name}: use Registry::next_plugin_id",
        .id.0, name = cut(.name)
    )]
    PluginId {
        /// The number.
        id: PluginId,
        /// The plugin that has it.
        name: String,
    },
    /// A number that no active plugin has.
    #[error("no active plugin has number {}", .id.0)]
    UnknownPlugin {
        /// The number.
        id: PluginId,
    },
}

impl RegistryError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            RegistryError::Op(error) => error.code(),
            RegistryError::Knob(error) => error.code(),
            RegistryError::OpConflict { .. }
            | RegistryError::SameKey { .. }
            | RegistryError::PluginId { .. }
            | RegistryError::DeviceConflict { .. } => Code::ALREADY_EXISTS,
            RegistryError::UnknownOp { .. } | RegistryError::UnknownPlugin { .. } => {
                Code::NOT_FOUND
            }
            _ => Code::INVALID_ARGUMENT,
        }
    }
}

/// Something that a commit accepts and that the user should know.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Warning {
    /// Two plugins offer the same: the declared order decides.
    #[error(
        "plugins {winner_plugin} and {other_plugin} offer the same kernel at priority {priority}: {winner} is used before {other}, since its plugin is declared first",
        winner_plugin = cut(.winner_plugin), other_plugin = cut(.other_plugin),
        winner = cut(.winner), other = cut(.other)
    )]
    SameKey {
        /// The kernel that is used.
        winner: String,
        /// Its plugin.
        winner_plugin: String,
        /// The other kernel.
        other: String,
        /// Its plugin.
        other_plugin: String,
        /// Their priority.
        priority: i32,
    },
    /// A kernel of a plugin loaded earlier no longer fits.
    #[error(
        "{kernel} of plugin {plugin} is dormant: {reason}",
        kernel = cut_text(.kernel), plugin = cut(.plugin)
    )]
    Dormant {
        /// The kernel.
        kernel: String,
        /// Its plugin.
        plugin: String,
        /// Why.
        reason: Box<RegistryError>,
    },
}
