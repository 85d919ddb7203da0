//! Events: points in a stream that other streams wait for.

use crate::{queue::Queue, recording::Recording};
use std::sync::{Arc, Mutex, PoisonError};
use tenon_sdk::{Code, KernelError};

/// An event of one device. A new recording replaces the earlier one; streams that wait for the
/// earlier one still do.
pub struct Event {
    queue: Arc<Queue>,
    last: Mutex<Option<Arc<Recording>>>,
}

impl Event {
    /// An event that was never recorded, which counts as complete.
    pub fn new(queue: Arc<Queue>) -> Event {
        Event { queue, last: Mutex::new(None) }
    }

    /// Starts a new recording.
    pub(crate) fn record(&self) -> Arc<Recording> {
        let recording = Arc::new(Recording::default());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&recording));
        recording
    }

    /// The most recent recording.
    pub(crate) fn last(&self) -> Option<Arc<Recording>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether this event's recordings run on the given queue.
    pub(crate) fn is_of(&self, queue: &Arc<Queue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    /// Whether the most recent recording is complete.
    ///
    /// # Errors
    /// The code of the stream's first error before the recording; `UNAVAILABLE` when the device is
    /// lost.
    pub fn query(&self) -> Result<bool, KernelError> {
        self.queue.health().check()?;
        match self.last().map(|recording| recording.outcome()) {
            None | Some(Some(Code::OK)) => Ok(true),
            Some(None) => Ok(false),
            Some(Some(code)) => Err(KernelError::new(code, "the stream failed before the event")),
        }
    }
}
