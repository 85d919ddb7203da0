//! Steps of a session over several tasks.

use super::Session;
use crate::{
    error::RuntimeError,
    options::{CallableOptions, RunOptions},
    run_limits::RunLimits,
    step_graph::{self, TaskStep},
};

impl Session {
    /// Cuts a step by task, for the workers of the tasks to run; the session's options name the devices of the other tasks
    /// ([`SessionOptions::remote`](crate::SessionOptions::remote)). The time and token of `options` limit the cutting.
    ///
    /// # Errors
    /// As [`Session::callable`], but for kernels, which the workers choose.
    pub fn tasks(
        &self,
        signature: &CallableOptions,
        options: &RunOptions,
    ) -> Result<TaskStep, RuntimeError> {
        self.inner.check_open()?;
        let current = self.inner.current.lock().clone();
        let limits = RunLimits::from_now(Some(options));
        step_graph::by_task(self.inner.context(&current), signature, &limits)
    }
}
