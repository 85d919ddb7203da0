//! An isolated plugin: its library, its limits, and the worker that runs it.
//!
//! States: *idle* (no worker) → *starting* ([`super::start`]) → *up* (a worker runs) → *idle*, and
//! from each of them →
//! *quarantined* (no worker any more). A worker that dies is a fault, counted by the first thread
//! that notices; so is a worker that cannot be started; the next call starts another. Too many
//! faults within a minute lead to quarantine, which is final: replacing the plugin creates a new
//! one.
//!
//! # Invariants
//! - Nothing waits while holding the state's lock, and the statistics need no lock.
//! - A dead worker is cleaned up exactly once. Each of its calls ends with an error, and its states
//!   are created again when they are needed.
//! - Every worker opens the sealed copy of the library that was digested.

use super::{
    arena::{Arena, ArenaMemory},
    definition::Definition,
    limits::{ASKED_AGAIN, FIRST_START, FORGOTTEN, HOST_LOOK, Limits},
    process::{Death, Process},
    start::{Patience, Starts},
    values::HostArenaMemory,
    wire::{Order, Reply, Setting},
    worker_call::WorkerCall,
};
use arc_swap::ArcSwapOption;
use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tenon_framework::{
    Code, KernelError,
    knob::Knobs,
    sync::{Condvar, Mutex, MutexGuard, Rank},
    tensor::Memory,
};

/// Outside a worker's channels, inside a kernel's own lock.
const STATE: Rank = Rank(25);

/// Number of quarantined plugins whose ops may fall back.
static QUARANTINES: AtomicU64 = AtomicU64::new(0);

/// How many times a plugin whose ops may fall back to other kernels was quarantined in this
/// process. Kernels that were chosen before the number changed must be chosen again.
pub fn quarantines() -> u64 {
    QUARANTINES.load(Ordering::Acquire)
}

/// Why a worker was not started, or its library was refused: the step's name, a code, and a
/// message.
#[derive(Debug)]
pub(super) struct Refusal {
    pub step: String,
    pub code: Code,
    pub message: String,
}

impl Refusal {
    pub fn of_start(message: String) -> Refusal {
        Refusal { step: "open".to_owned(), code: Code::UNAVAILABLE, message }
    }
}

/// State and statistics of an isolated plugin at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationStatus {
    /// Name of the plugin.
    pub plugin: String,
    /// Process id; `None` without a process.
    pub pid: Option<i32>,
    /// Number of processes started after the first.
    pub restarts: u64,
    /// Number of calls that computed.
    pub calls: u64,
    /// Number of processes that ended by a fault.
    pub faults: u64,
    /// Bytes of tensors in its own memory.
    pub tensor_bytes: u64,
    /// Why it is quarantined, if it is.
    pub quarantined: Option<String>,
}

/// The parts of a plugin.
pub(super) struct Parts {
    pub name: String,
    pub scope: String,
    pub path: PathBuf,
    pub digest: String,
    /// The sealed copy of the library.
    pub library: OwnedFd,
    pub limits: Limits,
    pub threads: usize,
    pub allow_panic_abort: bool,
}

/// State that the lock protects.
#[derive(Default)]
pub(super) struct State {
    pub starts: Starts,
    faults: VecDeque<Instant>,
}

/// An isolated plugin.
pub struct Isolated {
    parts: Parts,
    memory: Arc<ArenaMemory>,
    memory_of_host: Arc<dyn Memory>,
    state: Mutex<State>,
    started: Condvar,
    /// The current worker; it may have died without being cleaned up yet.
    current: ArcSwapOption<Process>,
    /// Generation of the last worker that became ready.
    generation: AtomicU64,
    /// The registrations that its first worker reported.
    definitions: OnceLock<Vec<Definition>>,
    quarantine: OnceLock<String>,
    calls: AtomicU64,
    faults: AtomicU64,
    look: Duration,
}

