//! The roles of ops in control flow.

use tenon_framework::op::{OpDef, OpRole};

/// The role of an op in control flow. The reference variants of ops have the same roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlFlow {
    /// The op has no role in control flow.
    No,
    /// Forwards its input to one of two outputs; the other output is dead.
    Switch,
    /// Forwards the first input that is not dead.
    Merge,
    /// Forwards a value into a frame.
    Enter,
    /// Forwards a value out of its frame.
    Exit,
    /// Forwards a value to the next iteration.
    NextIteration,
    /// The condition of a loop.
    LoopCond,
}

impl ControlFlow {
    /// The role that the op declares.
    pub fn of(op: &OpDef) -> ControlFlow {
        match op.facts().role {
            OpRole::Switch => ControlFlow::Switch,
            OpRole::Merge => ControlFlow::Merge,
            OpRole::Enter => ControlFlow::Enter,
            OpRole::Exit => ControlFlow::Exit,
            OpRole::NextIteration => ControlFlow::NextIteration,
            OpRole::LoopCond => ControlFlow::LoopCond,
            OpRole::Kernel | OpRole::Order | OpRole::Trigger | OpRole::Call => ControlFlow::No,
            OpRole::Arg | OpRole::Retval | OpRole::Sender | OpRole::Receiver => ControlFlow::No,
        }
    }
}
