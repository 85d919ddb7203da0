//! One run of a step over several tasks.
//!
//! All parts run at once, and exchange tensors by themselves. The first error that is the cause of others ends the step; one
//! that follows from an error of another task waits for that other one for a while. After the step, every worker cleans up.

use super::{super::Answered, ClusterSession, Compiled, Registered, from, links::Started};
use crate::{
    handles::new_request,
    keys, methods,
    refusal::{Mark, Refusal},
};
use std::{
    collections::HashMap,
    sync::mpsc,
    time::{Duration, Instant},
};
use tenon_framework::{Code, Tensor};
use tenon_proto::{
    CleanupGraphRequest, ExecutorOpts, GetStatusRequest, NamedTensorProto, RunGraphRequest,
    RunGraphResponse, StepStats, TensorProto, convert::tensor_to_proto,
};
use tenon_runtime::RunOptions;

/// How often a run looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);
/// How long other parts may take to say their errors after the first cause of one.
const JOINED: Duration = Duration::from_millis(100);
/// How long an error that follows from another one waits for it.
const CAUSE: Duration = Duration::from_secs(2);
/// How often a task whose part runs is asked whether it is there, and how long it may take to say so.
const BEAT: Duration = Duration::from_secs(1);
const ALIVE: Duration = Duration::from_secs(5);
/// How long a worker may take to clean up.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// What a run is to do.
pub(in crate::master) struct Wish<'w> {
    /// The feeds, in the order of the signature.
    pub feeds: &'w [Tensor],
    /// The deadline and the token.
    pub options: &'w RunOptions,
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

type Arrived = (usize, Answered<RunGraphResponse>);

/// A run.
struct Run<'r> {
    cluster: &'r ClusterSession,
    parts: &'r [Registered],
    options: &'r RunOptions,
    began: Instant,
    /// By part; `None` until its end.
    ends: Vec<Option<Answered<RunGraphResponse>>>,
    started: Vec<Started>,
    arrive: mpsc::Sender<Arrived>,
    arrived: mpsc::Receiver<Arrived>,
    /// When the first error came, and when the first that is a cause of others.
    failed: Option<Instant>,
    cause: Option<Instant>,
    beaten: Instant,
}

/// Runs a step.
pub(super) fn run(
    cluster: &ClusterSession,
    compiled: &Compiled,
    wish: Wish<'_>,
) -> Answered<Outcome> {
    compiled.step.check(wish.feeds)?;
    let step_id = cluster.step_of(compiled)?;
    let send = sent(compiled, wish.feeds)?;
    let (arrive, arrived) = mpsc::channel();
    let now = Instant::now();
    let mut run = Run {
        cluster,
        parts: &compiled.parts,
        options: wish.options,
        began: now,
        ends: compiled.parts.iter().map(|_| None).collect(),
        started: Vec::with_capacity(compiled.parts.len()),
        arrive,
        arrived,
        failed: None,
        cause: None,
        beaten: now,
    };
    run.start(compiled, step_id, send, wish.timeline);
    let waited = run.wait();
    run.started
        .iter()
        .zip(&run.ends)
        .filter(|(_, end)| end.is_none())
        .for_each(|(it, _)| it.cancel());
    for part in run.parts {
        let request = CleanupGraphRequest { step_id };
        part.link.start::<methods::CleanupGraph>(request, Some(CLEAN_UP), drop);
    }
    let outcome = waited.and_then(|()| outcome(compiled, run.results()?));
    cluster.retire(compiled, step_id, outcome.is_ok());
    outcome
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

impl Run<'_> {
    fn start(
        &mut self,
        compiled: &Compiled,
        step_id: i64,
        send: Vec<NamedTensorProto>,
        timeline: bool,
    ) {
        let mut send = Some(send);
        for (at, part) in self.parts.iter().enumerate() {
            let exec_opts = ExecutorOpts { record_timeline: timeline, ..ExecutorOpts::default() };
            let request = RunGraphRequest {
                graph_handle: part.graph_handle.clone(),
                step_id,
                send: send.take_if(|_| part.is_client).unwrap_or_default(),
                recv_key: if part.is_client { compiled.fetches.clone() } else { Vec::new() },
                exec_opts: Some(exec_opts),
                session_handle: self.cluster.handle.clone(),
                create_worker_session_called: true,
                request_id: new_request(),
                ..RunGraphRequest::default()
            };
            let arrive = self.arrive.clone();
            // A run that ended does not take it.
            let done = move |answer| drop(arrive.send((at, answer)));
            self.started.push(part.link.start::<methods::RunGraph>(request, None, done));
        }
    }

    /// Waits until all parts have ended, or the step is given up for an error of a part.
    ///
    /// # Errors
    /// The step is given up for another reason.
    fn wait(&mut self) -> Answered<()> {
        while self.ends.iter().any(Option::is_none) {
            if let Ok((at, answer)) = self.arrived.recv_timeout(self.slice()) {
                self.take(at, answer);
                continue;
            }
            self.check()?;
            let is_over =
                |since: Option<Instant>, most| since.is_some_and(|it| it.elapsed() >= most);
            if is_over(self.cause, JOINED) || is_over(self.failed, CAUSE) {
                return Ok(());
            }
            self.beat();
        }
        Ok(())
    }

    fn slice(&self) -> Duration {
        let left = self.options.deadline.map(|most| most.saturating_sub(self.began.elapsed()));
        left.map_or(LOOK, |left| left.min(LOOK))
    }

    fn take(&mut self, at: usize, answer: Answered<RunGraphResponse>) {
        if self.ends[at].is_some() {
            return;
        }
        if let Err(refusal) = &answer {
            let now = Instant::now();
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
        if self.options.deadline.is_some_and(|most| self.began.elapsed() >= most) {
            let running = self.parts.iter().zip(&self.ends).filter(|(_, end)| end.is_none());
            let running: Vec<&str> = running.map(|(part, _)| part.link.task()).collect();
            return Err(Refusal::new(
                Code::DEADLINE_EXCEEDED,
                format!("the deadline passed before the step was done at {}", running.join(", ")),
            ));
        }
        Ok(())
    }

    /// Asks the tasks whose parts run whether they are there; one that is not ends its part.
    fn beat(&mut self) {
        if self.beaten.elapsed() < BEAT {
            return;
        }
        self.beaten = Instant::now();
        for (at, part) in self.parts.iter().enumerate() {
            if self.ends[at].is_some() || !part.link.is_other() {
                continue;
            }
            let (arrive, task) = (self.arrive.clone(), part.link.task().to_owned());
            let done = move |answer: Answered<_>| {
                if let Err(refusal) = answer {
                    let lost = Refusal::unreachable(&task, &refusal.message);
                    drop(arrive.send((at, Err(lost))));
                }
            };
            let request = GetStatusRequest {};
            part.link.start::<methods::GetStatus>(request, Some(ALIVE), done);
        }
    }

    /// The results of the parts.
    ///
    /// # Errors
    /// The causes of a failed step, each with its task; if none is known, the errors that follow from one.
    fn results(self) -> Answered<Vec<RunGraphResponse>> {
        let (mut results, mut errors) = (Vec::with_capacity(self.ends.len()), Vec::new());
        for (part, end) in self.parts.iter().zip(self.ends) {
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

fn outcome(compiled: &Compiled, results: Vec<RunGraphResponse>) -> Answered<Outcome> {
    let mut stats = StepStats::default();
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
