//! Sessions, plans, the executor and the rendezvous.
//!
//! The interface for embedders: a [`Runtime`] loads plugins and opens devices, a [`Session`] owns a
//! graph and its resources and runs steps over it. The crates below are re-exported as [`host`],
//! [`graph`], [`framework`] and [`proto`].
//!
//! A step passes through these stages: a [`Session`] keeps graph, names and signatures. The *step
//! graph* front end prunes the graph for a signature, infers shapes, places and optimises it
//! (`tenon-graph`), chooses a kernel for each node, and cuts it into self-contained partitions. A
//! [`Worker`] compiles each partition into a *plan* of flat arrays, and the *executor* runs plans:
//! one state for each step in flight, created once and reused. Partitions exchange values through a
//! [`rendezvous`].
//!
//! Other crates have: the loading of libraries, devices and kernel objects (`tenon-host`), passes
//! over graphs (`tenon-graph`), kernels (plugins), metrics over HTTP (`tenon-monitor`, above this
//! crate), and quantisation (`tenon-quantize`, above this crate).
//!
//! # Invariants
//! - A compiled step allocates nothing when it runs again with the same shapes, apart from the
//!   requests of its kernels.
//! - Every step ends, with its values or with the first error, at most a fifth of a second after
//!   its deadline or its cancellation, even if a kernel does not return.
//! - Steps in flight keep the graph, plugins and plans that they started with when these are
//!   replaced.
//!
//! ```no_run
//! use tenon_runtime::{
//!     RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
//!     framework::{DType, PartialShape, Tensor},
//!     graph::GraphBuilder,
//! };
//!
//! let plugins = vec!["lib/tenon/plugins/libtenon_cpu.so".into()];
//! let (runtime, report) = Runtime::new(RuntimeOptions { plugins, ..RuntimeOptions::default() })?;
//! report.into_result()?;
//!
//! let registry = runtime.registry();
//! let mut builder = GraphBuilder::new(&registry);
//! let x = builder.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
//! builder.op("Relu").name("y").input(x).build()?;
//!
//! let session = Session::new(&runtime, SessionOptions::default())?;
//! session.extend_graph(&builder.finish())?;
//! let x = Tensor::from_slice(&[2], &[-1f32, 1.0])?;
//! let (fetched, _) = session.run(&[("x", x)], &["y"], &[], &RunOptions::default())?;
//! assert_eq!(fetched[0].as_slice::<f32>()?, [0.0, 1.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without a plugin there are no devices, and nothing runs. Plugins named in [`RuntimeOptions`] are
//! loaded first, then those found by searching: the folders and files in `TENON_PLUGIN_PATH`, the
//! folder of the program and its `deps`, `../lib/tenon/plugins`, and the user's folder
//! ([`host::search`]). `examples/embed.rs` is a complete program, with prepared calls, events, and
//! a plugin that is replaced; `sdk/docs/embed.md` explains it.

mod error;
mod executor;
pub mod isolate;
mod kernels;
pub mod metrics;
mod options;
mod plan;
pub mod rendezvous;
mod run_limits;
mod runtime;
mod session;
mod step_graph;
pub mod trace;
mod tuning;
mod worker;

pub use error::{RuntimeError, StepError};
pub use options::{CallableOptions, CancelToken, Metadata, NodeReport, RunOptions, SessionOptions};
pub use runtime::{Runtime, RuntimeOptions, WeakRuntime};
pub use session::{Callable, Session};
pub use step_graph::{NodeExplanation, Simplified};
pub use tenon_framework as framework;
pub use tenon_graph as graph;
pub use tenon_host as host;
pub use tenon_proto as proto;
pub use tuning::Decision;
pub use worker::{StepOptions, Worker, WorkerGraph};
