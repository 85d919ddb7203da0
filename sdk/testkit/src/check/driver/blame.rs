//! Whose fault it is that a worker is gone.
//!
//! Memory that one kernel corrupts may end the process in a step of another, and so may a thread that outlives the
//! call of a kernel. Where a worker is gone that others used
//! before, the unit is tried alone:
//!
//! ```text
//! gone in a step of U, after V and W ── U alone, from that step ── gone again: U is told
//!                                            │
//!                                            └─ goes on: U's earlier steps, W, V, each alone in a process that checks
//!                                               its heap ── one is gone: that is told, and what it did to U
//! ```
//!
//! # Invariants
//! - A worker that died is a failure, whichever unit is blamed.

use super::{
    child::Child,
    follow::{Begun, Gone, How, Outcome, follow},
    lane::{Lane, Sofar},
};
use crate::check::{
    Clause, Finding, heap,
    protocol::{Message, Order},
};
use std::time::{Duration, Instant};

/// How many of those that used the worker before are tried, and how long all of them.
const SUSPECTS: usize = 8;
const TIME: Duration = Duration::from_secs(60);

/// A worker that is gone in a step of a unit, after others used it.
#[derive(Debug)]
pub(super) struct Pending {
    /// How it went.
    pub gone: Gone,
    /// The first step of the unit that it ran.
    pub first: usize,
    /// The units that it served before, the last one first.
    pub before: Vec<usize>,
}

impl Gone {
    /// Whether the address that was touched says that it was the kernel that ran.
    pub fn is_precise(&self) -> bool {
        match &self.how {
            // A thread that an earlier kernel left behind touches a buffer of that kernel, which is gone by now.
            How::Died(record) => record.clause().is_some() && !record.is_late(),
            How::Lost(_) => true,
            How::Ended(_) | How::TimedOut(_) => false,
        }
    }

    /// The step in which it went.
    pub fn step(&self) -> usize {
        self.at.as_ref().map_or(0, |at| at.step)
    }
}

impl Lane<'_> {
    /// A unit that ended a worker which others used goes on alone: somebody else is tried for it.
    pub(super) fn clear(&self, unit: usize, pending: &Pending) {
        let suspects = self.suspects(unit, pending);
        if !matches!(pending.gone.how, How::TimedOut(_)) {
            let until = Instant::now() + TIME;
            for &(suspect, from) in suspects.iter().take_while(|_| Instant::now() < until) {
                let Some(gone) = self.tried(suspect, from) else { continue };
                return self.tell_guilty(suspect, &gone, (unit, pending));
            }
        }
        let units = &self.run.units;
        let names: Vec<&str> =
            pending.before.iter().rev().map(|&unit| units[unit].name.as_str()).collect();
        self.run.problem(format!(
            "{}: {}{}, in a process that had run {}; none of them does so alone: one of them leaves something behind \
             that another stumbles over",
            units[unit].name,
            pending.gone.how,
            during(pending.gone.at.as_ref()),
            names.join(", ")
        ));
    }

    /// Who is tried, with the step from which: the unit itself, where it had run other steps in that worker.
    fn suspects(&self, unit: usize, pending: &Pending) -> Vec<(usize, usize)> {
        let own = (pending.first < pending.gone.step()).then_some((unit, pending.first));
        let before = pending.before.iter().map(|&unit| (unit, 0));
        own.into_iter().chain(before).take(SUSPECTS).collect()
    }

    /// Runs a unit alone, in a process that checks its heap. Returns the cause if it did not return.
    fn tried(&self, unit: usize, from: usize) -> Option<Gone> {
        let options = self.run.options;
        let started = Child::start_with(&options.worker, &self.run.setup, &heap::checks());
        let (child, ready) = follow(started.ok()?, Duration::ZERO, &mut |_, _| {});
        let mut child = child.filter(|_| matches!(ready, Outcome::Done))?;
        child.order(&Order::Run { unit, from, without: Vec::new() });
        match follow(child, options.limit, &mut |_: Option<&Begun>, _: Message| {}).1 {
            Outcome::Gone(gone) if !matches!(gone.how, How::TimedOut(_)) => Some(gone),
            _ => None,
        }
    }

    fn tell_guilty(&self, guilty: usize, gone: &Gone, (victim, pending): (usize, &Pending)) {
        let run = self.run;
        let name = &run.units[victim].name;
        let seen = match guilty == victim {
            true => String::new(),
            false => {
                format!("; in one process with it {name} did not come back: {}", pending.gone.how)
            }
        };
        let clause = match &gone.how {
            How::Died(record) => record.clause(),
            _ => None,
        };
        let message = format!(
            "it corrupts memory: alone, in a process that checks its heap, {}{}{seen}",
            gone.how,
            during(gone.at.as_ref())
        );
        let case = gone.at.as_ref().map_or("", |at| at.name.as_str());
        let finding = Finding::failed(clause.unwrap_or(Clause::Bounds), message);
        run.add(guilty, case, finding, &gone.said);
        run.note_fatal(guilty);
    }

    /// Which other unit, if any, is to be tried before a unit is blamed for the end of its worker.
    pub(super) fn pending(&self, unit: usize, sofar: &Sofar, gone: &Gone) -> Option<Pending> {
        let before: Vec<usize> =
            self.served.iter().rev().copied().filter(|&other| other != unit).collect();
        (!before.is_empty() && !gone.is_precise()).then(|| Pending {
            gone: gone.clone(),
            first: sofar.from,
            before,
        })
    }
}

/// What was done when a worker went.
fn during(at: Option<&Begun>) -> String {
    match at {
        None => " (while cases were generated)".to_owned(),
        Some(at) => match (at.clause, at.name.is_empty()) {
            (Some(clause), false) => format!(" ({clause}, case {})", at.name),
            (Some(clause), true) => format!(" ({clause})"),
            (None, false) => format!(" (case {})", at.name),
            (None, true) => String::new(),
        },
    }
}
