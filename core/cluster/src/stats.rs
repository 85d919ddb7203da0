//! The times of a step, as TensorFlow's clients read them: `StepStats`.

use prost::Message;
use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
    thread::{self, ThreadId},
    time::{SystemTime, UNIX_EPOCH},
};
use tenon_framework::{
    DType, Shape,
    sync::{Mutex, rank},
};
use tenon_host::{
    call::{CopySpan, TraceSink},
    clock::monotonic_ns,
};
use tenon_proto::{
    DeviceStepStats, NodeExecStats, NodeOutput, RunOptions, StepStats, TensorShapeProto,
    convert::{dtype_to_proto, shape_to_proto},
};
use tenon_runtime::NodeReport;

/// The lowest `RunOptions.TraceLevel` that requests the times of nodes.
const SOFTWARE_TRACE: i32 = 1;

/// The part of `TensorDescription` that describes an output.
#[derive(Clone, PartialEq, Message)]
struct TensorDescription {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<TensorShapeProto>,
}

struct Call {
    node: String,
    begin_ns: u64,
    end_ns: u64,
    thread: u32,
    outputs: Vec<(DType, Shape)>,
}

/// Commands and copies on a stream.
struct Extra {
    device: String,
    label: String,
    node: String,
    begin_ns: u64,
    end_ns: u64,
}

#[derive(Default)]
struct Collected {
    calls: Vec<Call>,
    extras: Vec<Extra>,
    threads: HashMap<ThreadId, u32>,
    names: BTreeMap<u32, String>,
}

/// Receives the spans of one step, and gives them as `StepStats`.
pub struct StepStatsSink {
    collected: Mutex<Collected>,
    /// Nanoseconds from the epoch to the zero of the spans' clock.
    epoch_ns: u64,
}

impl StepStatsSink {
    /// A sink, if the client requests times.
    pub fn wanted(options: &RunOptions) -> Option<Arc<StepStatsSink>> {
        (options.trace_level >= SOFTWARE_TRACE).then(StepStatsSink::new)
    }

    /// A sink.
    pub fn new() -> Arc<StepStatsSink> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let collected = Mutex::ranked(rank::LEAF, Collected::default());
        Arc::new(StepStatsSink { collected, epoch_ns: now.saturating_sub(monotonic_ns()) })
    }

    /// The recorded times by device; `nodes` says where each node ran.
    pub fn finish(&self, nodes: &[NodeReport]) -> StepStats {
        let Collected { calls, extras, names, .. } = mem::take(&mut *self.collected.lock());
        let reports: HashMap<&str, &NodeReport> =
            nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let mut devices: BTreeMap<String, DeviceStepStats> = BTreeMap::new();
        let mut put = |device: &str, stats: NodeExecStats| {
            let entry = devices.entry(device.to_owned()).or_insert_with(|| DeviceStepStats {
                device: device.to_owned(),
                thread_names: names.clone(),
                ..DeviceStepStats::default()
            });
            entry.node_stats.push(stats);
        };
        for call in calls {
            let report = reports.get(call.node.as_str());
            let label =
                report.map_or_else(|| call.node.clone(), |it| format!("{} = {}", call.node, it.op));
            let mut stats = self.times(call.node, label, call.begin_ns, call.end_ns);
            stats.thread_id = call.thread;
            stats.output = call.outputs.iter().enumerate().map(output).collect();
            put(report.map_or("", |report| &report.device), stats);
        }
        for extra in extras {
            put(&extra.device, self.times(extra.node, extra.label, extra.begin_ns, extra.end_ns));
        }
        StepStats { dev_stats: devices.into_values().collect() }
    }

    fn times(&self, node_name: String, label: String, begin_ns: u64, end_ns: u64) -> NodeExecStats {
        let number = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let begin = number(self.epoch_ns.saturating_add(begin_ns));
        let took = number(end_ns.saturating_sub(begin_ns));
        NodeExecStats {
            node_name,
            timeline_label: label,
            all_start_micros: begin / 1000,
            scheduled_micros: begin / 1000,
            op_end_rel_micros: took / 1000,
            all_end_rel_micros: took / 1000,
            all_start_nanos: begin,
            scheduled_nanos: begin,
            op_end_rel_nanos: took,
            all_end_rel_nanos: took,
            ..NodeExecStats::default()
        }
    }
}

fn output((slot, (dtype, shape)): (usize, &(DType, Shape))) -> NodeOutput {
    let description = TensorDescription {
        dtype: dtype_to_proto(*dtype),
        shape: Some(shape_to_proto(&(*shape).into())),
    };
    NodeOutput {
        slot: i32::try_from(slot).unwrap_or(i32::MAX),
        tensor_description: Some(description.encode_to_vec()),
    }
}

impl TraceSink for StepStatsSink {
    fn span(&self, node: &str, name: &str, begin_ns: u64, end_ns: u64) {
        // A part of a call, which the kernel names, is in the call's own span.
        if !name.is_empty() {
            return;
        }
        let current = thread::current();
        let mut collected = self.collected.lock();
        let next = u32::try_from(collected.threads.len()).unwrap_or(u32::MAX);
        let number = *collected.threads.entry(current.id()).or_insert(next);
        if number == next {
            let name = current.name().unwrap_or("thread").to_owned();
            collected.names.insert(number, name);
        }
        let (node, outputs) = (node.to_owned(), Vec::new());
        collected.calls.push(Call { node, begin_ns, end_ns, thread: number, outputs });
    }

    fn tensors(&self, node: &str, _: &[(DType, Shape)], outputs: &[(DType, Shape)]) {
        let mut collected = self.collected.lock();
        let call = collected.calls.iter_mut().rev().find(|call| call.node == node);
        if let Some(call) = call {
            call.outputs = outputs.to_vec();
        }
    }

    fn stream_span(&self, stream: &str, node: &str, begin_ns: u64, end_ns: u64) {
        let device = stream.split_once(" stream ").map_or(stream, |(device, _)| device);
        let device =
            format!("/device:{device}/{}", stream.strip_prefix(device).unwrap_or("").trim());
        let extra =
            Extra { device, label: node.to_owned(), node: node.to_owned(), begin_ns, end_ns };
        self.collected.lock().extras.push(extra);
    }

    fn copy_span(&self, copy: &CopySpan<'_>) {
        let extra = Extra {
            device: format!("{}/memcpy", copy.device),
            label: format!("{} = copy of {} bytes", copy.node, copy.bytes),
            node: copy.node.to_owned(),
            begin_ns: copy.begin_ns,
            end_ns: copy.end_ns,
        };
        self.collected.lock().extras.push(extra);
    }
}
