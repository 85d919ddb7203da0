//! One run of a step over several tasks.
//!
//! All parts run at once, and exchange tensors by themselves. The first error that is the cause of others ends the step; one
//! that follows from an error of another task waits for that other one for a while. After the step, every worker cleans up.

use super::{
    super::Answered, ClusterSession, Compiled, Registered, from, links::Started, timeline::Timeline,
};
use crate::{
    clock,
    clock::Mailbox,
    handles::{new_request, new_step},
    keys, methods,
    refusal::{Mark, Refusal},
};
use std::{
    collections::HashMap,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::{Code, Tensor};
use tenon_proto::{
    DeviceStepStats, ExecutorOpts, NamedTensorProto, RunGraphRequest, RunGraphResponse, StepStats,
    TensorProto, convert::tensor_to_proto,
};
use tenon_runtime::{CancelToken, RunOptions};

/// How long other parts may take to say their errors after the first cause of one.
const JOINED: Duration = Duration::from_millis(100);
/// How long an error that follows from another one waits for it.
const CAUSE: Duration = Duration::from_secs(2);
/// How often a run looks whether the tasks of its parts are there.
const LOOK: Duration = Duration::from_millis(500);

/// What a run is to do.
pub(in crate::master) struct Wish<'w> {
    /// The feeds, in the order of the signature.
    pub feeds: &'w [Tensor],
    /// The deadline and the token.
    pub options: &'w RunOptions,
    /// When its time began to count.
    pub began: Instant,
    /// Whether the times of nodes are recorded.
    pub timeline: bool,
}

/// What a run gives.
pub(in crate::master) struct Outcome {
    /// The fetched values, in the order of the signature.
    pub fetched: Vec<TensorProto>,
    /// The times of nodes at all tasks.
    pub stats: StepStats,
}

/// What a run waits for.
enum Event {
    /// The end of a part.
    Ended(usize, Answered<RunGraphResponse>),
    /// It was cancelled, or its session is closed.
    Cancelled,
}

/// A run. When it is dropped, the parts that have not ended are given up.
struct Run<'r> {
    cluster: &'r ClusterSession,
    parts: &'r [Registered],
    options: &'r RunOptions,
    began: Instant,
    /// By part; `None` until its end.
    ends: Vec<Option<Answered<RunGraphResponse>>>,
    started: Vec<Started>,
    events: Mailbox<Event>,
    /// What the tokens call that cancel it; they hold it weakly.
    _wake: Arc<dyn Fn() + Send + Sync>,
    /// When the first error came, and when the first that is a cause of others.
    failed: Option<Instant>,
    cause: Option<Instant>,
}

/// Runs a step whose feeds fit it.
pub(super) fn run(
    cluster: &ClusterSession,
    compiled: &Compiled,
    wish: Wish<'_>,
) -> Answered<Outcome> {
    let step_id = cluster.step_of(compiled, wish.options)?;
    let send = sent(compiled, wish.feeds)?;
    let given = Given { step_id, send, receive: compiled.fetches.clone(), partial: None };
    let timeline = wish.timeline.then(|| Timeline::begin(compiled));
    let results = run_parts(cluster, compiled, given, &wish);
    let transfers = timeline.map(|timeline| timeline.end(step_id)).unwrap_or_default();
    cluster.leavings.clean_up(step_id, compiled.parts.iter().map(|part| &part.link));
    let outcome = results.and_then(|results| outcome(compiled, results, transfers));
    cluster.retire(compiled, step_id, outcome.is_ok());
    outcome
}

/// Cleans a step up when it is dropped: at the end of the step, or when its client has given it up.
struct CleanUp<'s> {
    cluster: &'s ClusterSession,
    compiled: &'s Compiled,
    step_id: i64,
}

impl Drop for CleanUp<'_> {
    fn drop(&mut self) {
        let links = self.compiled.parts.iter().map(|part| &part.link);
        self.cluster.leavings.clean_up(self.step_id, links);
    }
}

