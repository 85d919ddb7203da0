//! The steps of loading, and the versions that the handshake compares.

use std::fmt;

/// A step of loading, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The file is found, opened once, and identified.
    Find,
    /// The manifest and the export table are read; nothing of the library runs.
    Manifest,
    /// Digest and permissions are checked.
    Trust,
    /// The library is mapped into the process.
    Open,
    /// ABI versions are compared, both ways.
    Handshake,
    /// The layout of every shared type is compared.
    Layout,
    /// The plugin's own `open` runs.
    Start,
    /// The plugin's registrations are collected.
    Register,
    /// Manifest and registrations are compared.
    Compare,
    /// The registrations are validated and a new snapshot is published.
    Commit,
    /// A plugin is taken out of use.
    Retire,
}

impl Step {
    /// The step's name, as in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Find => "find",
            Step::Manifest => "manifest",
            Step::Trust => "trust",
            Step::Open => "open",
            Step::Handshake => "handshake",
            Step::Layout => "layout",
            Step::Start => "start",
            Step::Register => "register",
            Step::Compare => "compare",
            Step::Commit => "commit",
            Step::Retire => "retire",
        }
    }
}

impl Step {
    /// All steps, in order.
    pub const ALL: [Step; 11] = [
        Step::Find,
        Step::Manifest,
        Step::Trust,
        Step::Open,
        Step::Handshake,
        Step::Layout,
        Step::Start,
        Step::Register,
        Step::Compare,
        Step::Commit,
        Step::Retire,
    ];

    /// The step with this name.
    pub fn named(name: &str) -> Option<Step> {
        Step::ALL.into_iter().find(|step| step.name() == name)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A pair of ABI numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbiVersion {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl AbiVersion {
    /// The version of this host.
    pub const HOST: AbiVersion =
        AbiVersion { major: tenon_abi::ABI_MAJOR, minor: tenon_abi::ABI_MINOR };

    /// Whether a host of this version accepts a plugin of that version: equal versions before 1.0,
    /// the same major number from then on.
    pub const fn accepts(self, plugin: AbiVersion) -> bool {
        self.major == plugin.major && (self.major > 0 || self.minor == plugin.minor)
    }
}

impl fmt::Display for AbiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
