//! Writes the spans of steps as a trace for Chrome (`chrome://tracing`) and Perfetto.
//!
//! The file has the JSON object format of Chrome's trace event format, with complete events (`X`)
//! in microseconds and one metadata event (`M`) per thread. The threads of the host belong to
//! process 1. Process 2 has a lane for each stream of a device, such as `ACCEL:0 stream 1`, with
//! the work on it and its times. A device without streams has a lane `NPU:0` for its kernels and
//! one `NPU:0 copies`. With [`ChromeTrace::describe`], events state op, device, plugin, label,
//! shapes and bytes.
//! plugin, label, shapes and bytes.

use crate::options::NodeReport;
use serde_json::{Map, Value, json};
use std::{
    cell::Cell,
    collections::{BTreeMap, HashMap},
    io::{self, Write},
    sync::atomic::{AtomicU64, Ordering},
};
use tenon_framework::{DType, PartialShape, Shape, sync::Mutex};
use tenon_host::call::{CopySpan, TraceSink};

/// The process numbers of the spans' threads.
const HOST: u32 = 1;
const DEVICES: u32 = 2;

/// The track of a span: a thread of the host, or a stream.
type Track = (u32, u64);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    node: String,
    name: String,
    begin_ns: u64,
    end_ns: u64,
    track: Track,
    /// The details of a copy.
    copied: Option<Copied>,
    /// The tensors of the call, by the names of the plan.
    tensors: Map<String, Value>,
}

/// The bytes that a copy moved, and the device that moved them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Copied {
    device: String,
    bytes: u64,
}

#[derive(Default, Clone)]
struct Collected {
    spans: Vec<Span>,
    /// The names of tracks.
    tracks: BTreeMap<Track, String>,
    /// The known properties of nodes, by name.
    nodes: HashMap<String, Described>,
}

/// The properties of a node in a plan.
#[derive(Debug, Clone)]
struct Described {
    /// The short name of the device, such as `NPU:0`.
    device: String,
    args: Map<String, Value>,
}

impl Described {
    fn of(node: &NodeReport) -> Described {
        let device = short(&node.device).to_owned();
        let mut args = tensors(&node.inputs, &node.outputs);
        let mut put = |key: &str, value: Value| args.insert(key.to_owned(), value);
        put("op", node.op.clone().into());
        put("device", device.clone().into());
        put("plugin", node.plugin.clone().into());
        put("label", node.label.clone().into());
        if node.per_shape {
            put("kernel", "chosen per shape at run time".into());
        }
        Described { device, args }
    }
}

/// The element types and shapes of inputs and outputs, and their bytes if all sizes are known.
fn tensors(
    inputs: &[(DType, PartialShape)],
    outputs: &[(DType, PartialShape)],
) -> Map<String, Value> {
    let bytes = |all: &[(DType, PartialShape)]| -> Option<u64> {
        all.iter().try_fold(0u64, |sum, (dtype, shape)| {
            let elements = shape.full()?.elements();
            let bytes = u64::try_from(elements).ok()?.checked_mul(dtype.size()? as u64)?;
            sum.checked_add(bytes)
        })
    };
    let mut args = Map::new();
    for (names, all) in
        [(["inputs", "bytes_read"], inputs), (["outputs", "bytes_written"], outputs)]
    {
        let shown = all.iter().map(|(dtype, shape)| Value::from(format!("{dtype} {shape}")));
        args.insert(names[0].to_owned(), shown.collect());
        if let Some(bytes) = bytes(all) {
            args.insert(names[1].to_owned(), bytes.into());
        }
    }
    args
}

/// The short name of a device of this process, such as `NPU:0`.
fn short(device: &str) -> &str {
    device.rsplit_once("/device:").map_or(device, |(_, name)| name)
}

impl Collected {
    /// Whether a device has a lane for each of its streams.
    fn has_streams(&self, device: &str) -> bool {
        let of_device = |name: &String| {
            let rest = name.strip_prefix(device);
            rest.is_some_and(|rest| rest.starts_with(" stream "))
        };
        self.tracks.iter().any(|((process, _), name)| *process == DEVICES && of_device(name))
    }

