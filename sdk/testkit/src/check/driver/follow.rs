//! Following a worker through one order, and finding the cause when it does not return.

use super::child::{Child, Event};
use crate::check::{Clause, FaultRecord, Finding, protocol::Message};
use std::{fmt, time::Duration};

/// What a worker gets to load the plugin, to generate cases, or to ask an oracle.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is said of a kernel that ends its process on inputs that are not aligned as it is promised.
const UNALIGNED: &str = "it needs inputs at multiples of 64 bytes, as it may: what it reads within the last 64 bytes \
                         of one is seen where a result depends on it alone";

/// Where a worker was last heard of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Begun {
    pub step: usize,
    pub name: String,
    pub clause: Option<Clause>,
    pub oracle: bool,
    pub unpromised: bool,
}

/// How an order ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was carried out.
    Done,
    /// The kernel does not have to take the case that was to be tried.
    Unfit(String),
    /// The worker could not do it.
    Broken(String),
    /// The worker is gone.
    Gone(Gone),
}

/// A worker that is gone, and where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gone {
    pub at: Option<Begun>,
    pub how: How,
    /// What it wrote last.
    pub said: String,
}

/// Why a worker is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    /// Its process died of a signal, and reported it first.
    Died(FaultRecord),
    /// Its process ended.
    Ended(String),
    /// It was ended, since a step took longer than this.
    TimedOut(Duration),
    /// The device was lost.
    Lost(String),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Died(record) => write!(f, "{record}"),
            How::Ended(how) => f.write_str(how),
            How::TimedOut(limit) => write!(f, "did not return within {} s", limit.as_secs_f64()),
            How::Lost(error) => write!(f, "the device is lost: {error}"),
        }
    }
}

impl Gone {
    /// The clause that it broke, and how.
    pub fn blame(&self) -> Finding {
        let clause = match &self.how {
            How::Died(record) => record.clause(),
            How::Ended(_) => None,
            How::TimedOut(_) => Some(Clause::Progress),
            How::Lost(_) => Some(Clause::Loss),
        };
        let told = self.how.to_string();
        let is_late = matches!(&self.how, How::Died(record) if record.is_late());
        let Some(at) = &self.at else {
            if is_late {
                let message = format!("{told}, after the call: a thread of the kernel outlives it");
                return Finding::failed(Clause::Bounds, message);
            }
            let message = format!("{told}, while its cases were generated (shape function, cost)");
            return Finding::failed(clause.unwrap_or(Clause::Covered), message);
        };
        if at.oracle {
            let message = format!("{told}, while an oracle computed what is expected");
            return Finding::failed(Clause::Verified, message);
        }
        let is_read = matches!(&self.how, How::Died(record) if record.place.is_some());
        if at.unpromised && !is_read {
            return Finding::skipped(Clause::Bounds, UNALIGNED);
        }
        let blamed = clause.or(at.clause).unwrap_or(Clause::Progress);
        let message = match at.clause {
            Some(during) if during != blamed => format!("{told} ({during})"),
            _ => told,
        };
        Finding::failed(blamed, message)
    }
}

