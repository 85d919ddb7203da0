//! What a runtime tells of itself while it runs.
//!
//! [`Metrics`] are its figures at one moment. A server tells them to whoever asks on this machine: plain HTTP on a
//! loopback address, `/metrics` in Prometheus's text format and `/metrics.json`. It is off unless the knob
//! `runtime.monitor` names a port, or the program calls [`Runtime::serve_metrics`](crate::Runtime::serve_metrics).
//!
//! Nothing is counted for it but steps, by two atomic additions each, and calls where control flow steers; short
//! steps are timed by samples; times of kernels come from the costs that the executor samples anyhow.

mod latency;
mod ledger;
mod metrics;
mod prometheus;
mod server;

pub(crate) use latency::Histogram;
pub use latency::{LatencyBucket, percentile_ns};
pub(crate) use ledger::{Account, Ledger};
pub use metrics::{
    DeviceMetrics, IsolationMetrics, KernelMetrics, MemoryMetrics, Metrics, PluginMetrics,
    PoolMetrics, StepMetrics,
};
pub(crate) use server::{Server, address};

use std::sync::atomic::AtomicU64;
use tenon_framework::register_knob;

register_knob!(
    "monitor": STRING = "",
    "Port of the loopback address on which the runtime tells its figures over HTTP, 0 for any free one; empty is off."
);

/// Steps that ended.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub done: AtomicU64,
    pub failed: AtomicU64,
    /// Times of steps that ended well.
    pub latency: Histogram,
}
