//! An isolated plugin: its library, its limits, and the worker that runs it.
//!
//! States: *idle* (no worker) → *starting* ([`super::start`]) → *up* (a worker runs) → *idle*, and from each of them →
//! *quarantined* (no worker any more). A worker that dies is a fault, whoever finds it dead first, and one that cannot
//! be started is one; the next call starts another. Too many faults within a minute end in quarantine, for good:
//! replacing the plugin makes a new one.
//!
//! # Invariants
//! - Nothing waits while it holds the state's lock, and the figures need no lock.
//! - Each worker is buried once. Its calls end with an error each, its states are made again when they are needed.
//! - What every worker opens is the sealed copy of the library that was digested.

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

/// Outside the channels of a worker, inside a kernel's own lock.
const STATE: Rank = Rank(25);

/// Counts plugins that were quarantined and whose ops may fall back.
static QUARANTINES: AtomicU64 = AtomicU64::new(0);

/// How often a plugin was quarantined in this process whose ops may fall back to other kernels: whoever chose kernels
/// before the figure moved chooses again.
pub fn quarantines() -> u64 {
    QUARANTINES.load(Ordering::Acquire)
}

/// Why a worker was not started, or its library refused: the step's name, a code, and what is wrong.
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

/// What an isolated plugin does at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationStatus {
    /// Name of the plugin.
    pub plugin: String,
    /// Number of its process; `None` while there is none.
    pub pid: Option<i32>,
    /// Processes that were started after the first.
    pub restarts: u64,
    /// Calls that computed.
    pub calls: u64,
    /// Processes that ended by a fault.
    pub faults: u64,
    /// Bytes of tensors in its own memory.
    pub tensor_bytes: u64,
    /// Why it is quarantined, if it is.
    pub quarantined: Option<String>,
}

/// The parts that a plugin is made of.
pub(super) struct Parts {
    pub name: String,
    pub scope: String,
    pub path: PathBuf,
    pub digest: String,
    /// The sealed copy.
    pub library: OwnedFd,
    pub limits: Limits,
    pub threads: usize,
    pub allow_panic_abort: bool,
}

/// What changes by who holds the lock.
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
    /// The worker, also one that has died and is not buried yet.
    current: ArcSwapOption<Process>,
    /// Number of the last worker that was ready.
    generation: AtomicU64,
    /// What its first worker said that it registers.
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

    /// Told when a start is over.
    pub(super) fn started(&self) -> &Condvar {
        &self.started
    }

    /// The worker that there is, dead or alive.
    pub(super) fn current(&self) -> Option<Arc<Process>> {
        self.current.load_full()
    }

    pub(super) fn set_current(&self, worker: Arc<Process>) {
        self.generation.store(worker.generation(), Ordering::Relaxed);
        self.current.store(Some(worker));
    }

    /// Number of the last worker that was ready.
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

    /// What it may do.
    pub fn limits(&self) -> &Limits {
        &self.parts.limits
    }

    /// What it does now. Nobody is waited for.
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

    /// How long the host looks for a reply before it sleeps: not at all where that keeps the worker from running.
    pub(super) fn look(&self) -> Duration {
        self.look
    }

    pub(super) fn definitions(&self) -> &[Definition] {
        self.definitions.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// What the first worker said, which is this one where there was none.
    pub(super) fn first_definitions(&self, definitions: &[Definition]) -> &[Definition] {
        self.definitions.get_or_init(|| definitions.to_vec())
    }

    /// The memory of its outputs.
    pub(super) fn memory(&self) -> &Arc<ArenaMemory> {
        &self.memory
    }

    /// Memory of the host's that it can read.
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

    /// A call, in the worker that there is or in a new one.
    pub(super) fn call(self: &Arc<Self>, name: &Arc<str>) -> Result<WorkerCall<'_>, KernelError> {
        WorkerCall::new(self, self.worker(Patience::WITHOUT_STEP)?, name)
    }

    /// As [`Isolated::call`], for a step, which waits no longer than it may.
    pub(super) fn call_in_step<'p>(
        self: &'p Arc<Self>,
        name: &Arc<str>,
        deadline_ns: u64,
        cancelled: &'p AtomicU32,
    ) -> Result<WorkerCall<'p>, KernelError> {
        let patience = Patience { deadline_ns, cancelled: Some(cancelled) };
        let mut call = WorkerCall::new(self, self.worker(patience)?, name)?;
        call.heed(cancelled);
        Ok(call)
    }

    /// Asks what changes nothing in the plugin: `read` is told the reply, and by which worker. Where another call ended
    /// the process meanwhile, the next one is asked, so that no plan fails by somebody else's fault.
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
                // What the plugin itself says is a reply: this one comes of a process that ended.
                Err(error) if error.code == Code::ABORTED && left > 0 => left -= 1,
                Err(error) => return Err(error),
                Ok(answer) => return answer,
            }
        }
    }

    /// Frees a kernel's state, if the worker that has it still runs.
    pub(super) fn destroy(&self, generation: u64, kernel: u64) {
        if let Some(worker) = self.current().filter(|worker| worker.generation() == generation) {
            worker.tell(&Order::Destroy { kernel });
        }
    }

    /// Refuses while the plugin is quarantined.
    pub(super) fn check_quarantine(&self) -> Result<(), KernelError> {
        match self.quarantine.get() {
            None => Ok(()),
            Some(why) => Err(KernelError::new(Code::FAILED_PRECONDITION, why.clone())),
        }
    }

    /// Takes a dead worker out of use and counts the fault, unless somebody has done so.
    pub(super) fn bury(&self, state: &mut State, worker: &Arc<Process>, how: &str) {
        if !self.current().is_some_and(|present| Arc::ptr_eq(&present, worker)) {
            return;
        }
        self.current.store(None);
        // What it wrote where nothing was handed out would stay until the next one is gone too.
        self.memory.reclaim();
        self.fault(state, how);
    }

    /// Counts a fault: too many of them are the end.
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

    /// The error of a call whose worker died: of the call in channel `at`, or of one that waited for a channel.
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
        self.bury(&mut self.state.lock(), worker, &how);
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
