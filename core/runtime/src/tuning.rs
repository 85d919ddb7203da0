//! Kernels chosen by measurement: policy `measured`.
//!
//! Where several kernels may run a node, each is timed once for a call: op, types, attributes, shapes rounded up to
//! powers of two, device. The times are kept on disk, so that the next process knows them; a kernel of another build
//! of its plugin is another kernel. What chooses by them is [`tenon_framework::registry`].
//!
//! A measurement runs on a thread of its own. Who wants its result waits for the budget (`runtime.tune_budget_ms`)
//! at most, and goes on with the choice of policy `priority` when there is none by then; the measurement is finished
//! all the same, and later plans have its result.
//!
//! States of a call: *unknown* → *measuring* (one thread, whoever asks) → *known*. Nothing is measured twice at once.

mod measure;
mod store;

pub(crate) use measure::{Job, JobInput, bucket};

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};
use store::{Record, Store};
use tenon_framework::{
    knob::Knobs,
    register_knob,
    registry::{Contract, Timed},
    sync::{Condvar, Mutex, Rank},
};
use tenon_host::digest::{cache_folder, short_digest};

register_knob!(
    "policy": STRING = "priority",
    "How a kernel is chosen among those that may run: 'priority', or 'measured', the fastest by times that are kept on disk."
);
register_knob!(
    "tune_budget_ms": INT = "200",
    "Milliseconds that policy 'measured' holds a plan or a step up, each time that it meets a call it has no times of."
);
register_knob!(
    "tune_contract": STRING = "priority",
    "What kernels must promise for policy 'measured' to choose them, if not as much as the one by priority: 'exact', 'ulps:N', 'relative:ABSOLUTE,RELATIVE', or 'any'."
);
register_knob!(
    "tune_cache": STRING = "",
    "Folder of the times of policy 'measured'; empty is tenon/tuning in the cache folder, 'off' keeps them in memory."
);

/// Under all locks of a session, around none but those of memory.
const TIMES: Rank = Rank(72);

/// What a session asks of measurement.
#[derive(Clone, Copy)]
pub(crate) struct Wish {
    /// How long who asks is held up.
    pub budget: Duration,
    /// What kernels must promise.
    pub contract: Contract,
}

impl Wish {
    /// What the knobs say; `None` under policy `priority`.
    ///
    /// # Errors
    /// A policy or a contract that there is not.
    pub fn from_knobs(knobs: &Knobs) -> Result<Option<Wish>, String> {
        let text = |name| knobs.text("runtime", name).unwrap_or("priority");
        let contract = text("tune_contract").parse();
        let contract = contract.map_err(|error| format!("knob runtime.tune_contract: {error}"))?;
        let budget = knobs.int("runtime", "tune_budget_ms").unwrap_or(200).max(0) as u64;
        match text("policy") {
            "priority" => Ok(None),
            "measured" => Ok(Some(Wish { budget: Duration::from_millis(budget), contract })),
            other => Err(format!(
                "knob runtime.policy: expected 'priority' or 'measured', found '{other}'"
            )),
        }
    }
}

/// A call whose kernels were timed in this process.
#[derive(Debug, Clone)]
pub struct Decision {
    /// Name of the node.
    pub node: String,
    /// The call: op, types, shapes, attributes.
    pub call: String,
    /// The kernels, the one that policy `priority` chooses first, with their times in nanoseconds; none where one
    /// failed.
    pub kernels: Vec<(String, Option<f64>)>,
    /// Place of the one that is chosen.
    pub chosen: usize,
}

/// What is known of times, of all devices.
pub(crate) struct Tuner {
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Default)]
struct State {
    /// By machine, threads and device.
    stores: HashMap<String, Store>,
    measuring: HashSet<(String, String)>,
    threads: Vec<JoinHandle<()>>,
    decisions: BTreeMap<(String, String), Decision>,
}

impl Default for Tuner {
    fn default() -> Tuner {
        Tuner { state: Mutex::ranked(TIMES, State::default()), over: Condvar::new() }
    }
}

/// Which times are meant.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Machine, threads and device.
    pub place: String,
    /// Op, types, attributes and shapes.
    pub call: String,
    /// Name of the node, for reports.
    pub node: String,
    /// The kernels, with their plugins' digests.
    pub kernels: Vec<String>,
}

