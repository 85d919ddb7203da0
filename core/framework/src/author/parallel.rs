//! `parallel_for`: the only way for a kernel to compute on more than its own thread.

use super::{compute::ComputeContext, guard::guard};
use crate::KernelError;
use std::{ffi::c_void, ops::Range, sync::Mutex};
use tenon_abi::ParallelBody;

struct Shared<'b, F> {
    body: &'b F,
    failure: Mutex<Option<String>>,
}

unsafe extern "C" fn run<F: Fn(Range<usize>) + Sync>(data: *mut c_void, begin: u64, end: u64) {
    // SAFETY: `data` is the `Shared` of the running `parallel_for`, which waits for this.
    let shared = unsafe { &*data.cast::<Shared<'_, F>>() };
    if let Err(message) = guard(|| (shared.body)(begin as usize..end as usize)) {
        let mut failure = shared.failure.lock().unwrap_or_else(|poison| poison.into_inner());
        failure.get_or_insert(message);
    }
}

impl ComputeContext<'_> {
    /// Computes the units `0..total`, each of about `cost_ns` nanoseconds, in blocks on the host's threads
    /// and the caller's; returns when all are done. Work too small to be worth another thread stays here.
    ///
    /// # Errors
    /// `INTERNAL` when `body` panicked.
    pub fn parallel_for<F: Fn(Range<usize>) + Sync>(
        &self,
        total: usize,
        cost_ns: f64,
        body: F,
    ) -> Result<(), KernelError> {
        let shared = Shared { body: &body, failure: Mutex::new(None) };
        let entry = self.services().parallel_for.expect("the host fills every entry");
        let data = (&raw const shared).cast_mut().cast();
        // SAFETY: `shared` outlives the call, which returns only when every block is done.
        unsafe {
            let body = ParallelBody { run: Some(run::<F>) };
            entry(self.raw().record, total as u64, cost_ns, body, data);
        }
        match shared.failure.into_inner().unwrap_or_else(|poison| poison.into_inner()) {
            None => Ok(()),
            Some(message) => Err(KernelError::internal(format!("parallel work panicked: {message}"))),
        }
    }
}
