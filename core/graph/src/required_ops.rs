//! The ops of the nodes that this crate itself adds to graphs: every registry must have them.

/// Outputs the tensor in its attribute `value`.
pub(crate) const CONST: &str = "Const";
/// Outputs its input.
pub(crate) const IDENTITY: &str = "Identity";
/// Represents a value that a step feeds.
pub(crate) const PLACEHOLDER: &str = "Placeholder";
/// Outputs a feed of a partition.
pub(crate) const ARG: &str = "_Arg";
/// Receives a fetch of a partition.
pub(crate) const RETVAL: &str = "_Retval";
/// Sends a tensor to the rendezvous.
pub(crate) const SEND: &str = "_Send";
/// Receives a tensor from the rendezvous.
pub(crate) const RECV: &str = "_Recv";
/// Orders other nodes.
pub(crate) const NO_OP: &str = "NoOp";
/// Gives a value to one of two branches.
pub(crate) const SWITCH: &str = "Switch";
/// Gives a value to one of several branches.
pub(crate) const SWITCH_N: &str = "_SwitchN";
/// Takes the value of the branch that is taken.
pub(crate) const MERGE: &str = "Merge";
/// Brings a value into a frame.
pub(crate) const ENTER: &str = "Enter";
/// Brings a value out of a frame.
pub(crate) const EXIT: &str = "Exit";
/// Brings a value into the next iteration.
pub(crate) const NEXT_ITERATION: &str = "NextIteration";
/// The condition of a loop.
pub(crate) const LOOP_COND: &str = "LoopCond";
/// The truth value of a condition that is not a bool.
pub(crate) const TO_BOOL: &str = "ToBool";
