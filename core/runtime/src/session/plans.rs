//! The compiled steps of a session.
//!
//! A step is kept by its signature, the one that ran longest ago goes when there are too many (knob
//! `runtime.plan_cache`). One thread compiles a signature, others that want it wait for that, each as long as it has
//! patience. Steps of all that are alive can be cancelled, those too that are not kept any more: the caller of a step
//! holds it, and so does a [`Callable`](super::Callable).
//!
//! States of a signature: *unknown*; *being compiled*, by the one thread that has a [`Turn`]; *kept*. A turn that ends
//! leaves it unknown or kept, and wakes all that wait.
//!
//! Nothing is dropped under the lock: with a compiled step its kernels go, whose ends are the plugins'.

use super::executable::Executable;
use crate::{options::CallableOptions, patience::Patience};
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
    "Compiled steps that a session keeps, one for each set of feeds, fetches and targets; -1 keeps all."
);

struct Kept {
    executable: Arc<Executable>,
    /// When it was asked for last, by the table's clock.
    used: u64,
}

#[derive(Default)]
struct Table {
    kept: HashMap<CallableOptions, Kept>,
    compiling: HashSet<CallableOptions>,
    /// All that were made, as far as they may be alive.
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

    /// Takes out what ran longest ago, until no more than `most` are left.
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

/// What a signature is.
pub(super) enum Found<'p> {
    Kept(Arc<Executable>),
    /// Nobody has compiled it: the caller does.
    Unknown(Turn<'p>),
    /// Another thread compiled it, or gave up, while the caller waited: look again.
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

    /// As [`Plans::find`]; where it is unknown the caller's turn to compile it. Waits a while for another thread whose
    /// turn it is.
    pub fn find_or_turn(&self, signature: &CallableOptions, patience: &Patience) -> Found<'_> {
        let mut table = self.table.lock();
        if let Some(executable) = table.find(signature) {
            return Found::Kept(executable);
        }
        if table.compiling.insert(signature.clone()) {
            return Found::Unknown(Turn { plans: self, signature: signature.clone() });
        }
        let waited: MutexGuard<'_, Table> = match patience.slice() {
            Some(slice) => self.changed.wait_timeout(table, slice),
            None => self.changed.wait(table),
        };
        drop(waited);
        Found::Changed
    }

    /// Cancels the steps that run.
    pub fn cancel_running(&self) {
        let made: Vec<Arc<Executable>> =
            self.table.lock().made.iter().filter_map(Weak::upgrade).collect();
        made.iter().for_each(|executable| executable.registered.cancel_running());
    }

    /// Forgets all, after `then` was done in the same moment.
    pub fn clear(&self, then: impl FnOnce()) {
        let mut table = self.table.lock();
        let gone = std::mem::take(&mut table.kept);
        then();
        drop(table);
        self.changed.notify_all();
        drop(gone);
    }
}

/// The right to compile a signature; nobody else does meanwhile.
pub(super) struct Turn<'p> {
    plans: &'p Plans,
    signature: CallableOptions,
}

impl Turn<'_> {
    /// Puts the compiled step among those that can be cancelled; keeps it, as one of `most`, where `is_current` says
    /// that it is not out of date.
    pub fn finish(
        self,
        executable: Executable,
        most: usize,
        is_current: impl FnOnce() -> bool,
    ) -> Arc<Executable> {
        let executable = Arc::new(executable);
        let mut table = self.plans.table.lock();
        table.made.retain(|made| made.strong_count() > 0);
        table.made.push(Arc::downgrade(&executable));
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
