//! An isolated plugin: its library, its limits, and the worker that runs it.
//!
//! States: *idle* (no worker) ↔ *up* (a worker runs) → *quarantined* (no worker any more). A worker that dies is a
//! fault, whoever finds it dead first; the next call starts another one. Too many faults within a minute end in
//! quarantine, for good: replacing the plugin makes a new one.
//!
//! # Invariants
//! - Each worker is buried once. Its calls end with an error each, its states are made again when they are needed.
//! - What every worker opens is the sealed copy of the library that was digested.

use super::{
    arena::{Arena, ArenaMemory},
    definition::Definition,
    limits::{ASKED_AGAIN, FORGOTTEN, HOST_LOOK, Limits, START},
    process::{Death, Launch, Process},
    values::HostArenaMemory,
    wire::{Order, Reply, Setting, Start, Word},
    worker_call::WorkerCall,
};
use std::{
    collections::VecDeque,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::PathBuf,
    process::Command,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tenon_framework::{
    Code, KernelError,
    knob::Knobs,
    sync::{Mutex, Rank},
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
    fn of_start(message: String) -> Refusal {
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

#[derive(Default)]
struct State {
    worker: Option<Arc<Process>>,
    generation: u64,
    faults: VecDeque<Instant>,
    knobs: Vec<Setting>,
}

/// An isolated plugin.
pub struct Isolated {
    parts: Parts,
    memory: Arc<ArenaMemory>,
    memory_of_host: Arc<dyn Memory>,
    host_arena: &'static Arc<Arena>,
    state: Mutex<State>,
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
        let memory = ArenaMemory::new(&format!("tenon-{}", parts.scope), 0).map_err(failed)?;
        let plugin = Arc::new(Isolated {
            parts,
            memory: Arc::new(memory),
            memory_of_host: Arc::new(HostArenaMemory(host_arena)),
            host_arena,
            state: Mutex::ranked(STATE, State::default()),
            definitions: OnceLock::new(),
            quarantine: OnceLock::new(),
            calls: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            look: if has_cores { HOST_LOOK } else { Duration::ZERO },
        });
        let mut state = plugin.state.lock();
        plugin.start_worker(&mut state)?;
        drop(state);
        Ok(plugin)
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

    /// What it does now.
    pub fn status(&self) -> IsolationStatus {
        let state = self.state.lock();
        let worker = state.worker.as_ref().filter(|worker| worker.death().is_none());
        IsolationStatus {
            plugin: self.parts.name.clone(),
            pid: worker.map(|worker| worker.pid()),
            restarts: state.generation.saturating_sub(1),
            calls: self.calls.load(Ordering::Relaxed),
            faults: self.faults.load(Ordering::Relaxed),
            tensor_bytes: self.memory.stats().live_bytes,
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

    /// Gives its worker the values of its knobs, and every later one.
    pub(crate) fn set_knobs(&self, knobs: &Knobs) {
        let settings = self.settings(knobs);
        let mut state = self.state.lock();
        if let Some(worker) = &state.worker {
            worker.tell(&Order::Knobs(settings.clone()));
        }
        state.knobs = settings;
    }

    /// Counts a call that computed.
    pub(super) fn computed(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// A call, in the worker that there is or in a new one.
    pub(super) fn call(&self, name: &Arc<str>) -> Result<WorkerCall<'_>, KernelError> {
        WorkerCall::new(self, self.worker()?, name)
    }

    /// Asks what changes nothing in the plugin: `read` is told the reply, and by which worker. Where another call ended
    /// the process meanwhile, the next one is asked, so that no plan fails by somebody else's fault.
    pub(super) fn ask<T>(
        &self,
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
        let worker = self.state.lock().worker.clone();
        if let Some(worker) = worker.filter(|worker| worker.generation() == generation) {
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

    fn worker(&self) -> Result<Arc<Process>, KernelError> {
        let mut state = self.state.lock();
        if let Some(worker) = state.worker.clone() {
            let Some(death) = worker.death() else { return Ok(worker) };
            // It died between calls.
            self.bury(&mut state, &worker, &death.describe());
        }
        self.check_quarantine()?;
        self.start_worker(&mut state).map_err(|refusal| {
            let message = format!(
                "plugin '{}' cannot be started again: {}",
                self.parts.name, refusal.message
            );
            KernelError::new(refusal.code, message)
        })
    }

    fn start_worker(&self, state: &mut State) -> Result<Arc<Process>, Refusal> {
        let failed = |error: io::Error| Refusal::of_start(format!("a process for it: {error}"));
        let descriptors = vec![
            self.parts.library.try_clone().map_err(failed)?,
            self.host_arena.readable().map_err(failed)?,
            self.memory.arena().writable().map_err(failed)?,
        ];
        let launch = Launch {
            command: self.command()?,
            plugin: &self.parts.name,
            generation: state.generation + 1,
            order: Order::Start(self.first_order()),
            descriptors,
        };
        let worker = Arc::new(Process::start(launch).map_err(failed)?);
        let definitions = match worker.first_word(START) {
            Ok(Word::Ready(definitions)) => definitions,
            Ok(Word::Refused { step, code, message }) => {
                return Err(Refusal { step, code: Code(code), message });
            }
            Ok(Word::Log { .. }) => {
                return Err(Refusal::of_start("its first word is a line for the log".to_owned()));
            }
            Err(death) => {
                let how = death.describe();
                let message =
                    format!("its process was not ready within {START:?}: it ended by {how}");
                return Err(Refusal::of_start(message));
            }
        };
        let first = self.definitions.get_or_init(|| definitions.clone());
        if *first != definitions {
            let message = "it registers something else than the first time".to_owned();
            return Err(Refusal { step: "compare".to_owned(), code: Code::INTERNAL, message });
        }
        worker.tell(&Order::Knobs(state.knobs.clone()));
        state.generation += 1;
        state.worker = Some(Arc::clone(&worker));
        Ok(worker)
    }

    fn first_order(&self) -> Start {
        Start {
            path: self.parts.path.as_os_str().as_bytes().to_vec(),
            digest: self.parts.digest.clone(),
            threads: self.parts.threads as u32,
            memory_limit: self.parts.limits.memory,
            look_us: self.parts.limits.look.as_micros() as u64,
            arenas: [self.host_arena.bytes() as u64, self.memory.arena().bytes() as u64],
            allow_panic_abort: self.parts.allow_panic_abort,
        }
    }

    fn command(&self) -> Result<Command, Refusal> {
        match &self.parts.limits.worker {
            Some(program) => Ok(Command::new(program)),
            None if super::runs_workers() => Ok(Command::new("/proc/self/exe")),
            None => Err(Refusal::of_start(
                "no program runs it: have main call tenon_runtime::isolate::work() first, or name one that does \
                 (tenon, say) by host.isolate_worker"
                    .to_owned(),
            )),
        }
    }

    /// Takes a dead worker out of use and counts the fault, unless somebody has done so.
    fn bury(&self, state: &mut State, worker: &Arc<Process>, how: &str) {
        if !state.worker.as_ref().is_some_and(|present| Arc::ptr_eq(present, worker)) {
            return;
        }
        state.worker = None;
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
