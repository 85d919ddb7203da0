//! The registry: an immutable snapshot of all registrations.
//!
//! A plugin's registrations are collected in a [`Transaction`], which is validated and committed as a whole
//! ([`commit_all`]); the result is a new [`Registry`]. [`RegistryHandle`] holds the current one and
//! notifies subscribers of changes ([`RegistryEvent`]). [`candidates`] chooses a kernel, as a pure function; [`select`]
//! does so without giving reasons.
//!
//! # Invariants
//! - A snapshot never changes; it lives as long as it is held.
//! - The order of ops, kernels, device types and knobs does not depend on the order of registration: link
//!   order is not stable between builds.
//! - Every kernel that a snapshot offers fits its op. A kernel whose op went away with another plugin is
//!   dormant, with a [`Warning`].

mod contract;
mod error;
mod events;
mod features;
mod fit;
mod fusion;
mod kernel_def;
mod measured;
mod numerics;
mod overlap;
mod pass;
mod plugin;
mod remote;
mod removal;
mod select;
mod snapshot;
mod transaction;
mod variant;

pub use crate::op::RemoteShape;
pub use contract::Contract;
pub use error::{RegistryError, Warning};
pub use events::{RegistryEvent, RegistryHandle, Subscription};
pub use features::FeatureSet;
pub use kernel_def::{Cost, KernelDef, TypeConstraint};
pub use measured::{FASTER, Timed, fastest};
pub use numerics::Numerics;
pub use plugin::{DeviceTypeDef, PluginId, PluginInfo, knob_scope};
pub use remote::RemoteKernel;
pub use removal::Removal;
pub use select::{
    Candidate, Explanation, KernelChoice, KernelQuery, SelectError, SupportAnswer, candidates,
    select,
};
pub use snapshot::Registry;
pub use transaction::{Transaction, commit_all};
pub use variant::VariantDef;

#[cfg(test)]
mod tests;
