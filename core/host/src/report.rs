//! What became of the candidates of a load.

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
    /// The step that refused it, and why.
    pub error: LoadError,
}

/// A candidate found by search that another file of the same plugin comes before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superseded {
    /// The candidate.
    pub candidate: Candidate,
    /// The plugin.
    pub plugin: String,
    /// The file in use; `None` when the plugin is linked into the host.
    pub by: Option<PathBuf>,
}

/// What became of the candidates: each is in one list, unless search found it and it is no plugin.
#[derive(Debug, Clone, Default)]
pub struct LoadReport {
    /// Plugins that are in use from now on.
    pub loaded: Vec<PluginInfo>,
    /// Plugins that were asked for and in use already.
    pub present: Vec<PluginInfo>,
    /// Other builds of a plugin that search found.
    pub superseded: Vec<Superseded>,
    /// Candidates that were refused. One of them never hides another plugin.
    pub rejected: Vec<Rejected>,
    /// What the user should know of the new snapshot.
    pub warnings: Vec<Warning>,
    /// Where plugins were looked for besides the files that were named.
    pub searched: Vec<Looked>,
}

impl LoadReport {
    /// The plugins that were asked for, or why one of them is not there. That a search found none is not an error: see
    /// [`LoadReport::searched`].
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

    /// Keeps a refusal, and says so in the log.
    pub(crate) fn reject(&mut self, candidate: Candidate, error: LoadError) {
        tracing::warn!(
            path = %candidate.path.display(),
            step = error.step().name(),
            "plugin refused: {error}"
        );
        self.rejected.push(Rejected { candidate, error });
    }
}
