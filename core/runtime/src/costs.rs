//! What the nodes of a graph cost on each device, measured, for placement by cost.

use crate::{
    CallableOptions, NodeReport, RunOptions, Runtime, RuntimeError, Session, SessionOptions,
};
use std::{collections::HashMap, sync::Arc};
use tenon_framework::{DType, PartialShape, Shape, Tensor, sync::Mutex};
use tenon_graph::{DeviceEntry, Graph, Node, PlacementCosts};
use tenon_host::call::{CopySpan, TraceSink};

/// Steps on each device: the first ones are not measured.
const WARM: usize = 2;
const MEASURED: usize = 5;

/// Costs of one graph's nodes and of copies, as measured on this machine.
///
/// The graph is run on each device as it is written, and the shortest of several calls counts. Of copies, a fixed part and a
/// part for each byte are derived from the shortest and the largest that were seen. A session places by them, see
/// [`SessionOptions::costs`](crate::SessionOptions::costs).
///
/// ```no_run
/// # use tenon_runtime::{*, costs::MeasuredCosts, framework::Tensor, graph::Graph};
/// # fn example(runtime: &Runtime, graph: &Graph, x: Tensor) -> Result<(), RuntimeError> {
/// let step = CallableOptions::new(&["x"], &["y"]);
/// let devices = ["/device:CPU:0", "/device:ACCEL:0"];
/// let costs = MeasuredCosts::measure(runtime, graph, &[], &step, &[x], &devices)?;
/// let session = Session::new(runtime, SessionOptions { costs: Some(costs), ..SessionOptions::default() })?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredCosts {
    /// Nanoseconds, by node and device type.
    calls: HashMap<(String, String), f64>,
    /// Bytes of each output, by node.
    outputs: HashMap<String, Vec<u64>>,
    /// By device type.
    copies: HashMap<String, Copies>,
}

/// What copies to and from the devices of a type cost.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Copies {
    fixed_ns: f64,
    byte_ns: f64,
}

impl MeasuredCosts {
    /// Runs a step of the graph on each of `devices`, and measures its nodes and copies. `feeds` are in the order of the
    /// step's. Nodes that a device cannot run have no costs there. The nodes of `init` run first, each in a step of its own.
    /// The step's effects on variables happen several times, in sessions of their own.
    ///
    /// # Errors
    /// A node of `init` or the step fails.
    pub fn measure(
        runtime: &Runtime,
        graph: &Graph,
        init: &[&str],
        step: &CallableOptions,
        feeds: &[Tensor],
        devices: &[&str],
    ) -> Result<Arc<MeasuredCosts>, RuntimeError> {
        let mut costs = MeasuredCosts::default();
        for device in devices {
            let options = SessionOptions {
                device: Some((*device).to_owned()),
                soft_placement: Some(true),
                isolate_state: true,
                ..SessionOptions::as_written()
            };
            let session = Session::new(runtime, options)?;
            session.extend_graph(graph)?;
            for target in init {
                session.run(&[], &[], &[target], &RunOptions::default())?;
            }
            let callable = session.callable(step.clone())?;
            let sink = Arc::new(Spans::default());
            let mut fetched = Vec::new();
            for at in 0..WARM + MEASURED {
                let trace = (at >= WARM).then(|| Arc::clone(&sink) as Arc<dyn TraceSink>);
                callable.run_with(
                    feeds,
                    &mut fetched,
                    &RunOptions { trace, ..RunOptions::default() },
                )?;
            }
            let seen = std::mem::take(&mut *sink.seen.lock());
            costs.add(&callable.nodes()?, &seen);
        }
        Ok(Arc::new(costs))
    }

    fn add(&mut self, nodes: &[NodeReport], seen: &Seen) {
        for node in nodes {
            let sizes = seen.outputs.get(&node.name).cloned();
            let sizes = sizes.unwrap_or_else(|| node.outputs.iter().map(bytes).collect());
            self.outputs.entry(node.name.clone()).or_insert(sizes);
            if let Some(&ns) = seen.streams.get(&node.name).or_else(|| seen.calls.get(&node.name)) {
                let key = (node.name.clone(), device_type(&node.device).to_owned());
                let known = self.calls.entry(key).or_insert(ns);
                *known = known.min(ns);
            }
        }
        for (device_type, copies) in seen.copies() {
            let shortest = copies.values().copied().fold(f64::INFINITY, f64::min);
            let Some((&largest, &longest)) = copies.iter().max_by_key(|(bytes, _)| **bytes) else {
                continue;
            };
            let byte_ns = (longest - shortest).max(0.0) / largest.max(1) as f64;
            let found = Copies { fixed_ns: shortest, byte_ns };
            self.copies.insert(device_type.to_owned(), found);
        }
    }
}