    /// The spans as they are written. Kernels of a device without streams move to its lane. A copy
    /// that was enqueued on a stream appears only there.
    fn shown(&mut self) -> Vec<Span> {
        let spans = std::mem::take(&mut self.spans);
        let mut shown = Vec::with_capacity(spans.len());
        for mut span in spans {
            let device = match &span.copied {
                Some(copied) => copied.device.clone(),
                None => {
                    self.nodes.get(&span.node).map(|node| node.device.clone()).unwrap_or_default()
                }
            };
            let of_host = device.is_empty() || device.starts_with("CPU:");
            let streams = self.has_streams(&device);
            match (&span.copied, span.track.0) {
                (Some(_), _) if streams => continue,
                (Some(_), _) => span.track = self.lane(&format!("{device} copies")),
                (None, HOST) if !of_host && !streams => span.track = self.lane(&device),
                _ => {}
            }
            shown.push(span);
        }
        shown
    }

    /// The track of a stream or device with this name.
    fn lane(&mut self, name: &str) -> Track {
        let mut streams = self.tracks.iter().filter(|((process, _), _)| *process == DEVICES);
        if let Some((track, _)) = streams.find(|(_, known)| *known == name) {
            return *track;
        }
        let count = self.tracks.keys().filter(|(process, _)| *process == DEVICES).count();
        let track = (DEVICES, count as u64 + 1);
        self.tracks.insert(track, name.to_owned());
        track
    }
}

/// Collects spans, from any thread.
///
/// ```
/// use tenon_host::call::TraceSink;
/// use tenon_runtime::trace::ChromeTrace;
///
/// let trace = ChromeTrace::new();
/// trace.span("conv1/Conv2D", "", 1_000, 4_500);
/// let mut file = Vec::new();
/// trace.write(&mut file).unwrap();
/// assert!(String::from_utf8(file).unwrap().contains("conv1/Conv2D"));
/// ```
#[derive(Default)]
pub struct ChromeTrace {
    collected: Mutex<Collected>,
}

impl ChromeTrace {
    /// Creates a trace without spans.
    pub fn new() -> ChromeTrace {
        ChromeTrace::default()
    }

    /// The number of spans so far.
    pub fn len(&self) -> usize {
        self.collected.lock().spans.len()
    }

    /// Whether there are no spans.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the properties of traced nodes, as [`Callable::nodes`](crate::Callable::nodes) lists
    /// them. Events then state op, device, plugin and label. A call that did not report its tensors
    /// ([`TraceSink::tensors`]) gets the bytes and the shapes that are known before a step.
    pub fn describe(&self, nodes: &[NodeReport]) {
        let described = nodes.iter().map(|node| (node.name.clone(), Described::of(node)));
        self.collected.lock().nodes.extend(described);
    }

    /// Writes the collected spans, ordered by start time.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        let mut collected = self.collected.lock().clone();
        // The properties of a copy also apply to the span on the stream, by node.
        let copies = collected.spans.iter().filter_map(|span| {
            Some((span.node.clone(), (span.name.clone(), span.copied.clone()?)))
        });
        let copies: HashMap<String, (String, Copied)> = copies.collect();
        // The span on a stream is the work that the host's call of the node enqueued.
        let calls = collected.spans.iter().filter(|span| !span.tensors.is_empty());
        let calls: HashMap<String, Map<String, Value>> =
            calls.map(|span| (span.node.clone(), span.tensors.clone())).collect();
        let mut spans = collected.shown();
        for span in
            spans.iter_mut().filter(|span| span.track.0 == DEVICES && span.tensors.is_empty())
        {
            span.tensors = calls.get(&span.node).cloned().unwrap_or_default();
        }
        // Of two spans that start together, the longer one encloses the other.
        spans.sort_by_key(|span| (span.begin_ns, std::cmp::Reverse(span.end_ns)));
        let names = collected.tracks.iter().map(|(&track, name)| track_event(track, name));
        let has_streams = collected.tracks.keys().any(|(process, _)| *process == DEVICES);
        let devices = has_streams.then(|| process_event(DEVICES, "devices"));
        let event = |span: &Span| span_event(span, collected.nodes.get(&span.node), &copies);
        let spans = spans.iter().map(event);
        let events: Vec<Value> = devices.into_iter().chain(names).chain(spans).collect();
        let trace = json!({ "displayTimeUnit": "ns", "traceEvents": events });
        serde_json::to_writer(&mut out, &trace)?;
        out.write_all(b"\n")?;
        out.flush()
    }
}

