//! What a node that calls a function needs of it.

use crate::error::StepError;
use std::sync::Arc;
use tenon_abi::Slot;
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

/// The error of a call.
pub(crate) enum CallError {
    /// The node that calls fails.
    Node(KernelError),
    /// The called function fails.
    Step(StepError),
}

impl From<StepError> for CallError {
    fn from(error: StepError) -> CallError {
        CallError::Step(error)
    }
}

/// Takes one result of a call, with its position.
pub(crate) type Take<'t> = &'t mut dyn FnMut(u32, Tensor) -> Result<(), KernelError>;

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

    /// Calls a function within the step of `caller`, with arguments that slots show, and drives the call
    /// on this thread as far as it goes. The results of a finished call go to `take`; a call of which
    /// only outstanding work is left is returned.
    fn call(
        self: Arc<Self>,
        function: u32,
        args: &[&Slot],
        caller: &StepEnv,
        take: Take<'_>,
    ) -> Result<Option<Box<dyn OpenCall>>, CallError>;

    /// Counts a call; returns the number of calls before.
    fn count(&self, function: u32) -> u64;
}
