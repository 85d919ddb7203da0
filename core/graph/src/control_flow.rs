//! Which ops steer the executor.

use tenon_framework::op::{OpDef, OpRole};

/// The role of an op in control flow; the reference forms have the role of the plain ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlFlow {
    /// Has none.
    No,
    /// Gives its input to one of two outputs, the other is dead.
    Switch,
    /// Passes on the first input that is not dead.
    Merge,
    /// Brings a value into a frame.
    Enter,
    /// Brings a value out of its frame.
    Exit,
    /// Brings a value into the next iteration.
    NextIteration,
    /// The condition of a loop.
    LoopCond,
}

impl ControlFlow {
    /// The role that an op states.
    pub fn of(op: &OpDef) -> ControlFlow {
        match op.facts().role {
            OpRole::Switch => ControlFlow::Switch,
            OpRole::Merge => ControlFlow::Merge,
            OpRole::Enter => ControlFlow::Enter,
            OpRole::Exit => ControlFlow::Exit,
            OpRole::NextIteration => ControlFlow::NextIteration,
            OpRole::LoopCond => ControlFlow::LoopCond,
            OpRole::Kernel | OpRole::Order | OpRole::Trigger => ControlFlow::No,
            OpRole::Arg | OpRole::Retval | OpRole::Sender | OpRole::Receiver => ControlFlow::No,
        }
    }
}
