//! Which thread goes on after an asynchronous call: the one that started it, or the one that completes it.
//!
//! Both come to the handover: the starting thread once the kernel has returned `PENDING`, the completing one with the
//! code. The second of them goes on with the call. So a call that is completed before its start returns is one that
//! never waited, and needs no outstanding work.
//!
//! States: *started* ([`Handover::begin`]) → *pending* ([`Handover::waits`], first) or *done* ([`Handover::arrives`],
//! first). The first one does not touch the call afterwards.

use tenon_abi::Code;
use tenon_framework::sync::atomic::{AtomicU64, Ordering};

const STARTED: u64 = 0;
const PENDING: u64 = 1;
/// The state is done; the code is in the bits from 32 on.
const DONE: u64 = 2;

/// The handover of one call at a time.
pub struct Handover {
    state: AtomicU64,
}

impl Default for Handover {
    fn default() -> Handover {
        Handover { state: AtomicU64::new(STARTED) }
    }
}

fn code_of(state: u64) -> Code {
    Code((state >> 32) as u32 as i32)
}

impl Handover {
    /// A call starts, which no thread completes yet.
    pub fn begin(&self) {
        self.state.store(STARTED, Ordering::Relaxed);
    }

    /// Whether the call is done already, so that the starting thread need not prepare for waiting.
    pub fn is_done(&self) -> bool {
        self.state.load(Ordering::Relaxed) & DONE != 0
    }

    /// The starting thread leaves the call to the completing one; or gets the code, if that has come first, and goes
    /// on.
    pub fn waits(&self) -> Option<Code> {
        let found =
            self.state.compare_exchange(STARTED, PENDING, Ordering::AcqRel, Ordering::Acquire);
        found.err().map(code_of)
    }

    /// The completing thread brings the code; returns whether it goes on.
    #[must_use = "the call belongs to the starting thread otherwise"]
    pub fn arrives(&self, code: Code) -> bool {
        let done = DONE | u64::from(code.0 as u32) << 32;
        self.state.swap(done, Ordering::AcqRel) == PENDING
    }
}

#[cfg(all(test, loom))]
mod model;