/// As [`run`], without a thread, and without a timeline: for a step on whose number no other master has to agree.
pub(super) async fn run_soon(
    cluster: &ClusterSession,
    compiled: &Compiled,
    wish: Wish<'_>,
) -> Answered<Outcome> {
    debug_assert!(compiled.graph_key == 0 && !wish.timeline);
    let step_id = new_step();
    let send = sent(compiled, wish.feeds)?;
    let given = Given { step_id, send, receive: compiled.fetches.clone(), partial: None };
    let clean_up = CleanUp { cluster, compiled, step_id };
    let mut run = Run::new(cluster, compiled, &wish)?;
    run.start(given, false);
    let waited = run.wait_soon().await;
    let results = run.end(waited);
    drop(clean_up);
    outcome(compiled, results?, Vec::new())
}

/// What the parts are called with.
pub(super) struct Given {
    pub step_id: i64,
    /// The values for the client's part, under their keys.
    pub send: Vec<NamedTensorProto>,
    /// The keys of the values that it gives.
    pub receive: Vec<String>,
    /// Whether this is the last call of several, if there are several.
    pub partial: Option<bool>,
}

/// Calls all parts, and waits for their answers. Those that are not waited for are given up.
pub(super) fn run_parts(
    cluster: &ClusterSession,
    compiled: &Compiled,
    given: Given,
    wish: &Wish<'_>,
) -> Answered<Vec<RunGraphResponse>> {
    let mut run = Run::new(cluster, compiled, wish)?;
    let waited = match run.parts {
        [_] if given.partial.is_none() && wish.options.deadline.is_none() => {
            run.alone(given, wish.timeline)
        }
        _ => {
            run.start(given, wish.timeline);
            run.wait()
        }
    };
    run.end(waited)
}

