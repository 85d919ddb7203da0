//! The spans of steps, as a trace that Chrome (`chrome://tracing`) and Perfetto show.
//!
//! Form of the file: the JSON object format of Chrome's trace event format, with complete events (`X`) in
//! microseconds and one metadata event (`M`) per thread. Threads of the host are those of process 1; each stream
//! of a device stands as a thread of process 2, named as `ACCEL:0 stream 1`, with what ran on it and when.

use serde_json::{Value, json};
use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{self, Write},
    sync::atomic::{AtomicU64, Ordering},
};
use tenon_framework::sync::Mutex;
use tenon_host::call::TraceSink;

/// Numbers of the processes that the spans' threads belong to.
const HOST: u32 = 1;
const DEVICES: u32 = 2;

/// Where a span stands: a thread of the host that reported it, or a stream.
type Track = (u32, u64);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    node: String,
    name: String,
    begin_ns: u64,
    end_ns: u64,
    track: Track,
}

#[derive(Default)]
struct Collected {
    spans: Vec<Span>,
    /// Names of tracks.
    tracks: BTreeMap<Track, String>,
}

impl Collected {
    /// The track of a stream, by its name.
    fn stream(&mut self, name: &str) -> Track {
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
    /// A trace without spans.
    pub fn new() -> ChromeTrace {
        ChromeTrace::default()
    }

    /// Number of spans so far.
    pub fn len(&self) -> usize {
        self.collected.lock().spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes what was collected, in the order of beginnings.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        let collected = self.collected.lock();
        let mut spans: Vec<&Span> = collected.spans.iter().collect();
        // Of two that begin together the longer one holds the other.
        spans.sort_by_key(|span| (span.begin_ns, std::cmp::Reverse(span.end_ns)));
        let names = collected.tracks.iter().map(|(&track, name)| track_event(track, name));
        let has_streams = collected.tracks.keys().any(|(process, _)| *process == DEVICES);
        let devices = has_streams.then(|| process_event(DEVICES, "devices"));
        let spans = spans.into_iter().map(span_event);
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

fn span_event(span: &Span) -> Value {
    let (name, category) = match span.name.as_str() {
        "" => (&span.node, "node"),
        _ => (&span.name, "kernel"),
    };
    let micros = |ns: u64| ns as f64 / 1e3;
    json!({
        "ph": "X", "pid": span.track.0, "tid": span.track.1, "name": name, "cat": category,
        "ts": micros(span.begin_ns), "dur": micros(span.end_ns.saturating_sub(span.begin_ns)),
        "args": { "node": span.node },
    })
}

/// A small number for this thread: the system's own are long and come in no order.
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
        collected.spans.push(Span { node, name, begin_ns, end_ns, track });
    }

    fn stream_span(&self, stream: &str, node: &str, begin_ns: u64, end_ns: u64) {
        let (node, name) = (node.to_owned(), String::new());
        let mut collected = self.collected.lock();
        let track = collected.stream(stream);
        collected.spans.push(Span { node, name, begin_ns, end_ns, track });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn an_empty_trace_is_a_valid_file() {
        let trace = ChromeTrace::new();
        assert!(trace.is_empty() && events(&trace, "X").is_empty());
    }
}
