//! One step: its state, and the driver that runs it on the caller's thread.

use super::{
    callee::{Callees, Progress},
    part::Part,
    shared::{Ready, StepShared, Wait},
    streams::StepStreams,
};
use crate::{
    error::StepError,
    plan::Plan,
    rendezvous::{Rendezvous, StepRendezvous},
};
use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tenon_abi::{NO_DEADLINE, Slot};
use tenon_framework::{Code, KernelError, Tensor};
use tenon_host::{
    call::{FunctionTable, StepEnv, TraceSink, monotonic_ns},
    pool::ThreadPool,
    resources::Resources,
};

/// The time that a cancelled step waits for running calls before it abandons them.
const GRACE: Duration = Duration::from_millis(200);

/// The places where feeds enter and fetches leave the partitions.
#[derive(Debug, Default, Clone)]
pub(crate) struct StepWiring {
    /// The partition and output of each feed; a feed may enter several partitions.
    pub feeds: Vec<Vec<(u32, u32)>>,
    /// The partition and output of each fetch.
    pub fetches: Vec<(u32, u32)>,
}

/// The state of a step: created once, and used by one step after another.
pub(crate) struct StepState {
    partitions: Vec<Part>,
    rendezvous: Arc<StepRendezvous>,
    /// Whether the running step uses a rendezvous from outside.
    has_external_rendezvous: bool,
    /// Whether the running step is a call within another one.
    is_call: bool,
    shared: Arc<StepShared>,
    env: Box<StepEnv>,
    ready: Vec<Vec<u32>>,
    inbox: Vec<Ready>,
    streams: Vec<(Arc<Plan>, Arc<StepStreams>)>,
}

/// The error of a failed step.
#[derive(Debug)]
#[must_use = "the state of an abandoned step may not be used again"]
pub(crate) struct Failed {
    pub error: StepError,
    /// Whether calls of the step still run; its state must then stay until they are done.
    pub abandoned: bool,
}

impl From<StepError> for Failed {
    /// A failed step without running calls.
    fn from(error: StepError) -> Failed {
        Failed { error, abandoned: false }
    }
}

pub(crate) fn deadline_error() -> StepError {
    StepError::step(Code::DEADLINE_EXCEEDED, "the deadline passed before the step was done")
}

pub(crate) fn cancelled_error() -> StepError {
    StepError::step(Code::CANCELLED, "the step was cancelled")
}

/// The time after this duration, in the clock of kernels.
pub(crate) fn deadline_ns(time: Option<Duration>) -> u64 {
    time.map_or(NO_DEADLINE, |limit| {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        monotonic_ns().saturating_add(limit).max(1)
    })
}

impl StepState {
    /// Creates the state for steps over these plans. It is boxed because its parts point at each
    /// other.
    pub fn new(
        plans: &[Arc<Plan>],
        pool: Arc<ThreadPool>,
        resources: Arc<Resources>,
        callees: Option<Weak<dyn Callees>>,
    ) -> Result<Box<StepState>, KernelError> {
        let mut env = Box::new(StepEnv::new(pool, resources));
        env.functions = callees.clone().map(|callees| -> Weak<dyn FunctionTable> { callees });
        let shared = Arc::new(StepShared::new(Arc::clone(&env.cancellation), callees));
        let mut state = Box::new(StepState {
            partitions: Vec::with_capacity(plans.len()),
            rendezvous: Arc::default(),
            has_external_rendezvous: false,
            is_call: false,
            shared,
            env,
            ready: plans.iter().map(|plan| Vec::with_capacity(plan.nodes.len())).collect(),
            inbox: Vec::new(),
            streams: Vec::new(),
        });
        for (index, plan) in plans.iter().enumerate() {
            let streams = StepStreams::new(plan)?;
            state.streams.extend(streams.iter().map(|made| (Arc::clone(plan), Arc::clone(made))));
            let env: *const StepEnv = &*state.env;
            let shared = Arc::clone(&state.shared);
            let rendezvous: Arc<dyn Rendezvous> = state.rendezvous.clone();
            let plan = Arc::clone(plan);
            let part = Part::new(plan, index as u32, env, shared, rendezvous, streams);
            state.partitions.push(part);
        }
        for partition in &mut state.partitions {
            partition.settle();
        }
        Ok(state)
    }

    /// The shared part of the step, to cancel it from another thread.
    pub fn shared(&self) -> &Arc<StepShared> {
        &self.shared
    }

