//! `parallel_for`: the only way for a kernel to compute on more than its own thread.

use crate::compute::ComputeContext;
use std::{
    ffi::c_void,
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_abi::ParallelBody;
use tenon_framework::{KernelError, growth, plugin::guard};

struct Shared<'b, F> {
    body: &'b F,
    failure: Mutex<Option<String>>,
    /// Units that were computed, or were begun by a block that panicked.
    done: AtomicU64,
}

unsafe extern "C" fn run<F: Fn(Range<usize>, usize) + Sync>(
    data: *mut c_void,
    begin: u64,
    end: u64,
    worker: u32,
) {
    // SAFETY: `data` is the `Shared` of the running `parallel_for`, which waits for this.
    let shared = unsafe { &*data.cast::<Shared<'_, F>>() };
    if let Err(message) = guard(|| (shared.body)(begin as usize..end as usize, worker as usize)) {
        let mut failure = shared.failure.lock().unwrap_or_else(|poison| poison.into_inner());
        failure.get_or_insert(message);
    }
    shared.done.fetch_add(end - begin, Ordering::Relaxed);
}

impl ComputeContext<'_> {
    /// Computes the units `0..total`, each of about `cost_ns` nanoseconds, in blocks on the host's threads
    /// and the caller's; returns when all are done. Work too small to be worth another thread stays here.
    ///
    /// Once the step is cancelled, or its deadline has passed, no further block begins: a block takes some
    /// milliseconds at most if `cost_ns` is right. A call that has locked a variable computes all of its units.
    ///
    /// # Errors
    /// `INTERNAL` when `body` panicked; `CANCELLED` or `DEADLINE_EXCEEDED` when units were skipped for that reason.
    pub fn parallel_for(
        &self,
        total: usize,
        cost_ns: f64,
        body: impl Fn(Range<usize>) + Sync,
    ) -> Result<(), KernelError> {
        self.parallel_for_workers(total, cost_ns, |range, _| body(range))
    }

    /// Computes each item with its number, in blocks on the host's threads and the caller's; each item costs
    /// about `cost_ns` nanoseconds. An item is something that a part of the work writes, such as a row of an output:
    ///
    /// ```
    /// use tenon_author::ComputeContext;
    /// use tenon_framework::KernelError;
    ///
    /// /// Sets each row to its number.
    /// fn numbers(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    ///     let y = c.output::<f32>(0, &[100, 1000])?;
    ///     c.parallel_items(y.data.chunks_mut(1000), 100.0, |number, row| {
    ///         row.fill(number as f32);
    ///         Ok(())
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// An error of `body`; as [`ComputeContext::parallel_for`]; `RESOURCE_EXHAUSTED` when there is no memory for
    /// the list of items.
    pub fn parallel_items<I: Send>(
        &self,
        items: impl IntoIterator<Item = I>,
        cost_ns: f64,
        body: impl Fn(usize, I) -> Result<(), KernelError> + Sync,
    ) -> Result<(), KernelError> {
        // Each item is taken once, by the block that has its number; the lock is never waited for.
        let items = growth::collected(items.into_iter().map(|item| Mutex::new(Some(item))))?;
        let failure: Mutex<Option<(usize, KernelError)>> = Mutex::new(None);
        self.parallel_for(items.len(), cost_ns, |range| {
            for number in range {
                let item = items[number].lock().unwrap_or_else(|poison| poison.into_inner()).take();
                let Some(Err(error)) = item.map(|item| body(number, item)) else { continue };
                let mut failure = failure.lock().unwrap_or_else(|poison| poison.into_inner());
                // The error of the first item, whatever the order of the blocks.
                if failure.as_ref().is_none_or(|(first, _)| number < *first) {
                    *failure = Some((number, error));
                }
                return;
            }
        })?;
        let failure = failure.into_inner().unwrap_or_else(|poison| poison.into_inner());
        failure.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Threads that work in this call may use, the caller's included: at least 1.
    pub fn parallelism(&self) -> usize {
        let entry = self.services().parallelism.expect("the host fills every entry");
        // SAFETY: an entry of the host's table with the record of this call.
        unsafe { entry(self.raw().record) }.max(1) as usize
    }

    /// As [`ComputeContext::parallel_for`]; `body` also gets the index of its worker, below
    /// [`ComputeContext::parallelism`]: no two blocks run at the same time under one index.
    ///
    /// # Errors
    /// As [`ComputeContext::parallel_for`].
    pub fn parallel_for_workers<F: Fn(Range<usize>, usize) + Sync>(
        &self,
        total: usize,
        cost_ns: f64,
        body: F,
    ) -> Result<(), KernelError> {
        let shared = Shared { body: &body, failure: Mutex::new(None), done: AtomicU64::new(0) };
        let entry = self.services().parallel_for.expect("the host fills every entry");
        let data = (&raw const shared).cast_mut().cast();
        // SAFETY: `shared` outlives the call, which returns only when every block is done.
        unsafe {
            let body = ParallelBody { run: Some(run::<F>) };
            entry(self.raw().record, total as u64, cost_ns, body, data);
        }
        match shared.failure.into_inner().unwrap_or_else(|poison| poison.into_inner()) {
            None if shared.done.into_inner() == total as u64 => Ok(()),
            None => Err(self.watch().error()),
            Some(message) => Err(growth::error_of("parallel work", &message)),
        }
    }
}
