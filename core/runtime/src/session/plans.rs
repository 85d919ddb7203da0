//! The compiled steps of a session.
//!
//! Compiled steps are kept by signature; beyond the limit (knob `runtime.plan_cache`) the least
//! recently used one is removed. One thread compiles a signature, and others that need it wait,
//! each within its own limits. All living steps can be cancelled, even removed ones: the caller of
//! a step holds it, and so does a [`Callable`](super::Callable).
//!
//! States of a signature: *unknown*; *being compiled*, by the one thread that has a [`Turn`];
//! *kept*. The end of a turn leaves the signature unknown or kept, and wakes all waiting threads.
//!
//! Nothing is dropped under the lock: dropping a compiled step drops its kernels, which runs plugin
//! code.

use super::executable::Executable;
use crate::{options::CallableOptions, run_limits::RunLimits};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
};
use tenon_framework::{
    register_knob,
    sync::{Condvar, Mutex, MutexGuard, rank},
};

register_knob!(
    "plan_cache": INT = "128",
    "Maximum number of compiled steps that a session keeps, one per set of feeds, fetches and targets; -1 keeps all."
);

struct Kept {
    executable: Arc<Executable>,
    /// The time of the last use, by the table's clock.
    used: u64,
}

#[derive(Default)]
struct Table {
    kept: HashMap<CallableOptions, Kept>,
    compiling: HashSet<CallableOptions>,
    /// All compiled steps that may be alive.
    made: Vec<Weak<Executable>>,
    clock: u64,
}

impl Table {
    fn find(&mut self, signature: &CallableOptions) -> Option<Arc<Executable>> {
        self.clock += 1;
        let kept = self.kept.get_mut(signature)?;
        kept.used = self.clock;
        Some(Arc::clone(&kept.executable))
    }

    /// From now on it can be cancelled.
    fn note(&mut self, executable: &Arc<Executable>) {
        self.made.retain(|made| made.strong_count() > 0);
        self.made.push(Arc::downgrade(executable));
    }

    /// Removes the least recently used steps until at most `most` are left, and returns them.
    fn shrink(&mut self, most: usize) -> Vec<Kept> {
        let mut gone = Vec::new();
        while self.kept.len() > most {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
            let Some(signature) = oldest.map(|(signature, _)| signature.clone()) else { break };
            gone.extend(self.kept.remove(&signature));
        }
        gone
    }
}

/// The table of compiled steps.
pub(super) struct Plans {
    table: Mutex<Table>,
    changed: Condvar,
}

/// The state of a signature.
pub(super) enum Found<'p> {
    Kept(Arc<Executable>),
    /// The signature is unknown, and the caller must compile it.
    Unknown(Turn<'p>),
    /// Another thread compiled it, or gave up, while the caller waited: look it up again.
    Changed,
}

impl Default for Plans {
    fn default() -> Plans {
        let table = Mutex::ranked(rank::SESSION, Table::default());
        Plans { table, changed: Condvar::new() }
    }
}

impl Plans {
    /// The compiled step of a signature, if it is kept.
    pub fn find(&self, signature: &CallableOptions) -> Option<Arc<Executable>> {
        self.table.lock().find(signature)
    }

    /// Like [`Plans::find`]; if the signature is unknown, the caller gets the turn to compile it.
    /// Waits for a while if another thread has the turn.
    pub fn find_or_turn(&self, signature: &CallableOptions, run_limits: &RunLimits) -> Found<'_> {
        let mut table = self.table.lock();
        if let Some(executable) = table.find(signature) {
            return Found::Kept(executable);
        }
        if table.compiling.insert(signature.clone()) {
            return Found::Unknown(Turn { plans: self, signature: signature.clone() });
        }
        let waited: MutexGuard<'_, Table> = match run_limits.slice() {
            Some(slice) => self.changed.wait_timeout(table, slice),
            None => self.changed.wait(table),
        };
        drop(waited);
        Found::Changed
    }

    /// Cancels all running steps.
    pub fn cancel_running(&self) {
        let made: Vec<Arc<Executable>> =
            self.table.lock().made.iter().filter_map(Weak::upgrade).collect();
        made.iter().for_each(|executable| executable.registered.cancel_running());
    }

    /// Puts a compiled step that no signature finds among those that can be cancelled.
    pub fn note(&self, executable: Executable) -> Arc<Executable> {
        let executable = Arc::new(executable);
        self.table.lock().note(&executable);
        executable
    }

    /// Removes all compiled steps, and calls `then` under the same lock.
    pub fn clear(&self, then: impl FnOnce()) {
        let mut table = self.table.lock();
        let gone = std::mem::take(&mut table.kept);
        then();
        drop(table);
        self.changed.notify_all();
        drop(gone);
    }
}

/// The exclusive right to compile a signature.
pub(super) struct Turn<'p> {
    plans: &'p Plans,
    signature: CallableOptions,
}

impl Turn<'_> {
    /// Makes the compiled step cancellable, and keeps it as one of at most `most` if `is_current`
    /// says that it is up to date.
    pub fn finish(
        self,
        executable: Executable,
        most: usize,
        is_current: impl FnOnce() -> bool,
    ) -> Arc<Executable> {
        let executable = Arc::new(executable);
        let mut table = self.plans.table.lock();
        table.note(&executable);
        let mut gone = Vec::new();
        if is_current() {
            table.clock += 1;
            let kept = Kept { executable: Arc::clone(&executable), used: table.clock };
            gone.extend(table.kept.insert(self.signature.clone(), kept));
            gone.append(&mut table.shrink(most));
        }
        drop(table);
        drop(gone);
        executable
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.plans.table.lock().compiling.remove(&self.signature);
        self.plans.changed.notify_all();
    }
}
