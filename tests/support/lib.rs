//! Support for the tests across crates: builds the zoo and the broken fixtures, loads plugins,
//! calls kernels.
//!
//! What it is:
//! - [`zoo`]: the zoo's libraries, in Rust (built by cargo as dependencies of this package) and in
//!   C (built here).
//! - [`fixtures`]: plugins that are deliberately broken, one for each way in which loading can
//!   fail.
//! - [`mod@bench`]: a host without a graph, which makes kernels of loaded plugins and calls them.
//! - [`clauses`]: what the boundary promises, and the ops of the zoo that use it.
//! - [`log`]: what the host writes to its log.
//! - [`loops`]: graphs with loops.
//! - [`docs`]: guides that are followed to the letter.
//! - [`exceptions`]: golden cases that shape functions refuse.
//! - [`quantized`]: calls of quantised products and convolutions, and their results by definition.
//! - [`process`]: tests in their own processes.
//! - [`session`]: runtimes, sessions and accounts of what a process holds.
//!
//! What it is not: the test programs, which are the other folders of `tests`, or the conformance of
//! plugins, which is `tenon-testkit`.
//!
//! # Invariants
//! - Everything is built once, without the network, under a lock on a file, into the folder that
//!   cargo builds into.
//! - A test that looks at what its process holds takes its turn ([`session`]) as the first thing
//!   that it does.

pub mod bench;
pub mod build;
pub mod clauses;
pub mod cuda;
pub mod docs;
pub mod exceptions;
pub mod fixtures;
pub mod log;
pub mod loops;
pub mod process;
pub mod quantized;
pub mod session;
pub mod zoo;

pub use zoo::plugin;
