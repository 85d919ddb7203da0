//! Parts of partial runs: steps that a master feeds and fetches by several calls of RunGraph.
//!
//! # States
//! The first call of a step starts the part on a thread of its own. Each call gives it values, and takes those that it asks
//! for when they are there. The last call waits for its end. A call that fails or is given up ends the part.

use super::{
    Answered, WorkerService,
    run::{failed, give, value},
    steps::Running,
};
use crate::{clock, clock::Mailbox, keys, refusal::Refusal, rendezvous::StepRendezvous};
use std::{sync::Arc, thread, time::Duration};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};
use tenon_proto::{NamedTensorProto, RunGraphRequest, RunGraphResponse};
use tenon_runtime::{
    CancelToken, RunOptions, StepError, StepOptions, WorkerGraph,
    rendezvous::{Parcel, Rendezvous},
};

/// How long a call waits before it looks again; it is woken by what it waits for.
const LONG: Duration = Duration::from_secs(600);

/// What a call waits for.
enum Event {
    Value(usize, Result<Parcel, StepError>),
    Ended,
    Cancelled,
}

/// A part that is fed and fetched by several calls.
pub(super) struct Partial {
    cancel: CancelToken,
    end: Mutex<End>,
}

#[derive(Default)]
struct End {
    result: Option<Answered<()>>,
    /// The call that waits for the end.
    waits: Option<Mailbox<Event>>,
}

impl Partial {
    /// Starts the part.
    pub fn start(graph: Arc<WorkerGraph>, running: Running, step: i64) -> Answered<Arc<Partial>> {
        let end = Mutex::ranked(rank::LEAF, End::default());
        let partial = Arc::new(Partial { cancel: CancelToken::new(), end });
        let own = Arc::clone(&partial);
        let run = move || {
            let rendezvous = Arc::clone(&running.0.rendezvous);
            let run = RunOptions { cancel: Some(own.cancel.clone()), ..RunOptions::default() };
            let options = StepOptions {
                id: step.cast_unsigned(),
                rendezvous: Some(Arc::clone(&rendezvous) as Arc<dyn Rendezvous>),
                run,
            };
            let result = graph.run(&options, &[], &mut Vec::new());
            own.finish(result.map_err(|error| failed(&rendezvous, error)));
        };
        let thread = thread::Builder::new().name("tenon-partial-part".to_owned());
        thread.spawn(run).map_err(|error| {
            let message = format!("no thread for the part of a partial run: {error}");
            Refusal::new(Code::RESOURCE_EXHAUSTED, message)
        })?;
        Ok(partial)
    }

    fn finish(&self, result: Answered<()>) {
        let mut end = self.end.lock();
        end.result = Some(result);
        let waits = end.waits.take();
        drop(end);
        if let Some(mailbox) = waits {
            mailbox.send(Event::Ended);
        }
    }

    /// Ends the part.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The reason why the part has failed, if it has.
    fn failure(&self) -> Option<Refusal> {
        self.end.lock().result.as_ref()?.as_ref().err().cloned()
    }
}

/// One call of a part that has started.
pub(super) fn call(
    service: &WorkerService,
    partial: &Partial,
    rendezvous: &StepRendezvous,
    request: RunGraphRequest,
    cancel: &CancelToken,
) -> Answered<RunGraphResponse> {
    let events = Mailbox::new();
    let woken = events.clone();
    let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(move || woken.send(Event::Cancelled));
    cancel.on_cancel(&wake);
    let answered = (|| {
        give(service.edges(), rendezvous, request.send)?;
        let recv = receive(service, partial, rendezvous, request.recv_key, &events)?;
        if request.is_last_partial_run {
            wait_for_end(partial, &events)?;
        }
        Ok(RunGraphResponse { recv, ..RunGraphResponse::default() })
    })();
    answered.map_err(|refusal: Refusal| {
        partial.cancel();
        rendezvous.abort(StepError::step(refusal.code, refusal.message.clone()));
        // What the part failed with is the cause of what its caller sees.
        partial.failure().filter(|_| !cancel.is_cancelled()).unwrap_or(refusal)
    })
}

fn given_up() -> Refusal {
    Refusal::new(Code::CANCELLED, "the call was given up, and the partial run with it")
}

/// The values of keys, when the part has sent them.
fn receive(
    service: &WorkerService,
    partial: &Partial,
    rendezvous: &StepRendezvous,
    names: Vec<String>,
    events: &Mailbox<Event>,
) -> Answered<Vec<NamedTensorProto>> {
    let mut found: Vec<Option<NamedTensorProto>> = names.iter().map(|_| None).collect();
    for (at, name) in names.iter().enumerate() {
        let key = keys::parse(service.edges(), name)?;
        let events = events.clone();
        let done = move |parcel| events.send(Event::Value(at, parcel));
        rendezvous.recv_here(&key, Box::new(done));
    }
    // The part may have ended before without one of the values.
    partial.wake_at_end(events);
    let mut has_ended = false;
    while found.iter().any(Option::is_none) {
        match events.take_until(clock::now() + LONG) {
            Some(Event::Value(at, parcel)) => {
                found[at] = Some(value(service.edges(), names[at].clone(), parcel)?);
            }
            Some(Event::Cancelled) => return Err(given_up()),
            Some(Event::Ended) => {
                if let Some(refusal) = partial.failure() {
                    return Err(refusal);
                }
                has_ended = true;
            }
            None => {}
        }
        // What was sent before the end is in the mailbox before it, or comes at once.
        let missing = found.iter().position(Option::is_none).filter(|_| has_ended);
        if let Some(at) = missing.filter(|_| events.is_empty()) {
            let name = &names[at];
            return Err(Refusal::invalid(format!("the graph ended without a value for '{name}'")));
        }
    }
    Ok(found.into_iter().flatten().collect())
}

fn wait_for_end(partial: &Partial, events: &Mailbox<Event>) -> Answered<()> {
    partial.wake_at_end(events);
    loop {
        if let Some(result) = partial.end.lock().result.clone() {
            return result;
        }
        if let Some(Event::Cancelled) = events.take_until(clock::now() + LONG) {
            return Err(given_up());
        }
    }
}

impl Partial {
    /// Tells a mailbox when the part ends, or that it has.
    fn wake_at_end(&self, events: &Mailbox<Event>) {
        let mut end = self.end.lock();
        if end.result.is_none() {
            end.waits = Some(events.clone());
            return;
        }
        drop(end);
        events.send(Event::Ended);
    }
}
