//! The work of the pool's threads: open loops and jobs.
//!
//! A **loop** is on the stack of the thread that called `parallel_for`. Its states:
//! 1. *open*: in the list. A worker that joins it claims its first block under the queue's lock and
//!    increments `active`, so that each counted worker has a block.
//! 2. *closing*: its caller found no block left and removed it from the list; no worker joins any
//!    more. The counted ones finish their blocks.
//! 3. *gone*: `active` is 0, the caller continues and the stack frame ends. The last worker does
//!    not access the loop after it has decremented `active`, which it does under the lock.
//!
//! A **job** is queued, then run once by one worker; workers run the jobs that are left when the
//! queue closes before they end.
//!
//! Synchronisation: `state` is protected by the lock; `next` is claimed by atomic increment;
//! `posted` changes with every new piece of work, so that a worker may poll for some without the
//! lock.

use super::{
    placement::{NOWHERE, current_core},
    stop::Stop,
};
use crate::fpu::{FpGuard, FpState};
use std::{
    any::Any,
    cell::Cell,
    collections::VecDeque,
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
};
use tenon_framework::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    rank,
};

/// The body of a loop: begin, end, number of the worker.
pub(super) type Body<'b> = &'b (dyn Fn(u64, u64, u32) + Sync);

/// A loop, shared between its caller and the workers that help.
pub(super) struct Loop<'b> {
    body: Body<'b>,
    total: u64,
    block: u64,
    blocks: u64,
    next: AtomicU64,
    /// Most helpers.
    limit: u32,
    /// Number of helpers so far; changes under the lock.
    entered: AtomicU32,
    /// Number of helpers with a block; changes under the lock, read without it.
    active: AtomicU32,
    state: FpState,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Checked before each block.
    stop: Option<&'b Stop<'b>>,
    /// Set when a block was skipped because of it.
    cut: AtomicBool,
}

thread_local! {
    /// Whether this thread runs a block: a loop inside it then stays on this thread.
    static IN_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs a block of a loop.
pub(super) fn in_block() -> bool {
    IN_BLOCK.with(Cell::get)
}

/// Marks the thread while it runs blocks.
struct BlockMark(bool);

impl BlockMark {
    fn set() -> BlockMark {
        BlockMark(IN_BLOCK.with(|mark| mark.replace(true)))
    }
}

impl Drop for BlockMark {
    fn drop(&mut self) {
        IN_BLOCK.with(|mark| mark.set(self.0));
    }
}

impl<'b> Loop<'b> {
    /// A loop over `total` units, at least 1, in blocks of `block` units, with at most `limit`
    /// helpers; no block begins once `stop` is due.
    pub fn new(
        body: Body<'b>,
        total: u64,
        block: u64,
        limit: u32,
        stop: Option<&'b Stop<'b>>,
    ) -> Loop<'b> {
        Loop {
            body,
            total,
            block,
            blocks: total.div_ceil(block),
            next: AtomicU64::new(0),
            limit,
            entered: AtomicU32::new(0),
            active: AtomicU32::new(0),
            state: FpState::current(),
            panic: Mutex::new(None),
            stop,
            cut: AtomicBool::new(false),
        }
    }

    /// Whether blocks were skipped because the loop was stopped. Valid once the loop is done.
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Claims the next block.
    fn claim(&self) -> Option<u64> {
        // The check before keeps `next` from growing while many threads find nothing.
        if self.next.load(Ordering::Relaxed) >= self.blocks {
            return None;
        }
        if self.stop.is_some_and(Stop::is_due) {
            self.cut.store(true, Ordering::Relaxed);
            self.next.store(self.blocks, Ordering::Relaxed);
            return None;
        }
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        (at < self.blocks).then_some(at)
    }

    fn run_block(&self, at: u64, worker: u32) {
        let begin = at * self.block;
        let end = begin.saturating_add(self.block).min(self.total);
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.body)(begin, end, worker)));
        if let Err(payload) = outcome {
            self.next.store(self.blocks, Ordering::Relaxed);
            self.panic.lock().get_or_insert(payload);
        }
    }

    /// Runs blocks until none is left, beginning with the one at `first`.
    fn run(&self, first: Option<u64>, worker: u32) {
        let _mark = BlockMark::set();
        let mut claimed = first.or_else(|| self.claim());
        while let Some(at) = claimed {
            self.run_block(at, worker);
            claimed = self.claim();
        }
    }
}

