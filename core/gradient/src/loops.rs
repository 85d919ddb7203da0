//! Gradients of `While`.

use crate::{
    GradientError,
    calls::{CallSite, Set},
    engine::Engine,
};

impl Engine<'_, '_> {
    /// The gradients of the inputs of a loop.
    pub fn while_loop(&mut self, site: &CallSite<'_>) -> Result<Set, GradientError> {
        Err(site.unsupported("expected no loop"))
    }
}
