//! Calls that wait for their turn at a shared state, without a thread.
//!
//! A call is an *attempt* in one of two lists, [`PUT`] and [`TAKE`]. An attempt runs when it may: in a
//! list of [`Order::First`] only the first one runs, in one of [`Order::Any`] each. It is stuck, or it
//! moves on and has something left to do, or it is done. Whatever one attempt changes lets others run
//! again, until all are stuck.
//!
//! # States of an attempt
//! *waiting* (in its list) → *ended* (taken out of the list under the lock): by its own run, by the
//! cancellation of its step, or by [`Attempts::fail_all`]. Whoever takes it out of the list completes
//! its call, after the lock is released, so that a call is completed once.
//!
//! # Invariants
//! - An attempt that ends without success has given back what it took ([`Attempt::abandon`]).
//! - A step that is cancelled before its attempt is in the list is seen by the flag, a later one by
//!   the callback: the flag is set before callbacks run, and the callback takes the lock.
//! - No call is completed, and no callback withdrawn, under the lock.

#[cfg(loom)]
use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_sdk::prelude::*;

/// The list of the attempts that add something.
pub const PUT: usize = 0;
/// The list of the attempts that take something.
pub const TAKE: usize = 1;

/// How far a run of an attempt came.
pub enum Progress {
    /// Nothing changed.
    Stuck,
    /// Something changed, and there is more to do.
    Moved,
    /// The attempt is at its end.
    Done(Result<(), KernelError>),
}

/// What a call does with the state `S` when its turn comes.
pub trait Attempt<S, C = AsyncCall>: Send + 'static {
    /// Goes on as far as possible, under the lock.
    fn run(&mut self, state: &mut S) -> Progress;

    /// Writes the outputs of an attempt that is done, without the lock.
    fn finish(&mut self, _call: &mut C) -> Result<(), KernelError> {
        Ok(())
    }

    /// Whether the attempt, if it is the first of its list, surely ends when it runs now.
    fn ends_now(&self, _state: &S) -> bool {
        false
    }

    /// Gives back what was taken, under the lock: the attempt ends without success.
    fn abandon(&mut self, _state: &mut S) {}
}

/// A call that is completed later.
pub trait Caller: Send + 'static {
    /// Calls back once, when the step is cancelled or at once.
    fn on_cancel(&mut self, callback: impl Fn() + Send + Sync + 'static);
    /// Why the step no longer needs the call: `CANCELLED` or `DEADLINE_EXCEEDED`.
    fn over(&mut self) -> Option<Code>;
    /// Completes the call.
    fn complete(self, result: Result<(), KernelError>);
}

impl Caller for AsyncCall {
    fn on_cancel(&mut self, callback: impl Fn() + Send + Sync + 'static) {
        AsyncCall::on_cancel(self, callback);
    }

    fn over(&mut self) -> Option<Code> {
        self.context().watch().check().err().map(|error| error.code)
    }

    fn complete(self, result: Result<(), KernelError>) {
        self.finish(result);
    }
}

/// Which attempts of a list may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The first one.
    First,
    /// Each, the first ones first.
    Any,
}

struct Waiting<S, C> {
    number: u64,
    call: C,
    attempt: Box<dyn Attempt<S, C>>,
}

/// An attempt that was taken out of its list.
struct Ended<S, C> {
    waiting: Waiting<S, C>,
    result: Result<(), KernelError>,
}

struct Core<S, C> {
    state: S,
    lists: [(Order, VecDeque<Waiting<S, C>>); 2],
}

/// A state, and the calls that wait for it.
pub struct Attempts<S, C = AsyncCall> {
    label: String,
    core: Mutex<Core<S, C>>,
}