impl Tuner {
    /// The times of all kernels of a call; `None` while one is missing.
    pub fn known(&self, knobs: &Knobs, call: &Call) -> Option<Vec<Timed>> {
        let mut state = self.state.lock();
        let times = state.store(knobs, &call.place).all(call)?;
        state.note(call, &times);
        Some(times)
    }

    /// As [`Tuner::known`], where what is missing is measured by `job`, for which the budget is waited.
    pub fn times(
        self: &Arc<Tuner>,
        knobs: &Knobs,
        call: &Call,
        budget: Duration,
        job: impl FnOnce() -> Job,
    ) -> Option<Vec<Timed>> {
        if let Some(times) = self.known(knobs, call) {
            return Some(times);
        }
        let key = (call.place.clone(), call.call.clone());
        let mut state = self.state.lock();
        // Another process may have measured it meanwhile.
        state.store(knobs, &call.place).refresh();
        if state.store(knobs, &call.place).all(call).is_none()
            && state.measuring.insert(key.clone())
        {
            self.begin(&mut state, call, job());
        }
        let until = Instant::now() + budget;
        while state.measuring.contains(&key) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.over.wait_timeout(state, left);
        }
        drop(state);
        self.known(knobs, call)
    }

    /// Starts a measurement.
    fn begin(self: &Arc<Tuner>, state: &mut State, call: &Call, job: Job) {
        let (tuner, call) = (Arc::downgrade(self), call.clone());
        state.threads.retain(|thread| !thread.is_finished());
        state.threads.push(std::thread::spawn(move || {
            let times = catch_unwind(AssertUnwindSafe(|| job.run())).unwrap_or_default();
            if let Some(tuner) = tuner.upgrade() {
                tuner.finish(&call, &times);
            }
        }));
    }

    fn finish(&self, call: &Call, times: &[Timed]) {
        let timed = call.kernels.iter().zip(times);
        let records: Vec<Record> =
            timed.map(|(kernel, timed)| Record::new(&call.call, kernel, timed)).collect();
        let mut state = self.state.lock();
        state.measuring.remove(&(call.place.clone(), call.call.clone()));
        if let Some(store) = state.stores.get_mut(&call.place)
            && let Err(error) = store.add(&records)
        {
            tracing::warn!("times of kernels are kept in memory only: {error}");
        }
        drop(state);
        self.over.notify_all();
    }

    /// What was chosen in this process, by node.
    pub fn decisions(&self) -> Vec<Decision> {
        self.state.lock().decisions.values().cloned().collect()
    }

    /// Waits for measurements that run: nothing of them outlives the runtime.
    pub fn join(&self) {
        let threads = std::mem::take(&mut self.state.lock().threads);
        for thread in threads {
            // One that panicked has measured nothing.
            let _ = thread.join();
        }
    }
}

impl State {
    fn store(&mut self, knobs: &Knobs, place: &str) -> &mut Store {
        self.stores.entry(place.to_owned()).or_insert_with(|| Store::new(file(knobs, place)))
    }

    fn note(&mut self, call: &Call, times: &[Timed]) {
        let ns = |timed: &Timed| match timed {
            Timed::Ns(ns) => Some(*ns),
            Timed::Failed(_) => None,
        };
        let Some(chosen) = tenon_framework::registry::fastest(times) else { return };
        let kernels = call.kernels.iter().cloned().zip(times.iter().map(ns)).collect();
        let (node, call) = (call.node.clone(), call.call.clone());
        let key = (node.clone(), call.clone());
        self.decisions.insert(key, Decision { node, call, kernels, chosen });
    }
}

impl Store {
    fn all(&self, call: &Call) -> Option<Vec<Timed>> {
        call.kernels.iter().map(|kernel| self.get(&call.call, kernel).cloned()).collect()
    }
}

/// The file of a place's times; `None` where they are kept in memory.
fn file(knobs: &Knobs, place: &str) -> Option<PathBuf> {
    let folder = match knobs.text("runtime", "tune_cache").unwrap_or_default() {
        "off" => return None,
        "" => cache_folder()?.join("tuning"),
        folder => PathBuf::from(folder),
    };
    Some(folder.join(format!("{}.jsonl", short_digest(place.as_bytes()))))
}
