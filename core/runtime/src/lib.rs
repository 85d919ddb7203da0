//! Sessions, plans, the executor and the rendezvous.
//!
//! What an embedder depends on: a [`Runtime`] loads plugins and opens devices, a [`Session`] owns a graph and
//! its resources and runs steps over it. The crates below are re-exported as [`host`], [`graph`],
//! [`framework`] and [`proto`].

mod error;
mod executor;
pub mod isolate;
pub mod monitor;
pub mod npy;
pub mod npz;
mod plan;
pub mod quantize;
pub mod rendezvous;
mod runtime;
mod session;
pub mod trace;
mod tuning;

pub use error::{RuntimeError, StepError};
pub use runtime::{Runtime, RuntimeOptions};
pub use session::{
    Callable, CallableOptions, CancelToken, Metadata, NodeExplanation, NodeReport, RunOptions,
    Session, SessionOptions,
};
pub use tenon_framework as framework;
pub use tenon_graph as graph;
pub use tenon_host as host;
pub use tenon_proto as proto;
pub use tuning::Decision;
