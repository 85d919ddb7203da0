//! Loads plugins, lends them services, and calls their kernels.

pub mod cache;
pub mod call;
pub mod devices;
pub mod digest;
pub mod entries;
mod error;
pub mod fpu;
mod inspect;
pub mod instance;
pub mod isolate;
mod kernels;
mod knob_scope;
pub mod loader;
pub mod manifest;
pub mod memory;
mod plugins;
pub mod pool;
mod record;
mod registrar;
mod report;
pub mod resources;
pub mod search;
pub mod services;
mod settings;
pub mod sink;
mod statics;
#[cfg(all(test, not(loom)))]
mod testing;
pub mod trust;

pub use entries::{HOST, install};
pub use error::{AbiVersion, LoadError, ManifestError, StartError, Step};
pub use inspect::{Inspection, Probe, Unopened, probe};
pub use knob_scope::KnobScope;
pub use plugins::Plugins;
pub use record::PluginRecord;
pub use report::{LoadReport, Rejected, Superseded};
pub use settings::Settings;
