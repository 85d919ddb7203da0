//! The thread pool: one per runtime, for `parallel_for` of kernels and for the executor's expensive
//! nodes.
//!
//! `threads` includes the caller: a pool of one has no workers, and everything runs on the calling
//! thread. Waking another core costs tens of microseconds on a virtual machine, so a loop is shared
//! with a sleeping worker only when it costs more than that ([`SHARE_NS`]). A worker that has just
//! worked polls for more work for as long as waking it would take ([`SPIN_NS`]), and helps with
//! loops that cost a tenth ([`SHARE_AWAKE_NS`]). So that a series of such loops finds an awake
//! worker, the second loop within `FREQUENT_NS` wakes one, without waiting for it.
//!
//! States of a worker: *looking* (takes work from `queue`) → *running* → *looking*; *looking* →
//! *spinning* when there is nothing → *looking* when something was posted, or → *sleeping* when the
//! time is over →
//! *looking* when it is woken or roused; *looking* → *ended* when the pool closes and nothing is
//! left. For states of loops and jobs see `pool/queue.rs`; for threads that may block see
//! `pool/blocking.rs`; for the core of a worker see `pool/placement.rs`.
//!
//! A caller of `parallel_for` always works itself, and waits only for blocks that workers have
//! started: if every worker is busy it computes all of them alone. A loop with a [`Stop`] checks it
//! before each block, and a block takes at most some milliseconds if the estimate is right.

mod blocking;
#[cfg(all(test, loom))]
mod model;
mod placement;
mod queue;
mod stop;