impl Isolated {
    /// Starts the plugin's first worker.
    pub(super) fn start(parts: Parts) -> Result<Arc<Isolated>, Refusal> {
        let failed = |error: io::Error| Refusal::of_start(format!("shared memory: {error}"));
        let has_cores = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
        let host_arena = Arena::start_host().map_err(failed)?;
        let memory = ArenaMemory::new(&format!("tenon-{}", parts.scope), parts.limits.tensors);
        let plugin = Arc::new(Isolated {
            parts,
            memory: Arc::new(memory.map_err(failed)?),
            memory_of_host: Arc::new(HostArenaMemory(host_arena)),
            state: Mutex::ranked(STATE, State::default()),
            started: Condvar::new(),
            current: ArcSwapOption::empty(),
            generation: AtomicU64::new(0),
            definitions: OnceLock::new(),
            quarantine: OnceLock::new(),
            calls: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            look: if has_cores { HOST_LOOK } else { Duration::ZERO },
        });
        let worker = plugin.launch(plugin.limits().start.max(FIRST_START), || true)?;
        plugin.set_current(worker);
        Ok(plugin)
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Notified when a start is over.
    pub(super) fn started(&self) -> &Condvar {
        &self.started
    }

    /// The current worker, dead or alive.
    pub(super) fn current(&self) -> Option<Arc<Process>> {
        self.current.load_full()
    }

    pub(super) fn set_current(&self, worker: Arc<Process>) {
        self.generation.store(worker.generation(), Ordering::Relaxed);
        self.current.store(Some(worker));
    }

    /// Generation of the last worker that became ready.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Name of the plugin.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// SHA-256 of its library.
    pub fn digest(&self) -> &str {
        &self.parts.digest
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.parts.limits
    }

    /// Its current status; does not wait.
    pub fn status(&self) -> IsolationStatus {
        let worker = self.current().filter(|worker| worker.death().is_none());
        IsolationStatus {
            plugin: self.parts.name.clone(),
            pid: worker.map(|worker| worker.pid()),
            restarts: self.generation().saturating_sub(1),
            calls: self.calls.load(Ordering::Relaxed),
            faults: self.faults.load(Ordering::Relaxed),
            tensor_bytes: self.memory.live_bytes(),
            quarantined: self.quarantine.get().cloned(),
        }
    }

    /// How long the host polls for a reply before it sleeps: not at all where polling would keep
    /// the worker from running.
    pub(super) fn look(&self) -> Duration {
        self.look
    }

    pub(super) fn definitions(&self) -> &[Definition] {
        self.definitions.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// The registrations that the first worker reported; these ones if this is the first.
    pub(super) fn first_definitions(&self, definitions: &[Definition]) -> &[Definition] {
        self.definitions.get_or_init(|| definitions.to_vec())
    }

    /// The memory for its outputs.
    pub(super) fn memory(&self) -> &Arc<ArenaMemory> {
        &self.memory
    }

    /// The host memory that it can read.
    pub(super) fn memory_of_host(&self) -> &Arc<dyn Memory> {
        &self.memory_of_host
    }

    /// The settings of its own knobs.
    pub(super) fn settings(&self, knobs: &Knobs) -> Vec<Setting> {
        let own = knobs.iter().filter(|setting| setting.def.scope == self.parts.scope);
        own.map(|setting| (setting.def.full_name(), setting.value.to_string())).collect()
    }

    /// Counts a call that computed.
    pub(super) fn computed(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins a call, in the current worker or a new one.
    pub(super) fn call(self: &Arc<Self>, name: &Arc<str>) -> Result<WorkerCall<'_>, KernelError> {
        WorkerCall::new(self, self.worker(Patience::WITHOUT_STEP)?, name)
    }

    /// Like [`Isolated::call`], for a step, whose deadline limits the wait.
    pub(super) fn call_in_step<'p>(
        self: &'p Arc<Self>,
        name: &Arc<str>,
        deadline_ns: u64,
        cancelled: &'p AtomicU32,
    ) -> Result<WorkerCall<'p>, KernelError> {
        let patience = Patience { deadline_ns, cancelled: Some(cancelled) };
        let mut call = WorkerCall::new(self, self.worker(patience)?, name)?;
        call.watch_cancellation(cancelled);
        Ok(call)
    }

