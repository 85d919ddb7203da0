//! Why a kernel does not run: the rule that excludes it.

use std::fmt;
use tenon_abi::DType;

/// Why a candidate does not run.
#[derive(Debug, Clone, PartialEq)]
pub enum Removal {
    /// For another device type.
    DeviceType {
        /// Its own.
        own: String,
        /// The node's.
        wanted: String,
    },
    /// The node lacks an attribute that the kernel constrains.
    MissingAttr {
        /// The attribute.
        attr: String,
    },
    /// An element type that it does not take.
    DType {
        /// The attribute.
        attr: String,
        /// The node's type.
        found: DType,
        /// Those that it takes.
        takes: Vec<DType>,
    },
    /// A feature that is absent.
    Feature {
        /// The feature.
        name: String,
        /// Type of the device.
        device_type: String,
    },
    /// Another label was requested.
    Label {
        /// Its own.
        own: String,
        /// The requested one.
        wanted: String,
    },
    /// Runs on request only.
    OnRequest {
        /// Its label.
        label: String,
    },
    /// `supports` says no.
    Supports {
        /// Why.
        reason: String,
    },
    /// Another has a higher priority.
    LowerPriority {
        /// Its own.
        own: i32,
        /// That of the other.
        higher: i32,
        /// The other.
        than: String,
    },
    /// At equal priority another is for this very device type.
    LessSpecific {
        /// The other.
        than: String,
    },
    /// At equal priority another is declared earlier.
    DeclaredLater {
        /// The other.
        than: String,
    },
    /// Policy `measured` chose a faster one.
    Measured {
        /// Its own time, in nanoseconds.
        own_ns: f64,
        /// That of the other.
        other_ns: f64,
        /// The other.
        than: String,
    },
    /// Policy `measured` does not time it: its numerics contract promises less.
    WeakerContract {
        /// The requested contract: that of the kernel that policy `priority` chooses, or another.
        than: String,
    },
    /// The choice is open until the shapes are known, but the memory of the arguments is decided.
    OtherMemory {
        /// The one that is asked first.
        than: String,
    },
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Removal::DeviceType { own, wanted } => {
                write!(f, "is for {own}, the node is on {wanted}")
            }
            Removal::MissingAttr { attr } => write!(f, "the node has no type attribute {attr}"),
            Removal::DType { attr, found, takes } => {
                let takes: Vec<String> = takes.iter().map(DType::to_string).collect();
                write!(f, "{attr} is {found}, the kernel takes {}", takes.join(", "))
            }
            Removal::Feature { name, device_type } => {
                let place = if device_type == "CPU" { "cpu" } else { "device" };
                write!(f, "needs {name}, which this {place} lacks")
            }
            Removal::Label { own, wanted } => {
                write!(f, "label '{wanted}' is asked for, this one is '{own}'")
            }
            Removal::OnRequest { label } => write!(f, "label '{label}' runs on request only"),
            Removal::Supports { reason } => write!(f, "supports says no: {reason}"),
            Removal::LowerPriority { own, higher, than } => {
                write!(f, "lower priority ({own} < {higher}) than {than}")
            }
            Removal::LessSpecific { than } => {
                write!(f, "is for every device type, at equal priority with {than}")
            }
            Removal::DeclaredLater { than } => {
                write!(f, "is declared later, at equal priority with {than}")
            }
            Removal::Measured { own_ns, other_ns, than } => {
                let (own, other) = (own_ns / 1e3, other_ns / 1e3);
                write!(f, "measured {own:.2} us, {than} {other:.2} us")
            }
            Removal::WeakerContract { than } => {
                write!(f, "its numerics contract is weaker than {than}")
            }
            Removal::OtherMemory { than } => {
                write!(f, "takes other arguments in host memory than {than}, which is asked first")
            }
        }
    }
}
