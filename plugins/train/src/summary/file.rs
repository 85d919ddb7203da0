//! Event files as resources: `SummaryWriter`, and the ops that create, flush and close its file.
//!
//! # States
//! A writer is *closed*, as it begins, or *open*: it has a file, and holds events back until there are more than
//! `max_queue`, or `flush_millis` have passed, or it is told to flush. Closing it flushes, and so does dropping it.

use super::message::{Growing, scalar, text};
use crate::files::access;
use std::{
    fs::File,
    io::Write,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tenon_files::{Access, Purpose, failed, path_of};
use tenon_proto::{encode, event_file, records};
use tenon_sdk::{growth, prelude::*};

/// What wrote a file, in its first event.
const WRITER: &str = "tenon_train.summary";

/// A writer of events.
pub struct Writer {
    /// Its name in messages.
    name: String,
    file: Mutex<Option<EventFile>>,
}

impl ResourceValue for Writer {
    const NAME: &'static str = "tenon_train.SummaryWriter";
}

impl Writer {
    fn lock(&self) -> MutexGuard<'_, Option<EventFile>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed(&self) -> KernelError {
        let message = format!(
            "the summary writer '{}' has no file: run CreateSummaryFileWriter before, and CloseSummaryWriter at the end",
            self.name
        );
        KernelError::new(Code::NOT_FOUND, message)
    }

    /// Adds a serialised event.
    ///
    /// # Errors
    /// `NOT_FOUND` while it is closed; the system's error for the file; `RESOURCE_EXHAUSTED` without memory.
    pub fn add(&self, event: &[u8]) -> Result<(), KernelError> {
        self.lock().as_mut().ok_or_else(|| self.closed())?.add(event)
    }
}

/// Seconds since 1970.
pub fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_micros() as f64 / 1e6
}

/// An open file, and the events that it does not have yet.
struct EventFile {
    file: File,
    path: PathBuf,
    /// Records.
    waiting: Vec<u8>,
    /// Their number.
    count: usize,
    most: usize,
    /// `None` for ever.
    period: Option<Duration>,
    flushed: Instant,
}

impl EventFile {
    fn create(c: &ComputeContext<'_>, access: &Access) -> Result<EventFile, KernelError> {
        let (folder, suffix) = (text(c, 1, "logdir")?, text(c, 4, "filename_suffix")?);
        let (most, period): (i32, i32) =
            (scalar(c, 2, "max_queue")?, scalar(c, 3, "flush_millis")?);
        let suffix = String::from_utf8_lossy(suffix);
        if suffix.contains(['/', '\\']) {
            return Err(KernelError::invalid_argument(format!(
                "filename_suffix: expected the end of a file's name, found '{suffix}', which has a folder"
            )));
        }
        let (now, folder) = (now(), path_of(folder));
        let mut path = folder.join(event_file::name(now) + &suffix);
        access.create_folders("logdir", &path)?;
        while access.exists(&path) {
            path = folder.join(event_file::name(now) + &suffix);
        }
        let file = access.open("logdir", &path, Purpose::Write)?;
        let mut file = EventFile {
            file,
            path,
            waiting: Vec::new(),
            count: 0,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            period: u64::try_from(period).ok().map(Duration::from_millis),
            flushed: Instant::now(),
        };
        let first = encode(&event_file::first(now, WRITER));
        let first = first.map_err(|error| KernelError::internal(error.to_string()))?;
        file.hold(&first)?;
        file.flush()?;
        Ok(file)
    }

    fn hold(&mut self, event: &[u8]) -> Result<(), KernelError> {
        growth::reserve(
            &mut self.waiting,
            event.len().saturating_add(records::HEAD + records::TAIL),
        )?;
        let written = records::write(&mut Growing(&mut self.waiting), event);
        written.map_err(|error| failed("the event file", &self.path, &error))?;
        self.count += 1;
        Ok(())
    }

    fn add(&mut self, event: &[u8]) -> Result<(), KernelError> {
        self.hold(event)?;
        let is_due = self.period.is_some_and(|period| self.flushed.elapsed() > period);
        if self.count > self.most || is_due { self.flush() } else { Ok(()) }
    }

    /// Writes what waits; what could not be written is lost, so that no event is there twice.
    fn flush(&mut self) -> Result<(), KernelError> {
        let written = self.file.write_all(&self.waiting);
        self.waiting.clear();
        (self.count, self.flushed) = (0, Instant::now());
        written.map_err(|error| failed("the event file", &self.path, &error))
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        // Nobody is left who could be told.
        let _ = self.flush();
    }
}

struct Make {
    container: String,
    name: String,
}

impl Kernel for Make {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (container, shared): (&str, &str) = (c.attr("container")?, c.attr("shared_name")?);
        if shared.starts_with('_') {
            return Err(KernelError::invalid_argument(format!(
                "shared_name: expected a name that does not begin with '_', found '{shared}'"
            )));
        }
        let name = if shared.is_empty() { c.node() } else { shared };
        Ok(Make { container: container.to_owned(), name: name.to_owned() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let make = || Ok(Writer { name: self.name.clone(), file: Mutex::new(None) });
        let state = c.state();
        c.output_handle(0, &state.find_or_create::<Writer>(&self.container, &self.name, make)?)
    }
}

register_kernel!("SummaryWriter" on "CPU": Make);

struct Create {
    access: Access,
}

impl Kernel for Create {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Create { access: access(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let writer = c.state().input_resource::<Writer>(0)?;
        let mut file = writer.lock();
        if file.is_none() {
            *file = Some(EventFile::create(c, &self.access)?);
        }
        Ok(())
    }
}

register_kernel!("CreateSummaryFileWriter" on "CPU": Create);

fn flush(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let writer = c.state().input_resource::<Writer>(0)?;
    let mut file = writer.lock();
    file.as_mut().ok_or_else(|| writer.closed())?.flush()
}

register_kernel!("FlushSummaryWriter" on "CPU": fn flush);

fn close(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let writer = c.state().input_resource::<Writer>(0)?;
    let file = writer.lock().take();
    file.ok_or_else(|| writer.closed())?.flush()
}

register_kernel!("CloseSummaryWriter" on "CPU": fn close);
