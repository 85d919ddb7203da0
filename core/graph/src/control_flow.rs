//! Which ops steer the executor.

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
    /// The role of an op, by its name.
    pub fn of(op: &str) -> ControlFlow {
        match op {
            "Switch" | "RefSwitch" => ControlFlow::Switch,
            "Merge" | "RefMerge" => ControlFlow::Merge,
            "Enter" | "RefEnter" => ControlFlow::Enter,
            "Exit" | "RefExit" => ControlFlow::Exit,
            "NextIteration" | "RefNextIteration" => ControlFlow::NextIteration,
            "LoopCond" => ControlFlow::LoopCond,
            _ => ControlFlow::No,
        }
    }
}