impl PlacementCosts for MeasuredCosts {
    fn compute(&self, node: &Node, device: &DeviceEntry) -> Option<f64> {
        self.calls.get(&(node.name.clone(), device.device_type.clone())).copied()
    }

    fn transfer(&self, node: &Node, output: u32, from: &DeviceEntry, to: &DeviceEntry) -> f64 {
        let sizes = self.outputs.get(&node.name);
        let bytes = sizes.and_then(|sizes| sizes.get(output as usize)).copied().unwrap_or(0);
        let one_way = |device: &DeviceEntry| {
            let copies = self.copies.get(&device.device_type);
            copies.map_or(0.0, |copies| copies.fixed_ns + copies.byte_ns * bytes as f64)
        };
        one_way(from) + one_way(to)
    }
}

/// The bytes of a tensor; 0 where they are not known.
fn bytes((dtype, shape): &(DType, PartialShape)) -> u64 {
    shape.full().map_or(0, |shape| size(*dtype, &shape))
}

fn size(dtype: DType, shape: &Shape) -> u64 {
    (shape.elements() as u64).saturating_mul(dtype.size().unwrap_or(0) as u64)
}

/// The type in a device's full name.
fn device_type(device: &str) -> &str {
    let short = device.rsplit_once("/device:").map_or(device, |(_, short)| short);
    short.split(':').next().unwrap_or(short)
}

/// The shortest times of some steps.
#[derive(Default)]
struct Seen {
    /// Calls of nodes on the host's threads.
    calls: HashMap<String, f64>,
    /// Work of nodes on streams of devices.
    streams: HashMap<String, f64>,
    outputs: HashMap<String, Vec<u64>>,
    /// By node, device and bytes.
    copies: HashMap<(String, String, u64), f64>,
}

impl Seen {
    /// The shortest copy of each number of bytes, by type of device. On a device with streams it is the work on the stream
    /// that counts, since the call only enqueues it.
    fn copies(&self) -> HashMap<&str, HashMap<u64, f64>> {
        let mut by_type: HashMap<&str, HashMap<u64, f64>> = HashMap::new();
        for ((node, device, bytes), ns) in &self.copies {
            let ns = self.streams.get(node).unwrap_or(ns);
            let known =
                by_type.entry(device_type(device)).or_default().entry(*bytes).or_insert(*ns);
            *known = known.min(*ns);
        }
        by_type
    }
}

#[derive(Default)]
struct Spans {
    seen: Mutex<Seen>,
}

fn note<K: std::hash::Hash + Eq>(times: &mut HashMap<K, f64>, key: K, begin_ns: u64, end_ns: u64) {
    let ns = end_ns.saturating_sub(begin_ns) as f64;
    let known = times.entry(key).or_insert(ns);
    *known = known.min(ns);
}

impl TraceSink for Spans {
    fn span(&self, node: &str, name: &str, begin_ns: u64, end_ns: u64) {
        if name.is_empty() {
            note(&mut self.seen.lock().calls, node.to_owned(), begin_ns, end_ns);
        }
    }

    fn tensors(&self, node: &str, _: &[(DType, Shape)], outputs: &[(DType, Shape)]) {
        let sizes = outputs.iter().map(|(dtype, shape)| size(*dtype, shape)).collect();
        self.seen.lock().outputs.insert(node.to_owned(), sizes);
    }

    fn stream_span(&self, _: &str, node: &str, begin_ns: u64, end_ns: u64) {
        note(&mut self.seen.lock().streams, node.to_owned(), begin_ns, end_ns);
    }

    fn copy_span(&self, copy: &CopySpan<'_>) {
        let mut seen = self.seen.lock();
        let key = (copy.node.to_owned(), copy.device.to_owned(), copy.bytes);
        note(&mut seen.copies, key, copy.begin_ns, copy.end_ns);
    }
}
