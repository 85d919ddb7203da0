//! One recording of an event.
//!
//! States: pending, then complete with the code of the stream's first error before it (`OK` without
//! one). The recording stream and the waiting streams share it; an event that is recorded again
//! gets a new one.

use std::sync::OnceLock;
use tenon_sdk::Code;

/// A point in a stream.
#[derive(Debug, Default)]
pub struct Recording(OnceLock<Code>);

impl Recording {
    /// Completes the recording; the first code stays.
    pub fn happen(&self, code: Code) {
        let _ = self.0.set(code);
    }

    /// The code, once the recording is complete.
    pub fn outcome(&self) -> Option<Code> {
        self.0.get().copied()
    }
}
