//! Optimisation of a step's graph by passes over a working copy.
//!
//! What it is: [`optimize`] takes a graph that `tenon-graph` has placed ([`Step`]), runs each
//! [`Pass`] on a [`Draft`] of it, and returns the new graph with its shapes and devices, and a
//! [`Report`] of the changes. Passes repeat until a round changes nothing, at most
//! [`Options::rounds`] times.
//!
//! What it is not: the choice of the passes that run and of kernels (`tenon-runtime`), definitions
//! of fusions (`tenon-ops` and plugins), placement and partitioning (`tenon-graph`).
//!
//! # Invariants
//! A [`Draft`], or the check at the end of the rounds, preserves:
//! - feeds, fetches and targets: their nodes keep names, types and values;
//! - ops with state or effects ([`effects`]): they are never folded, merged or removed, except on a
//!   branch that is never taken. A node that depended on one by data depends on it by a control
//!   edge once the data is known;
//! - whether a step fails, and whether a fetch is dead: a node that may fail runs even without
//!   readers ([`Draft::absorb`] states that other nodes fail in its place), and a node that waited
//!   for a possibly dead value still waits for it;
//! - edges that carry references, and devices: a new node runs on the device of the node that it
//!   replaces;
//! - results, within the numerics contract of the kernels: no floating-point rule changes rounding
//!   or loses a NaN, an infinity or the sign of a zero. A denormal may pass through where a removed
//!   node would have flushed it to zero.
//!
//! If a pass fails, its edits are undone, the report gives the error, and the pass does not run
//! again for this step. Every edit is checked against op, types, shapes and kernels when it is
//! made; edges and frames are checked at the end of the pass, and an invalid result is undone too.
//!
//! Constant folding runs kernels through [`Evaluate`](tenon_graph::Evaluate).

mod attrs;
mod broadcast;
mod common_subexpressions;
mod constant_folding;
mod control_edges;
mod dead_branches;
mod draft;
mod driver;
pub mod effects;
mod elements;
mod error;
mod failures;
mod fallible;
mod gates;
mod identity;
pub mod knobs;
mod library;
mod limits;
mod pass;
mod remapping;
mod report;
mod rewrites;
mod spread;
mod undo;

pub use draft::{Draft, NewNode, Users};
pub use driver::{BUILT_IN, Optimized, Options, Step, built_in, optimize};
pub use error::PassError;
pub use library::LibraryPass;
pub use limits::Limits;
pub use pass::Pass;
pub use report::{Change, PassReport, Report};
