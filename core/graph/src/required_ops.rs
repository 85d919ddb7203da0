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
