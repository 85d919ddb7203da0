//! One recording of an event.
//!
//! States: pending, then happened with the code of the stream's first error before it (`OK` without one).
//! Who records and who waits share it; an event that is recorded again gets a new one.

use std::sync::OnceLock;
use tenon_sdk::Code;

/// A point in a stream.
#[derive(Debug, Default)]
pub struct Recording(OnceLock<Code>);

impl Recording {
    /// It has happened; the first code stays.
    pub fn happen(&self, code: Code) {
        let _ = self.0.set(code);
    }

    /// The code, once it has happened.
    pub fn outcome(&self) -> Option<Code> {
        self.0.get().copied()
    }
}