    /// Prepares the next step; its number must not be 0.
    #[inline(always)]
    pub fn arm(
        &mut self,
        step: u64,
        deadline: Option<Duration>,
        trace: Option<Arc<dyn TraceSink>>,
    ) {
        self.set(step, deadline_ns(deadline), trace);
    }

    /// Prepares a call within a step.
    pub fn arm_call(&mut self, step: &StepEnv) {
        self.set(step.step.step_id, step.step.deadline_ns, step.trace.clone());
        self.env.depth = step.depth + 1;
        self.is_call = true;
    }

    /// Whether no part of the step runs elsewhere, so that what it made for itself goes with it.
    fn is_whole(&self) -> bool {
        !self.has_external_rendezvous && !self.is_call
    }

    #[inline(always)]
    fn set(&mut self, step: u64, deadline_ns: u64, trace: Option<Arc<dyn TraceSink>>) {
        self.env.step.step_id = step;
        self.shared.begin(step);
        self.env.step.deadline_ns = deadline_ns;
        let tracing = u32::from(trace.is_some());
        if tracing != 0 || self.env.trace.is_some() {
            for partition in &mut self.partitions {
                partition.set_tracing(tracing);
            }
        }
        self.env.trace = trace;
    }

    /// Makes the step exchange values with other workers through this rendezvous; its owner resets
    /// it.
    pub fn use_rendezvous(&mut self, rendezvous: Arc<dyn Rendezvous>) {
        self.rendezvous.give(rendezvous);
        self.has_external_rendezvous = true;
    }

    /// Stores the feeds.
    #[inline(always)]
    pub fn feed(&mut self, wiring: &StepWiring, feeds: &[Tensor]) {
        for (at, tensor) in feeds.iter().enumerate().take(wiring.feeds.len()) {
            debug_assert!(tensor.is_on_host(), "memory that the host does not address");
            self.feed_slot(wiring, at, &tensor.slot());
        }
    }

    /// Stores the feed at this position, which a slot shows; returns false if the slot shows none.
    #[inline(always)]
    pub fn feed_slot(&mut self, wiring: &StepWiring, at: usize, fed: &Slot) -> bool {
        wiring.feeds[at].iter().all(|&(partition, output)| {
            // SAFETY: the step has not started, so no node runs; the wiring has outputs of the plans.
            unsafe { self.partitions[partition as usize].feed(output, fed) }
        })
    }

    /// Collects the fetches.
    pub fn fetch(
        &mut self,
        wiring: &StepWiring,
        fetched: &mut Vec<Tensor>,
    ) -> Result<(), StepError> {
        self.fetch_each(wiring, |_, tensor| {
            fetched.push(tensor);
            Ok(())
        })
    }

    /// Hands the fetches over, each with its position.
    pub fn fetch_each<E: From<StepError>>(
        &mut self,
        wiring: &StepWiring,
        mut take: impl FnMut(u32, Tensor) -> Result<(), E>,
    ) -> Result<(), E> {
        for (at, &(partition, output)) in (0..).zip(&wiring.fetches) {
            // SAFETY: the step is done, so no node runs; the wiring has outputs of the plans.
            let tensor = unsafe { self.partitions[partition as usize].fetch(output) };
            let tensor =
                tensor.map_err(|error| StepError::step(error.code, error.message.as_str()))?;
            let tensor = tensor.ok_or_else(|| {
                StepError::step(
                    Code::INVALID_ARGUMENT,
                    "a fetched tensor has no value: it is on a branch that was not taken",
                )
            })?;
            take(at, tensor)?;
        }
        Ok(())
    }

