//! A compiled step: plans, where feeds enter and fetches leave, and the pool of states.

use super::options::NodeReport;
use crate::{
    error::RuntimeError,
    executor::{Ended, StepShared, StepState, StepWiring},
    monitor::{Account, Ledger},
    plan::Plan,
    rendezvous::LocalRendezvous,
};
use crossbeam::atomic::AtomicCell;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};
use tenon_framework::{
    DType, KernelError, PartialShape, Tensor,
    sync::{Mutex, rank},
};
use tenon_host::{pool::ThreadPool, resources::ResourceManager};

/// What a feed has to be.
#[derive(Debug, Clone)]
pub(crate) struct FeedSpec {
    pub name: String,
    pub dtype: DType,
    pub shape: PartialShape,
}

/// A compiled step.
pub(crate) struct Executable {
    pub plans: Vec<Arc<Plan>>,
    pub wiring: StepWiring,
    pub feeds: Vec<FeedSpec>,
    pub report: Arc<Vec<NodeReport>>,
    /// Calls of each node of the report, where they are counted.
    pub counters: Vec<(String, Arc<AtomicU64>)>,
    pub compile_ns: u64,
    /// What its kernels do, in the ledger until this is gone.
    account: (Arc<Ledger>, Arc<Account>),
    /// One state, taken and given back by a single atomic exchange; further ones are in `states`.
    spare: AtomicCell<Option<Box<StepState>>>,
    states: Mutex<BoxedStates>,
    /// States of steps that ended while calls still ran.
    pub(super) orphans: Mutex<BoxedStates>,
    /// The shared parts of all states, to cancel the steps that run.
    steps: Mutex<Vec<Weak<StepShared>>>,
}

/// States change hands as a whole, and are large.
#[allow(clippy::vec_box, reason = "a state moves as a pointer, not as its many fields")]
type BoxedStates = Vec<Box<StepState>>;

/// Most states that are kept for the next steps.
const KEPT_STATES: usize = 16;

impl Executable {
    pub fn new(
        plans: Vec<Arc<Plan>>,
        wiring: StepWiring,
        feeds: Vec<FeedSpec>,
        report: Vec<NodeReport>,
        counters: Vec<(String, Arc<AtomicU64>)>,
        compile_ns: u64,
        ledger: &Arc<Ledger>,
    ) -> Executable {
        Executable {
            account: (Arc::clone(ledger), ledger.open(&plans)),
            plans,
            wiring,
            feeds,
            report: Arc::new(report),
            counters,
            compile_ns,
            spare: AtomicCell::new(None),
            states: Mutex::ranked(rank::STEP, Vec::with_capacity(KEPT_STATES)),
            orphans: Mutex::ranked(rank::STEP, Vec::new()),
            steps: Mutex::ranked(rank::STEP, Vec::new()),
        }
    }

    /// A state for one step.
    pub fn take_state(
        &self,
        pool: &Arc<ThreadPool>,
        resources: &Arc<ResourceManager>,
    ) -> Result<Box<StepState>, KernelError> {
        if let Some(state) = self.spare.take() {
            return Ok(state);
        }
        if let Some(state) = self.states.lock().pop() {
            return Ok(state);
        }
        self.collect_orphans();
        let rendezvous = Arc::new(LocalRendezvous::default());
        let (pool, resources) = (Arc::clone(pool), Arc::clone(resources));
        let state = StepState::new(&self.plans, pool, resources, rendezvous)?;
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

    /// Takes the state of an ended step back; its error, if it has one.
    pub fn give_back(&self, mut state: Box<StepState>, ended: Ended) -> Result<(), RuntimeError> {
        match ended {
            Ended::Well => {
                self.account.1.steps.fetch_add(1, Ordering::Relaxed);
                state.disarm();
                self.keep(state);
                Ok(())
            }
            Ended::Failed(error) => Err(error.into()),
            Ended::LeftBehind(error) => {
                self.orphans.lock().push(state);
                Err(error.into())
            }
        }
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
    pub fn collect_orphans(&self) -> usize {
        // Outside the lock: looking at a state takes its own, and dropping one may take any.
        let mut orphans = std::mem::take(&mut *self.orphans.lock());
        orphans.retain_mut(|state| !state.is_quiet());
        let mut kept = self.orphans.lock();
        kept.append(&mut orphans);
        kept.len()
    }

    /// Checks the feeds.
    pub fn check_feeds(&self, feeds: &[Tensor]) -> Result<(), RuntimeError> {
        if feeds.len() != self.feeds.len() {
            let (expected, found) = (self.feeds.len(), feeds.len());
            return Err(RuntimeError::FeedCount { expected, found });
        }
        for (spec, tensor) in self.feeds.iter().zip(feeds) {
            if tensor.dtype() != spec.dtype
                || !spec.shape.accepts(tensor.shape())
                || tensor.dtype() == DType::BOOL
                || !tensor.is_on_host()
            {
                check_feed(spec, tensor)?;
            }
        }
        Ok(())
    }

    /// Calls of each node so far, where they are counted.
    pub fn calls(&self) -> Vec<(String, u64)> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.counters.iter().map(|(name, counter)| (name.clone(), read(counter))).collect()
    }
}

impl Drop for Executable {
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

#[cold]
fn check_feed(spec: &FeedSpec, tensor: &Tensor) -> Result<(), RuntimeError> {
    let name = || spec.name.clone();
    if tensor.dtype() != spec.dtype {
        let (expected, found) = (spec.dtype, tensor.dtype());
        return Err(RuntimeError::FeedType { name: name(), expected, found });
    }
    if !spec.shape.accepts(tensor.shape()) {
        let (expected, found) = (spec.shape.clone(), Box::new(*tensor.shape()));
        return Err(RuntimeError::FeedShape { name: name(), expected, found });
    }
    if !tensor.is_on_host() {
        let message = "it lies in a device's memory: expected host memory, copy it there first";
        return Err(RuntimeError::FeedValue { name: name(), message: message.to_owned() });
    }
    tensor
        .validate()
        .map_err(|error| RuntimeError::FeedValue { name: name(), message: error.to_string() })
}
