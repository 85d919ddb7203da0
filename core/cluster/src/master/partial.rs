//! Partial runs: steps whose feeds and fetches come in several requests.

use super::{session::MasterSession, values};
use crate::{handles::new_handle, options::milliseconds, refusal::Refusal};
use std::{collections::HashMap, sync::Arc};
use tenon_framework::{
    Code, Tensor,
    sync::{Mutex, rank},
};
use tenon_proto::{PartialRunSetupRequest, RunStepRequest, RunStepResponse};
use tenon_runtime::{CallableOptions, CancelToken, PartialRun, RunOptions};

/// Partial runs of a session that are not done.
const MOST: usize = 1000;

/// The partial runs of a session, by handle.
pub(super) struct PartialRuns(Mutex<HashMap<String, Arc<PartialRun>>>);

impl Default for PartialRuns {
    fn default() -> PartialRuns {
        PartialRuns(Mutex::ranked(rank::LEAF, HashMap::new()))
    }
}

impl PartialRuns {
    /// Begins a partial run; returns its handle.
    pub fn set_up(
        &self,
        session: &MasterSession,
        request: PartialRunSetupRequest,
    ) -> Result<String, Refusal> {
        if self.0.lock().len() >= MOST {
            return Err(Refusal::new(
                Code::RESOURCE_EXHAUSTED,
                format!(
                    "the session has {MOST} partial runs that are not done, its limit: complete them"
                ),
            ));
        }
        if session.cluster.is_some() {
            return Err(Refusal::new(
                Code::UNIMPLEMENTED,
                "partial runs over several tasks are not there: feed and fetch all in one step, or leave the other tasks out \
                 by ConfigProto.device_filters",
            ));
        }
        let PartialRunSetupRequest { feed, fetch, target, .. } = request;
        let signature = CallableOptions { feeds: feed, fetches: fetch, targets: target };
        let run = session.session.partial_run(&signature)?;
        let handle = new_handle();
        self.0.lock().insert(handle.clone(), Arc::new(run));
        Ok(handle)
    }

    /// Feeds and fetches a part.
    pub fn run(
        &self,
        session: &MasterSession,
        request: RunStepRequest,
        cancel: CancelToken,
    ) -> Result<RunStepResponse, Refusal> {
        let handle = &request.partial_run_handle;
        let run = self.0.lock().get(handle).cloned();
        let run = run.ok_or_else(|| {
            Refusal::invalid(format!(
                "there is no partial run '{handle}': it was never set up, or is done; set it up with its feeds and fetches"
            ))
        })?;
        if !request.target.is_empty() {
            return Err(Refusal::invalid(
                "a part of a partial run has no targets: name them when it is set up",
            ));
        }
        values::check_once(request.feed.iter().map(|feed| feed.name.as_str()), "fed")?;
        values::check_once(request.fetch.iter().map(String::as_str), "fetched")?;
        let asked = request.options.unwrap_or_default();
        let options = RunOptions {
            deadline: milliseconds(asked.timeout_in_ms).or(session.options.timeout),
            cancel: Some(cancel),
            trace: None,
        };
        let feeds = values::read(session, request.feed)?;
        let named: Vec<(&str, Tensor)> =
            feeds.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let fetches: Vec<&str> = request.fetch.iter().map(String::as_str).collect();
        let fetched = run.run(&named, &fetches, &options);
        if run.is_done() {
            self.0.lock().remove(handle);
        }
        let tensor = values::write(session, request.fetch, &fetched?)?;
        Ok(RunStepResponse { tensor, ..RunStepResponse::default() })
    }

    /// Cancels all.
    pub fn cancel(&self) {
        let runs = std::mem::take(&mut *self.0.lock());
        runs.values().for_each(|run| run.cancel());
    }
}
