//! Plugins in processes of their own: see [`tenon_isolate`]. Only Linux supports them.

use tenon_host::Plugins;

#[cfg(target_os = "linux")]
pub use tenon_isolate::{Isolated, IsolationStatus, Limits, isolated, quarantines, work};

/// Adds isolation to the plugins.
#[cfg(target_os = "linux")]
#[must_use]
pub fn with_isolation(plugins: Plugins) -> Plugins {
    plugins.with_isolation(tenon_isolate::ISOLATION)
}

/// Returns the plugins unchanged: isolation is not supported here.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn with_isolation(plugins: Plugins) -> Plugins {
    plugins
}

/// Does nothing: isolation is not supported here.
#[cfg(not(target_os = "linux"))]
pub fn work() {}

/// Always 0: without isolation, no plugin is quarantined.
#[cfg(not(target_os = "linux"))]
pub fn quarantines() -> u64 {
    0
}