/// The feeds under the keys by which the client's part receives them.
fn sent(compiled: &Compiled, feeds: &[Tensor]) -> Answered<Vec<NamedTensorProto>> {
    let named = compiled.step.feeds.iter().zip(feeds);
    let taken = named.filter_map(|(feed, tensor)| Some((feed.edge.as_ref()?, tensor)));
    taken
        .map(|(edge, tensor)| {
            let tensor = Some(tensor_to_proto(tensor)?);
            Ok(NamedTensorProto { name: keys::of_edge(edge), tensor })
        })
        .collect()
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl<'r> Run<'r> {
    /// A run none of whose parts is called yet.
    ///
    /// # Errors
    /// A task is not there.
    fn new(
        cluster: &'r ClusterSession,
        compiled: &'r Compiled,
        wish: &Wish<'r>,
    ) -> Answered<Run<'r>> {
        cluster.check_tasks(&compiled.parts)?;
        let events = Mailbox::new();
        let told = events.clone();
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(move || told.send(Event::Cancelled));
        let tokens = wish.options.cancel.iter().chain([&cluster.closing]);
        tokens.for_each(|token| token.on_cancel(&wake));
        Ok(Run {
            cluster,
            parts: &compiled.parts,
            options: wish.options,
            began: wish.began,
            ends: compiled.parts.iter().map(|_| None).collect(),
            started: Vec::with_capacity(compiled.parts.len()),
            events,
            _wake: wake,
            failed: None,
            cause: None,
        })
    }

    /// Gives up the parts that have not ended.
    fn give_up(&self) {
        let open = self.started.iter().zip(&self.ends).filter(|(_, end)| end.is_none());
        open.for_each(|(started, _)| started.cancel());
    }

    /// The call of a part.
    fn request(&self, part: &Registered, given: &mut Given, timeline: bool) -> RunGraphRequest {
        let exec_opts = ExecutorOpts { record_timeline: timeline, ..ExecutorOpts::default() };
        let (mut send, mut recv_key) = (Vec::new(), Vec::new());
        if part.is_client {
            (send, recv_key) = (mem::take(&mut given.send), mem::take(&mut given.receive));
        }
        RunGraphRequest {
            graph_handle: part.graph_handle.clone(),
            step_id: given.step_id,
            send,
            recv_key,
            exec_opts: Some(exec_opts),
            is_partial: given.partial.is_some(),
            is_last_partial_run: given.partial == Some(true),
            session_handle: self.cluster.handle.clone(),
            create_worker_session_called: true,
            request_id: new_request(),
            ..RunGraphRequest::default()
        }
    }

    fn start(&mut self, mut given: Given, timeline: bool) {
        for (at, part) in self.parts.iter().enumerate() {
            let request = self.request(part, &mut given, timeline);
            self.send(at, request);
        }
    }

    /// Calls a part, and does not wait for it.
    fn send(&mut self, at: usize, request: RunGraphRequest) {
        let events = self.events.clone();
        // A run that ended does not take it.
        let done = move |answer| events.send(Event::Ended(at, answer));
        let link = &self.parts[at].link;
        self.started.push(link.start::<methods::RunGraph>(request, None, done));
    }

    /// Runs the only part on this thread, if it is one of this process; it has no limit but cancellation.
    fn alone(&mut self, mut given: Given, timeline: bool) -> Answered<()> {
        let (part, cancel) = (&self.parts[0], CancelToken::new());
        let token = cancel.clone();
        let end: Arc<dyn Fn() + Send + Sync> = Arc::new(move || token.cancel());
        let tokens = self.options.cancel.iter().chain([&self.cluster.closing]);
        tokens.for_each(|token| token.on_cancel(&end));
        let request = self.request(part, &mut given, timeline);
        match part.link.here::<methods::RunGraph>(request, &cancel) {
            Ok(answer) => {
                let is_ok = answer.is_ok();
                self.take(0, answer);
                if is_ok { Ok(()) } else { self.check() }
            }
            Err(request) => {
                self.send(0, request);
                self.wait()
            }
        }
    }

    fn is_open(&self) -> bool {
        self.ends.iter().any(Option::is_none)
    }

    /// Waits until all parts have ended, or the step is given up for an error of a part.
    ///
    /// # Errors
    /// The step is given up for another reason.
    fn wait(&mut self) -> Answered<()> {
        while self.is_open() {
            let event = self.events.take_until(self.next_look());
            if self.note(event)? {
                break;
            }
        }
        Ok(())
    }

    /// As [`Run::wait`], without a thread.
    async fn wait_soon(&mut self) -> Answered<()> {
        while self.is_open() {
            let event = self.events.next_until(self.next_look()).await;
            if self.note(event)? {
                break;
            }
        }
        Ok(())
    }

    /// Notes what has happened, if anything; whether the step is given up for an error of a part.
    fn note(&mut self, event: Option<Event>) -> Answered<bool> {
        if let Some(Event::Ended(at, answer)) = event {
            self.take(at, answer);
            return Ok(false);
        }
        self.check()?;
        let is_over =
            |since: Option<Instant>, most| since.is_some_and(|it| clock::since(it) >= most);
        if is_over(self.cause, JOINED) || is_over(self.failed, CAUSE) {
            return Ok(true);
        }
        self.look_at_tasks();
        Ok(false)
    }

    /// When the run has to do something, if nothing happens before.
    fn next_look(&self) -> Instant {
        let ends = [
            self.options.deadline.and_then(|most| self.began.checked_add(most)),
            self.cause.map(|at| at + JOINED),
            self.failed.map(|at| at + CAUSE),
        ];
        let look = clock::now() + LOOK;
        ends.into_iter().flatten().fold(look, Instant::min)
    }

    fn take(&mut self, at: usize, answer: Answered<RunGraphResponse>) {
        if self.ends[at].is_some() {
            return;
        }
        if let Err(refusal) = &answer {
            let now = clock::now();
            self.failed.get_or_insert(now);
            if is_cause(refusal) {
                self.cause.get_or_insert(now);
            }
        }
        self.ends[at] = Some(answer);
    }

    /// Checks the limits of the run.
    fn check(&self) -> Answered<()> {
        let cancelled = |message: &str| Err(Refusal::new(Code::CANCELLED, message));
        if self.options.cancel.as_ref().is_some_and(|token| token.is_cancelled()) {
            return cancelled("the step was cancelled");
        }
        if self.cluster.is_closed() {
            return cancelled("the session is closed");
        }
        if self.options.deadline.is_some_and(|most| clock::since(self.began) >= most) {
            let running = self.parts.iter().zip(&self.ends).filter(|(_, end)| end.is_none());
            let running: Vec<&str> = running.map(|(part, _)| part.link.task()).collect();
            return Err(Refusal::new(
                Code::DEADLINE_EXCEEDED,
                format!("the deadline passed before the step was done at {}", running.join(", ")),
            ));
        }
        Ok(())
    }

    /// Ends the parts of tasks that are gone.
    fn look_at_tasks(&mut self) {
        for (at, part) in self.parts.iter().enumerate() {
            if self.ends[at].is_none()
                && let Err(lost) = self.cluster.check_task(part.link.task())
            {
                self.take(at, Err(lost));
            }
        }
    }

    /// The results of the parts. Those that have not ended are given up.
    ///
    /// # Errors
    /// Why the run was given up; the causes of a failed step, each with its task; if none is known, the errors that follow from
    /// one.
    fn end(mut self, waited: Answered<()>) -> Answered<Vec<RunGraphResponse>> {
        self.give_up();
        let ends = mem::take(&mut self.ends);
        waited?;
        let (mut results, mut errors) = (Vec::with_capacity(ends.len()), Vec::new());
        for (part, end) in self.parts.iter().zip(ends) {
            match end {
                Some(Ok(result)) => results.push(result),
                Some(Err(refusal)) => {
                    errors.push((is_cause(&refusal), from(part.link.task())(refusal)))
                }
                None => {}
            }
        }
        match joined(errors) {
            Some(refusal) => Err(refusal),
            None => Ok(results),
        }
    }
}

