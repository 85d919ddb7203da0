//! Collects the metrics of a runtime.

use super::Runtime;
use crate::metrics::{
    DeviceMetrics, IsolationMetrics, MemoryMetrics, Metrics, PluginMetrics, PoolMetrics,
    StepMetrics,
};
use std::sync::{Arc, atomic::Ordering};
use tenon_framework::{abi::MemoryKind, device::base::DeviceBase, registry::PluginInfo};
use tenon_host::{devices::PluginDevice, memory::HostMemory};

/// The current metrics of a runtime.
pub(super) fn figures(runtime: &Runtime) -> Metrics {
    Metrics {
        pid: std::process::id(),
        uptime_seconds: runtime.started().elapsed().as_secs_f64(),
        steps: StepMetrics {
            running: runtime.active_steps(),
            done: runtime.counts().done.load(Ordering::Relaxed),
            failed: runtime.counts().failed.load(Ordering::Relaxed),
        },
        latency: runtime.counts().latency.buckets(),
        plugins: plugins(runtime),
        devices: devices(runtime),
        host_memory: HostMemory::shared().stats().into(),
        pool: PoolMetrics {
            threads: runtime.pool().threads() as u64,
            queued: runtime.pool().queued() as u64,
        },
        kernels: runtime.ledger().kernels(),
    }
}

fn plugins(runtime: &Runtime) -> Vec<PluginMetrics> {
    #[cfg(target_os = "linux")]
    let isolated = crate::isolate::isolated(runtime.plugins());
    #[cfg(target_os = "linux")]
    let isolation = |name: &str| {
        let status = isolated.iter().find(|plugin| plugin.name() == name)?.status();
        Some(IsolationMetrics {
            pid: status.pid,
            restarts: status.restarts,
            calls: status.calls,
            faults: status.faults,
            tensor_bytes: status.tensor_bytes,
            quarantined: status.quarantined,
        })
    };
    #[cfg(not(target_os = "linux"))]
    let isolation = |_: &str| None;
    let active = runtime.plugins().list().into_iter().filter(|info| !info.retired);
    let plugin = |info: PluginInfo| PluginMetrics {
        isolation: isolation(&info.name),
        file: info.path.map(|path| path.display().to_string()),
        name: info.name,
        version: info.version,
    };
    active.map(plugin).collect()
}

fn devices(runtime: &Runtime) -> Vec<DeviceMetrics> {
    let device = |device: Arc<PluginDevice>| {
        let own = device.info().ordinary_memory();
        let stats = (own != MemoryKind::HOST).then(|| device.memory_stats(own)).flatten();
        DeviceMetrics {
            name: device.full_name().to_owned(),
            lost: device.check().err().map(|error| error.message),
            memory: stats.map(MemoryMetrics::from),
        }
    };
    runtime.devices().devices().into_iter().map(device).collect()
}
