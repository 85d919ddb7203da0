//! Events of the runtime, as records of Python's `logging`.
//!
//! An event is put into a queue, and a thread passes it to Python: a thread of the runtime that logs never waits for Python's lock.
//! [`flush`] waits until all events so far have been passed on.

use crate::blocking::calling;
use pyo3::prelude::*;
use std::{
    fmt::{self, Write},
    sync::{
        OnceLock,
        atomic::{AtomicU8, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// The lowest level that is passed on: 1 is errors alone, 5 everything, 0 nothing. Warnings until Python says otherwise.
static LEVEL: AtomicU8 = AtomicU8::new(2);

fn number(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

/// An event, as Python gets it.
struct Record {
    level: u8,
    target: String,
    text: String,
}

enum Item {
    Record(Record),
    Flush(mpsc::Sender<()>),
}

static QUEUE: OnceLock<mpsc::Sender<Item>> = OnceLock::new();

/// The text of an event: its message, and then its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

struct ToPython {
    spans: AtomicU64,
}

impl Subscriber for ToPython {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with("tenon")
            && number(metadata.level()) <= LEVEL.load(Ordering::Relaxed)
    }

    fn register_callsite(
        &self,
        metadata: &'static Metadata<'static>,
    ) -> tracing::subscriber::Interest {
        // The level may change later.
        match metadata.is_event() && metadata.target().starts_with("tenon") {
            true => tracing::subscriber::Interest::sometimes(),
            false => tracing::subscriber::Interest::never(),
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed).max(1))
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let record = Record {
            level: number(event.metadata().level()),
            target: event.metadata().target().replace("::", "."),
            text: text.message + &text.fields,
        };
        if let Some(queue) = QUEUE.get() {
            // The thread ends with the interpreter; later events have no reader.
            let _ = queue.send(Item::Record(record));
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Passes events on until the process ends. Events of one moment are passed on together.
fn pass_on(items: &mpsc::Receiver<Item>) {
    while let Ok(first) = items.recv() {
        let batch: Vec<Item> = std::iter::once(first).chain(items.try_iter()).collect();
        let passed = calling(|py| {
            for item in &batch {
                if let Item::Record(record) = item {
                    let emit = py.import("tenon._logs").and_then(|logs| logs.getattr("emit"));
                    let emitted = emit
                        .and_then(|emit| emit.call1((record.level, &record.target, &record.text)));
                    // There is nowhere to report that logging fails.
                    drop(emitted);
                }
            }
        });
        for item in batch {
            if let Item::Flush(done) = item {
                let _ = done.send(());
            }
        }
        if passed.is_none() {
            return;
        }
    }
}

/// Begins to pass events on, unless the program has a subscriber of its own.
pub(crate) fn start() {
    if QUEUE.get().is_some() {
        return;
    }
    let (sender, items) = mpsc::channel();
    if QUEUE.set(sender).is_err() {
        return;
    }
    let started = thread::Builder::new().name("tenon-logs".to_owned());
    if started.spawn(move || pass_on(&items)).is_ok() {
        // An error means that there is a subscriber.
        let _ = tracing::subscriber::set_global_default(ToPython { spans: AtomicU64::new(1) });
    }
}

/// Sets the lowest level that is passed on: 0 nothing, 1 errors, 2 warnings, 3 information, 4 debugging, 5 traces.
#[pyfunction]
pub(crate) fn set_log_level(level: u8) {
    LEVEL.store(level.min(5), Ordering::Relaxed);
}

/// Waits until the events so far have been passed on, for 5 seconds at most.
#[pyfunction]
pub(crate) fn flush_logs(py: Python<'_>) {
    let Some(queue) = QUEUE.get() else { return };
    let (done, wait) = mpsc::channel();
    if queue.send(Item::Flush(done)).is_ok() {
        py.detach(move || {
            let _ = wait.recv_timeout(Duration::from_secs(5));
        });
    }
}
