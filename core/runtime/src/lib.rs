//! Sessions, plans, the executor and the rendezvous.
//!
//! What it is: the crate that an embedder depends on. A [`Runtime`] loads plugins and opens
//! devices; a [`Session`] owns a graph and runs steps over it. The crates below are re-exported as
//! [`host`], [`graph`], [`optimize`], [`framework`] and [`proto`].
//!
//! A step goes through four parts. The [`Session`] keeps graph, names and signatures. The *step
//! graph* front end takes what a signature needs of the graph, infers shapes and places it
//! (`tenon-graph`), optimises it (`tenon-optimize`), chooses a kernel for each node, and cuts it into partitions that are
//! complete in themselves. A [`Worker`] compiles each partition into a *plan* of flat arrays. The
//! *executor* runs plans, with one state for each step in flight, which is made once and used
//! again. Partitions exchange values through a [`rendezvous`].
//!
//! What it is not: loading of libraries, devices and kernel objects (`tenon-host`), passes over
//! graphs (`tenon-optimize`), kernels (plugins). Two parts of the product are crates above this one:
//! figures over HTTP (`tenon-monitor`) and quantisation (`tenon-quantize`).
//!
//! # Invariants
//! - A compiled step that runs again with the same shapes allocates nothing, apart from what its
//!   kernels ask for.
//! - Every step ends, with its values or with the first error, at the latest a fifth of a second
//!   after its deadline or its cancellation, even where a kernel does not return.
//! - A graph, a plugin or a plan that is replaced while steps run stays as it was for the steps
//!   that use it.
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
//! Without a plugin there are no devices, and no step runs. Plugins that [`RuntimeOptions`] names
//! are loaded first, then those that are found: in the folders and files of `TENON_PLUGIN_PATH`,
//! beside the program and in its `deps`, in `../lib/tenon/plugins`, and in the user's own folder
//! ([`host::search`]). `examples/embed.rs` is a whole program, with prepared calls, events, and a
//! plugin that is replaced; `sdk/docs/embed.md` explains it.

mod any_session;
pub mod costs;
mod error;
mod executor;
mod feeds;
pub mod isolate;
mod kernels;
pub mod metrics;
mod options;
mod plan;
pub mod rendezvous;
mod run_limits;
mod runtime;
mod sampling;
mod session;
mod step_graph;
pub mod trace;
mod tuning;
mod worker;

pub use any_session::{AnySession, SessionError};
pub use error::{RuntimeError, StepError};
pub use options::{CallableOptions, CancelToken, Metadata, NodeReport, RunOptions, SessionOptions};
pub use runtime::{Runtime, RuntimeOptions, WeakRuntime};
pub use session::{AnyShapeCallable, Callable, PartialProgress, PartialRun, Session, Taken};
pub use step_graph::{NodeExplanation, Simplified, TaskFeed, TaskPart, TaskStep};
pub use tenon_framework as framework;
pub use tenon_gradient as gradient;
pub use tenon_graph as graph;
pub use tenon_host as host;
pub use tenon_optimize as optimize;
pub use tenon_proto as proto;
pub use tuning::Decision;
pub use worker::{StepOptions, Worker, WorkerGraph, WorkerSession};
