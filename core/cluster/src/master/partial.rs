//! Partial runs: steps whose feeds and fetches come in several requests.

use super::{
    cluster::{ClusterSession, TaskPartial},
    session::MasterSession,
    values,
};
use crate::{handles::new_handle, options::milliseconds, refusal::Refusal};
use std::{collections::HashMap, sync::Arc};
use tenon_framework::{
    Code, Tensor,
    sync::{Mutex, rank},
};
use tenon_proto::{
    NamedTensorProto, PartialRunSetupRequest, RunStepRequest, RunStepResponse, TensorProto,
};
use tenon_runtime::{CallableOptions, CancelToken, PartialRun, RunOptions};

/// Values with their names.
fn named_values(names: Vec<String>, values: Vec<TensorProto>) -> Vec<NamedTensorProto> {
    let named = names.into_iter().zip(values);
    named.map(|(name, tensor)| NamedTensorProto { name, tensor: Some(tensor) }).collect()
}

/// Partial runs of a session that are not done.
const MOST: usize = 1000;

/// The partial runs of a session, by handle.
pub(super) struct PartialRuns(Mutex<HashMap<String, Arc<Run>>>);

/// A partial run.
enum Run {
    Here(PartialRun),
    OverTasks(TaskPartial),
}

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
        let PartialRunSetupRequest { feed, fetch, target, .. } = request;
        let signature = CallableOptions {
            feeds: feed,
            fetches: fetch,
            targets: target,
            // The feeds come later, and TensorFlow does not look at their shapes.
            feeds_of_any_shape: true,
        };
        let run = match &session.cluster {
            None => Run::Here(session.session.partial_run(&signature)?),
            Some(cluster) => {
                Run::OverTasks(TaskPartial::begin(cluster, &session.session, &signature)?)
            }
        };
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
        let (tensor, is_done) = match (&*run, &session.cluster) {
            (Run::OverTasks(run), Some(cluster)) => {
                let fetched = run.run(cluster, &named, &fetches, &options);
                (fetched.map(|fetched| named_values(request.fetch, fetched)), run.is_over())
            }
            (Run::OverTasks(_), None) => return Err(Refusal::no_session(handle)),
            (Run::Here(run), _) => {
                let fetched = run.run(&named, &fetches, &options).map_err(Refusal::from);
                let write = |fetched: Vec<Tensor>| values::write(session, request.fetch, &fetched);
                (fetched.and_then(write), run.is_done())
            }
        };
        if is_done {
            self.0.lock().remove(handle);
        }
        Ok(RunStepResponse { tensor: tensor?, ..RunStepResponse::default() })
    }

    /// Cancels all.
    pub fn cancel(&self, cluster: Option<&ClusterSession>) {
        let runs = std::mem::take(&mut *self.0.lock());
        for run in runs.values() {
            match (&**run, cluster) {
                (Run::Here(run), _) => run.cancel(),
                (Run::OverTasks(run), Some(cluster)) => run.end(cluster),
                (Run::OverTasks(_), None) => {}
            }
        }
    }
}
