//! The ops of which this crate makes nodes itself, whatever the graph has: every registry needs them.

/// Gives the tensor in its attribute `value`.
pub(crate) const CONST: &str = "Const";
/// Gives its input.
pub(crate) const IDENTITY: &str = "Identity";
/// Stands for a value that a step feeds.
pub(crate) const PLACEHOLDER: &str = "Placeholder";
/// Gives a feed of a partition.
pub(crate) const ARG: &str = "_Arg";
/// Takes a fetch of a partition.
pub(crate) const RETVAL: &str = "_Retval";
/// Gives a tensor to the rendezvous.
pub(crate) const SEND: &str = "_Send";
/// Takes a tensor from the rendezvous.
pub(crate) const RECV: &str = "_Recv";
