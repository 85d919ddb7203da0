//! A registered step graph: its plans, the places of feeds and fetches, and the pool of states.

use super::Worker;
use crate::{
    error::{RuntimeError, StepError},
    executor::{Callees, Failed, Functions, StepShared, StepState, StepWiring, deadline_error},
    metrics::{Account, Ledger},
    options::{NodeReport, RunOptions},
    plan::Plan,
    rendezvous::Rendezvous,
    run_limits::RunLimits,
};
use crossbeam::atomic::AtomicCell;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};
use tenon_framework::{
    Tensor,
    sync::{Mutex, rank},
};

/// A registered step graph.
pub(crate) struct Registered {
    plans: Vec<Arc<Plan>>,
    wiring: StepWiring,
    /// The functions that its nodes call, if they call any.
    functions: Option<Arc<Functions>>,
    pub report: Arc<Vec<NodeReport>>,
    /// The call counter of each node in the report, if calls are counted.
    counters: Vec<(String, Arc<AtomicU64>)>,
    /// The statistics of its kernels, which stay in the ledger until this is dropped.
    account: (Arc<Ledger>, Arc<Account>),
    /// One state, taken and put back by a single atomic exchange; further ones are in `states`.
    spare: AtomicCell<Option<Box<StepState>>>,
    states: Mutex<BoxedStates>,
    /// The states of steps that ended while calls still ran.
    orphans: Mutex<BoxedStates>,
    /// The shared parts of all states, to cancel running steps.
    steps: Mutex<Vec<Weak<StepShared>>>,
}

/// A state is large, and is moved as a pointer.
#[allow(clippy::vec_box, reason = "a state moves as a pointer, not as its many fields")]
type BoxedStates = Vec<Box<StepState>>;

/// The maximum number of states kept for later steps.
const MAX_KEPT_STATES: usize = 16;

/// The parameters of a step.
pub(crate) struct StepCall<'s> {
    /// The step number, which is not 0.
    pub id: u64,
    /// The rendezvous for transfers with other workers; `None` uses the step's own.
    pub rendezvous: Option<&'s Arc<dyn Rendezvous>>,
    /// The caller's options, if there are any.
    pub caller: Option<CallerOptions<'s>>,
}

/// The options of a step's caller.
#[derive(Clone, Copy)]
pub(crate) struct CallerOptions<'s> {
    /// The token and the trace.
    pub options: &'s RunOptions,
    /// The token, and the deadline counted from the start of the run.
    pub run_limits: &'s RunLimits,
}

impl Registered {
    pub fn new(
        plans: Vec<Arc<Plan>>,
        wiring: StepWiring,
        functions: Option<Arc<Functions>>,
        report: Vec<NodeReport>,
        counters: Vec<(String, Arc<AtomicU64>)>,
        ledger: &Arc<Ledger>,
    ) -> Registered {
        let counted = functions.as_ref().map_or_else(Vec::new, |functions| functions.counted());
        Registered {
            account: (Arc::clone(ledger), ledger.open(&plans, counted)),
            plans,
            wiring,
            functions,
            report: Arc::new(report),
            counters,
            spare: AtomicCell::new(None),
            states: Mutex::ranked(rank::STEP, Vec::with_capacity(MAX_KEPT_STATES)),
            orphans: Mutex::ranked(rank::STEP, Vec::new()),
            steps: Mutex::ranked(rank::STEP, Vec::new()),
        }
    }

    /// Runs one step on this thread. `feeds` are in the order of registration, with matching types
    /// and shapes; `fetched` is empty, and filled. If `enter` returns `None`, the step is refused
    /// before it starts.
    // Inlined, because the call and its arguments take 2 % of the instructions of a step with one
    // node.
    #[inline(always)]
    pub fn run<E>(
        &self,
        worker: &Worker,
        call: StepCall<'_>,
        feeds: &[Tensor],
        fetched: &mut Vec<Tensor>,
        enter: impl FnOnce() -> Option<E>,
    ) -> Result<(), RuntimeError> {
        let mut state = self.take_state(worker)?;
        let deadline = call.caller.and_then(|caller| caller.run_limits.left());
        let trace = call.caller.and_then(|caller| caller.options.trace.clone());
        state.arm(call.id, deadline, trace);
        if let Some(rendezvous) = call.rendezvous {
            state.use_rendezvous(Arc::clone(rendezvous));
        }
        // From here on, the step can be cancelled.
        let Some(_entered) = enter() else { return Err(RuntimeError::Closed) };
        let token = call.caller.and_then(|caller| caller.options.cancel.as_ref());
        if let Some(token) = token {
            token.attach(state.shared());
        }
        state.feed(&self.wiring, feeds);
        let mut result = state.drive();
        if let Some(token) = token {
            token.detach(state.shared());
        }
        if result.is_ok() && call.caller.is_some_and(|caller| caller.run_limits.is_late()) {
            result = Err(deadline_error().into());
        }
        match result.and_then(|()| Ok(state.fetch(&self.wiring, fetched)?)) {
            Ok(()) => {
                self.account.1.steps.fetch_add(1, Ordering::Relaxed);
                state.disarm();
                self.keep(state);
                Ok(())
            }
            Err(failed) => Err(self.give_up(state, failed)),
        }
    }