use crate::fpu::FpGuard;
use placement::Placement;
use queue::{Job, Loop, Queue, run_job};
use std::{
    ffi::c_void,
    hint::spin_loop,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tenon_framework::{
    KernelError,
    sync::atomic::{AtomicU64, Ordering},
};

pub use blocking::BLOCKING_CAP;
pub use stop::Stop;

/// Most threads of a pool.
pub const MAX_THREADS: usize = 1024;

/// A loop below this cost in nanoseconds is not worth waking a worker.
pub const SHARE_NS: f64 = 50_000.0;
/// A loop below this cost in nanoseconds stays on its caller's thread.
pub const SHARE_AWAKE_NS: f64 = 8_000.0;
/// Least cost of a block in nanoseconds, if the estimate is right.
const BLOCK_NS: f64 = 12_500.0;
/// How long a worker spins before it sleeps.
pub const SPIN_NS: u64 = 50_000;
/// Loops that begin within this time of each other form a series.
const FREQUENT_NS: u64 = 100_000;
/// Most blocks per thread, for loops that are not long: enough to balance the load, few enough to
/// be cheap.
const BLOCKS_PER_THREAD: u64 = 4;
/// Approximate cost of a block of a long loop, so that a loop that must stop ends soon, even if the
/// estimate is wrong by a factor of ten.
const LONG_BLOCK_NS: f64 = 5_000_000.0;
/// Most blocks of a long loop.
const LONG_BLOCKS: u64 = 1 << 16;

/// The threads that compute.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tenon_host::pool::ThreadPool;
///
/// let pool = ThreadPool::new(2);
/// let sum = AtomicU64::new(0);
/// pool.parallel_for(1000, 1000.0, &|begin, end, _worker| {
///     sum.fetch_add((begin..end).sum(), Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 499_500);
/// ```
pub struct ThreadPool {
    queue: Arc<Queue>,
    blocking: blocking::Blocking,
    workers: Vec<JoinHandle<()>>,
    threads: u32,
    created: Instant,
    /// Nanoseconds from `created` to the last loop that was worth sharing with an awake worker, but
    /// found none.
    missed: AtomicU64,
}

impl ThreadPool {
    /// A pool of `threads` threads, including the caller of `parallel_for`; 0 counts as 1, and
    /// numbers above [`MAX_THREADS`] as that. If the operating system creates fewer threads, the
    /// pool has fewer, and logs that.
    pub fn new(threads: usize) -> ThreadPool {
        let queue = Arc::new(Queue::new());
        let wanted = threads.clamp(1, MAX_THREADS) - 1;
        let mut workers = Vec::with_capacity(wanted);
        for number in 1..=wanted {
            let queue = Arc::clone(&queue);
            let builder = std::thread::Builder::new().name(format!("tenon-{number}"));
            match builder.spawn(move || work(&queue)) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    tracing::warn!("thread {number} of {threads} cannot be started: {error}");
                    break;
                }
            }
        }
        let threads = workers.len() as u32 + 1;
        let (created, missed) = (Instant::now(), AtomicU64::new(0));
        ThreadPool { queue, blocking: blocking::Blocking::new(), workers, threads, created, missed }
    }

    /// A pool with as many threads as the machine gives this process.
    pub fn with_all_cores() -> ThreadPool {
        ThreadPool::new(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Number of threads, including the caller, at least 1: worker numbers of a loop are below it.
    pub fn threads(&self) -> usize {
        self.threads as usize
    }

    /// Number of jobs that wait for a thread.
    pub fn queued(&self) -> usize {
        self.queue.jobs()
    }

    /// Number of threads into which a loop started now would be split: 1 inside a block of another
    /// loop.
    pub fn parallelism(&self) -> usize {
        if queue::in_block() { 1 } else { self.threads() }
    }

    /// Computes the units `0..total`, of about `cost_ns` nanoseconds each: calls `body` with blocks
    /// (begin, end, worker) that cover each unit once; returns when all are done. `worker` is below
    /// [`ThreadPool::threads`], and blocks that run at the same time have different workers. Every
    /// block runs with the caller's floating-point state. A loop inside a block runs on that
    /// block's thread.
    ///
    /// # Panics
    /// When `body` panics, after the blocks that had started; those that had not may be left out.
    pub fn parallel_for(&self, total: u64, cost_ns: f64, body: &(dyn Fn(u64, u64, u32) + Sync)) {
        self.run(total, cost_ns, None, body);
    }

    /// Like [`ThreadPool::parallel_for`], but no block begins once `stop` is due. Returns whether
    /// all units were computed.
    ///
    /// # Panics
    /// As [`ThreadPool::parallel_for`].
    #[must_use = "a loop that was stopped has computed only a part"]
    pub fn parallel_for_until(
        &self,
        total: u64,
        cost_ns: f64,
        stop: &Stop<'_>,
        body: &(dyn Fn(u64, u64, u32) + Sync),
    ) -> bool {
        self.run(total, cost_ns, Some(stop), body)
    }

    fn run(
        &self,
        total: u64,
        cost_ns: f64,
        stop: Option<&Stop<'_>>,
        body: &(dyn Fn(u64, u64, u32) + Sync),
    ) -> bool {
        if total == 0 {
            return true;
        }
        let cost = total as f64 * cost_ns;
        // NaN counts as cheap.
        let may_share = cost >= SHARE_AWAKE_NS && total > 1 && self.parallelism() > 1;
        if !may_share || (cost < SHARE_NS && !self.finds_one_awake()) {
            return run_alone(total, cost, stop, body);
        }
        let (block, blocks) = split(total, cost, self.threads);
        let helpers = (blocks - 1).min(u64::from(self.threads) - 1) as u32;
        let work = Loop::new(body, total, block, helpers, stop);
        self.queue.run_loop(&work, |done| {
            spin_until(done);
        });
        !work.is_cut()
    }

    /// Whether a worker spins; rouses one if loops that it could help with are frequent.
    fn finds_one_awake(&self) -> bool {
        if self.queue.spinning() > 0 {
            return true;
        }
        let now = u64::try_from(self.created.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let last = self.missed.swap(now, Ordering::Relaxed);
        if now.saturating_sub(last) < FREQUENT_NS {
            self.queue.rouse();
        }
        false
    }

    /// Queues a job for the workers. A pool without workers runs it now, on this thread.
    pub fn spawn<F: FnOnce() + Send + 'static>(&self, job: F) {
        let data = Box::into_raw(Box::new(job));
        // SAFETY: the box is what `run_boxed` takes; the closure may go to any thread.
        unsafe { self.spawn_raw(run_boxed::<F>, data.cast(), 0) };
    }

    /// Like [`ThreadPool::spawn`], without allocating: calls `run` once with `data` and `index`.
    ///
    /// # Safety
    /// - `run` may be called once with these arguments, on any thread, at any time until the pool
    ///   is dropped.
    pub unsafe fn spawn_raw(
        &self,
        run: unsafe fn(data: *mut c_void, index: u64),
        data: *mut c_void,
        index: u64,
    ) {
        // The queue closes only when the pool is dropped, which excludes this call.
        if self.workers.is_empty() || !self.queue.push(Job { run, data, index }) {
            run_job(Job { run, data, index });
        }
    }

    /// Runs a job that may block on something other than computation, on a separate kind of thread.
    /// There are at most [`BLOCKING_CAP`] such threads; further jobs wait for one.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there is no such thread and the operating system creates none.
    pub fn spawn_blocking(&self, job: impl FnOnce() + Send + 'static) -> Result<(), KernelError> {
        self.blocking.spawn(Box::new(job))
    }
}

impl Drop for ThreadPool {
    /// Runs what is queued and joins all threads.
    fn drop(&mut self) {
        self.queue.close();
        for worker in self.workers.drain(..) {
            if worker.thread().id() == std::thread::current().id() {
                // A job of the pool was its last owner: this thread ends without being joined.
                continue;
            }
            // Panics of jobs are caught where they happen, so that a worker ends normally.
            let _ = worker.join();
        }
    }
}

/// Runs the closure that [`ThreadPool::spawn`] boxed.
///
/// # Safety
/// - `data` is the box, and this is its only use.
unsafe fn run_boxed<F: FnOnce()>(data: *mut c_void, _index: u64) {
    // SAFETY: `data` is the box that `spawn` gave away, and a job is run once.
    let job = unsafe { Box::from_raw(data.cast::<F>()) };
    job();
}

/// Units per block, and number of blocks.
fn split(total: u64, cost: f64, threads: u32) -> (u64, u64) {
    let most = (u64::from(threads) * BLOCKS_PER_THREAD).max(long_blocks(cost)).min(total);
    // The conversion saturates, even for an infinite cost.
    let wanted = ((cost / BLOCK_NS) as u64).clamp(2, most.max(2));
    let block = total.div_ceil(wanted);
    (block, total.div_ceil(block))
}

/// Number of blocks of a loop of this cost, such that none is long.
fn long_blocks(cost: f64) -> u64 {
    ((cost / LONG_BLOCK_NS) as u64).min(LONG_BLOCKS)
}

/// Runs a loop on this thread: in one block, unless it is long and may have to stop.
fn run_alone(
    total: u64,
    cost: f64,
    stop: Option<&Stop<'_>>,
    body: &(dyn Fn(u64, u64, u32) + Sync),
) -> bool {
    let Some(stop) = stop.filter(|_| cost > LONG_BLOCK_NS) else {
        body(0, total, 0);
        return true;
    };
    let block = total.div_ceil(long_blocks(cost).clamp(1, total));
    let mut begin = 0;
    while begin < total {
        if stop.is_due() {
            return false;
        }
        let end = begin.saturating_add(block).min(total);
        body(begin, end, 0);
        begin = end;
    }
    true
}

/// Spins while `done` is false, for a bounded time.
fn spin_until(done: &dyn Fn() -> bool) -> bool {
    let begin = Instant::now();
    let limit = Duration::from_nanos(SPIN_NS);
    loop {
        for _ in 0..32 {
            if done() {
                return true;
            }
            spin_loop();
        }
        if begin.elapsed() >= limit {
            return done();
        }
    }
}

/// A worker.
fn work(queue: &Queue) {
    let _flush = FpGuard::for_kernels(false);
    let mut placement = Placement::of_this_thread();
    loop {
        let posted = queue.posted();
        let mut taken = queue.try_take();
        if taken.is_none() {
            queue.spins(|| spin_until(&|| queue.posted() != posted));
            taken = queue.take();
        }
        match taken {
            Some(work) => {
                placement.keep_off(queue.poster());
                queue.run(work);
            }
            None => return,
        }
    }
}

#[cfg(all(test, not(loom)))]
#[path = "pool/tests.rs"]
mod tests;
