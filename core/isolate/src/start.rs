//! Starts a plugin's next process: on a separate thread, without holding a lock.
//!
//! States of a plugin's process: *none* → *starting* (one thread starts it; calls wait, each as
//! long as its own step allows) → *up*, or *none* again with the reason, which counts as a fault of
//! the plugin. A call that gives up leaves the start to later calls.

use super::{
    arena::Arena,
    limits::SLICE,
    plugin::{Isolated, Refusal, State},
    process::{Launch, NotReady, Process},
    wire::{Order, Start, Word},
};
use std::{
    io,
    os::unix::ffi::OsStrExt,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tenon_abi::NO_DEADLINE;
use tenon_framework::{Code, KernelError, plugin::guard};
use tenon_host::call::monotonic_ns;

/// Starts of the processes of one plugin.
#[derive(Default)]
pub(super) struct Starts {
    /// Number of the last start that began.
    begun: u64,
    is_running: bool,
    /// Number of the last start that failed, and its error.
    failed: Option<(u64, KernelError)>,
}

/// How long a caller waits for a process that is being started; the start itself has a time limit
/// too.
#[derive(Clone, Copy)]
pub(super) struct Patience<'s> {
    /// Nanoseconds of the host's clock, as in a step.
    pub deadline_ns: u64,
    /// The step's flag.
    pub cancelled: Option<&'s AtomicU32>,
}

impl Patience<'_> {
    /// Waits as long as the start takes.
    pub const WITHOUT_STEP: Patience<'static> =
        Patience { deadline_ns: NO_DEADLINE, cancelled: None };

    fn check(&self, plugin: &str) -> Result<(), KernelError> {
        let of = |code, why: &str| {
            let message = format!("{why} a new process of plugin '{plugin}' was being started");
            Err(KernelError::new(code, message))
        };
        if self.cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed) != 0) {
            return of(Code::CANCELLED, "the step was cancelled while");
        }
        if self.deadline_ns != NO_DEADLINE && monotonic_ns() >= self.deadline_ns {
            return of(Code::DEADLINE_EXCEEDED, "the step's deadline passed while");
        }
        Ok(())
    }
}

impl Isolated {
    /// The current process, or a new one.
    pub(super) fn worker(
        self: &Arc<Self>,
        patience: Patience<'_>,
    ) -> Result<Arc<Process>, KernelError> {
        let alive = |worker: &Arc<Process>| worker.death().is_none();
        match self.current().filter(alive) {
            Some(worker) => Ok(worker),
            None => self.next_worker(patience),
        }
    }

    #[cold]
    fn next_worker(self: &Arc<Self>, patience: Patience<'_>) -> Result<Arc<Process>, KernelError> {
        let mut state = self.lock();
        let mut awaited = None;
        loop {
            if let Some(worker) = self.current() {
                let Some(death) = worker.death() else { return Ok(worker) };
                // It died between calls.
                self.clean_up(&mut state, &worker, &death.describe());
            }
            self.check_quarantine()?;
            let awaited = *awaited
                .get_or_insert_with(|| state.starts.begun + u64::from(!state.starts.is_running));
            match &state.starts.failed {
                Some((number, error)) if *number >= awaited => return Err(error.clone()),
                _ => {}
            }
            if !state.starts.is_running {
                self.begin_start(&mut state)?;
            }
            patience.check(self.name())?;
            state = self.started().wait_timeout(state, SLICE);
        }
    }

    /// Makes a thread start the next process.
    fn begin_start(self: &Arc<Self>, state: &mut State) -> Result<(), KernelError> {
        let plugin = Arc::clone(self);
        let builder = thread::Builder::new().name("tenon-isolate-start".to_owned());
        let begun = builder.spawn(move || {
            let patience = plugin.limits().start;
            // This thread has the last reference to the plugin: the process is not needed any more.
            let launched = guard(|| plugin.launch(patience, || Arc::strong_count(&plugin) > 1));
            // Whatever happens, the start must end, because calls wait for that.
            plugin.end_start(launched.unwrap_or_else(|panic| {
                Err(Refusal::of_start(format!("the host panicked: {panic}")))
            }));
        });
        begun.map_err(|error| {
            let message =
                format!("plugin '{}': no thread to start its process: {error}", self.name());
            KernelError::new(Code::RESOURCE_EXHAUSTED, message)
        })?;
        state.starts.is_running = true;
        state.starts.begun += 1;
        Ok(())
    }

