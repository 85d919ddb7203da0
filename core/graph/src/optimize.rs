//! Optimisation of a step's graph: passes over a working form of it.
//!
//! [`optimize`] takes what is placed ([`Step`]), lets each [`Pass`] change a [`Draft`] of it, and gives the
//! new graph, its shapes and devices, and a [`Report`] of what was done. Passes repeat until a round changes
//! nothing, at most [`Options::rounds`] times.
//!
//! What no pass may change, since a [`Draft`] refuses it or since rounds end with a check of it:
//! - feeds, fetches and targets: the nodes keep their names, types and values;
//! - ops with state or effects ([`effects`]): never folded, merged or removed, but on a branch that is never
//!   taken; what waited for them by data waits for them by a control edge once the data is known;
//! - whether a step fails, and whether a fetch is dead: a node that may fail runs though nothing reads it any more
//!   ([`Draft::absorb`] says that others fail for it); who waited for a value that may be dead goes on waiting;
//! - edges that carry references; devices, since a new node stands where the one does that it replaces;
//! - results, within the numerics contract of the kernels: no floating-point rule that rounds otherwise, none
//!   that loses a NaN, an infinity or the sign of a zero. A denormal may pass a node that is gone, which
//!   would have flushed it.
//!
//! A pass that fails leaves the graph as it was before it began: its edits are undone, the report says why,
//! and it does not run again for this step. Its result counts only if it is sound: every edit is checked
//! against op, types, shapes and kernels when it is made; edges and frames are checked when it is done.
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
/// /// Takes `Relu` of `Relu` for one.
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
    /// Its name, in snake_case: reports and the knob `graph.<name>` have it.
    fn name(&self) -> &str;

    /// Changes the draft as far as it can.
    ///
    /// # Errors
    /// What makes its edits so far worthless: they are undone.
    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError>;

    /// The plugin that brings it; empty for those of this crate.
    fn plugin(&self) -> &str {
        ""
    }

    /// Whether it waits until the others have nothing left to do: for those that make few large nodes of many, which
    /// the others cannot look into.
    fn is_late(&self) -> bool {
        false
    }
}