    /// Asks a question that changes nothing in the plugin: calls `read` with the reply and the
    /// generation of the worker. Where another call ended the process meanwhile, the next process
    /// is asked, so that no plan fails through another call's fault.
    pub(super) fn ask<T>(
        self: &Arc<Self>,
        name: &Arc<str>,
        request: &[u8],
        mut read: impl FnMut(Reply<'_>, u64) -> Result<T, KernelError>,
    ) -> Result<T, KernelError> {
        let mut left = ASKED_AGAIN;
        loop {
            self.check_quarantine()?;
            let asked = self.call(name).and_then(|mut call| {
                let generation = call.generation();
                Ok(read(call.request(request)?, generation))
            });
            match asked {
                // The plugin's own answers are replies: this error came from a process that ended.
                Err(error) if error.code == Code::ABORTED && left > 0 => left -= 1,
                Err(error) => return Err(error),
                Ok(answer) => return answer,
            }
        }
    }

    /// Drops a kernel's state, if the worker that has it still runs.
    pub(super) fn destroy(&self, generation: u64, kernel: u64) {
        if let Some(worker) = self.current().filter(|worker| worker.generation() == generation) {
            worker.tell(&Order::Destroy { kernel });
        }
    }

    /// Fails while the plugin is quarantined.
    pub(super) fn check_quarantine(&self) -> Result<(), KernelError> {
        match self.quarantine.get() {
            None => Ok(()),
            Some(why) => Err(KernelError::new(Code::FAILED_PRECONDITION, why.clone())),
        }
    }

    /// Takes a dead worker out of use and counts the fault, unless that has been done.
    pub(super) fn clean_up(&self, state: &mut State, worker: &Arc<Process>, how: &str) {
        if !self.current().is_some_and(|present| Arc::ptr_eq(&present, worker)) {
            return;
        }
        self.current.store(None);
        // What it wrote outside of allocated blocks would otherwise stay until the next worker is
        // gone too.
        self.memory.reclaim();
        self.fault(state, how);
    }

    /// Counts a fault; too many of them quarantine the plugin.
    pub(super) fn fault(&self, state: &mut State, how: &str) {
        self.faults.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        state.faults.push_back(now);
        while state.faults.front().is_some_and(|&fault| now.duration_since(fault) > FORGOTTEN) {
            state.faults.pop_front();
        }
        let limit = self.parts.limits.faults;
        if limit == 0 || state.faults.len() < limit as usize {
            return;
        }
        let name = &self.parts.name;
        let why = format!(
            "plugin '{name}' is quarantined: {limit} faults within a minute, the last by {how}; mend it and replace \
             it, or load it anew"
        );
        tracing::error!("{why}");
        if self.quarantine.set(why).is_ok() && self.parts.limits.fallback {
            QUARANTINES.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The error of a call whose worker died: the call in channel `at`, or one that waited for a
    /// channel.
    pub(super) fn lost(
        &self,
        worker: &Arc<Process>,
        death: &Death,
        at: Option<usize>,
        name: &str,
    ) -> KernelError {
        let culprit = death.culprit();
        let named = |at| death.calls.iter().find(|(of, _)| *of == at).map(|(_, name)| &**name);
        let how = match (culprit.and_then(named), death.stopped) {
            (Some(kernel), Some((_, deadline))) => {
                format!(
                    "{kernel}, which did not return within {deadline:?} (host.isolate_deadline_ms)"
                )
            }
            (Some(kernel), None) => format!("{kernel}: {}", death.describe()),
            (None, _) => death.describe(),
        };
        self.clean_up(&mut self.state.lock(), worker, &how);
        let is_mine = at.is_some() && culprit == at;
        let (code, message) = match death.stopped {
            Some((_, deadline)) if is_mine => {
                let message = format!(
                    "{name} did not return within {deadline:?}: its process was stopped (the deadline is \
                     host.isolate_deadline_ms)"
                );
                (Code::DEADLINE_EXCEEDED, message)
            }
            None if is_mine => self.crashed(death, name),
            _ => {
                let message =
                    format!("the process of {name} was ended by {how}: run the step again");
                (Code::ABORTED, message)
            }
        };
        let next = match self.quarantine.get() {
            Some(why) => why.clone(),
            None => format!("plugin '{}' goes on in a new process", self.parts.name),
        };
        KernelError::new(code, format!("{message}; {next}"))
    }

    fn crashed(&self, death: &Death, name: &str) -> (Code, String) {
        let how = death.describe();
        let limit = self.parts.limits.memory;
        if death.is_out_of_memory(limit) {
            let message = format!(
                "{name} ended its process for want of memory, of which that may have {} MiB \
                 (host.isolate_memory_mb): {how}",
                limit >> 20
            );
            return (Code::RESOURCE_EXHAUSTED, message);
        }
        (Code::INTERNAL, format!("{name} ended its process: {how}"))
    }
}

impl std::fmt::Debug for Isolated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Isolated").field("plugin", &self.parts.name).finish_non_exhaustive()
    }
}