    fn end_start(&self, launched: Result<Arc<Process>, Refusal>) {
        let mut state = self.lock();
        state.starts.is_running = false;
        match launched {
            Ok(worker) => self.set_current(worker),
            Err(refusal) => {
                self.fault(&mut state, &refusal.message);
                let name = self.name();
                let message =
                    format!("plugin '{name}' cannot be started again: {}", refusal.message);
                let error = KernelError::new(refusal.code, message);
                state.starts.failed = Some((state.starts.begun, error));
            }
        }
        drop(state);
        self.started().notify_all();
    }

    /// Starts a process and waits until it is ready, as long as it is needed.
    pub(super) fn launch(
        &self,
        patience: Duration,
        is_needed: impl Fn() -> bool,
    ) -> Result<Arc<Process>, Refusal> {
        let failed = |error: io::Error| Refusal::of_start(format!("a process for it: {error}"));
        let parts = self.parts();
        let host_arena = Arena::start_host().map_err(failed)?;
        let descriptors = vec![
            parts.library.try_clone().map_err(failed)?,
            host_arena.readable().map_err(failed)?,
            self.memory().arena().writable().map_err(failed)?,
        ];
        let launch = Launch {
            command: self.command()?,
            environment: &parts.limits.environment,
            plugin: &parts.name,
            generation: self.generation() + 1,
            order: Order::Start(self.first_order(host_arena)),
            descriptors,
        };
        let begin = Instant::now();
        let worker = Arc::new(Process::start(launch).map_err(failed)?);
        let word = worker.first_word(patience, is_needed).map_err(|why| {
            Refusal::of_start(match why {
                NotReady::Ended(death) => format!(
                    "its process ended before it was ready, after {:.1?}, by {}",
                    begin.elapsed(),
                    death.describe()
                ),
                NotReady::Late => format!(
                    "its process was not ready within {patience:?} and was ended (host.isolate_start_ms)"
                ),
            })
        });
        self.check_word(word?)?;
        Ok(worker)
    }

    /// Compares the registrations that a process reports with those of the first one.
    fn check_word(&self, word: Word) -> Result<(), Refusal> {
        let definitions = match word {
            Word::Ready(definitions) => definitions,
            Word::Refused { step, code, message } => {
                return Err(Refusal { step, code: Code(code), message });
            }
            Word::Log { .. } => {
                return Err(Refusal::of_start("its first word is a line for the log".to_owned()));
            }
        };
        if self.first_definitions(&definitions) == definitions {
            return Ok(());
        }
        let message = "it registers something else than the first time".to_owned();
        Err(Refusal { step: "compare".to_owned(), code: Code::INTERNAL, message })
    }

    fn first_order(&self, host_arena: &Arena) -> Start {
        let parts = self.parts();
        Start {
            path: parts.path.as_os_str().as_bytes().to_vec(),
            digest: parts.digest.clone(),
            threads: parts.threads as u32,
            memory_limit: parts.limits.memory,
            look_us: parts.limits.look.as_micros() as u64,
            arenas: [host_arena.bytes() as u64, self.memory().arena().bytes() as u64],
            allow_panic_abort: parts.allow_panic_abort,
        }
    }

    fn command(&self) -> Result<Command, Refusal> {
        match &self.limits().worker {
            Some(program) => Ok(Command::new(program)),
            None if super::runs_workers() => Ok(Command::new("/proc/self/exe")),
            None => Err(Refusal::of_start(
                "no program runs it: have main call tenon_runtime::isolate::work() first, or name one that does \
                 (tenon, say) by host.isolate_worker"
                    .to_owned(),
            )),
        }
    }
}