/// A job: run once, by one thread, with this argument.
pub(super) struct Job {
    pub run: unsafe fn(data: *mut c_void, index: u64),
    pub data: *mut c_void,
    pub index: u64,
}

// SAFETY: the creator of a job guarantees that any thread may run it.
unsafe impl Send for Job {}

/// A worker's participation in a loop, with its first block. Ended by [`Queue::leave`].
#[must_use = "the loop's caller waits for it"]
pub(super) struct Place {
    of: NonNull<Loop<'static>>,
    worker: u32,
    block: u64,
}

/// A piece of work.
#[must_use = "it is run, or lost"]
pub(super) enum Work {
    /// Help with a loop.
    Help(Place),
    /// Run a job.
    Job(Job),
    /// Poll for work, which is expected.
    Nothing,
}

struct State {
    loops: Vec<NonNull<Loop<'static>>>,
    jobs: VecDeque<Job>,
    sleeping: usize,
    /// Number of sleeping workers that are to poll for work.
    roused: usize,
    closed: bool,
}

// SAFETY: a loop in the list is alive and may be shared (its fields are atomic, locked or
// read-only): its caller removes it and waits for active helpers before the frame ends.
unsafe impl Send for State {}

/// The queue of a pool's work.
pub(super) struct Queue {
    state: Mutex<State>,
    work: Condvar,
    left: Condvar,
    posted: AtomicU32,
    /// Core of the thread that posted last.
    poster: AtomicU32,
    /// Number of workers that poll for work.
    spinning: AtomicU32,
}

impl Queue {
    pub fn new() -> Queue {
        let state = State {
            loops: Vec::with_capacity(16),
            jobs: VecDeque::with_capacity(64),
            sleeping: 0,
            roused: 0,
            closed: false,
        };
        Queue {
            state: Mutex::ranked(rank::POOL, state),
            work: Condvar::new(),
            left: Condvar::new(),
            posted: AtomicU32::new(0),
            poster: AtomicU32::new(NOWHERE),
            spinning: AtomicU32::new(0),
        }
    }

    /// Number of workers that poll for work.
    pub fn spinning(&self) -> u32 {
        self.spinning.load(Ordering::Relaxed)
    }

