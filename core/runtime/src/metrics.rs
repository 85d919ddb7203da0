//! Counters of a running runtime, and snapshots of its metrics.
//!
//! [`Metrics`] is a snapshot: [`Runtime::metrics`](crate::Runtime::metrics) returns it to the
//! program itself, and tenon-monitor, a crate above this one, serves it over HTTP.
//!
//! The only counting for metrics is of steps, by two atomic additions each, and of calls under
//! control flow. Short steps are timed by sampling; the times of kernels come from the costs that
//! the executor samples anyway.

mod latency;
mod ledger;

pub(crate) use latency::Histogram;
pub use latency::{LatencyBucket, percentile_ns};
pub(crate) use ledger::{Account, Ledger};

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicU64;

use tenon_host::memory::MemoryStats;

/// Counts and times of finished steps.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub done: AtomicU64,
    pub failed: AtomicU64,
    /// The times of successful steps.
    pub latency: Histogram,
}

/// The metrics of a runtime. Fields marked as counters only grow while the process runs; all others
/// show the current state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// The process id.
    pub pid: u32,
    /// The seconds since the runtime started.
    pub uptime_seconds: f64,
    /// The steps.
    pub steps: StepMetrics,
    /// The times of successful steps, sampled: see [`percentile_ns`].
    #[serde(default)]
    pub latency: Vec<LatencyBucket>,
    /// The loaded plugins.
    pub plugins: Vec<PluginMetrics>,
    /// The devices.
    pub devices: Vec<DeviceMetrics>,
    /// The pooled host memory.
    pub host_memory: MemoryMetrics,
    /// The thread pool for kernels.
    pub pool: PoolMetrics,
    /// The kernels planned so far, ordered by time, longest first.
    pub kernels: Vec<KernelMetrics>,
}

/// Steps of all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepMetrics {
    /// Steps in flight.
    pub running: u64,
    /// Successful steps. A counter.
    pub done: u64,
    /// Failed steps. A counter.
    pub failed: u64,
}

/// A loaded plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginMetrics {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The file; `None` if the plugin is linked into the program.
    pub file: Option<String>,
    /// The process, if the plugin is isolated.
    pub isolation: Option<IsolationMetrics>,
}

/// The process of an isolated plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationMetrics {
    /// The process id, while there is a process.
    pub pid: Option<i32>,
    /// The processes started after the first. A counter.
    pub restarts: u64,
    /// The kernel calls. A counter.
    pub calls: u64,
    /// The processes that ended by a fault. A counter.
    pub faults: u64,
    /// The bytes of tensors in its memory.
    pub tensor_bytes: u64,
    /// The reason for its quarantine, if it is quarantined.
    pub quarantined: Option<String>,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceMetrics {
    /// The full name.
    pub name: String,
    /// The reason why it is lost, if it is.
    pub lost: Option<String>,
    /// Its own memory; `None` if it computes in host memory.
    pub memory: Option<MemoryMetrics>,
}

/// Bytes of one kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMetrics {
    /// Bytes in use.
    pub live_bytes: u64,
    /// The maximum of bytes in use so far.
    pub peak_bytes: u64,
    /// Bytes held for reuse.
    pub cached_bytes: u64,
    /// Total bytes; 0 if unknown.
    pub limit_bytes: u64,
}

impl From<MemoryStats> for MemoryMetrics {
    fn from(stats: MemoryStats) -> MemoryMetrics {
        let MemoryStats { live_bytes, peak_bytes, cached_bytes, limit_bytes, .. } = stats;
        MemoryMetrics { live_bytes, peak_bytes, cached_bytes, limit_bytes }
    }
}

/// The thread pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolMetrics {
    /// The number of threads, including the caller's.
    pub threads: u64,
    /// The number of jobs that wait for a thread.
    pub queued: u64,
}

/// A kernel, summed over the plans of all sessions so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelMetrics {
    /// The op.
    pub op: String,
    /// The device type, such as `CPU`.
    pub device: String,
    /// The plugin.
    pub plugin: String,
    /// The label of the variant; `(per shape)` for nodes whose kernels are chosen once shapes are
    /// known.
    pub label: String,
    /// The number of nodes with this kernel in open sessions.
    pub nodes: u64,
    /// The calls in successful steps; under control flow, all calls. A counter.
    pub calls: u64,
    /// The estimated time of these calls: the calls since the last reading, multiplied by the mean
    /// of the measured ones. A counter.
    pub seconds: f64,
}
