//! The worker's log: sends its lines to the host.

use crate::wire::{Word, write_message};
use std::{fmt, os::unix::net::UnixStream, sync::Arc};
use tenon_abi::LogLevel;
use tenon_framework::sync::Mutex;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Sends every event to the host, which filters them. Spans are ignored.
struct Lines(Arc<Mutex<UnixStream>>);

/// Sends the log of this process through a socket.
pub(super) fn install(words: &Arc<Mutex<UnixStream>>) {
    // If another subscriber is set already, it stays, and receives the lines.
    let _ = tracing::subscriber::set_global_default(Lines(Arc::clone(words)));
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        use fmt::Write;
        if field.name() == "message" {
            self.0.insert_str(0, &format!("{value:?}"));
        } else if field.name() != "plugin" {
            let _ = write!(self.0, " {}={value:?}", field.name());
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let level = match *event.metadata().level() {
            Level::ERROR => LogLevel::ERROR,
            Level::WARN => LogLevel::WARN,
            _ => LogLevel::INFO,
        };
        let word = Word::Log { level: level.0, message: text.0 };
        // Without a host there is no reader.
        let _ = write_message(&mut *self.0.lock(), &word);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}