    /// Makes the nodes without predecessors ready.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.streams.iter().for_each(|(_, streams)| streams.begin());
        for (partition, ready) in self.partitions.iter().zip(&mut self.ready) {
            partition.begin(ready);
        }
    }

    /// Runs what is ready, until nothing is left or only outstanding work is.
    pub fn advance(&mut self) -> Progress {
        loop {
            for (partition, ready) in self.partitions.iter().zip(&mut self.ready) {
                partition.drain(ready);
            }
            if self.is_due() {
                continue;
            }
            if self.shared.is_untouched() {
                return Progress::Done;
            }
            if self.shared.is_stopped() {
                self.abort();
            }
            match self.shared.wait(&mut self.inbox, Some(Instant::now())) {
                Wait::Idle if self.is_due() => {}
                Wait::Idle => return Progress::Done,
                Wait::Ready => self.sort_inbox(),
                Wait::TimedOut => return Progress::Pending,
            }
        }
    }

    /// Runs the step to its end. After success, the state can be used again.
    pub fn drive(&mut self) -> Result<(), Failed> {
        self.begin();
        let until = self.deadline();
        let mut overtime: Option<Instant> = None;
        loop {
            for (partition, ready) in self.partitions.iter().zip(&mut self.ready) {
                partition.drain(ready);
            }
            if self.is_due() {
                continue;
            }
            if self.shared.is_untouched() {
                break;
            }
            if self.shared.is_stopped() {
                self.abort();
                overtime.get_or_insert_with(|| Instant::now() + GRACE);
            }
            match self.shared.wait(&mut self.inbox, overtime.or(until)) {
                Wait::Idle if self.is_due() => {}
                Wait::Idle => break,
                Wait::Ready => self.sort_inbox(),
                Wait::TimedOut if overtime.is_some() => return Err(self.abandon()),
                Wait::TimedOut => self.shared.fail(deadline_error()),
            }
        }
        self.conclude()
    }

    /// Whether a partition that held nodes back can continue.
    fn is_due(&self) -> bool {
        !self.shared.is_stopped() && self.partitions.iter().any(Part::is_due)
    }

    /// Abandons a step with running calls. The error in the shared part states that their results are
    /// not used any more.
    #[cold]
    fn abandon(&self) -> Failed {
        let error = self.first_error();
        self.shared.fail(error.clone());
        Failed { error, abandoned: true }
    }

    fn deadline(&self) -> Option<Instant> {
        let deadline = self.env.step.deadline_ns;
        (deadline != 0)
            .then(|| Instant::now() + Duration::from_nanos(deadline.saturating_sub(monotonic_ns())))
    }

    fn sort_inbox(&mut self) {
        for ready in self.inbox.drain(..) {
            self.ready[ready.partition as usize].push(ready.node);
        }
    }

    #[cold]
    fn first_error(&self) -> StepError {
        let late = || {
            let deadline = self.env.step.deadline_ns;
            deadline != 0 && monotonic_ns() >= deadline
        };
        let without_error = || if late() { deadline_error() } else { cancelled_error() };
        self.shared.error().cloned().unwrap_or_else(without_error)
    }

    fn abort(&self) {
        self.rendezvous.abort(self.first_error());
    }

    /// Whether a step of which nothing is left has succeeded.
    pub fn conclude(&mut self) -> Result<(), Failed> {
        if self.shared.is_stopped() {
            return Err(self.first_error().into());
        }
        if let Some(error) = self.partitions.iter().find_map(Part::stalled) {
            return Err(error.into());
        }
        Ok(self.synchronise()?)
    }

    /// Waits for the devices' streams; only then may buffers be released.
    fn synchronise(&self) -> Result<(), StepError> {
        for (plan, streams) in &self.streams {
            let failed = |error| StepError::device(plan.device.name(), &error);
            streams.synchronise().map_err(failed)?;
        }
        Ok(())
    }

    /// Ends a successful step, and prepares the state for the next one.
    #[inline(always)]
    pub fn disarm(&mut self) {
        for partition in &self.partitions {
            partition.end();
        }
        if !self.streams.is_empty() {
            self.env.release_kept(None);
        }
        self.env.end_step(self.is_whole());
        if !self.shared.is_untouched() || self.partitions.len() > 1 || self.has_external_rendezvous
        {
            self.rendezvous.reset();
            self.has_external_rendezvous = false;
        }
        self.shared.reset();
    }

    /// Whether no calls of an abandoned step run any more.
    pub fn is_quiet(&mut self) -> bool {
        loop {
            match self.shared.wait(&mut self.inbox, Some(Instant::now())) {
                Wait::Ready => self.inbox.clear(),
                Wait::Idle => return true,
                Wait::TimedOut => return false,
            }
        }
    }

    /// Waits for the calls of an abandoned step; nodes that they make ready are dropped.
    pub fn wait_until_quiet(&mut self) {
        while self.shared.wait(&mut self.inbox, None) != Wait::Idle {
            self.inbox.clear();
        }
    }
}

impl Drop for StepState {
    fn drop(&mut self) {
        // An error was already reported for the step; only the end of the work matters here.
        // Buffers may be released once no enqueued work on any stream uses them; the streams are
        // dropped after that.
        self.partitions.iter().for_each(Part::abandon);
        for (_, streams) in &self.streams {
            let _ = streams.synchronise();
        }
        self.partitions.clear();
        self.env.end_step(self.is_whole());
    }
}
