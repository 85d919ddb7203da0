//! Plugins in processes of their own: see [`tenon_isolate`]. On other systems than Linux there are none.

use tenon_host::Plugins;

#[cfg(target_os = "linux")]
pub use tenon_isolate::{Isolated, IsolationStatus, Limits, isolated, quarantines, work};

/// Plugins that can be isolated.
#[cfg(target_os = "linux")]
#[must_use]
pub fn with_isolation(plugins: Plugins) -> Plugins {
    plugins.with_isolation(tenon_isolate::ISOLATION)
}

/// Plugins that cannot be isolated.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn with_isolation(plugins: Plugins) -> Plugins {
    plugins
}

/// Does nothing where no plugin can be isolated.
#[cfg(not(target_os = "linux"))]
pub fn work() {}

/// Where no plugin can be isolated, none is quarantined.
#[cfg(not(target_os = "linux"))]
pub fn quarantines() -> u64 {
    0
}
