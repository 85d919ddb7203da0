//! Plugins in processes of their own: see [`tenon_host::isolate`]. On other systems than Linux there are none.

#[cfg(target_os = "linux")]
pub use tenon_host::isolate::{Isolated, IsolationStatus, Limits, quarantines, work};

/// Does nothing where no plugin can be isolated.
#[cfg(not(target_os = "linux"))]
pub fn work() {}

/// Where no plugin can be isolated, none is quarantined.
#[cfg(not(target_os = "linux"))]
pub fn quarantines() -> u64 {
    0
}