/// Whether an error may be the cause of others.
fn is_cause(refusal: &Refusal) -> bool {
    refusal.mark != Mark::Derived && refusal.code != Code::CANCELLED
}

/// One error of several, each with whether it is a cause of others.
fn joined(errors: Vec<(bool, Refusal)>) -> Option<Refusal> {
    let any = errors.iter().any(|(is_cause, _)| *is_cause);
    let mut shown = errors.into_iter().filter(|(is_cause, _)| *is_cause == any);
    let (_, mut first) = shown.next()?;
    for (_, other) in shown {
        first.message = format!("{}\n{}", first.message, other.message);
    }
    Some(first)
}

fn outcome(
    compiled: &Compiled,
    results: Vec<RunGraphResponse>,
    transfers: Vec<DeviceStepStats>,
) -> Answered<Outcome> {
    let mut stats = StepStats { dev_stats: transfers };
    let mut received = HashMap::new();
    for result in results {
        received.extend(result.recv.into_iter().map(|it| (it.name, it.tensor)));
        stats.dev_stats.extend(result.step_stats.unwrap_or_default().dev_stats);
    }
    let mut take = |key: &String| {
        received.remove(key).flatten().ok_or_else(|| {
            let message = format!("the worker did not answer with the value of key '{key}'");
            Refusal::new(Code::INTERNAL, message)
        })
    };
    let fetched = compiled.fetches.iter().map(&mut take).collect::<Answered<_>>()?;
    Ok(Outcome { fetched, stats })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_come_before_what_follows_from_them() {
        let refusal = |code, message: &str| Refusal::new(code, message);
        let derived = refusal(Code::INVALID_ARGUMENT, "derived").marked(Mark::Derived);
        let cause = refusal(Code::OUT_OF_RANGE, "cause");
        let errors = vec![
            (is_cause(&derived), derived.clone()),
            (is_cause(&cause), cause.clone()),
            (true, refusal(Code::INTERNAL, "other")),
        ];
        let joined_error = joined(errors).unwrap();
        assert_eq!(
            (joined_error.code, joined_error.message.as_str()),
            (Code::OUT_OF_RANGE, "cause\nother")
        );
        let alone = joined(vec![(is_cause(&derived), derived)]).unwrap();
        assert_eq!(alone.code, Code::INVALID_ARGUMENT);
        assert!(joined(Vec::new()).is_none());
    }
}
