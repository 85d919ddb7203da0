//! The results for the candidates of a load.

use crate::{
    error::LoadError,
    search::{Candidate, Looked, Origin},
};
use std::path::PathBuf;
use tenon_framework::registry::{PluginInfo, Warning};

/// A candidate that was refused.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// The candidate.
    pub candidate: Candidate,
    /// The step that refused it, with the reason.
    pub error: LoadError,
}

/// A candidate that search found after another file of the same plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superseded {
    /// The candidate.
    pub candidate: Candidate,
    /// The plugin.
    pub plugin: String,
    /// The file in use; `None` when the plugin is linked into the host.
    pub by: Option<PathBuf>,
}

/// The results of a load: each candidate is in one list, unless search found it and it is not a
/// plugin.
#[derive(Debug, Clone, Default)]
pub struct LoadReport {
    /// Plugins that are now in use.
    pub loaded: Vec<PluginInfo>,
    /// Requested plugins that were in use already.
    pub present: Vec<PluginInfo>,
    /// Other builds of a plugin that search found.
    pub superseded: Vec<Superseded>,
    /// Candidates that were refused. They do not affect other plugins.
    pub rejected: Vec<Rejected>,
    /// Warnings about the new snapshot.
    pub warnings: Vec<Warning>,
    /// Places that were searched besides the named files.
    pub searched: Vec<Looked>,
}

impl LoadReport {
    /// The requested plugins, or the reason why one of them is missing. It is not an error that a
    /// search found none: see [`LoadReport::searched`].
    ///
    /// # Errors
    /// The first rejected candidate that was named by the caller, else the first of all.
    pub fn into_result(self) -> Result<Vec<PluginInfo>, LoadError> {
        let mut rejected = self.rejected;
        rejected.sort_by_key(|entry| entry.candidate.origin != Origin::Explicit);
        match rejected.into_iter().next() {
            Some(first) => Err(first.error),
            None => Ok(self.present.into_iter().chain(self.loaded).collect()),
        }
    }

    /// Records a refusal, and logs it.
    pub(crate) fn reject(&mut self, candidate: Candidate, error: LoadError) {
        tracing::warn!(
            path = %candidate.path.display(),
            step = error.step().name(),
            "plugin refused: {error}"
        );
        self.rejected.push(Rejected { candidate, error });
    }
}
