//! What a node that calls a function needs of it.

use crate::error::StepError;
use tenon_framework::{KernelError, Tensor};
use tenon_host::call::{FunctionTable, StepEnv};

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "it says whether the call is finished"]
pub(crate) enum Progress {
    /// Nothing of it is left.
    Done,
    /// Only outstanding work is left.
    Pending,
}

/// Takes the results of a call.
pub(crate) type Done = Box<dyn FnOnce(Result<Vec<Tensor>, StepError>) + Send>;

/// A call of a function.
pub(crate) trait OpenCall: Send {
    /// Drives the call until it is finished or only outstanding work is left. A call within too many
    /// others on this thread is left pending.
    fn advance(&mut self) -> Progress;

    /// The results of a finished call.
    fn finish(self: Box<Self>) -> Result<Vec<Tensor>, StepError>;

    /// Drives a call, on this thread as far as it goes and then on threads of the pool, and hands its
    /// results over.
    fn wait(self: Box<Self>, done: Done);
}

/// The functions that the nodes of a step call, by number. Kernels find theirs by name.
pub(crate) trait Callees: FunctionTable {
    /// Starts a call that belongs to the step of `caller`, and is not driven yet.
    ///
    /// # Errors
    /// The call is within too many others, or its state cannot be created.
    fn begin(
        &self,
        function: u32,
        args: &[Tensor],
        caller: &StepEnv,
    ) -> Result<Box<dyn OpenCall>, KernelError>;
}
