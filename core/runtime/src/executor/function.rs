//! Functions: steps within a step.
//!
//! A call takes a state of its function from a pool, and drives it on the thread that made the call
//! ready. When everything that is left of it is outstanding (asynchronous kernels, transfers), it is
//! *parked*: no thread waits, and the completion that lets it go on puts it on the pool.
//!
//! A call has the number, deadline, trace and resources of its step; cancelling the step cancels it.
//!
//! # States
//! *Driven*, by one thread → *parked*, in the shared part of its own state → driven again, or
//! *finished*: its results are handed over, and its state is back in the pool. A failed state is
//! dropped; nothing of it is outstanding then.

use super::{
    callee::{CallError, Callees, Done, OpenCall, Progress, Take},
    shared::{Parked, StepShared},
    step::{StepState, StepWiring},
};
use crate::{error::StepError, feeds::FeedSpecs, plan::Plan};
use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::c_void,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_abi::{CancelCallback, Code, Slot};
use tenon_framework::{
    KernelError, Tensor,
    sync::{Mutex, rank},
};
use tenon_graph::FunctionKey;
use tenon_host::{
    call::{Cancellation, StepEnv},
    pool::ThreadPool,
    resources::Resources,
};

/// The number of calls that may be open within each other. A function that calls itself without end
/// fails there.
const MAX_DEPTH: u32 = 4096;
/// The number of calls that are driven within each other on one thread. A deeper one goes to the
/// pool, so that the stack of a thread bounds no recursion.
const MAX_NESTED: u32 = 16;
/// The maximum number of states of a function that are kept for later calls.
const MAX_KEPT_STATES: usize = 64;

/// A function that nodes of a step's graph call.
pub(crate) struct Function {
    name: String,
    args: FeedSpecs,
    plans: Vec<Arc<Plan>>,
    wiring: StepWiring,
    /// The number of calls.
    calls: Arc<AtomicU64>,
    #[allow(clippy::vec_box, reason = "a state moves as a pointer, not as its many fields")]
    spare: Mutex<Vec<Box<StepState>>>,
}

impl Function {
    pub fn new(
        name: String,
        args: FeedSpecs,
        plans: Vec<Arc<Plan>>,
        wiring: StepWiring,
    ) -> Function {
        let spare = Mutex::ranked(rank::STEP, Vec::new());
        Function { name, args, plans, wiring, calls: Arc::default(), spare }
    }
}

/// The functions that nodes of a step's graph call, by number.
pub(crate) struct Functions {
    table: Vec<Function>,
    numbers: BTreeMap<FunctionKey, u32>,
    /// The number of the next step of the process.
    next_step: Arc<AtomicU64>,
    pool: Arc<ThreadPool>,
    resources: Arc<Resources>,
    own: Weak<Functions>,
}

impl Functions {
    pub fn new(
        table: Vec<Function>,
        numbers: BTreeMap<FunctionKey, u32>,
        next_step: Arc<AtomicU64>,
        pool: Arc<ThreadPool>,
        resources: Arc<Resources>,
    ) -> Arc<Functions> {
        let made = |own: &Weak<Functions>| Functions {
            table,
            numbers,
            next_step,
            pool,
            resources,
            own: own.clone(),
        };
        Arc::new_cyclic(made)
    }

    /// The number of a function.
    pub fn number_of(&self, key: &FunctionKey) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// A reference that keeps the functions.
    pub fn upgrade(&self) -> Option<Arc<Functions>> {
        self.own.upgrade()
    }

    /// The threads for calls.
    pub fn pool(&self) -> &Arc<ThreadPool> {
        &self.pool
    }

    /// The environment of a call that is a step of its own, which this cancellation ends. It is within
    /// as many calls as the step in which the function was found, so that a recursion over such
    /// steps ends too.
    pub fn step_of_its_own(&self, cancellation: &Arc<Cancellation>, depth: u32) -> StepEnv {
        let (pool, resources) = (Arc::clone(&self.pool), Arc::clone(&self.resources));
        let mut env = StepEnv::cancelled_by(Arc::clone(cancellation), pool, resources);
        env.depth = depth;
        env.step.step_id = self.next_step.fetch_add(1, Ordering::Relaxed);
        env
    }

