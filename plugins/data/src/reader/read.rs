//! Kernels that read records.
//!
//! A call reads from the work item in progress at once. Where there is none, it waits among those that
//! take elements from the queue (`attempts`); the file is read as soon as its name is there, by whichever
//! thread brought it, while the queue is locked: the next call for the reader then finds the item in
//! progress.

use super::{Reader, source::Record};
use crate::{
    attempts::{Answer, Async, Attempt, Begins, Begun, Progress, TAKE},
    files::{Access, access},
    place::input_at,
    queue::{Queue, QueueState, WorkItems},
};
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

/// How far a call came with the work item in progress.
enum Read {
    /// It has what it wants.
    Enough,
    /// There is no work item any more.
    NeedsWork,
}

/// Reads records until there are enough.
struct Reading {
    reader: Arc<Reader>,
    access: Access,
    wanted: Wanted,
    records: Vec<Record>,
}

/// What a call wants.
#[derive(Clone, Copy)]
enum Wanted {
    /// One record, as scalars.
    One,
    /// Up to this many, of one work item.
    UpTo(usize),
}

impl Reading {
    fn read(&mut self) -> Result<Read, KernelError> {
        let most = match self.wanted {
            Wanted::One => 1,
            Wanted::UpTo(most) => most,
        };
        let mut state = self.reader.state();
        while self.records.len() < most {
            match state.next(self.reader.format, &self.access)? {
                Some(record) => growth::push(&mut self.records, record)?,
                None if self.records.is_empty() => return Ok(Read::NeedsWork),
                None => break,
            }
        }
        Ok(Read::Enough)
    }

    fn output(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let count = [self.records.len() as i64];
        let dims = match self.wanted {
            Wanted::One => &[][..],
            Wanted::UpTo(_) => &count,
        };
        c.set_strings(0, dims, self.records.iter().map(|(key, _)| key))?;
        c.set_strings(1, dims, self.records.iter().map(|(_, value)| value))
    }
}

/// Reads records, with work items of a queue.
struct FromQueue {
    reading: Reading,
    items: WorkItems,
}

impl Attempt<QueueState> for FromQueue {
    fn run(&mut self, state: &mut QueueState) -> Progress {
        let mut moved = false;
        loop {
            match self.reading.read() {
                Ok(Read::Enough) => return Progress::Done(Ok(())),
                Ok(Read::NeedsWork) => {}
                Err(error) => return Progress::Done(Err(error)),
            }
            match self.items.next(state) {
                Ok(Some(item)) => self.reading.reader.state().begin(item),
                Ok(None) if moved => return Progress::Moved,
                Ok(None) => return Progress::Stuck,
                Err(error) => return Progress::Done(Err(error)),
            }
            moved = true;
        }
    }

    fn finish(&mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        self.reading.output(&call.context())
    }
}

struct ReadRecords<const MANY: bool>(Access);

impl<const MANY: bool> Begins for ReadRecords<MANY> {
    type State = QueueState;
    type Attempt = FromQueue;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        access(c).map(ReadRecords)
    }

    fn begin(&self, c: &ComputeContext<'_>) -> Answer<QueueState, FromQueue> {
        let (reader, queue) = (input_at::<Reader>(c, 0)?, input_at::<Queue>(c, 1)?);
        let mut wanted = Wanted::One;
        if MANY {
            let count = c.integer(2, "num_records")?;
            let most = usize::try_from(count).ok().filter(|&most| most > 0).ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "num_records: expected at least 1, found {count}"
                ))
            })?;
            wanted = Wanted::UpTo(most);
        }
        let mut reading = Reading { reader, access: self.0.clone(), wanted, records: Vec::new() };
        if let Read::Enough = reading.read()? {
            return reading.output(c).map(|()| None);
        }
        let (attempts, items) = queue.work_items()?;
        Ok(Some(Begun { attempts, list: TAKE, attempt: FromQueue { reading, items } }))
    }
}

register_kernel!("ReaderRead" on "CPU": Async<ReadRecords<false>>);
register_kernel!("ReaderReadV2" on "CPU": Async<ReadRecords<false>>);
register_kernel!("ReaderReadUpTo" on "CPU": Async<ReadRecords<true>>);
register_kernel!("ReaderReadUpToV2" on "CPU": Async<ReadRecords<true>>);
