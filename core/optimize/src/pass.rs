//! The trait of passes.

use crate::{Draft, PassError};

/// A pass over a step's graph.
///
/// ```
/// use tenon_optimize::{Draft, Pass, PassError};
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
