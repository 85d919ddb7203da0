//! Event files: what TensorBoard shows of a run.
//!
//! A file is a sequence of [records](tenon_proto::records), each an [`Event`]; the first one has the version of the
//! format. Threads may share a writer.

use crate::TrainError;
use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tenon_framework::sync::Mutex;
use tenon_proto::{
    Event, EventKind, GraphDef, MetaGraphDef, RunMetadata, SessionLog, SessionStatus, Summary,
    SummaryValue, SummaryValueKind, TaggedRunMetadata, decode, encode, event_file, records,
};

/// What wrote the file, in its first event.
const WRITER: &str = "tenon_training::events";
/// An event that is added so long after the last flush is followed by a flush.
const FLUSH_AFTER: Duration = Duration::from_secs(120);

/// Writes an event file.
///
/// ```no_run
/// use tenon_training::EventWriter;
///
/// let events = EventWriter::create("runs/first".as_ref())?;
/// events.add_scalar("loss", 0.5, 100)?;
/// events.flush()?;
/// # Ok::<(), tenon_training::TrainError>(())
/// ```
pub struct EventWriter {
    path: PathBuf,
    now: fn() -> f64,
    state: Mutex<State>,
}

struct State {
    file: BufWriter<File>,
    flushed: Instant,
    /// The tags of the metadata of steps.
    tags: Vec<String>,
}

impl EventWriter {
    /// Creates a folder, unless it exists, and in it a file of its own, `events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER`,
    /// with the first event.
    ///
    /// # Errors
    /// The folder or the file cannot be created or written.
    pub fn create(dir: &Path) -> Result<EventWriter, TrainError> {
        EventWriter::with_clock(dir, seconds)
    }

    fn with_clock(dir: &Path, now: fn() -> f64) -> Result<EventWriter, TrainError> {
        fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
        let (path, file) = created(dir, now())?;
        let state = State { file: BufWriter::new(file), flushed: Instant::now(), tags: Vec::new() };
        let writer = EventWriter { path, now, state: Mutex::new(state) };
        writer.write(&event_file::first(now(), WRITER))?;
        writer.flush()?;
        Ok(writer)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a serialised `Summary`, such as the summary ops give.
    ///
    /// # Errors
    /// The bytes are not a `Summary`; the file cannot be written.
    pub fn add_summary(&self, serialized: &[u8], step: i64) -> Result<(), TrainError> {
        self.add(EventKind::Summary(decode(serialized)?), step)
    }

    /// Adds a number under a tag.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_scalar(&self, tag: &str, value: f32, step: i64) -> Result<(), TrainError> {
        let value = Some(SummaryValueKind::SimpleValue(value));
        let value = SummaryValue { tag: tag.to_owned(), value, ..SummaryValue::default() };
        self.add(EventKind::Summary(Summary { value: vec![value] }), step)
    }

    /// Adds a graph.
    ///
    /// # Errors
    /// The graph is too large for a message; the file cannot be written.
    pub fn add_graph(&self, graph: &GraphDef) -> Result<(), TrainError> {
        self.add(EventKind::GraphDef(encode(graph)?), 0)
    }

    /// Adds a graph with its collections.
    ///
    /// # Errors
    /// As [`EventWriter::add_graph`].
    pub fn add_meta_graph(&self, graph: &MetaGraphDef, step: i64) -> Result<(), TrainError> {
        self.add(EventKind::MetaGraphDef(encode(graph)?), step)
    }

    /// Adds the metadata of a step, under a tag that the writer has not seen.
    ///
    /// # Errors
    /// The tag was used before; the metadata is too large for a message; the file cannot be written.
    pub fn add_run_metadata(
        &self,
        metadata: &RunMetadata,
        tag: &str,
        step: i64,
    ) -> Result<(), TrainError> {
        let run_metadata = encode(metadata)?;
        let mut state = self.state.lock();
        if state.tags.iter().any(|known| known == tag) {
            let found = format!("'{tag}', which has metadata already; choose another tag");
            return Err(TrainError::argument("a tag of run metadata", "a new one", found));
        }
        let tag = tag.to_owned();
        state.tags.push(tag.clone());
        drop(state);
        self.add(EventKind::TaggedRunMetadata(TaggedRunMetadata { tag, run_metadata }), step)
    }