    /// Checks the arguments of a call that a kernel makes.
    pub fn accepts(&self, function: u32, args: &[Tensor]) -> Result<(), KernelError> {
        let called = &self.table[function as usize];
        called.args.check(args).map_err(|error| {
            let message = format!("function '{}': {error}", called.name);
            KernelError::new(error.code(), message)
        })
    }

    /// The plans of all functions, each with the number of calls so far.
    pub fn counted(&self) -> Vec<(Arc<Plan>, Arc<AtomicU64>)> {
        let plans = |function: &Function| -> Vec<_> {
            let plans = function.plans.iter();
            plans.map(|plan| (Arc::clone(plan), Arc::clone(&function.calls))).collect()
        };
        self.table.iter().flat_map(plans).collect()
    }

    /// A state for a call.
    fn state(&self, function: u32) -> Result<Box<StepState>, KernelError> {
        let found = &self.table[function as usize];
        if let Some(state) = found.spare.lock().pop() {
            return Ok(state);
        }
        let (pool, resources) = (Arc::clone(&self.pool), Arc::clone(&self.resources));
        let own: Weak<dyn Callees> = self.own.clone();
        StepState::new(&found.plans, pool, resources, Some(own))
    }

    /// Starts a call within the step of `caller`, whose arguments `feed` stores.
    fn open(
        self: Arc<Self>,
        function: u32,
        caller: &StepEnv,
        feed: impl FnOnce(&mut StepState, &StepWiring) -> bool,
    ) -> Result<Run, KernelError> {
        let called = &self.table[function as usize];
        if caller.depth >= MAX_DEPTH {
            return Err(KernelError::new(
                Code::RESOURCE_EXHAUSTED,
                format!(
                    "function '{}': expected at most {MAX_DEPTH} calls within each other: give its recursion an end",
                    called.name
                ),
            ));
        }
        let mut state = self.state(function)?;
        state.arm_call(caller);
        let link = CancelLink::new(&caller.cancellation, state.shared());
        if !feed(&mut state, &called.wiring) {
            return Err(KernelError::internal("an argument has no buffer"));
        }
        state.begin();
        Ok(Run { state, functions: self, function, link, done: None })
    }

    /// Keeps a state for a later call.
    fn keep(&self, function: u32, state: Box<StepState>) {
        let mut spare = self.table[function as usize].spare.lock();
        if spare.len() < MAX_KEPT_STATES {
            spare.push(state);
        }
    }
}

impl Callees for Functions {
    fn begin(
        &self,
        function: u32,
        args: &[Tensor],
        caller: &StepEnv,
    ) -> Result<Box<dyn OpenCall>, KernelError> {
        let closed = || KernelError::internal("a function is called after its session was closed");
        let functions = self.own.upgrade().ok_or_else(closed)?;
        self.count(function);
        let feed = |state: &mut StepState, wiring: &StepWiring| {
            state.feed(wiring, args);
            true
        };
        Ok(Box::new(functions.open(function, caller, feed)?))
    }

    fn call(
        self: Arc<Self>,
        function: u32,
        args: &[&Slot],
        caller: &StepEnv,
        take: Take<'_>,
    ) -> Result<Option<Box<dyn OpenCall>>, CallError> {
        let feed = |state: &mut StepState, wiring: &StepWiring| {
            let mut args = args.iter().enumerate().take(wiring.feeds.len());
            args.all(|(at, arg)| state.feed_slot(wiring, at, arg))
        };
        let mut run = self.open(function, caller, feed).map_err(CallError::Node)?;
        if run.advance() == Progress::Pending {
            return Ok(Some(Box::new(run)));
        }
        run.end(|at, tensor| take(at, tensor).map_err(CallError::Node)).map(|()| None)
    }

    fn count(&self, function: u32) -> u64 {
        self.table[function as usize].calls.fetch_add(1, Ordering::Relaxed)
    }
}

