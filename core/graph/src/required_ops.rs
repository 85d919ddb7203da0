//! The names of the ops of which this crate and the passes over a step's graph add nodes. Every
//! registry must have these ops.

/// Outputs the tensor in its attribute `value`.
pub const CONST: &str = "Const";
/// Outputs its input.
pub const IDENTITY: &str = "Identity";
/// Represents a value that a step feeds.
pub const PLACEHOLDER: &str = "Placeholder";
/// Outputs a feed of a partition.
pub const ARG: &str = "_Arg";
/// Receives a fetch of a partition.
pub const RETVAL: &str = "_Retval";
/// Sends a tensor to the rendezvous.
pub const SEND: &str = "_Send";
/// Receives a tensor from the rendezvous.
pub const RECV: &str = "_Recv";
/// Calls the gradient of a function; a step has the graph of that gradient in its place.
pub const SYMBOLIC_GRADIENT: &str = "SymbolicGradient";
/// Orders other nodes.
pub const NO_OP: &str = "NoOp";
/// Gives a value to one of two branches.
pub const SWITCH: &str = "Switch";
/// Gives a value to one of several branches.
pub const SWITCH_N: &str = "_SwitchN";
/// Takes the value of the branch that is taken.
pub const MERGE: &str = "Merge";
/// Brings a value into a frame.
pub const ENTER: &str = "Enter";
/// Brings a value out of a frame.
pub const EXIT: &str = "Exit";
/// Brings a value into the next iteration.
pub const NEXT_ITERATION: &str = "NextIteration";
/// The condition of a loop.
pub const LOOP_COND: &str = "LoopCond";
/// The truth value of a condition that is not a bool.
pub const TO_BOOL: &str = "ToBool";
