//! What all calls of one step share.

use super::cancel::Cancellation;
use crate::{pool::ThreadPool, resources::ResourceManager};
use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};
use tenon_abi::{NO_DEADLINE, Step};

/// Takes spans for a trace; times are those of [`monotonic_ns`].
pub trait TraceSink: Send + Sync {
    /// A span of a node: `name` is empty for the whole call.
    fn span(&self, node: &str, name: &str, begin_ns: u64, end_ns: u64);
}

/// Nanoseconds since the process first asked.
pub fn monotonic_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The environment of a step. It does not move while calls run: `step` is what kernels see.
pub struct StepEnv {
    /// What kernels see; `cancelled` points into `cancellation`.
    pub step: Step,
    /// Cancellation.
    pub cancellation: Arc<Cancellation>,
    /// Threads for `parallel_for`.
    pub pool: Arc<ThreadPool>,
    /// State that outlives the step.
    pub resources: Arc<ResourceManager>,
    /// Takes spans, when a trace is asked for.
    pub trace: Option<Arc<dyn TraceSink>>,
}

// SAFETY: the raw pointers of `step` are read only, and point into this object.
unsafe impl Send for StepEnv {}
// SAFETY: as above.
unsafe impl Sync for StepEnv {}

impl StepEnv {
    /// An environment for steps over these resources.
    pub fn new(pool: Arc<ThreadPool>, resources: Arc<ResourceManager>) -> StepEnv {
        let cancellation = Arc::new(Cancellation::new());
        let step = Step {
            struct_size: size_of::<Step>() as u32,
            reserved: 0,
            step_id: 0,
            deadline_ns: NO_DEADLINE,
            cancelled: cancellation.flag(),
            ext: std::ptr::null(),
        };
        StepEnv { step, cancellation, pool, resources, trace: None }
    }
}
