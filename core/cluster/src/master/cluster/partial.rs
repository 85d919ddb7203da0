//! Partial runs over several tasks: steps whose feeds and fetches come in several requests.
//!
//! All parts are called for each request, as TensorFlow's masters do: the first call starts them, and the last one waits for
//! their ends. The step is cleaned up after its last request, or one that failed, or when it is dropped.

use super::{
    super::Answered,
    ClusterSession, Compiled,
    run::{Given, Wish, run_parts},
};
use crate::{clock, handles::new_step, keys, refusal::Refusal};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tenon_framework::{Code, Tensor};
use tenon_proto::{NamedTensorProto, TensorProto, convert::tensor_to_proto};
use tenon_runtime::{CallableOptions, PartialProgress, RunOptions, Session, Taken};

/// A partial run over several tasks.
pub(in crate::master) struct TaskPartial {
    compiled: Arc<Compiled>,
    progress: PartialProgress,
    step_id: i64,
    is_over: AtomicBool,
}

impl TaskPartial {
    /// Begins a run; the parts start with the first request.
    pub fn begin(
        cluster: &ClusterSession,
        session: &Session,
        signature: &CallableOptions,
    ) -> Answered<TaskPartial> {
        let compiled = cluster.compiled(session, signature, &RunOptions::default())?;
        if compiled.graph_key != 0 {
            return Err(Refusal::new(
                Code::UNIMPLEMENTED,
                "a partial run has no collective operations whose members are in other sessions: run it in one step",
            ));
        }
        let progress = session.progress(signature, &compiled.step)?;
        Ok(TaskPartial { compiled, progress, step_id: new_step(), is_over: AtomicBool::new(false) })
    }

    /// Feeds and fetches a part; the fetched values in the order of their names.
    pub fn run(
        &self,
        cluster: &ClusterSession,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        options: &RunOptions,
    ) -> Answered<Vec<TensorProto>> {
        if self.is_over() {
            return Err(Refusal::new(
                Code::ABORTED,
                "the partial run is over: a part of it failed",
            ));
        }
        let Taken { feeds, fetches, completes } = self.progress.take(feeds, fetches)?;
        let outcome = self.parts(cluster, feeds, &fetches, completes, options);
        if completes || outcome.is_err() {
            self.end(cluster);
        }
        outcome
    }

    fn parts(
        &self,
        cluster: &ClusterSession,
        feeds: Vec<(usize, Tensor)>,
        fetches: &[usize],
        completes: bool,
        options: &RunOptions,
    ) -> Answered<Vec<TensorProto>> {
        let mut send = Vec::with_capacity(feeds.len());
        for (at, tensor) in feeds {
            let Some(edge) = &self.compiled.step.feeds[at].edge else { continue };
            let tensor = Some(tensor_to_proto(&tensor)?);
            send.push(NamedTensorProto { name: keys::of_edge(edge), tensor });
        }
        let receive: Vec<String> =
            fetches.iter().map(|&at| self.compiled.fetches[at].clone()).collect();
        let partial = Some(completes);
        let given = Given { step_id: self.step_id, send, receive: receive.clone(), partial };
        let wish = Wish { feeds: &[], options, began: clock::now(), timeline: false };
        let results = run_parts(cluster, &self.compiled, given, &wish)?;
        let received = results.into_iter().flat_map(|result| result.recv);
        let mut received: HashMap<String, Option<TensorProto>> =
            received.map(|it| (it.name, it.tensor)).collect();
        let take = |key: &String| {
            received.remove(key).flatten().ok_or_else(|| {
                let message = format!("the worker did not answer with the value of key '{key}'");
                Refusal::new(Code::INTERNAL, message)
            })
        };
        receive.iter().map(take).collect()
    }

    /// Whether nothing more can be asked of it.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Ends the run: the workers drop it.
    pub fn end(&self, cluster: &ClusterSession) {
        if !self.is_over.swap(true, Ordering::AcqRel) {
            let links = self.compiled.parts.iter().map(|part| &part.link);
            cluster.leavings.clean_up(self.step_id, links);
        }
    }
}