    /// Takes a state for one step from the pool, or creates one.
    fn take_state(&self, worker: &Worker) -> Result<Box<StepState>, StepError> {
        if let Some(state) = self.spare.take() {
            return Ok(state);
        }
        if let Some(state) = self.states.lock().pop() {
            return Ok(state);
        }
        self.collect_orphans();
        let (pool, resources) =
            (Arc::clone(worker.runtime().pool()), Arc::clone(worker.resources()));
        let callees = self.functions.as_ref().map(|functions| {
            let callees: Weak<dyn Callees> = Arc::downgrade(functions) as Weak<Functions>;
            callees
        });
        let state = StepState::new(&self.plans, pool, resources, callees)
            .map_err(|error| StepError::step(error.code, error.message.as_str()))?;
        let mut steps = self.steps.lock();
        steps.retain(|step| step.strong_count() > 0);
        steps.push(Arc::downgrade(state.shared()));
        Ok(state)
    }

    /// Cancels all running steps.
    pub fn cancel_running(&self) {
        let steps: Vec<_> = self.steps.lock().iter().filter_map(Weak::upgrade).collect();
        for step in steps {
            step.cancel_running();
        }
    }

    /// Handles a failed step: keeps its state if calls still run, and returns the error.
    #[cold]
    fn give_up(&self, state: Box<StepState>, failed: Failed) -> RuntimeError {
        if failed.abandoned {
            self.orphans.lock().push(state);
        }
        failed.error.into()
    }

    /// Keeps a state for a later step.
    fn keep(&self, state: Box<StepState>) {
        let Some(state) = self.spare.swap(Some(state)) else { return };
        let mut states = self.states.lock();
        if states.len() < MAX_KEPT_STATES {
            states.push(state);
        }
    }

    /// Drops the states of abandoned steps whose calls are done; returns the number of those still
    /// running.
    fn collect_orphans(&self) -> usize {
        // The lock is not held, since checking a state takes its lock, and dropping one may take
        // any.
        let mut orphans = std::mem::take(&mut *self.orphans.lock());
        orphans.retain_mut(|state| !state.is_quiet());
        let mut kept = self.orphans.lock();
        kept.append(&mut orphans);
        kept.len()
    }

    /// The calls of each node so far, if they are counted.
    pub fn calls(&self) -> Vec<(String, u64)> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.counters.iter().map(|(name, counter)| (name.clone(), read(counter))).collect()
    }
}

impl Drop for Registered {
    /// Calls of abandoned steps may still run, and their kernels may complete them at any time. A
    /// thread waits for them and then drops the states.
    fn drop(&mut self) {
        let (ledger, account) = &self.account;
        ledger.close(account);
        if self.collect_orphans() == 0 {
            return;
        }
        let orphans = Orphans(std::mem::take(&mut *self.orphans.lock()));
        let waiter = std::thread::Builder::new().name("tenon-abandoned".to_owned());
        if waiter.spawn(move || orphans.wait()).is_err() {
            tracing::error!(
                "cannot start a thread for steps with running calls: their memory is leaked"
            );
        }
    }
}

/// Abandoned states. Only those whose calls are done are dropped; the others are leaked.
struct Orphans(BoxedStates);

impl Orphans {
    fn wait(mut self) {
        while let Some(mut state) = self.0.pop() {
            state.wait_until_quiet();
        }
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        std::mem::forget(std::mem::take(&mut self.0));
    }
}
