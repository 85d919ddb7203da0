//! Metrics in Prometheus's text format, version 0.0.4:
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use crate::pages;
use std::fmt::Write;
use tenon_runtime::metrics::{KernelMetrics, MemoryMetrics, Metrics, percentile_ns};

/// The name and help text of a metric, and the function that reads its value from a sample.
type Figure<T, N> = (&'static str, &'static str, fn(&T) -> N);

/// A metric family: its help text and type, then a line for each set of labels.
struct Family<'t> {
    text: &'t mut String,
    name: &'static str,
}

impl Family<'_> {
    fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(self.name);
        for (at, (name, value)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{name}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn family<'t>(text: &'t mut String, name: &'static str, kind: &str, help: &str) -> Family<'t> {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    Family { text, name }
}

/// The text of all metrics.
pub(crate) fn text(metrics: &Metrics, figures: &[pages::Figure]) -> String {
    let mut text = String::new();
    let all = &mut text;
    family(all, "tenon_uptime_seconds", "gauge", "Time since the runtime started.")
        .sample(&[], metrics.uptime_seconds);
    family(all, "tenon_steps_running", "gauge", "Steps in flight.")
        .sample(&[], metrics.steps.running as f64);
    let mut steps = family(all, "tenon_steps_total", "counter", "Steps that ended.");
    steps.sample(&[("result", "ok")], metrics.steps.done as f64);
    steps.sample(&[("result", "failed")], metrics.steps.failed as f64);
    let help = "Times of successful steps since the start, sampled.";
    let mut latency = family(all, "tenon_step_seconds", "summary", help);
    for (name, share) in [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99)] {
        let ns = percentile_ns(&metrics.latency, &[], share);
        ns.into_iter().for_each(|ns| latency.sample(&[("quantile", name)], ns as f64 / 1e9));
    }
    family(all, "tenon_pool_threads", "gauge", "Threads that kernels compute on.")
        .sample(&[], metrics.pool.threads as f64);
    family(all, "tenon_pool_queued", "gauge", "Jobs that wait for a thread.")
        .sample(&[], metrics.pool.queued as f64);
    plugins(all, metrics);
    memory(all, metrics);
    kernels(all, metrics);
    for pages::Figure { name, kind, help, samples } in figures {
        let mut figure = family(&mut text, name, kind, help);
        for (labels, value) in samples {
            let labels: Vec<(&str, &str)> =
                labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
            figure.sample(&labels, *value);
        }
    }
    text
}

fn plugins(all: &mut String, metrics: &Metrics) {
    let mut family_of = family(all, "tenon_plugin_info", "gauge", "Plugins in use.");
    for plugin in &metrics.plugins {
        family_of.sample(&[("plugin", &plugin.name), ("version", &plugin.version)], 1.0);
    }
    let isolated = || {
        let plugins = metrics.plugins.iter();
        plugins.filter_map(|plugin| Some((plugin.name.as_str(), plugin.isolation.as_ref()?)))
    };
    let mut up = family(all, "tenon_isolated_up", "gauge", "Whether an isolated plugin may run.");
    isolated().for_each(|(name, of)| {
        up.sample(&[("plugin", name)], if of.quarantined.is_none() { 1.0 } else { 0.0 });
    });
    let help = "Processes of isolated plugins that ended by a fault.";
    let mut faults = family(all, "tenon_isolated_faults_total", "counter", help);
    isolated().for_each(|(name, of)| faults.sample(&[("plugin", name)], of.faults as f64));
    let help = "Kernel calls of isolated plugins.";
    let mut calls = family(all, "tenon_isolated_calls_total", "counter", help);
    isolated().for_each(|(name, of)| calls.sample(&[("plugin", name)], of.calls as f64));
}

fn memory(all: &mut String, metrics: &Metrics) {
    let mut up = family(all, "tenon_device_up", "gauge", "Whether a device is available.");
    for device in &metrics.devices {
        let value = if device.lost.is_none() { 1.0 } else { 0.0 };
        up.sample(&[("device", &device.name)], value);
    }
    let devices = metrics.devices.iter();
    let own = devices.filter_map(|device| Some((device.name.as_str(), device.memory?)));
    let memories: Vec<(&str, MemoryMetrics)> =
        [("host", metrics.host_memory)].into_iter().chain(own).collect();
    let figures: [Figure<MemoryMetrics, u64>; 3] = [
        ("tenon_memory_live_bytes", "Memory in use.", |memory| memory.live_bytes),
        ("tenon_memory_peak_bytes", "The most memory in use.", |memory| memory.peak_bytes),
        ("tenon_memory_cached_bytes", "Memory held for reuse.", |memory| memory.cached_bytes),
    ];
    for (name, help, figure) in figures {
        let mut family = family(all, name, "gauge", help);
        for (device, memory) in &memories {
            family.sample(&[("device", device)], figure(memory) as f64);
        }
    }
}

fn kernels(all: &mut String, metrics: &Metrics) {
    let figures: [Figure<KernelMetrics, f64>; 2] = [
        ("tenon_kernel_calls_total", "Calls of a kernel in open sessions.", |of| of.calls as f64),
        ("tenon_kernel_seconds_total", "Time of these calls, estimated from samples.", |of| {
            of.seconds
        }),
    ];
    for (name, help, figure) in figures {
        let mut family = family(all, name, "counter", help);
        for kernel in &metrics.kernels {
            let labels = [
                ("op", kernel.op.as_str()),
                ("device", &kernel.device),
                ("plugin", &kernel.plugin),
                ("label", &kernel.label),
            ];
            family.sample(&labels, figure(kernel));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_runtime::metrics::{LatencyBucket, PluginMetrics, PoolMetrics, StepMetrics};

    fn metrics() -> Metrics {
        let host_memory =
            MemoryMetrics { live_bytes: 10, peak_bytes: 20, cached_bytes: 5, limit_bytes: 0 };
        Metrics {
            pid: 1,
            uptime_seconds: 2.5,
            steps: StepMetrics { running: 1, done: 7, failed: 2 },
            latency: vec![LatencyBucket { up_to_ns: 1_000, steps: 3 }],
            plugins: vec![PluginMetrics {
                name: "odd \"name\"\n\\".to_owned(),
                version: "1".to_owned(),
                file: None,
                isolation: None,
            }],
            devices: Vec::new(),
            host_memory,
            pool: PoolMetrics { threads: 2, queued: 0 },
            kernels: vec![KernelMetrics {
                op: "Add".to_owned(),
                device: "CPU".to_owned(),
                plugin: "p".to_owned(),
                label: String::new(),
                nodes: 1,
                calls: 9,
                seconds: 0.25,
            }],
        }
    }

    #[test]
    fn every_sample_has_a_type_before_it_and_labels_are_escaped() {
        let text = text(&metrics(), &[]);
        let mut known = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(["gauge", "counter", "summary"].contains(&kind));
                assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
                assert!(!known.contains(&name), "{name} twice");
                known.push(name);
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap();
                assert_eq!(known.last(), Some(&name), "{line}");
                let value = line.rsplit(' ').next().unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(text.contains(r#"tenon_plugin_info{plugin="odd \"name\"\n\\",version="1"} 1"#));
        assert!(text.contains("tenon_steps_total{result=\"failed\"} 2\n"), "{text}");
        assert!(text.contains("tenon_step_seconds{quantile=\"0.99\"} 0.000001\n"), "{text}");
        let kernel =
            "tenon_kernel_seconds_total{op=\"Add\",device=\"CPU\",plugin=\"p\",label=\"\"} 0.25";
        assert!(text.contains(kernel), "{text}");
    }
}