    /// Polls for work by `spin`.
    pub fn spins<T>(&self, spin: impl FnOnce() -> T) -> T {
        self.spinning.fetch_add(1, Ordering::Relaxed);
        let result = spin();
        self.spinning.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Makes a sleeping worker poll for work.
    pub fn rouse(&self) {
        let mut state = self.state.lock();
        if state.roused < state.sleeping {
            state.roused += 1;
            drop(state);
            self.work.notify_one();
        }
    }

    /// Number of jobs that wait.
    pub fn jobs(&self) -> usize {
        self.state.lock().jobs.len()
    }

    /// A counter that changes with every new piece of work.
    pub fn posted(&self) -> u32 {
        self.posted.load(Ordering::Relaxed)
    }

    /// The core from which work was posted last.
    pub fn poster(&self) -> u32 {
        self.poster.load(Ordering::Relaxed)
    }

    /// Notifies workers of `count` new pieces of work.
    fn tell(&self, state: MutexGuard<'_, State>, count: usize) {
        self.poster.store(current_core(), Ordering::Relaxed);
        self.posted.fetch_add(1, Ordering::Relaxed);
        let wake = state.sleeping.min(count);
        drop(state);
        for _ in 0..wake {
            self.work.notify_one();
        }
    }

    /// Queues a job; returns false, without taking the job, when the queue is closed.
    #[must_use = "a job that is refused is lost"]
    pub fn push(&self, job: Job) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return false;
        }
        state.jobs.push_back(job);
        self.tell(state, 1);
        true
    }

    /// Runs a loop: offers it to the workers, works on it, and returns when all of it is done. A
    /// panic of the body is resumed here.
    pub fn run_loop(&self, work: &Loop<'_>, wait: impl Fn(&dyn Fn() -> bool)) {
        let erased = NonNull::from(work).cast::<Loop<'static>>();
        let mut state = self.state.lock();
        state.loops.push(erased);
        self.tell(state, work.limit as usize);
        // Bodies' panics are caught per block, so that nothing unwinds past the workers that help.
        work.run(None, 0);
        self.close_loop(work, erased, wait);
        let panicked = work.panic.lock().take();
        if let Some(payload) = panicked {
            std::panic::resume_unwind(payload);
        }
    }

    fn close_loop(
        &self,
        work: &Loop<'_>,
        erased: NonNull<Loop<'static>>,
        wait: impl Fn(&dyn Fn() -> bool),
    ) {
        let mut state = self.state.lock();
        state.loops.retain(|other| *other != erased);
        if work.active.load(Ordering::Acquire) == 0 {
            return;
        }
        drop(state);
        wait(&|| work.active.load(Ordering::Acquire) == 0);
        // Even after a wait that saw 0: the last helper may still hold the lock.
        let mut state = self.state.lock();
        while work.active.load(Ordering::Acquire) != 0 {
            state = self.left.wait(state);
        }
    }

    fn take_from(&self, state: &mut State) -> Option<Work> {
        let mut at = 0;
        while at < state.loops.len() {
            // SAFETY: a loop in the list is alive.
            let work = unsafe { state.loops[at].as_ref() };
            let entered = work.entered.load(Ordering::Relaxed);
            let block = if entered < work.limit { work.claim() } else { None };
            if let Some(block) = block {
                work.entered.store(entered + 1, Ordering::Relaxed);
                work.active.fetch_add(1, Ordering::Relaxed);
                let of = state.loops[at];
                return Some(Work::Help(Place { of, worker: entered + 1, block }));
            }
            // The loop is full; its caller tolerates that it is no longer in the list.
            state.loops.swap_remove(at);
            at = 0;
        }
        state.jobs.pop_front().map(Work::Job)
    }

    /// Takes a piece of work if there is one.
    pub fn try_take(&self) -> Option<Work> {
        let mut state = self.state.lock();
        self.take_from(&mut state)
    }

    /// Takes a piece of work; sleeps until there is one, or it is roused; `None` when the queue is
    /// closed and empty.
    pub fn take(&self) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = self.take_from(&mut state) {
                return Some(work);
            }
            if state.closed {
                return None;
            }
            state.sleeping += 1;
            state = self.work.wait(state);
            state.sleeping -= 1;
            if state.roused > 0 {
                state.roused -= 1;
                let work = self.take_from(&mut state);
                return Some(work.unwrap_or(Work::Nothing));
            }
        }
    }

    /// Performs a piece of work.
    pub fn run(&self, work: Work) {
        match work {
            Work::Job(job) => run_job(job),
            Work::Help(place) => self.help(place),
            Work::Nothing => {}
        }
    }

    fn help(&self, place: Place) {
        {
            // SAFETY: this thread is counted in `active`, so that the loop's caller waits for it.
            let work = unsafe { place.of.as_ref() };
            // Blocks run with the caller's floating-point state.
            let _state = FpGuard::set(work.state);
            work.run(Some(place.block), place.worker);
        }
        self.leave(place);
    }

    fn leave(&self, place: Place) {
        let state = self.state.lock();
        // SAFETY: this thread is counted until here.
        let last = unsafe { place.of.as_ref() }.active.fetch_sub(1, Ordering::Release) == 1;
        drop(state);
        if last {
            self.left.notify_all();
        }
    }

    /// Lets the workers end once they find nothing more.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        drop(state);
        self.posted.fetch_add(1, Ordering::Relaxed);
        self.work.notify_all();
    }
}

/// Runs a job. A panic ends the job, not the thread: it is logged.
pub(super) fn run_job(job: Job) {
    // SAFETY: the creator of the job guarantees that `run` may be called with these arguments; it
    // is called once.
    let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (job.run)(job.data, job.index) }));
    if let Err(payload) = outcome {
        let message = tenon_framework::plugin::panic_message(&*payload);
        tracing::error!("a job of the thread pool panicked: {message}");
    }
}