impl<S: Send + 'static, C: Caller> Attempts<S, C> {
    /// A state that no call waits for. `label` names it in messages; `orders` are those of [`PUT`] and
    /// [`TAKE`].
    pub fn new(label: String, state: S, orders: [Order; 2]) -> Attempts<S, C> {
        let lists = orders.map(|order| (order, VecDeque::new()));
        Attempts { label, core: Mutex::new(Core { state, lists }) }
    }

    /// Its name in messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    fn lock(&self) -> MutexGuard<'_, Core<S, C>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an attempt that does not have to wait, and completes its call; starts any other one.
    pub fn run_or_start(
        self: &Arc<Self>,
        list: usize,
        mut call: C,
        mut attempt: impl Attempt<S, C>,
    ) {
        let mut core = self.lock();
        if !core.lists[list].1.is_empty() || !attempt.ends_now(&core.state) {
            drop(core);
            return self.start(list, call, Box::new(attempt));
        }
        if let Some(code) = call.over() {
            drop(core);
            return call.complete(Err(self.stopped(code)));
        }
        let mut result = match attempt.run(&mut core.state) {
            Progress::Done(result) => result,
            Progress::Stuck | Progress::Moved => {
                Err(KernelError::internal("an attempt that was to end did not"))
            }
        };
        if result.is_err() {
            attempt.abandon(&mut core.state);
        }
        let ended = core.flush();
        drop(core);
        self.conclude(ended);
        if result.is_ok() {
            result = attempt.finish(&mut call);
            if result.is_err() {
                self.update(|state| attempt.abandon(state));
            }
        }
        call.complete(result);
    }

    /// Starts an attempt of a call.
    pub fn start(self: &Arc<Self>, list: usize, mut call: C, attempt: Box<dyn Attempt<S, C>>) {
        // The numbers tell attempts apart; they do not synchronise, so the standard type suffices.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // The call owns the callback, and the state the call: the circle ends with the attempt.
        let attempts = Arc::clone(self);
        call.on_cancel(move || attempts.cancel(list, number));
        let mut core = self.lock();
        if let Some(code) = call.over() {
            drop(core);
            return call.complete(Err(self.stopped(code)));
        }
        core.lists[list].1.push_back(Waiting { number, call, attempt });
        let ended = core.flush();
        drop(core);
        self.conclude(ended);
    }

    /// Looks at the state.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.lock().state)
    }

    /// Changes the state, and lets the attempts run.
    pub fn update<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let mut core = self.lock();
        let result = change(&mut core.state);
        let ended = core.flush();
        drop(core);
        self.conclude(ended);
        result
    }

    /// Changes the state, and ends all attempts of a list with an error.
    pub fn fail_all(
        &self,
        list: usize,
        change: impl FnOnce(&mut S),
        error: impl Fn() -> KernelError,
    ) {
        let mut core = self.lock();
        change(&mut core.state);
        let mut ended = Vec::new();
        for mut waiting in std::mem::take(&mut core.lists[list].1) {
            waiting.attempt.abandon(&mut core.state);
            ended.push(Ended { waiting, result: Err(error()) });
        }
        ended.extend(core.flush());
        drop(core);
        self.conclude(ended);
    }

    fn cancel(&self, list: usize, number: u64) {
        let mut core = self.lock();
        let waiting = &mut core.lists[list].1;
        let found = waiting.iter().position(|waiting| waiting.number == number);
        let Some(mut waiting) = found.and_then(|at| waiting.remove(at)) else { return };
        waiting.attempt.abandon(&mut core.state);
        let code = waiting.call.over().unwrap_or(Code::CANCELLED);
        let mut ended = vec![Ended { waiting, result: Err(self.stopped(code)) }];
        ended.extend(core.flush());
        drop(core);
        self.conclude(ended);
    }

    fn stopped(&self, code: Code) -> KernelError {
        let why = match code {
            Code::DEADLINE_EXCEEDED => "the step's deadline passed",
            _ => "the step was cancelled",
        };
        KernelError::new(code, format!("{why} while it waited for {}", self.label))
    }

    /// Completes calls, without the lock.
    fn conclude(&self, ended: Vec<Ended<S, C>>) {
        if ended.is_empty() {
            return;
        }
        let mut ended = VecDeque::from(ended);
        while let Some(Ended { mut waiting, mut result }) = ended.pop_front() {
            if result.is_ok() {
                result = waiting.attempt.finish(&mut waiting.call);
                if result.is_err() {
                    let mut core = self.lock();
                    waiting.attempt.abandon(&mut core.state);
                    ended.extend(core.flush());
                }
            }
            waiting.call.complete(result);
        }
    }
}

impl<S: 'static, C: 'static> Core<S, C> {
    /// Lets attempts run until all are stuck; those that ended.
    fn flush(&mut self) -> Vec<Ended<S, C>> {
        let mut ended = Vec::new();
        loop {
            let mut changed = false;
            for (order, list) in &mut self.lists {
                changed |= advance(&mut self.state, *order, list, &mut ended);
            }
            if !changed {
                return ended;
            }
        }
    }
}

/// Lets the attempts of a list run once; whether something changed.
fn advance<S: 'static, C: 'static>(
    state: &mut S,
    order: Order,
    list: &mut VecDeque<Waiting<S, C>>,
    ended: &mut Vec<Ended<S, C>>,
) -> bool {
    let (mut changed, mut at) = (false, 0);
    while let Some(waiting) = list.get_mut(at) {
        let result = match waiting.attempt.run(state) {
            Progress::Done(result) => result,
            progress => {
                changed |= matches!(progress, Progress::Moved);
                match order {
                    Order::First => return changed,
                    Order::Any => at += 1,
                }
                continue;
            }
        };
        changed = true;
        let Some(mut waiting) = list.remove(at) else { return changed };
        if result.is_err() {
            waiting.attempt.abandon(state);
        }
        ended.push(Ended { waiting, result });
    }
    changed
}

/// What an asynchronous call starts.
pub struct Begun<S, A> {
    pub attempts: Arc<Attempts<S>>,
    pub list: usize,
    pub attempt: A,
}

/// A kernel whose calls are attempts.
pub trait Begins: Send + Sync + Sized + 'static {
    /// What its calls wait for.
    type State: Send + 'static;
    /// What a call does.
    type Attempt: Attempt<Self::State>;

    /// As [`Kernel::new`].
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError>;

    /// The attempt of a call. `None` for one that is done already.
    fn begin(&self, c: &ComputeContext<'_>) -> Answer<Self::State, Self::Attempt>;
}

/// What [`Begins::begin`] returns.
pub type Answer<S, A> = Result<Option<Begun<S, A>>, KernelError>;

/// The kernel of a [`Begins`].
pub struct Async<K>(K);

impl<K: Begins> Kernel for Async<K> {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        K::new(c).map(Async)
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Err(KernelError::internal("a call that waits is started, not computed"))
    }

    fn start(&self, mut call: AsyncCall) {
        let begun = self.0.begin(&call.context());
        match begun {
            Ok(Some(Begun { attempts, list, attempt })) => {
                attempts.run_or_start(list, call, attempt);
            }
            Ok(None) => call.finish(Ok(())),
            Err(error) => call.finish(Err(error)),
        }
    }
}

#[cfg(all(test, loom))]
#[path = "attempts_model.rs"]
mod model;
#[cfg(all(test, not(loom)))]
#[path = "attempts_tests.rs"]
mod tests;
