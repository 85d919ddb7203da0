//! Calls to workers.

use super::{super::Answered, Place};
use crate::{
    call::Call, client::Client, clock, clock::Mailbox, methods::Method, peers::Peers,
    refusal::Refusal, worker::WorkerService,
};
use std::{marker::PhantomData, sync::Arc, time::Duration};
use tenon_framework::Code;
use tenon_runtime::CancelToken;
use tokio::task::AbortHandle;

/// The way to a worker.
#[derive(Clone)]
pub(super) enum Link {
    /// The worker of this process, whose calls run on the server's threads, and the name of its task.
    Own(Arc<WorkerService>, Arc<Peers>, Arc<str>),
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
    pub fn own(place: &Place) -> Link {
        Link::Own(Arc::clone(&place.own), Arc::clone(&place.peers), Arc::clone(&place.task))
    }

    pub fn other(peers: &Arc<Peers>, task: String) -> Link {
        Link::Other(Arc::clone(peers), task)
    }

    /// The name of the task.
    pub fn task(&self) -> &str {
        match self {
            Link::Own(_, _, task) => task,
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
            Link::Own(service, peers, _) => {
                let (service, cancel) = (Arc::clone(service), CancelToken::new());
                let call = own_call(request, &cancel);
                let pending = Pending(Some(done), PhantomData);
                peers.run_blocking(move || pending.end(M::answer(&service, call)));
                Started::Own(cancel)
            }
        }
    }

    /// Calls a method of the worker of this process on this thread.
    ///
    /// # Errors
    /// The worker is in another process; the request comes back.
    pub fn here<M: Method>(
        &self,
        request: M::Request,
        cancel: &CancelToken,
    ) -> Result<Answered<M::Response>, M::Request> {
        match self {
            Link::Own(service, ..) => Ok(M::answer(service, own_call(request, cancel))),
            Link::Other(..) => Err(request),
        }
    }
}

fn own_call<Q>(request: Q, cancel: &CancelToken) -> Call<Q> {
    Call { request, client: Some(Client::of_this_process()), cancel: cancel.clone() }
}

/// What takes the answer of a call: an error, if the call ends without one.
struct Pending<R, F: FnOnce(Answered<R>)>(Option<F>, PhantomData<fn(R)>);

impl<R, F: FnOnce(Answered<R>)> Pending<R, F> {
    fn end(mut self, answer: Answered<R>) {
        if let Some(done) = self.0.take() {
            done(answer);
        }
    }
}

impl<R, F: FnOnce(Answered<R>)> Drop for Pending<R, F> {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Err(Refusal::new(Code::UNAVAILABLE, "the server stops")));
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
