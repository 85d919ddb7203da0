//! Servers: a runtime behind TensorFlow's gRPC services, and sessions on one.
//!
//! A [`Server`] answers `tensorflow.MasterService` over one worker of this process: an unchanged client of TensorFlow opens
//! sessions on it (`tf.compat.v1.Session("grpc://127.0.0.1:2222")`), extends their graphs and runs steps. Sessions share
//! variables by container and name, as those of TensorFlow's servers do.
//!
//! A [`Session`] is one on such a server, or on TensorFlow's, from Rust.
//!
//! What it is not: the compiling and running of steps (`tenon-runtime`), and the form of messages (`tenon-proto`).
//!
//! # Invariants
//! - Every refusal has TensorFlow's canonical code.
//! - A call whose client is gone is cancelled; a session whose clients stay away is closed after a time ([`Limits`]).
//! - Values of tensors are copied once between a message and a tensor, each way.
//! - Methods of [`Server`] and [`Session`] block. On a thread of an asynchronous runtime they panic, as `tokio` does where a
//!   runtime is started within another one: call them by `spawn_blocking` there.
//!
//! ```no_run
//! use std::time::Duration;
//! use tenon_cluster::{Server, ServerOptions};
//! use tenon_runtime::{Runtime, RuntimeOptions, Worker};
//!
//! let (runtime, report) = Runtime::new(RuntimeOptions::default())?;
//! report.into_result()?;
//! let server = Server::start(Worker::new(&runtime), &ServerOptions::default())?;
//! println!("grpc://{}", server.address());
//! server.stop(Duration::from_secs(10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admitted;
mod audit;
mod call;
mod client;
mod clock;
mod codec;
mod dial;
mod error;
mod gate;
mod grpc;
mod handles;
mod health;
mod keys;
mod launched;
mod limits;
mod listener;
mod master;
mod methods;
mod options;
mod peers;
mod placeholders;
mod plane;
mod proxy;
mod records;
mod refusal;
mod rendezvous;
mod requests;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod rogue;
mod server;
mod session;
mod spec;
mod stats;
mod tls;
mod tokens;
mod traffic;
mod transport;
mod turns;
mod watched;
mod way;
mod wire;
mod worker;

pub use audit::AuditOptions;
pub use dial::Access;
pub use error::ClusterError;
pub use launched::{Launched, Launcher, Wishes};
pub use limits::ClientLimits;
pub use master::Limits;
pub use options::session_options;
pub use proxy::{Proxy, ProxyOptions};
pub use server::{Server, ServerOptions, ServerWatch};
pub use session::Session;
pub use spec::ClusterSpec;
pub use stats::StepStatsSink;
pub use tls::{ClientTls, Identity, ServerTls};
pub use tokens::{Role, check_tokens};
pub use traffic::{LinkFigures, WayFigures};
pub use way::DataPlane;