fn process_event(process: u32, name: &str) -> Value {
    json!({ "ph": "M", "pid": process, "name": "process_name", "args": { "name": name } })
}

fn track_event((process, thread): Track, name: &str) -> Value {
    json!({
        "ph": "M", "pid": process, "tid": thread, "name": "thread_name", "args": { "name": name },
    })
}

fn span_event(
    span: &Span,
    node: Option<&Described>,
    copies: &HashMap<String, (String, Copied)>,
) -> Value {
    let mut args = node.map(|node| node.args.clone()).unwrap_or_default();
    args.extend(span.tensors.clone());
    args.insert("node".to_owned(), span.node.clone().into());
    let copy = copies.get(&span.node).filter(|_| span.track.0 == DEVICES);
    if let Some((_, copied)) = copy {
        args.insert("bytes".to_owned(), copied.bytes.into());
        args.insert("device".to_owned(), copied.device.clone().into());
    }
    let (name, category) = match (copy, span.name.as_str()) {
        (Some((direction, _)), _) => (direction, "copy"),
        (None, "") => (&span.node, "node"),
        (None, _) => (&span.name, "kernel"),
    };
    let micros = |ns: u64| ns as f64 / 1e3;
    json!({
        "ph": "X", "pid": span.track.0, "tid": span.track.1, "name": name, "cat": category,
        "ts": micros(span.begin_ns), "dur": micros(span.end_ns.saturating_sub(span.begin_ns)),
        "args": args,
    })
}

/// A small number for this thread: the system's thread ids are long and unordered.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

impl TraceSink for ChromeTrace {
    fn span(&self, node: &str, name: &str, begin_ns: u64, end_ns: u64) {
        let thread = thread_number();
        let track = (HOST, thread);
        let (node, name) = (node.to_owned(), name.to_owned());
        let mut collected = self.collected.lock();
        collected.tracks.entry(track).or_insert_with(|| {
            let current = std::thread::current();
            current.name().map_or_else(|| format!("thread {thread}"), str::to_owned)
        });
        let tensors = Map::new();
        collected.spans.push(Span { node, name, begin_ns, end_ns, track, copied: None, tensors });
    }

    fn tensors(&self, node: &str, inputs: &[(DType, Shape)], outputs: &[(DType, Shape)]) {
        let whole = |all: &[(DType, Shape)]| -> Vec<(DType, PartialShape)> {
            all.iter().map(|(dtype, shape)| (*dtype, PartialShape::from(*shape))).collect()
        };
        let told = tensors(&whole(inputs), &whole(outputs));
        let track = (HOST, thread_number());
        let mut collected = self.collected.lock();
        let is_call =
            |span: &&mut Span| span.track == track && span.name.is_empty() && span.node == node;
        if let Some(span) = collected.spans.iter_mut().rev().find(is_call) {
            span.tensors = told;
        }
    }

    fn copy_span(&self, copy: &CopySpan<'_>) {
        let CopySpan { node, device, leaves, bytes, begin_ns, end_ns } = *copy;
        let device = short(device).to_owned();
        let name = if leaves { format!("copy from {device}") } else { format!("copy to {device}") };
        let copied = Some(Copied { device, bytes });
        let (node, track) = (node.to_owned(), (HOST, 0));
        let tensors = Map::new();
        let span = Span { node, name, begin_ns, end_ns, track, copied, tensors };
        self.collected.lock().spans.push(span);
    }

