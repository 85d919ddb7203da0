//! What a runtime counts while it runs, and its figures at one moment.
//!
//! [`Metrics`] are the figures: [`Runtime::metrics`](crate::Runtime::metrics) gives them to the program itself, and
//! tenon-monitor, a crate above this one, to others over HTTP.
//!
//! Nothing is counted for them but steps, by two atomic additions each, and calls where control flow steers; short
//! steps are timed by samples; times of kernels come from the costs that the executor samples anyhow.

mod latency;
mod ledger;

pub(crate) use latency::Histogram;
pub use latency::{LatencyBucket, percentile_ns};
pub(crate) use ledger::{Account, Ledger};

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicU64;

use tenon_host::memory::MemoryStats;

/// Steps that ended.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub done: AtomicU64,
    pub failed: AtomicU64,
    /// Times of steps that ended well.
    pub latency: Histogram,
}

/// The figures of a runtime. What is marked as a counter only grows while the process lives; all else is as it is at
/// the moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Number of the process.
    pub pid: u32,
    /// Seconds since the runtime started.
    pub uptime_seconds: f64,
    /// Steps.
    pub steps: StepMetrics,
    /// Times of the steps that ended well, by samples: see [`percentile_ns`].
    #[serde(default)]
    pub latency: Vec<LatencyBucket>,
    /// The plugins in use.
    pub plugins: Vec<PluginMetrics>,
    /// The devices.
    pub devices: Vec<DeviceMetrics>,
    /// Pooled host memory.
    pub host_memory: MemoryMetrics,
    /// The threads that kernels compute on.
    pub pool: PoolMetrics,
    /// The kernels that were planned so far, the one that took the most time first.
    pub kernels: Vec<KernelMetrics>,
}

/// Steps of all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepMetrics {
    /// In flight.
    pub running: u64,
    /// That ended well. A counter.
    pub done: u64,
    /// That failed. A counter.
    pub failed: u64,
}

/// A plugin in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginMetrics {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// File; none where it is linked into the program.
    pub file: Option<String>,
    /// Its process, where it is isolated.
    pub isolation: Option<IsolationMetrics>,
}

/// The process of an isolated plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationMetrics {
    /// Number of the process, while there is one.
    pub pid: Option<i32>,
    /// Processes after the first. A counter.
    pub restarts: u64,
    /// Calls that computed. A counter.
    pub calls: u64,
    /// Processes that ended by a fault. A counter.
    pub faults: u64,
    /// Bytes of tensors in its memory.
    pub tensor_bytes: u64,
    /// Why it is quarantined, if it is.
    pub quarantined: Option<String>,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceMetrics {
    /// Full name.
    pub name: String,
    /// Why it is lost, if it is.
    pub lost: Option<String>,
    /// Its own memory; none where it computes in the host's.
    pub memory: Option<MemoryMetrics>,
}

/// Bytes of one kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMetrics {
    /// In use.
    pub live_bytes: u64,
    /// The most that was in use.
    pub peak_bytes: u64,
    /// Held for reuse.
    pub cached_bytes: u64,
    /// That there are; 0 is not known.
    pub limit_bytes: u64,
}

impl From<MemoryStats> for MemoryMetrics {
    fn from(stats: MemoryStats) -> MemoryMetrics {
        let MemoryStats { live_bytes, peak_bytes, cached_bytes, limit_bytes, .. } = stats;
        MemoryMetrics { live_bytes, peak_bytes, cached_bytes, limit_bytes }
    }
}

/// The pool's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolMetrics {
    /// Threads, the caller's included.
    pub threads: u64,
    /// Jobs that wait for a thread.
    pub queued: u64,
}

/// A kernel, in the plans of all sessions so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelMetrics {
    /// Op.
    pub op: String,
    /// Type of the device, such as `CPU`.
    pub device: String,
    /// Plugin.
    pub plugin: String,
    /// Label of the variant; `(per shape)` for nodes whose kernels are chosen as shapes become known.
    pub label: String,
    /// Nodes that it runs in open sessions.
    pub nodes: u64,
    /// Calls in steps that ended well; where control flow steers, all. A counter.
    pub calls: u64,
    /// Time of these calls, estimated: calls since the last look times the mean of those that were measured. A counter.
    pub seconds: f64,
}
