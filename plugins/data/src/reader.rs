//! Readers: records of files whose names come from a queue.
//!
//! `source` has the records of one file, in each format; `make` has the kernels that give handles,
//! `read` those that read records, `ops` those that ask for state and set it.
//!
//! # States
//! A reader is *idle*, or has a *work item* in progress, whose file is opened when its first record is
//! read. A reader is locked for as long as a record is read.

mod make;
mod ops;
mod read;
mod source;

pub use source::{Compression, FixedSizes, Format, Source, failed};

use crate::{
    files::Access,
    place::{Place, Shared},
};
use source::Record;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenon_sdk::{growth, prelude::*};

/// A reader.
pub struct Reader {
    place: Place,
    format: Format,
    state: Mutex<State>,
}

impl Shared for Reader {
    const NAME: &'static str = "tenon_data.Reader";
    const WHAT: &'static str = "reader";

    fn place(&self) -> &Place {
        &self.place
    }
}

impl Reader {
    fn new(place: Place, format: Format) -> Reader {
        Reader { place, format, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The work item in progress.
enum Work {
    /// Its file is not open yet.
    Named,
    Open(Source),
}

/// How far a reader is.
#[derive(Default)]
struct State {
    work: Option<Work>,
    /// The work item that was begun last.
    current: Vec<u8>,
    /// Number of work items that were begun.
    started: i64,
    /// Number of work items that were read to their ends.
    finished: i64,
    /// Number of records.
    produced: i64,
}

impl State {
    /// The next record of the work item in progress; `None` when there is none, or it is at its end.
    ///
    /// # Errors
    /// What is wrong with the file. One that cannot be opened is left out, unless it is read as a whole.
    fn next(&mut self, format: Format, access: &Access) -> Result<Option<Record>, KernelError> {
        if let Some(Work::Named) = self.work {
            match Source::open(growth::copied(&self.current)?, format, access) {
                Ok(source) => self.work = Some(Work::Open(source)),
                // As in TensorFlow, a whole file is asked for until it is there.
                Err(error) if matches!(format, Format::WholeFile) => return Err(error),
                Err(error) => {
                    self.work = None;
                    self.started = self.finished;
                    return Err(error);
                }
            }
        }
        let Some(Work::Open(source)) = &mut self.work else { return Ok(None) };
        let found = source.next()?;
        self.produced += i64::from(found.is_some());
        if found.is_none() || !source.has_more() {
            self.work = None;
            self.finished = self.started;
        }
        Ok(found)
    }

    /// Begins a work item.
    fn begin(&mut self, work: Vec<u8>) {
        self.work = Some(Work::Named);
        self.current = work;
        self.started += 1;
    }
}