    fn stream_span(&self, stream: &str, node: &str, begin_ns: u64, end_ns: u64) {
        let (node, name) = (node.to_owned(), String::new());
        let mut collected = self.collected.lock();
        let (track, tensors) = (collected.lane(stream), Map::new());
        collected.spans.push(Span { node, name, begin_ns, end_ns, track, copied: None, tensors });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tenon_framework::{attr::AttrMap, attr_view::AttrTable};

    fn events(trace: &ChromeTrace, kind: &str) -> Vec<Value> {
        let mut file = Vec::new();
        trace.write(&mut file).unwrap();
        let read: Value = serde_json::from_slice(&file).unwrap();
        let all = read["traceEvents"].as_array().unwrap().clone();
        all.into_iter().filter(|event| event["ph"] == kind).collect()
    }

    #[test]
    fn spans_come_in_the_order_of_their_beginnings_and_in_microseconds() {
        let trace = ChromeTrace::new();
        trace.span("b", "", 5_000, 6_500);
        trace.span("a \"quoted\"", "pack", 1_000, 1_250);
        trace.span("a \"quoted\"", "", 1_000, 3_000);
        let spans = events(&trace, "X");
        let shown: Vec<(&str, &str, f64, f64)> = spans
            .iter()
            .map(|span| {
                let text = |key: &str| span[key].as_str().unwrap();
                let figure = |key: &str| span[key].as_f64().unwrap();
                (text("name"), text("cat"), figure("ts"), figure("dur"))
            })
            .collect();
        assert_eq!(shown[0], ("a \"quoted\"", "node", 1.0, 2.0));
        assert_eq!(shown[1], ("pack", "kernel", 1.0, 0.25));
        assert_eq!(shown[2], ("b", "node", 5.0, 1.5));
        assert_eq!(spans[1]["args"]["node"], "a \"quoted\"");
    }

    #[test]
    fn each_thread_has_a_number_and_a_name() {
        let trace = ChromeTrace::new();
        trace.span("here", "", 1, 2);
        std::thread::scope(|scope| {
            let other = std::thread::Builder::new().name("other".to_owned());
            other.spawn_scoped(scope, || trace.span("there", "", 3, 4)).unwrap().join().unwrap();
        });
        let spans = events(&trace, "X");
        assert_ne!(spans[0]["tid"], spans[1]["tid"]);
        let names = events(&trace, "M");
        let other = names.iter().find(|event| event["tid"] == spans[1]["tid"]).unwrap();
        assert_eq!(other["args"]["name"], "other");
        assert_eq!(names.len(), 2);
    }

    #[test]
    fn each_stream_is_a_track_of_the_devices() {
        let trace = ChromeTrace::new();
        trace.span("a", "", 1, 2);
        for (stream, node) in
            [("ACCEL:0 stream 0", "a"), ("ACCEL:0 stream 1", "b"), ("ACCEL:0 stream 0", "c")]
        {
            trace.stream_span(stream, node, 3_000, 4_000);
        }
        let spans = events(&trace, "X");
        let place = |at: usize| (spans[at]["pid"].as_u64(), spans[at]["tid"].as_u64());
        assert_eq!(place(0).0, Some(1), "the host's own");
        assert_eq!(place(1), place(3));
        assert_eq!((place(1).0, place(2).0), (Some(2), Some(2)));
        assert_ne!(place(1), place(2));
        let names = events(&trace, "M");
        let name = |at: usize| {
            names.iter().find(|event| (event["pid"].as_u64(), event["tid"].as_u64()) == place(at))
        };
        assert_eq!(name(2).unwrap()["args"]["name"], "ACCEL:0 stream 1");
        assert!(names.iter().any(|event| event["name"] == "process_name"));
    }

    fn node(name: &str, device: &str) -> NodeReport {
        NodeReport {
            name: name.to_owned(),
            op: "Relu".to_owned(),
            device: format!("/job:localhost/replica:0/task:0/device:{device}"),
            plugin: "npu".to_owned(),
            label: "fast".to_owned(),
            attrs: Arc::new(AttrTable::new(AttrMap::new())),
            inputs: vec![(DType::FLOAT, PartialShape::new(&[2, 3]).unwrap())],
            outputs: vec![(DType::FLOAT, PartialShape::UNKNOWN)],
            per_shape: false,
        }
    }

    fn copy<'a>(node: &'a str, device: &'a str, leaves: bool) -> CopySpan<'a> {
        CopySpan { node, device, leaves, bytes: 24, begin_ns: 5_000, end_ns: 6_000 }
    }

    #[test]
    fn a_device_without_streams_has_lanes_of_its_own_and_events_say_what_ran() {
        let trace = ChromeTrace::new();
        trace.span("y", "", 1_000, 2_000);
        trace.span("z", "", 3_000, 4_000);
        trace.copy_span(&copy("y/send", "/job:localhost/replica:0/task:0/device:NPU:0", true));
        trace.describe(&[node("y", "NPU:0"), node("z", "CPU:0")]);
        let (spans, names) = (events(&trace, "X"), events(&trace, "M"));
        let lane = |event: &Value| {
            let of = |name: &&Value| (&name["pid"], &name["tid"]) == (&event["pid"], &event["tid"]);
            let named = names.iter().filter(|name| name["name"] == "thread_name").find(of);
            named.unwrap()["args"]["name"].as_str().unwrap().to_owned()
        };
        assert_eq!((lane(&spans[0]), lane(&spans[2])), ("NPU:0".into(), "NPU:0 copies".into()));
        assert_eq!(spans[1]["pid"], 1, "kernels of the host stay on its threads");
        let args = &spans[0]["args"];
        assert_eq!(
            (&args["op"], &args["plugin"], &args["label"]),
            (&"Relu".into(), &"npu".into(), &"fast".into())
        );
        assert_eq!(args["inputs"], json!(["float [2,3]"]));
        assert_eq!((&args["bytes_read"], args.get("bytes_written")), (&24.into(), None));
        assert_eq!(
            (&spans[2]["name"], &spans[2]["args"]["bytes"]),
            (&"copy from NPU:0".into(), &24.into())
        );
        assert_eq!(spans[2]["cat"], "copy");
        assert_eq!(events(&trace, "X"), spans, "writing takes nothing away");
    }

    /// Regression: the trace once showed the shapes of the graph, `[?,3]`, instead of those of the
    /// call.
    #[test]
    fn what_a_call_took_and_gave_comes_before_what_the_plan_knows() {
        let trace = ChromeTrace::new();
        let shape = |dims: &[i64]| (DType::FLOAT, Shape::new(dims).unwrap());
        trace.span("y", "", 1_000, 2_000);
        trace.tensors("y", &[shape(&[4, 3])], &[shape(&[4, 3])]);
        trace.stream_span("NPU:0 stream 0", "y", 2_000, 3_000);
        trace.span("z", "", 4_000, 5_000);
        trace.tensors("nobody", &[], &[]);
        trace.describe(&[node("y", "NPU:0"), node("z", "NPU:0")]);
        let spans = events(&trace, "X");
        for span in &spans[..2] {
            let args = &span["args"];
            assert_eq!(
                (&args["inputs"], &args["outputs"]),
                (&json!(["float [4,3]"]), &args["inputs"])
            );
            assert_eq!((&args["bytes_read"], &args["bytes_written"]), (&48.into(), &48.into()));
            assert_eq!(args["op"], "Relu");
        }
        assert_eq!(spans[2]["args"]["inputs"], json!(["float [2,3]"]), "the plan's");
    }

    #[test]
    fn a_copy_on_a_stream_is_shown_there_alone_with_its_bytes() {
        let trace = ChromeTrace::new();
        trace.copy_span(&copy("x/recv", "ACCEL:0", false));
        trace.stream_span("ACCEL:0 stream 0", "x/recv", 6_000, 9_000);
        let spans = events(&trace, "X");
        assert_eq!(spans.len(), 1, "{spans:?}");
        assert_eq!((&spans[0]["name"], &spans[0]["dur"]), (&"copy to ACCEL:0".into(), &3.0.into()));
        assert_eq!(spans[0]["args"]["bytes"], 24);
    }

    #[test]
    fn an_empty_trace_is_a_valid_file() {
        let trace = ChromeTrace::new();
        assert!(trace.is_empty() && events(&trace, "X").is_empty());
    }
}
