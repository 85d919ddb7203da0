//! How event files are named, and how they begin.

use crate::{Event, EventKind, SourceMetadata};
use std::{
    fs, process,
    sync::atomic::{AtomicU32, Ordering},
};

/// The version of the format.
const VERSION: &str = "brain.Event:2";

/// A name that no other writer of this machine has: `events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER`, for a file that is
/// created at this time in seconds since 1970.
pub fn name(seconds: f64) -> String {
    static WRITERS: AtomicU32 = AtomicU32::new(0);
    let number = WRITERS.fetch_add(1, Ordering::Relaxed);
    let (host, process) = (host(), process::id());
    format!("events.out.tfevents.{:010}.{host}.{process}.{number}", seconds as u64)
}

/// The first event of a file, at this time, with the name of its writer.
pub fn first(wall_time: f64, writer: &str) -> Event {
    Event {
        wall_time,
        what: Some(EventKind::FileVersion(VERSION.to_owned())),
        source_metadata: Some(SourceMetadata { writer: writer.to_owned() }),
        ..Event::default()
    }
}

/// The name of this machine, as part of a file's name.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let name: String = name.trim().chars().map(|c| if is_part(c) { c } else { '_' }).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_of_one_second_differ() {
        let (one, two) = (name(1.75), name(1.75));
        assert!(one.starts_with("events.out.tfevents.0000000001."), "{one}");
        assert_ne!(one, two);
    }
}
