//! Which faults happen when, by a seed.

use super::{network::Way, random::Random, unruly::Habits};
use std::time::Duration;

/// A fault.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// A task ends, and is started anew after a time. A silent one closes no connections.
    End { task: usize, is_silent: bool, down: Duration },
    /// A task neither hears nor answers for a time, as one that is stopped by a signal.
    Stop { task: usize, time: Duration },
    /// Two tasks do not reach each other for a time, or one of them does not reach the other.
    Cut { one: usize, other: usize, both: bool, time: Duration },
    /// The connections between two tasks break.
    Reset { one: usize, other: usize },
    /// The way from one task to another takes microseconds for each kilobyte.
    Slow { from: usize, to: usize, micros: u64, time: Duration },
}

/// What happens in one simulation.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub habits: Habits,
    /// Faults, each with its time.
    pub faults: Vec<(Duration, Fault)>,
    /// How many steps the client runs.
    pub steps: usize,
}

/// When the last fault begins, at most, in milliseconds; and how long one lasts.
const SPAN: u64 = 20_000;
const LASTS: (u64, u64) = (100, 12_000);

impl Plan {
    pub fn new(random: &mut Random, tasks: usize) -> Plan {
        let habits = match random.between(0, 3) {
            0 => Habits { late: 20, twice: 10 },
            1 => Habits { late: 50, twice: 0 },
            _ => Habits::default(),
        };
        let count = random.between(0, 3);
        let mut faults: Vec<_> = (0..count)
            .map(|_| (Duration::from_millis(random.between(0, SPAN)), fault(random, tasks)))
            .collect();
        faults.sort_by_key(|(when, _)| *when);
        Plan { habits, faults, steps: random.between(6, 14) as usize }
    }
}

fn fault(random: &mut Random, tasks: usize) -> Fault {
    let last = tasks as u64 - 1;
    let one = random.between(0, last) as usize;
    let other = (one + random.between(1, last) as usize) % tasks;
    let time = Duration::from_millis(random.between(LASTS.0, LASTS.1));
    match random.between(0, 6) {
        0 => Fault::End { task: one, is_silent: false, down: time },
        1 => Fault::End { task: one, is_silent: true, down: time },
        2 => Fault::Stop { task: one, time },
        3 | 4 => Fault::Cut { one, other, both: random.chance(50), time },
        5 => Fault::Reset { one, other },
        _ => Fault::Slow { from: one, to: other, micros: random.between(100, 50_000), time },
    }
}

/// Both ways between two addresses.
pub(super) fn ways(one: &str, other: &str) -> [Way; 2] {
    [(one.to_owned(), other.to_owned()), (other.to_owned(), one.to_owned())]
}

impl Fault {
    /// The tasks that it touches.
    pub fn tasks(&self) -> Vec<usize> {
        match self {
            Fault::End { task, .. } | Fault::Stop { task, .. } => vec![*task],
            Fault::Cut { one, other, .. } | Fault::Reset { one, other } => vec![*one, *other],
            Fault::Slow { from, to, .. } => vec![*from, *to],
        }
    }

    /// How long it lasts.
    pub fn lasts(&self) -> Duration {
        match self {
            Fault::End { down: time, .. }
            | Fault::Stop { time, .. }
            | Fault::Cut { time, .. }
            | Fault::Slow { time, .. } => *time,
            Fault::Reset { .. } => Duration::ZERO,
        }
    }
}
