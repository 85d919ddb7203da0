//! Optimisation of a step's graph by passes over a working copy.
//!
//! [`optimize`] takes a placed graph ([`Step`]), runs each [`Pass`] on a [`Draft`] of it, and
//! returns the new graph with its shapes and devices, and a [`Report`] of the changes. Passes
//! repeat until a round changes nothing, at most [`Options::rounds`] times.
//!
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
//! Constant folding runs kernels through [`Evaluate`](crate::Evaluate).

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
mod fallible;
mod identity;
pub mod knobs;
mod library;
mod limits;
mod remapping;
mod report;
mod rewrites;
mod undo;

pub use draft::{Draft, NewNode, Users};
pub use driver::{BUILT_IN, Optimized, Options, Step, built_in, optimize};
pub use error::PassError;
pub use library::LibraryPass;
pub use limits::Limits;
pub use report::{Change, PassReport, Report};

/// A pass over a step's graph.
///
/// ```
/// use tenon_graph::optimize::{Draft, Pass, PassError};
///
/// /// Replaces `Relu` of `Relu` by one `Relu`.
/// struct OneRelu;
///
/// impl Pass for OneRelu {
///     fn name(&self) -> &str {
///         "one_relu"
///     }
///
///     fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
///         for id in draft.order()? {
///             let Some(inner) = draft.source_of(id, 0) else { continue };
///             if draft.node(id).op.name == "Relu" && draft.node(inner).op.name == "Relu" {
///                 draft.bypass(id, 0)?;
///             }
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait Pass {
    /// The name in snake_case, which reports and the knob `graph.<name>` use.
    fn name(&self) -> &str;

    /// Changes the draft.
    ///
    /// # Errors
    /// The edits of this run are invalid and are undone.
    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError>;

    /// The plugin that provides the pass; empty for the passes of this crate.
    fn plugin(&self) -> &str {
        ""
    }

    /// Whether the pass runs only once the others have nothing left to do. Use it for a pass that
    /// merges many nodes into few large ones, which other passes cannot look into.
    fn is_late(&self) -> bool {
        false
    }
}