    /// Adds a turn of the run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_session_log(&self, log: SessionLog, step: i64) -> Result<(), TrainError> {
        self.add(EventKind::SessionLog(log), step)
    }

    /// Adds that the run began, or began again, with this step: TensorBoard drops later steps of an earlier run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_start(&self, step: i64) -> Result<(), TrainError> {
        let log = SessionLog { status: SessionStatus::Start.into(), ..SessionLog::default() };
        self.add_session_log(log, step)
    }

    /// Adds that a checkpoint with this prefix was saved.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_checkpoint(&self, prefix: &str, step: i64) -> Result<(), TrainError> {
        let (status, checkpoint_path) = (SessionStatus::Checkpoint.into(), prefix.to_owned());
        self.add_session_log(SessionLog { status, checkpoint_path, ..SessionLog::default() }, step)
    }

    /// Adds that the run ended.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_stop(&self, step: i64) -> Result<(), TrainError> {
        let log = SessionLog { status: SessionStatus::Stop.into(), ..SessionLog::default() };
        self.add_session_log(log, step)
    }

    /// Gives what was added to the system. Events are buffered otherwise, for at most two minutes while events are added;
    /// a dropped writer flushes too.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&self) -> Result<(), TrainError> {
        let mut state = self.state.lock();
        state.flushed = Instant::now();
        state.file.flush().map_err(|error| self.failed(error))
    }

    fn add(&self, what: EventKind, step: i64) -> Result<(), TrainError> {
        let event =
            Event { wall_time: (self.now)(), step, what: Some(what), source_metadata: None };
        self.write(&event)
    }

    fn write(&self, event: &Event) -> Result<(), TrainError> {
        let bytes = encode(event)?;
        let mut state = self.state.lock();
        let written = records::write(&mut state.file, &bytes).map_err(|error| self.failed(error));
        let is_due = state.flushed.elapsed() >= FLUSH_AFTER;
        drop(state);
        written?;
        if is_due { self.flush() } else { Ok(()) }
    }

    fn failed(&self, error: std::io::Error) -> TrainError {
        failed(&self.path, error)
    }
}

impl fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            tracing::warn!(%error, "the last events are lost");
        }
    }
}

/// Seconds since 1970, with microseconds.
fn seconds() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_micros() as f64 / 1e6
}

/// The error of a file.
fn failed(path: &Path, source: std::io::Error) -> TrainError {
    TrainError::File { what: "a file of events", path: path.to_path_buf(), source }
}

/// A new file.
fn created(dir: &Path, now: f64) -> Result<(PathBuf, File), TrainError> {
    loop {
        let path = dir.join(event_file::name(now));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            // A process of this number on a machine of this name, in another container, shares the folder.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_framework::Code;
    use tenon_proto::NodeDef;

    /// The events of testdata/events.py, which TensorFlow wrote and reads.
    #[test]
    fn a_file_has_the_bytes_of_tensorflows_for_the_same_events() {
        let dir = tempfile::tempdir().unwrap();
        let events = EventWriter::with_clock(dir.path(), || 1_700_000_000.25).unwrap();
        let path = events.path().to_path_buf();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("events.out.tfevents.1700000000."), "{name}");
        let node = NodeDef { name: "x".into(), op: "NoOp".into(), ..NodeDef::default() };
        events.add_graph(&GraphDef { node: vec![node], ..GraphDef::default() }).unwrap();
        events.add_start(3).unwrap();
        events.add_scalar("loss", 0.5, 4).unwrap();
        events.add_scalar("zero", 0.0, 5).unwrap();
        let serialized = b"\x0a\x09\x0a\x02hi\x15\x00\x00\xc0\x3f";
        events.add_summary(serialized, 6).unwrap();
        events.add_run_metadata(&RunMetadata::default(), "step_6", 6).unwrap();
        events.add_checkpoint("/tmp/model-6", 6).unwrap();
        events.add_stop(-1).unwrap();
        drop(events);
        let expected = include_bytes!("../testdata/tensorflow.tfevents");
        assert!(fs::read(path).unwrap() == expected, "the files differ");
    }

    #[test]
    fn events_are_in_the_file_after_a_flush_and_writers_have_files_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("a/b");
        let (one, two) =
            (EventWriter::create(&below).unwrap(), EventWriter::create(&below).unwrap());
        assert_ne!(one.path(), two.path());
        let size = |writer: &EventWriter| fs::metadata(writer.path()).unwrap().len();
        let first = size(&one);
        assert_eq!(first, size(&two));
        one.add_scalar("loss", 1.0, 1).unwrap();
        one.flush().unwrap();
        assert!(size(&one) > first);
        assert_eq!(size(&two), first);
    }

    #[test]
    fn what_cannot_be_an_event_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let events = EventWriter::create(dir.path()).unwrap();
        let error = events.add_summary(b"\x0a\xff", 1).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
        events.add_run_metadata(&RunMetadata::default(), "a", 1).unwrap();
        let error = events.add_run_metadata(&RunMetadata::default(), "a", 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a tag of run metadata: expected a new one, found 'a', which has metadata already; choose another tag"
        );
        let error = EventWriter::create(&events.path().join("below")).unwrap_err();
        assert_eq!(error.code(), Code::FAILED_PRECONDITION, "{error}");
    }
}
