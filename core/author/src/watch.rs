//! Whether a step still wants what a kernel computes.

use crate::ComputeContext;
use std::sync::atomic::{AtomicU32, Ordering};
use tenon_abi::{Code, NO_DEADLINE};
use tenon_framework::KernelError;

/// Shows whether the step of a call is cancelled, or its deadline has passed. A copy may go to every thread that
/// works in the call.
///
/// [`ComputeContext::parallel_for`] checks it between blocks. A kernel that computes for longer than some ten
/// milliseconds outside of such a loop, or in one unit of it, checks it itself:
///
/// ```
/// use tenon_author::ComputeContext;
/// use tenon_framework::KernelError;
///
/// /// Sums up, each element by itself.
/// fn sum(c: &ComputeContext<'_>) -> Result<(), KernelError> {
///     let (x, watch, mut sum) = (c.input::<f32>(0)?, c.watch(), 0.0);
///     for block in x.data.chunks(1 << 16) {
///         watch.check()?;
///         sum += block.iter().sum::<f32>();
///     }
///     c.output::<f32>(0, &[])?.data[0] = sum;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct StepWatch<'a> {
    cancelled: &'a AtomicU32,
    deadline_ns: u64,
    now_ns: unsafe extern "C" fn() -> u64,
}

impl StepWatch<'_> {
    /// Whether the step no longer needs the results. It costs a relaxed load, and a look at the clock in a step
    /// with a deadline: call it at most once in ten microseconds.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) != 0 || self.is_late()
    }

    fn is_late(&self) -> bool {
        // SAFETY: an entry of the host's table, which has no conditions.
        self.deadline_ns != NO_DEADLINE && unsafe { (self.now_ns)() } >= self.deadline_ns
    }

    /// An error once the step no longer needs the results.
    ///
    /// # Errors
    /// `DEADLINE_EXCEEDED` or `CANCELLED`.
    #[inline]
    pub fn check(&self) -> Result<(), KernelError> {
        if self.is_over() { Err(self.error()) } else { Ok(()) }
    }

    /// The reason why the step has ended.
    #[cold]
    pub(super) fn error(&self) -> KernelError {
        if self.is_late() {
            let message = "the deadline passed while the kernel computed";
            return KernelError::new(Code::DEADLINE_EXCEEDED, message);
        }
        KernelError::new(Code::CANCELLED, "the step was cancelled while the kernel computed")
    }
}

impl<'a> ComputeContext<'a> {
    /// Shows whether the step still needs the results, also on other threads of the call.
    #[inline]
    pub fn watch(&self) -> StepWatch<'a> {
        // SAFETY: the host fills step and flag for as long as the call runs.
        let (step, cancelled) = unsafe {
            let step = &*self.raw().step;
            (step, &*step.cancelled)
        };
        let now_ns = self.services().now_ns.expect("the host fills every entry");
        StepWatch { cancelled, deadline_ns: step.deadline_ns, now_ns }
    }

    /// Whether the step was cancelled, or its deadline has passed: a long kernel checks it from time to time.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.watch().is_over()
    }
}