/// Follows a worker until its order is carried out or it is gone; `heard` is given every message between, with
/// what was begun before it. A worker that is gone is stopped: the caller drops it.
pub(super) fn follow(
    child: Child,
    limit: Duration,
    heard: &mut dyn FnMut(Option<&Begun>, Message),
) -> (Option<Child>, Outcome) {
    let mut at: Option<Begun> = None;
    let mut fault = None;
    loop {
        let on_kernel = at.as_ref().is_some_and(|at| !at.oracle);
        let patience = if on_kernel { limit } else { limit.max(PATIENCE) };
        match child.next(patience) {
            Event::Message(Message::Done) => return (Some(child), Outcome::Done),
            Event::Message(Message::Unfit { reason }) => {
                return (Some(child), Outcome::Unfit(reason));
            }
            Event::Message(Message::Broken { error }) => {
                return (Some(child), Outcome::Broken(error));
            }
            Event::Message(message @ Message::Begin { .. }) => {
                heard(at.as_ref(), message.clone());
                if let Message::Begin { step, name, clause, oracle, unpromised } = message {
                    at = Some(Begun { step, name, clause, oracle, unpromised });
                }
            }
            Event::Message(Message::Lost { error }) => {
                let said = child.stop();
                return (None, Outcome::Gone(Gone { at, how: How::Lost(error), said }));
            }
            Event::Message(message) => heard(at.as_ref(), message),
            Event::Fault(record) => fault = Some(record),
            Event::Garbage(line) => {
                child.stop();
                let error = format!("a worker wrote a line that is not a message: {line:?}");
                return (None, Outcome::Broken(error));
            }
            Event::TimedOut => {
                let said = child.stop();
                return (None, Outcome::Gone(Gone { at, how: How::TimedOut(patience), said }));
            }
            Event::Ended => {
                let end = child.end();
                let how = fault.map_or(How::Ended(end.how), How::Died);
                return (None, Outcome::Gone(Gone { at, how, said: end.said }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    fn gone(how: How, clause: Option<Clause>, oracle: bool) -> Gone {
        let at = Begun { step: 2, name: "prime_1".into(), clause, oracle, unpromised: false };
        Gone { at: Some(at), how, said: String::new() }
    }

    /// An aligned load of an input that ends to the byte is the kernel's right; a read beyond it is not.
    #[test]
    fn of_a_call_on_unaligned_inputs_a_read_beyond_them_counts_alone() {
        use tenon_runtime::host::memory::guarded::{BlockState, Place, Role};
        let fault = |place| FaultRecord {
            signal: 11,
            reason: 1,
            address: 0,
            access: crate::check::FaultAccess::Read,
            stack: 0,
            place,
        };
        let unpromised = |how| {
            let mut gone = gone(how, Some(Clause::Bounds), false);
            if let Some(at) = &mut gone.at {
                at.unpromised = true;
            }
            gone.blame()
        };
        for how in [
            How::Died(fault(None)),
            How::Ended("the process was ended by SIGABRT (abort)".into()),
            How::TimedOut(Duration::from_secs(1)),
        ] {
            assert_eq!(unpromised(how), Finding::skipped(Clause::Bounds, UNALIGNED));
        }
        let state = BlockState::ReadOnly;
        let beyond = Place { offset: 20, bytes: 20, state, role: Role::Input(0) };
        let finding = unpromised(How::Died(fault(Some(beyond))));
        let Verdict::Failed(message) = &finding.verdict else { panic!("{finding:?}") };
        assert!(
            finding.clause == Clause::Bounds && message.contains("beyond its end"),
            "{message}"
        );
    }

    /// No code of a kernel runs where cases are generated, but for a thread that it left behind.
    #[test]
    fn what_dies_after_the_calls_is_a_thread_that_outlives_one() {
        use tenon_runtime::host::memory::guarded::{BlockState, Place, Role};
        let (state, role) = (BlockState::Freed, Role::Output(0));
        let record = FaultRecord {
            signal: 11,
            reason: 1,
            address: 0,
            access: crate::check::FaultAccess::Write,
            stack: 0,
            place: Some(Place { offset: 0, bytes: 4, state, role }),
        };
        let gone = Gone { at: None, how: How::Died(record), said: String::new() };
        assert!(!gone.is_precise(), "it may be another kernel's");
        let finding = gone.blame();
        let Verdict::Failed(message) = &finding.verdict else { panic!("{finding:?}") };
        assert!(message.ends_with("a thread of the kernel outlives it"), "{message}");
        assert_eq!(finding.clause, Clause::Bounds);
    }

    #[test]
    fn the_clause_that_was_looked_at_is_blamed() {
        let ended = || How::Ended("the process was ended by SIGSEGV".into());
        let finding = gone(ended(), Some(Clause::InPlace), false).blame();
        let expected = "the process was ended by SIGSEGV";
        assert_eq!(finding, Finding::failed(Clause::InPlace, expected));
        assert_eq!(gone(ended(), None, false).blame().clause, Clause::Progress);
        assert_eq!(gone(ended(), None, true).blame().clause, Clause::Verified);
        let none = Gone { at: None, how: ended(), said: String::new() };
        assert_eq!(none.blame().clause, Clause::Covered);
    }

    #[test]
    fn time_and_loss_have_clauses_of_their_own() {
        let late = How::TimedOut(Duration::from_millis(1500));
        let finding = gone(late, Some(Clause::Concurrent), false).blame();
        let expected = "did not return within 1.5 s (concurrent)";
        assert_eq!(finding, Finding::failed(Clause::Progress, expected));
        let lost = gone(How::Lost("gone".into()), Some(Clause::Values), false).blame();
        assert_eq!(lost, Finding::failed(Clause::Loss, "the device is lost: gone (values)"));
    }
}
