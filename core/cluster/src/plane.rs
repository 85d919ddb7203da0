//! The data plane: links between Tenon's own nodes, over which tensors travel apart from calls.
//!
//! ```text
//! rendezvous of a step ── Peers ── Hub ── Link ── Lane (TCP, TLS, shared memory, or another stream of bytes)
//! ```
//!
//! | file | content |
//! |---|---|
//! | `frame.rs` | the frames of a link: header, kinds, checks |
//! | `value.rs` | a tensor as the head and the content of frames |
//! | `lane.rs` | a way of bytes in both directions |
//! | `writer.rs` | frames on their way out: small ones first, large tensors by chunks in turns |
//! | `reader.rs` | frames that come in |
//! | `link.rs` | requests and values of two tasks; `link/` has its two directions |
//! | `hub.rs` | the links of a server, by the address of the other task; `hub/` has the handshake |
//! | `shm.rs` | lanes through shared memory, with the handshake in `shm/` |
//!
//! # Invariants
//! - A link only begins after a call `tenon.DataPlane/Greet` that the server's gate has admitted: it brings the ticket of
//!   that call.
//! - The other side is not trusted: lengths, numbers and names are checked, and what it can make this side keep is bounded.
//! - A link that breaks ends all that waits for it, with the reason and the name of the task.
//! - A value is pushed before it is asked for only while the receiver has given credit for its bytes.

mod frame;
mod greet;
mod hub;
mod lane;
mod link;
mod reader;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod rogue;
mod shm;
mod value;
mod writer;

pub(crate) use greet::{GreetRequest, GreetResponse, PATH as GREET};
pub(crate) use hub::{Hub, admit, is_hello};
#[cfg(test)]
pub(crate) use lane::Lane;
pub(crate) use link::{Hold, Link, Request};

use crate::{
    refusal::Refusal,
    transport::{Done, Pusher, Withdraw},
    wire::Answer,
};
use std::sync::Arc;
use tenon_proto::{RecvBufRequest, RecvTensorRequest};

/// What this task does for the task at the other end of a link.
pub(crate) trait Serve: Send + Sync {
    /// Gives a tensor of a step once it is there. Never blocks, as the others.
    fn tensor(&self, request: RecvTensorRequest, done: Done) -> Withdraw;

    /// Gives a tensor of a collective operation.
    fn buffer(&self, request: RecvBufRequest, done: Done) -> Withdraw;

    /// The other side, which made the link, has asked for the tensor of a key: it takes others that are pushed over it.
    fn asked(&self, _step: i64, _key: &str, _by: &Arc<dyn Pusher>) {}

    /// Takes a tensor that came before it was asked for. The hold is dropped once the tensor is taken, or its step is over.
    fn pushed(&self, step: i64, key: String, answer: Answer, hold: Hold);

    /// Ends steps of which pushed tensors may be lost.
    fn lost(&self, steps: &[i64], why: &Refusal);
}
