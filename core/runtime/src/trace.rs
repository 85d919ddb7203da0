//! The spans of steps, as a trace that Chrome (`chrome://tracing`) and Perfetto show.
//!
//! Form of the file: the JSON object format of Chrome's trace event format, with complete events (`X`) in
//! microseconds and one metadata event (`M`) per thread.

use serde_json::{Value, json};
use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{self, Write},
    sync::atomic::{AtomicU64, Ordering},
};
use tenon_framework::sync::Mutex;
use tenon_host::call::TraceSink;

/// A span, on the thread that reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    node: String,
    name: String,
    begin_ns: u64,
    end_ns: u64,
    thread: u64,
}

#[derive(Default)]
struct Collected {
    spans: Vec<Span>,
    /// Names of threads by number.
    threads: BTreeMap<u64, String>,
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
        let names = collected.threads.iter().map(|(&thread, name)| thread_event(thread, name));
        let events: Vec<Value> = names.chain(spans.into_iter().map(span_event)).collect();
        let trace = json!({ "displayTimeUnit": "ns", "traceEvents": events });
        serde_json::to_writer(&mut out, &trace)?;
        out.write_all(b"\n")?;
        out.flush()
    }
}

fn thread_event(thread: u64, name: &str) -> Value {
    json!({
        "ph": "M", "pid": 1, "tid": thread, "name": "thread_name", "args": { "name": name },
    })
}

fn span_event(span: &Span) -> Value {
    let (name, category) = match span.name.as_str() {
        "" => (&span.node, "node"),
        _ => (&span.name, "kernel"),
    };
    let micros = |ns: u64| ns as f64 / 1e3;
    json!({
        "ph": "X", "pid": 1, "tid": span.thread, "name": name, "cat": category,
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
        let (node, name) = (node.to_owned(), name.to_owned());
        let mut collected = self.collected.lock();
        collected.threads.entry(thread).or_insert_with(|| {
            let current = std::thread::current();
            current.name().map_or_else(|| format!("thread {thread}"), str::to_owned)
        });
        collected.spans.push(Span { node, name, begin_ns, end_ns, thread });
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
    fn an_empty_trace_is_a_valid_file() {
        let trace = ChromeTrace::new();
        assert!(trace.is_empty() && events(&trace, "X").is_empty());
    }
}
