//! What the lanes of a run share: units and their turns, what was found, and what is enough.

use super::{Options, Status, ledger::Ledger, turns::Turn};
use crate::check::{
    Clause, Finding,
    protocol::{Setup, Unit},
};
use std::{
    collections::BTreeSet,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// What the lanes of a run share.
pub(super) struct Run<'a> {
    pub options: &'a Options,
    pub setup: Setup,
    pub digest: String,
    pub units: Vec<Unit>,
    /// Their turns, in the order in which they are begun.
    pub turns: Vec<Turn>,
    /// The plugins as a whole, which come after them.
    pub last: Vec<usize>,
    /// When the first one began that time is up for.
    since: OnceLock<Instant>,
    pub ledger: Mutex<Ledger>,
    pub watch: &'a (dyn Fn(Status<'_>) + Sync),
    pub next: AtomicUsize,
    pub done: AtomicUsize,
    pub ends: AtomicUsize,
    /// Whether something failed.
    failed: AtomicBool,
    /// Names of units that ended their process.
    pub fatal: Mutex<BTreeSet<String>>,
    /// Rows and clauses of which a failure is reproduced.
    pub reproduced: Mutex<BTreeSet<(String, Clause)>>,
    /// What is left of the time to make failures smaller.
    pub shrinking: Mutex<Duration>,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Run<'a> {
    pub fn new(
        options: &'a Options,
        (setup, digest): (Setup, String),
        units: Vec<Unit>,
        watch: &'a (dyn Fn(Status<'_>) + Sync),
    ) -> Run<'a> {
        let ledger = Mutex::new(Ledger::new(units.clone(), options.exceptions.clone()));
        let (turns, last) = options.turns.of(&units);
        let (next, done, ends, failed) = Default::default();
        let (since, fatal, reproduced) = Default::default();
        let shrinking = options.reproducers.as_ref().map(|reproducers| reproducers.time);
        Run {
            options,
            setup,
            digest,
            units,
            turns,
            last,
            since,
            ledger,
            watch,
            next,
            done,
            ends,
            failed,
            fatal,
            reproduced,
            shrinking: Mutex::new(shrinking.unwrap_or_default()),
        }
    }

    pub fn problem(&self, problem: String) {
        self.failed.store(true, Ordering::Relaxed);
        locked(&self.ledger).problems.push(problem);
    }

    pub fn add(&self, unit: usize, case: &str, finding: Finding, said: &str) -> bool {
        let stands = locked(&self.ledger).add(unit, case, finding, said);
        self.failed.fetch_or(stands, Ordering::Relaxed);
        stands
    }

    /// Notes that a unit ended its process.
    pub fn note_fatal(&self, unit: usize) {
        locked(&self.fatal).insert(self.units[unit].name.clone());
    }

    /// Whether there is no time to check one more unit in full, if it takes this long.
    pub fn is_late_for(&self, time: Duration) -> bool {
        let begun = *self.since.get_or_init(Instant::now);
        let own = self.options.turns.time.is_some_and(|most| begun.elapsed() + time / 2 >= most);
        own || self.options.is_late_for(time)
    }

    /// Whether nothing further is to be begun.
    pub fn is_over(&self) -> bool {
        self.options.turns.until_failure && self.failed.load(Ordering::Relaxed)
    }
}
