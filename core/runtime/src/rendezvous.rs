//! The rendezvous: passes values from `Send` to `Recv`.
//!
//! One rendezvous serves one step at a time. A key has one of three states: empty, a value that
//! waits for its receiver, or a receiver that waits for its value. The transitions are:
//!
//! ```text
//! empty --send--> value      value    --recv--> empty (the receiver is called with the value)
//! empty --recv--> receiver   receiver --send--> empty (the receiver is called with the value)
//! any --abort--> aborted: all current and later receivers get the first error
//! ```
//!
//! A sender never blocks, a receiver holds no thread, and receivers are called outside the lock.

use crate::error::StepError;
use std::collections::{HashMap, hash_map::Entry};
use tenon_framework::{
    Code, Tensor,
    sync::{Mutex, rank},
};

mod key;
#[cfg(all(test, loom))]
mod model;
mod step;

pub use key::{Edge, EdgeName, Edges, Key};
pub(crate) use step::StepRendezvous;

/// The content of a transfer.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// The value; `None` for a dead value or a control edge.
    pub tensor: Option<Tensor>,
    /// Whether the value comes from a branch that was not taken.
    pub is_dead: bool,
}

/// A callback that is called once, with the value or the error.
pub type Receiver = Box<dyn FnOnce(Result<Parcel, StepError>) + Send>;

/// Passes values from `Send` to `Recv`, within this process or between several.
pub trait Rendezvous: Send + Sync {
    /// Sends a value. Never blocks.
    ///
    /// # Errors
    /// The error of an aborted step; `INTERNAL` when the key was sent before.
    fn send(&self, key: &Key, parcel: Parcel) -> Result<(), StepError>;

    /// Requests a value. Never blocks: `receiver` is called now or later, from any thread.
    fn recv(&self, key: &Key, receiver: Receiver);

    /// Fails all current and later receivers. The first error is kept.
    fn abort(&self, error: StepError);

    /// Prepares the rendezvous for the next step: all keys become empty, and the error is cleared.
    /// Only call this between steps.
    fn reset(&self);
}

enum Waiting {
    Value(Parcel),
    Receiver(Receiver),
}

#[derive(Default)]
struct Table {
    waiting: HashMap<Key, Waiting>,
    aborted: Option<StepError>,
}

/// The rendezvous of a step within one process.
pub struct LocalRendezvous {
    table: Mutex<Table>,
}

/// The error for a key that was used before.
fn twice(key: &Key, what: &str) -> StepError {
    StepError::step(Code::INTERNAL, format!("{} {what} twice", key.edge.name()))
}

impl Default for LocalRendezvous {
    fn default() -> LocalRendezvous {
        LocalRendezvous { table: Mutex::ranked(rank::RENDEZVOUS, Table::default()) }
    }
}

impl LocalRendezvous {
    /// Gives a value to the receiver that waits for it, or gives it back if none does.
    ///
    /// # Errors
    /// The error of an aborted step.
    pub fn send_to_waiting(&self, key: &Key, parcel: Parcel) -> Result<Option<Parcel>, StepError> {
        let mut table = self.table.lock();
        if let Some(error) = &table.aborted {
            return Err(error.clone());
        }
        let Some(Waiting::Receiver(_)) = table.waiting.get(key) else { return Ok(Some(parcel)) };
        let waiting = table.waiting.remove(key);
        drop(table);
        if let Some(Waiting::Receiver(receiver)) = waiting {
            receiver(Ok(parcel));
        }
        Ok(None)
    }

    /// Drops the receiver that waits for a key, if one does, without calling it.
    pub fn forget(&self, key: &Key) {
        let mut table = self.table.lock();
        let waits = matches!(table.waiting.get(key), Some(Waiting::Receiver(_)));
        let receiver = if waits { table.waiting.remove(key) } else { None };
        drop(table);
        drop(receiver);
    }
}

impl Rendezvous for LocalRendezvous {
    fn send(&self, key: &Key, parcel: Parcel) -> Result<(), StepError> {
        let mut table = self.table.lock();
        if let Some(error) = &table.aborted {
            return Err(error.clone());
        }
        let receiver = match table.waiting.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(Waiting::Value(parcel));
                return Ok(());
            }
            Entry::Occupied(entry) => match entry.remove() {
                Waiting::Receiver(receiver) => receiver,
                value @ Waiting::Value(_) => {
                    table.waiting.insert(key.clone(), value);
                    return Err(twice(key, "was sent"));
                }
            },
        };
        drop(table);
        receiver(Ok(parcel));
        Ok(())
    }

    fn recv(&self, key: &Key, receiver: Receiver) {
        let mut table = self.table.lock();
        if let Some(error) = table.aborted.clone() {
            drop(table);
            return receiver(Err(error));
        }
        match table.waiting.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(Waiting::Receiver(receiver));
            }
            Entry::Occupied(entry) => match entry.remove() {
                Waiting::Value(parcel) => {
                    drop(table);
                    receiver(Ok(parcel));
                }
                first @ Waiting::Receiver(_) => {
                    table.waiting.insert(key.clone(), first);
                    drop(table);
                    receiver(Err(twice(key, "was requested")));
                }
            },
        }
    }

    fn abort(&self, error: StepError) {
        let mut table = self.table.lock();
        let first = table.aborted.get_or_insert(error).clone();
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        for waiting in waiting.into_values() {
            if let Waiting::Receiver(receiver) = waiting {
                receiver(Err(first.clone()));
            }
        }
    }
    fn reset(&self) {
        let mut table = self.table.lock();
        table.waiting.clear();
        table.aborted = None;
    }
}
