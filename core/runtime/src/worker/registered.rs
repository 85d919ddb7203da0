//! A step graph that is registered: plans, where feeds enter and fetches leave, and the pool of states.

use super::Worker;
use crate::{
    error::{RuntimeError, StepError},
    executor::{Failed, StepShared, StepState, StepWiring, deadline_error},
    metrics::{Account, Ledger},
    options::{NodeReport, RunOptions},
    patience::Patience,
    plan::Plan,
    rendezvous::Rendezvous,
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

/// A step graph that is registered.
pub(crate) struct Registered {
    plans: Vec<Arc<Plan>>,
    wiring: StepWiring,
    pub report: Arc<Vec<NodeReport>>,
    /// Calls of each node of the report, where they are counted.
    counters: Vec<(String, Arc<AtomicU64>)>,
    /// What its kernels do, in the ledger until this is gone.
    account: (Arc<Ledger>, Arc<Account>),
    /// One state, taken and given back by a single atomic exchange; further ones are in `states`.
    spare: AtomicCell<Option<Box<StepState>>>,
    states: Mutex<BoxedStates>,
    /// States of steps that ended while calls still ran.
    orphans: Mutex<BoxedStates>,
    /// The shared parts of all states, to cancel the steps that run.
    steps: Mutex<Vec<Weak<StepShared>>>,
}

/// States change hands as a whole, and are large.
#[allow(clippy::vec_box, reason = "a state moves as a pointer, not as its many fields")]
type BoxedStates = Vec<Box<StepState>>;

/// Most states that are kept for the next steps.
const KEPT_STATES: usize = 16;

/// A step that is asked for.
pub(crate) struct StepCall<'s> {
    /// Its number, which is not 0.
    pub id: u64,
    /// What meets the values that come from elsewhere; `None` is a rendezvous of the step's own.
    pub rendezvous: Option<&'s Arc<dyn Rendezvous>>,
    /// What its caller asked for, where there is something.
    pub asked: Option<Asked<'s>>,
}

/// What the caller of a step asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'s> {
    /// Its token and trace.
    pub options: &'s RunOptions,
    /// Its token, and the deadline since the caller asked.
    pub patience: &'s Patience,
}

impl Registered {
    pub fn new(
        plans: Vec<Arc<Plan>>,
        wiring: StepWiring,
        report: Vec<NodeReport>,
        counters: Vec<(String, Arc<AtomicU64>)>,
        ledger: &Arc<Ledger>,
    ) -> Registered {
        Registered {
            account: (Arc::clone(ledger), ledger.open(&plans)),
            plans,
            wiring,
            report: Arc::new(report),
            counters,
            spare: AtomicCell::new(None),
            states: Mutex::ranked(rank::STEP, Vec::with_capacity(KEPT_STATES)),
            orphans: Mutex::ranked(rank::STEP, Vec::new()),
            steps: Mutex::ranked(rank::STEP, Vec::new()),
        }
    }

    /// Runs one step on this thread: `feeds` in the order of registration, whose types and shapes fit; `fetched` is
    /// empty, and filled. Where `enter` gives nothing, the step is refused before it begins.
    // Inlined: the call with its arguments takes 2 % of the instructions of a step of one node.
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
        let deadline = call.asked.and_then(|asked| asked.patience.left());
        let trace = call.asked.and_then(|asked| asked.options.trace.clone());
        state.arm(call.id, deadline, trace);
        if let Some(rendezvous) = call.rendezvous {
            state.meet_at(Arc::clone(rendezvous));
        }
        // From here on the step can be cancelled.
        let Some(_entered) = enter() else { return Err(RuntimeError::Closed) };
        let token = call.asked.and_then(|asked| asked.options.cancel.as_ref());
        if let Some(token) = token {
            token.attach(state.shared());
        }
        state.feed(&self.wiring, feeds);
        let mut result = state.drive();
        if let Some(token) = token {
            token.detach(state.shared());
        }
        if result.is_ok() && call.asked.is_some_and(|asked| asked.patience.is_late()) {
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

    /// A state for one step.
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
        let state = StepState::new(&self.plans, pool, resources)
            .map_err(|error| StepError::step(error.code, error.message.as_str()))?;
        let mut steps = self.steps.lock();
        steps.retain(|step| step.strong_count() > 0);
        steps.push(Arc::downgrade(state.shared()));
        Ok(state)
    }

    /// Cancels the steps that run.
    pub fn cancel_running(&self) {
        let steps: Vec<_> = self.steps.lock().iter().filter_map(Weak::upgrade).collect();
        for step in steps {
            step.cancel_running();
        }
    }

    /// Takes the state of a step that failed; its error.
    #[cold]
    fn give_up(&self, state: Box<StepState>, failed: Failed) -> RuntimeError {
        if failed.abandoned {
            self.orphans.lock().push(state);
        }
        failed.error.into()
    }

    /// Keeps a state for the next step.
    fn keep(&self, state: Box<StepState>) {
        let Some(state) = self.spare.swap(Some(state)) else { return };
        let mut states = self.states.lock();
        if states.len() < KEPT_STATES {
            states.push(state);
        }
    }

    /// Drops the states of abandoned steps whose calls are done; the number that still run.
    fn collect_orphans(&self) -> usize {
        // Outside the lock: looking at a state takes its own, and dropping one may take any.
        let mut orphans = std::mem::take(&mut *self.orphans.lock());
        orphans.retain_mut(|state| !state.is_quiet());
        let mut kept = self.orphans.lock();
        kept.append(&mut orphans);
        kept.len()
    }

    /// Calls of each node so far, where they are counted.
    pub fn calls(&self) -> Vec<(String, u64)> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.counters.iter().map(|(name, counter)| (name.clone(), read(counter))).collect()
    }
}

impl Drop for Registered {
    /// Calls of abandoned steps may still run, and their kernels may complete them at any time: the states
    /// stay until they have, on a thread that waits for it.
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
                "no thread for steps whose calls still run: their memory is not given back"
            );
        }
    }
}

/// Abandoned states; dropped only where their calls are done.
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