/// The link from a step's cancellation to a call within the step.
struct CancelLink {
    step: Arc<Cancellation>,
    /// The shared part of the call's state, which the callback uses.
    shared: Arc<StepShared>,
    token: u64,
}

unsafe extern "C" fn cancel_call(shared: *mut c_void) {
    // SAFETY: `CancelLink` keeps the shared part until the callback is withdrawn.
    unsafe { &*shared.cast::<StepShared>() }.cancel_running();
}

impl CancelLink {
    fn new(step: &Arc<Cancellation>, shared: &Arc<StepShared>) -> CancelLink {
        let (step, shared) = (Arc::clone(step), Arc::clone(shared));
        let data = Arc::as_ptr(&shared).cast_mut().cast();
        let token = step.register(CancelCallback { run: Some(cancel_call) }, data);
        CancelLink { step, shared, token }
    }
}

impl Drop for CancelLink {
    /// The callback neither waits nor runs after this, so that the shared part may go.
    fn drop(&mut self) {
        self.step.withdraw(self.token);
        debug_assert!(Arc::strong_count(&self.shared) > 0);
    }
}

thread_local! {
    /// The number of calls that this thread drives within each other.
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// A call that is driven or parked.
struct Run {
    state: Box<StepState>,
    functions: Arc<Functions>,
    function: u32,
    link: CancelLink,
    done: Option<Done>,
}

impl Run {
    /// Drives the call until it is finished or parked.
    fn go(self: Box<Self>) {
        // The call, and its state with it, may be gone before this thread has parked it.
        let shared = Arc::clone(self.state.shared());
        let Some(mut run) = shared.drive_or_park(self, Run::advance) else { return };
        let done = run.done.take();
        let result = run.finish();
        if let Some(done) = done {
            done(result);
        }
    }
}

impl Run {
    /// Hands the results of a finished call over, and keeps its state.
    fn end<E: From<StepError>>(
        self,
        take: impl FnMut(u32, Tensor) -> Result<(), E>,
    ) -> Result<(), E> {
        let Run { mut state, functions, function, link, .. } = self;
        drop(link);
        state.conclude().map_err(|failed| failed.error)?;
        state.fetch_each(&functions.table[function as usize].wiring, take)?;
        state.disarm();
        functions.keep(function, state);
        Ok(())
    }
}

impl OpenCall for Run {
    fn advance(&mut self) -> Progress {
        let nested = NESTED.get();
        if nested >= MAX_NESTED {
            return Progress::Pending;
        }
        NESTED.set(nested + 1);
        let progress = self.state.advance();
        NESTED.set(nested);
        progress
    }

    fn finish(self: Box<Self>) -> Result<Vec<Tensor>, StepError> {
        let count = self.functions.table[self.function as usize].wiring.fetches.len();
        let mut results = Vec::with_capacity(count);
        self.end(|_, tensor| {
            results.push(tensor);
            Ok::<(), StepError>(())
        })?;
        Ok(results)
    }

    fn wait(mut self: Box<Self>, done: Done) {
        self.done = Some(done);
        if NESTED.get() >= MAX_NESTED { self.resume() } else { self.go() }
    }
}

impl Parked for Run {
    fn resume(self: Box<Self>) {
        let pool = Arc::clone(&self.functions.pool);
        if pool.threads() > 1 {
            return pool.spawn(move || self.go());
        }
        // A pool without workers would run it here, on the thread that completed something.
        let slot = Arc::new(Mutex::ranked(rank::STEP, Some(self)));
        let take = |slot: &Mutex<Option<Box<Run>>>| slot.lock().take();
        let job = Arc::clone(&slot);
        let handed_over =
            pool.spawn_blocking(move || take(&job).into_iter().for_each(|run| run.go()));
        if handed_over.is_err() {
            // The system gives no thread, so the calls go on within each other.
            let nested = NESTED.replace(0);
            take(&slot).into_iter().for_each(|run| run.go());
            NESTED.set(nested);
        }
    }
}
