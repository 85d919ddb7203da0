//! Choice of kernels by measurement: policy `measured`.
//!
//! If several kernels can run a node, each is timed once per call, which is identified by op,
//! types, attributes, shapes rounded up to powers of two, and device. The times are stored on disk
//! for later processes; a kernel from another build of its plugin counts as another kernel.
//! [`tenon_framework::registry`] makes the choice.
//!
//! A measurement runs on a thread of its own. A caller waits for the result at most for the budget
//! (`runtime.tune_budget_ms`) and then continues with the choice of policy `priority`. The
//! measurement still finishes, and later plans use its result.
//!
//! States of a call: *unknown* → *measuring* (on one thread for all callers) → *known*. A call is
//! never measured twice at once.

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
    "How one of several kernels is chosen: 'priority', or 'measured': the fastest one by times that are stored on disk."
);
register_knob!(
    "tune_budget_ms": INT = "200",
    "Maximum milliseconds that policy 'measured' delays a plan or a step for each call without known times."
);
register_knob!(
    "tune_contract": STRING = "priority",
    "Numerics contract that policy 'measured' requires of kernels: 'priority' (that of the kernel by priority), 'exact', 'ulps:N', 'relative:ABSOLUTE,RELATIVE', or 'any'."
);
register_knob!(
    "tune_cache": STRING = "",
    "Folder for the times of policy 'measured'; empty means tenon/tuning in the cache folder, 'off' keeps them in memory."
);

/// The rank is below all locks of a session; only memory locks are taken under it.
const TIMES: Rank = Rank(72);

/// The options of measurement for a session.
#[derive(Clone, Copy)]
pub(crate) struct TuningOptions {
    /// The maximum time that a caller waits.
    pub budget: Duration,
    /// The numerics contract that kernels must meet.
    pub contract: Contract,
}

impl TuningOptions {
    /// The options in the knobs; `None` under policy `priority`.
    ///
    /// # Errors
    /// An unknown policy or contract.
    pub fn from_knobs(knobs: &Knobs) -> Result<Option<TuningOptions>, String> {
        let text = |name| knobs.text("runtime", name).unwrap_or("priority");
        let contract = text("tune_contract").parse();
        let contract = contract.map_err(|error| format!("knob runtime.tune_contract: {error}"))?;
        let budget = knobs.int("runtime", "tune_budget_ms").unwrap_or(200).max(0) as u64;
        match text("policy") {
            "priority" => Ok(None),
            "measured" => {
                Ok(Some(TuningOptions { budget: Duration::from_millis(budget), contract }))
            }
            other => Err(format!(
                "knob runtime.policy: expected 'priority' or 'measured', found '{other}'"
            )),
        }
    }
}

/// A call whose kernels were timed in this process.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The name of the node.
    pub node: String,
    /// The call: op, types, shapes, attributes.
    pub call: String,
    /// The kernels, with their times in nanoseconds; the first one is the choice of policy
    /// `priority`. The time is `None` if the kernel failed.
    pub kernels: Vec<(String, Option<f64>)>,
    /// The position of the chosen kernel.
    pub chosen: usize,
}

/// The known times, for all devices.
pub(crate) struct Tuner {
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Default)]
struct State {
    /// The stores by machine, threads and device.
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

/// A call whose kernels' times are looked up.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The machine, threads and device.
    pub place: String,
    /// The op, types, attributes and shapes.
    pub call: String,
    /// The name of the node, for reports.
    pub node: String,
    /// The kernels, with the digests of their plugins.
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

    /// Like [`Tuner::known`], but starts `job` for missing times, and waits for them up to
    /// `budget`.
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
        // Another process may have stored the times meanwhile.
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

    /// The choices made in this process, by node.
    pub fn decisions(&self) -> Vec<Decision> {
        self.state.lock().decisions.values().cloned().collect()
    }

    /// Waits for running measurements, so that none outlives the runtime.
    pub fn join(&self) {
        let threads = std::mem::take(&mut self.state.lock().threads);
        for thread in threads {
            // A thread that panicked has measured nothing.
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

/// The file for the times of a place; `None` if they are kept in memory.
fn file(knobs: &Knobs, place: &str) -> Option<PathBuf> {
    let folder = match knobs.text("runtime", "tune_cache").unwrap_or_default() {
        "off" => return None,
        "" => cache_folder()?.join("tuning"),
        folder => PathBuf::from(folder),
    };
    Some(folder.join(format!("{}.jsonl", short_digest(place.as_bytes()))))
}
