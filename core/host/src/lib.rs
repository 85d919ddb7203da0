//! Loads plugins, provides the host's services to them, and calls their kernels.
//!
//! What it is, from the file of a plugin to a call of one of its kernels:
//!
//! | | modules |
//! |---|---|
//! | which files are candidates | [`search`], [`trust`], [`digest`], [`cache`] |
//! | from a file to registrations, in ten steps | [`loader`], [`manifest`] |
//! | the plugins in use, and how they change | [`Plugins`], [`LoadReport`], [`Settings`] |
//! | the seam for plugins in processes of their own, which `tenon-isolate` fills | [`isolation`] |
//! | the services that the boundary's tables name | [`entries`], [`services`] |
//! | devices, memory, threads | [`devices`], [`memory`], [`pool`], [`fpu`] |
//! | kernel objects and calls | [`instance`], [`call`], [`sink`] |
//! | state that outlives a step | [`resources`], [`variants`] |
//! | collective operations of several devices | [`collective`] |
//!
//! What it is not: graphs (`tenon-graph`), sessions, plans and the executor (`tenon-runtime`). This
//! crate knows one node at a time. The ops come from `tenon-ops` and kernels from plugins; the only
//! kernels here are those for every device type that move no elements (`Identity`, `Reshape`,
//! `Shape`, ...).
//!
//! # Invariants
//! - A library is opened once in a process and never unloaded. The registry has all registrations
//!   of a plugin, or none.
//! - A plugin is not trusted to be right: what it returns is checked before the host relies on it,
//!   and a panic or a C++ exception in it becomes an error of the call.
//! - Bad files, manifests and settings are errors with the step at which they were found
//!   ([`LoadError`]); nothing here panics because of them.
//!
//! ```
//! use tenon_host::{Plugins, search::SearchPath};
//!
//! let plugins = Plugins::new()?;
//! let report = plugins.load_search(&SearchPath::explicit(["no/such/plugin.so".into()]));
//! assert!(report.loaded.is_empty());
//! for refused in &report.rejected {
//!     println!("{}: {}", refused.candidate.path.display(), refused.error);
//! }
//! assert!(plugins.registry().op("MatMul").is_some(), "the standard ops are linked in");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bools;
pub mod cache;
pub mod call;
pub mod cancel;
pub mod clock;
pub mod collective;
mod context;
pub mod devices;
pub mod digest;
pub mod entries;
mod error;
mod exit;
pub mod files;
pub mod fpu;
mod inspect;
pub mod instance;
pub mod isolation;
mod kernels;
pub mod loader;
pub mod manifest;
pub mod memory;
pub mod permissions;
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
pub mod variants;

pub use context::PluginContext;
pub use entries::{HOST, install};
pub use error::{AbiVersion, LoadError, ManifestError, StartError, Step};
pub use exit::{EXIT_STATUS, ExitGuard};
pub use inspect::{Inspection, Probe, Unopened, probe};
pub use plugins::Plugins;
pub use record::PluginRecord;
pub use registrar::Collector;
pub use report::{LoadReport, Rejected, Superseded};
pub use settings::Settings;
