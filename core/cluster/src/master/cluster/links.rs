//! Calls to workers.

use super::super::Answered;
use crate::{
    call::Call, client::Client, clock, clock::Mailbox, methods::Method, peers::Peers,
    refusal::Refusal, worker::WorkerService,
};
use std::{sync::Arc, thread, time::Duration};
use tenon_framework::{Code, sync::Mutex};
use tenon_runtime::CancelToken;
use tokio::task::AbortHandle;

/// The way to a worker.
#[derive(Clone)]
pub(super) enum Link {
    /// The worker of this process.
    Own(Arc<WorkerService>),
    /// That of another task.
    Other(Arc<Peers>, String),
}

/// A call that runs.
pub(super) enum Started {
    Own(CancelToken),
    Other(AbortHandle),
}

impl Started {
    /// Gives the call up. One over gRPC has no answer then.
    pub fn cancel(&self) {
        match self {
            Started::Own(token) => token.cancel(),
            Started::Other(handle) => handle.abort(),
        }
    }
}

impl Link {
    pub fn own(service: &Arc<WorkerService>) -> Link {
        Link::Own(Arc::clone(service))
    }

    pub fn other(peers: &Arc<Peers>, task: String) -> Link {
        Link::Other(Arc::clone(peers), task)
    }

    /// The name of the task.
    pub fn task(&self) -> &str {
        match self {
            Link::Own(service) => service.task(),
            Link::Other(_, task) => task,
        }
    }

    /// Whether the worker is in another process.
    pub fn is_other(&self) -> bool {
        matches!(self, Link::Other(..))
    }

    /// Calls a method; `done` gets the answer.
    pub fn start<M: Method>(
        &self,
        request: M::Request,
        limit: Option<Duration>,
        done: impl FnOnce(Answered<M::Response>) + Send + 'static,
    ) -> Started {
        match self {
            Link::Other(peers, task) => {
                Started::Other(peers.start::<M>(task, request, limit, done))
            }
            Link::Own(service) => {
                let (service, cancel) = (Arc::clone(service), CancelToken::new());
                let client = Some(Client::of_this_process());
                let call = Call { request, client, cancel: cancel.clone() };
                let done = Arc::new(Mutex::new(Some(done)));
                let waiting = Arc::clone(&done);
                let run = move || {
                    let answer = M::answer(&service, call);
                    // Without the lock: it is not known what is done.
                    let done = waiting.lock().take();
                    if let Some(done) = done {
                        done(answer);
                    }
                };
                // A thread of its own: those of the server may all be masters that wait for their workers.
                let thread = thread::Builder::new().name("tenon-part".to_owned());
                if let Err(error) = thread.spawn(run) {
                    let done = done.lock().take();
                    let message = format!("no thread for the part of a step: {error}");
                    let refusal = Refusal::new(Code::RESOURCE_EXHAUSTED, message);
                    done.into_iter().for_each(|done| done(Err(refusal.clone())));
                }
                Started::Own(cancel)
            }
        }
    }
}

/// Calls a method at several workers at once; the answers with their tasks, in the order of the calls.
pub(super) fn together<M: Method>(
    calls: Vec<(Link, M::Request)>,
    limit: Duration,
) -> Vec<(String, Answered<M::Response>)> {
    let mailbox = Mailbox::new();
    let late = || {
        let message = format!("it did not answer within {limit:?}");
        Err(Refusal::new(Code::DEADLINE_EXCEEDED, message))
    };
    let mut answers: Vec<_> =
        calls.iter().map(|(link, _)| (link.task().to_owned(), late())).collect();
    let count = answers.len();
    for (at, (link, request)) in calls.into_iter().enumerate() {
        let mailbox = mailbox.clone();
        // A caller that waits no longer does not take it.
        let done = move |answer| mailbox.send((at, answer));
        link.start::<M>(request, Some(limit), done);
    }
    let end = clock::now() + limit + Duration::from_secs(1);
    for _ in 0..count {
        let Some((at, answer)) = mailbox.take_until(end) else { break };
        answers[at].1 = answer;
    }
    answers
}
