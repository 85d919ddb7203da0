//! The threads on which methods run, by what they wait for.
//!
//! A step of a client waits for its parts at other tasks, and those for each other. If all shared one kind of thread, two
//! servers whose threads are taken by steps of their clients would wait for each other until the deadlines. So each kind has
//! threads of its own, and a call for which none is left is refused at once. The methods of a worker that prepare or drop
//! something wait for no other task; they share a few threads, and take turns.
//!
//! A server that drains begins nothing: no session, no step, no part of a step. What those in flight need, such as their
//! tensors, it still answers.

use crate::{methods::WORKER, refusal::Refusal};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tenon_framework::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls that open, extend or close sessions at the same time.
const SESSIONS: usize = 256;
/// Threads for the methods of a worker that wait for no other task.
const OTHERS: usize = 256;

/// The methods that begin something.
const BEGIN: [&str; 7] = [
    "CreateSession",
    "RunStep",
    "RunCallable",
    "PartialRunSetup",
    "CreateWorkerSession",
    "RegisterGraph",
    "RunGraph",
];

/// A kind of calls, and how many of it may run.
struct Kind {
    name: &'static str,
    most: usize,
    free: Arc<Semaphore>,
}

/// The threads of a server.
pub(crate) struct Turns {
    steps: Kind,
    sessions: Kind,
    parts: Kind,
    is_draining: AtomicBool,
}

/// The thread of a call, until this is dropped; `None` for one that takes turns.
pub(crate) type Turn = Option<OwnedSemaphorePermit>;

impl Kind {
    fn new(name: &'static str, most: usize) -> Kind {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Kind { name, most, free: Arc::new(Semaphore::new(most)) }
    }
}

impl Turns {
    /// At most so many steps of clients, and so many parts of steps of other tasks.
    pub fn new(steps: usize, parts: usize) -> Turns {
        Turns {
            steps: Kind::new("steps of clients", steps),
            sessions: Kind::new("requests that open or close sessions", SESSIONS),
            parts: Kind::new("parts of steps of other tasks", parts),
            is_draining: AtomicBool::new(false),
        }
    }

    /// From now on, nothing begins.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
    }

    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }

    /// Whether no step of a client and no part of a step is in flight.
    pub fn are_free(&self) -> bool {
        [&self.steps, &self.parts].iter().all(|kind| kind.free.available_permits() == kind.most)
    }

    /// How many threads there may be: a step of a client, and a call of its session, may wait for a part at this server, which
    /// has a thread of its own.
    pub fn threads(steps: usize, parts: usize) -> usize {
        steps.saturating_mul(2).saturating_add(parts).saturating_add(2 * SESSIONS + OTHERS)
    }

    /// The thread of a call of this method.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if all of its kind are taken; `UNAVAILABLE` if the server drains, and the call begins something.
    pub fn take(&self, path: &str) -> Result<Turn, Refusal> {
        let turn = self.turn(path)?;
        // Looked at after the turn is taken: a server that drains waits for those that were taken before.
        let method = path.rsplit('/').next().unwrap_or_default();
        if BEGIN.contains(&method) && self.is_draining() {
            return Err(Refusal::new(
                Code::UNAVAILABLE,
                "the server stops: it ends the steps in flight and begins no others; use another server, or try again when \
                 this one was started anew",
            ));
        }
        Ok(turn)
    }

    fn turn(&self, path: &str) -> Result<Turn, Refusal> {
        let kind = match path.strip_prefix(WORKER) {
            Some("RunGraph") => &self.parts,
            Some(_) => return Ok(None),
            None if path.ends_with("/RunStep") || path.ends_with("/RunCallable") => &self.steps,
            None => &self.sessions,
        };
        let turn = Arc::clone(&kind.free).try_acquire_owned();
        turn.map(Some).map_err(|_| {
            let Kind { name, most, .. } = kind;
            Refusal::new(
                Code::RESOURCE_EXHAUSTED,
                format!("the server runs {most} {name}, its limit: wait for some of them, or use more servers"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_threads() {
        let turns = Turns::new(1, 2);
        let step = "/tensorflow.MasterService/RunStep";
        let first = turns.take(step).unwrap();
        let refusal = turns.take("/tensorflow.MasterService/RunCallable").unwrap_err();
        assert_eq!(refusal.code, Code::RESOURCE_EXHAUSTED);
        assert!(refusal.message.contains("1 steps of clients"), "{}", refusal.message);
        let part = format!("{WORKER}RunGraph");
        let _parts = [turns.take(&part).unwrap(), turns.take(&part).unwrap()];
        assert!(turns.take(&part).is_err());
        assert!(turns.take(&format!("{WORKER}CleanupGraph")).unwrap().is_none());
        assert!(turns.take("/tensorflow.MasterService/CloseSession").is_ok());
        drop(first);
        assert!(turns.take(step).is_ok());
    }

    #[test]
    fn a_server_that_drains_ends_what_is_in_flight_and_begins_nothing() {
        let turns = Turns::new(2, 2);
        let in_flight = turns.take("/tensorflow.MasterService/RunStep").unwrap();
        turns.drain();
        assert!(!turns.are_free());
        for method in ["RunGraph", "RegisterGraph"] {
            let refusal = turns.take(&format!("{WORKER}{method}")).unwrap_err();
            assert_eq!(refusal.code, Code::UNAVAILABLE, "{method}");
        }
        assert!(turns.take("/tensorflow.MasterService/RunStep").is_err());
        for method in ["RecvTensor", "CleanupGraph", "GetStatus"] {
            assert!(turns.take(&format!("{WORKER}{method}")).is_ok(), "{method}");
        }
        assert!(turns.take("/tensorflow.MasterService/CloseSession").is_ok());
        drop(in_flight);
        assert!(turns.are_free());
    }
}
