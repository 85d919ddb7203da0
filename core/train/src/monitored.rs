//! A training loop that keeps going.
//!
//! # States
//! A loop *has a session*, or *lost* it: after `ABORTED` or `UNAVAILABLE` the session, its coordinator and the threads of its
//! queues are given up, and the next attempt opens others. A loop *should stop* once a hook asked for it, or the input has
//! ended (`OUT_OF_RANGE`). It has *failed* after any other error: hooks then do not hear of the end, so that no checkpoint
//! is written of values that are wrong.

use crate::{
    Coordinator, Hook, ManagerOptions, RunArgs, RunContext, Scaffold, SessionManager, Target,
    TrainError, coordinator::GRACE, is_lost,
};
use std::{
    collections::HashMap,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tenon_framework::{Code, Tensor};
use tenon_proto::GraphDef;
use tenon_runtime::{AnySession, SessionError};

/// The longest pause between two attempts to open a session.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long threads may take to end by themselves before the session's steps are cancelled.
const QUIET: Duration = Duration::from_secs(2);

/// What a caller may choose for a [`MonitoredSession`].
#[derive(Debug, Clone)]
pub struct LoopOptions {
    /// How sessions are prepared.
    pub manager: ManagerOptions,
    /// The deadline of a step, and of each step that a hook runs, saving included. None by default.
    pub step_deadline: Option<Duration>,
    /// How long the loop tries to get a new session, after one was lost. 10 minutes by default.
    pub recovery: Duration,
    /// The pause after the first attempt that failed; each later one is twice as long, up to 30 seconds. 1 second by
    /// default.
    pub pause: Duration,
    /// How long threads may take to end. 120 seconds by default.
    pub grace: Duration,
}

impl Default for LoopOptions {
    fn default() -> LoopOptions {
        LoopOptions {
            manager: ManagerOptions::default(),
            step_deadline: None,
            recovery: Duration::from_secs(600),
            pause: Duration::from_secs(1),
            grace: GRACE,
        }
    }
}

/// A session with what belongs to it.
struct Live {
    session: Arc<dyn AnySession>,
    coordinator: Coordinator,
}

/// A session whose steps have a deadline, also those that are run without one.
struct Bounded {
    session: Arc<dyn AnySession>,
    deadline: Option<Duration>,
}

impl AnySession for Bounded {
    fn run_step(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
        deadline: Option<Duration>,
    ) -> Result<Vec<Tensor>, SessionError> {
        self.session.run_step(feeds, fetches, targets, deadline.or(self.deadline))
    }

    fn add_nodes(&self, graph: &GraphDef) -> Result<(), SessionError> {
        self.session.add_nodes(graph)
    }

    fn close_session(&self) -> Result<(), SessionError> {
        self.session.close_session()
    }
}

/// When a loss began, and how often the loop has tried since.
struct Loss {
    since: Instant,
    attempts: u32,
}

/// Runs steps with hooks, and goes on with a new session after one is lost.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use tenon_training::{Every, LoopOptions, MonitoredSession, Scaffold, StopAtStep, CheckpointSaver, Target};
/// # fn example(target: Arc<dyn Target>, scaffold: Scaffold) -> Result<(), tenon_training::TrainError> {
/// let hooks: Vec<Box<dyn tenon_training::Hook>> =
///     vec![Box::new(CheckpointSaver::new("run", Every::Steps(100))), Box::new(StopAtStep::last(1000))];
/// let mut training = MonitoredSession::open(target, scaffold, hooks, LoopOptions::default())?;
/// while !training.should_stop() {
///     training.run(&[], &["loss"], &["train"])?;
/// }
/// training.close()?;
/// # Ok(())
/// # }
/// ```
pub struct MonitoredSession {
    manager: SessionManager,
    scaffold: Scaffold,
    hooks: Vec<Box<dyn Hook>>,
    options: LoopOptions,
    live: Option<Live>,
    loss: Option<Loss>,
    should_stop: bool,
    has_failed: bool,
}

/// The feeds and fetches of a step with those of its hooks, each once.
struct Step {
    feeds: Vec<(String, Tensor)>,
    fetches: Vec<String>,
    /// Where each fetch of the caller is, and then those of each hook.
    places: Vec<Vec<usize>>,
}

impl MonitoredSession {
    /// Opens the first session. If its place cannot be reached, the loop tries again as after a loss.
    ///
    /// # Errors
    /// A hook lacks something, or the session cannot be prepared.
    pub fn open(
        target: Arc<dyn Target>,
        scaffold: Scaffold,
        mut hooks: Vec<Box<dyn Hook>>,
        options: LoopOptions,
    ) -> Result<MonitoredSession, TrainError> {
        for hook in &mut hooks {
            hook.begin(&scaffold)?;
        }
        let mut opened = MonitoredSession {
            manager: SessionManager::new(target, options.manager.clone()),
            scaffold,
            hooks,
            options,
            live: None,
            loss: None,
            should_stop: false,
            has_failed: false,
        };
        opened.recovering(|opened| opened.attach())?;
        Ok(opened)
    }

    /// Whether a hook has ended the training, or there is no more input.
    pub fn should_stop(&self) -> bool {
        // A thread that failed stops the coordinator as well: the next step then reports its error.
        let is_stopped =
            |live: &Live| live.coordinator.should_stop() && live.coordinator.error().is_none();
        self.should_stop || self.has_failed || self.live.as_ref().is_some_and(is_stopped)
    }

    /// Ends the training after the current step.
    pub fn request_stop(&mut self) {
        self.should_stop = true;
    }

    /// The current session; `None` after a loss. Hooks are not called for steps that are run on it.
    pub fn session(&self) -> Option<&Arc<dyn AnySession>> {
        self.live.as_ref().map(|live| &live.session)
    }

    /// Runs a step with the hooks. The values are those of `fetches`.
    ///
    /// # Errors
    /// The error of the step, of a hook, or of a thread that fills a queue. `OUT_OF_RANGE` is the end of the input.
    pub fn run(
        &mut self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<Tensor>, TrainError> {
        let ran = self.recovering(|loop_| {
            loop_.attach()?;
            loop_.attempt(feeds, fetches, targets)
        });
        match &ran {
            Err(error) if error.code() == Code::OUT_OF_RANGE => self.should_stop = true,
            Err(_) => self.has_failed = true,
            Ok(_) => {}
        }
        ran
    }

    /// Runs these nodes until the training ends, by a hook or by the end of the input, and closes the loop.
    ///
    /// # Errors
    /// As [`MonitoredSession::run`] and [`MonitoredSession::close`].
    pub fn train(mut self, targets: &[&str]) -> Result<(), TrainError> {
        while !self.should_stop() {
            match self.run(&[], &[], targets) {
                Err(error) if error.code() == Code::OUT_OF_RANGE => break,
                ran => ran.map(drop)?,
            }
        }
        self.close()
    }

    /// Ends the training: hooks hear of it unless a step failed, threads end, and the session is closed.
    ///
    /// # Errors
    /// The first error of a hook's end, of a thread, or of closing the session.
    pub fn close(mut self) -> Result<(), TrainError> {
        let mut ended = Ok(());
        if let (Some(live), false) = (&self.live, self.has_failed) {
            for hook in &mut self.hooks {
                ended = ended.and(hook.end(&*live.session));
            }
        }
        match self.live.take() {
            Some(live) => ended.and(live.end(self.options.grace)),
            None => ended,
        }
    }

    /// Runs something, and again with a new session where the session was lost.
    fn recovering<R>(
        &mut self,
        attempt: impl Fn(&mut MonitoredSession) -> Result<R, TrainError>,
    ) -> Result<R, TrainError> {
        loop {
            let error = match attempt(self) {
                Err(error) if is_lost(error.code()) => error,
                done => {
                    self.loss = None;
                    return done;
                }
            };
            if let Some(live) = self.live.take() {
                live.abandon();
            }
            let loss = self.loss.get_or_insert_with(|| Loss { since: Instant::now(), attempts: 0 });
            let left = self.options.recovery.saturating_sub(loss.since.elapsed());
            if left.is_zero() {
                return Err(error);
            }
            tracing::warn!("the session is lost, and a new one is opened: {error}");
            // The first attempt is made at once.
            if loss.attempts > 0 {
                let doubled = 2u32.saturating_pow(loss.attempts - 1);
                let pause = self.options.pause.saturating_mul(doubled).min(LONGEST_PAUSE);
                thread::sleep(pause.min(left));
            }
            loss.attempts = loss.attempts.saturating_add(1);
        }
    }

    /// Opens a session if there is none.
    fn attach(&mut self) -> Result<(), TrainError> {
        if self.live.is_some() {
            return Ok(());
        }
        let opened = self.manager.open(&self.scaffold)?;
        let deadline = self.options.step_deadline;
        let session = Arc::new(Bounded { session: Arc::clone(&opened), deadline });
        let live = Live { session, coordinator: Coordinator::new() };
        let mut run = RunContext::new(&live.session, &live.coordinator);
        let mut told = Ok(());
        for hook in &mut self.hooks {
            told = told.and_then(|()| hook.after_create_session(&mut run));
        }
        let is_stopped = run.is_stopped();
        // An enqueue may wait for as long as the queue is full, and has no deadline.
        for runner in &self.scaffold.queue_runners {
            told = told.and_then(|()| runner.start(&opened, &live.coordinator));
        }
        if let Err(error) = told {
            live.abandon();
            return Err(error);
        }
        self.should_stop |= is_stopped;
        self.live = Some(live);
        Ok(())
    }

    /// One attempt of a step, in the current session.
    fn attempt(
        &mut self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<Tensor>, TrainError> {
        let Some(live) = &self.live else { return Ok(Vec::new()) };
        if let Some(error) = live.coordinator.error() {
            return Err(error.into());
        }
        let mut run = RunContext::new(&live.session, &live.coordinator);
        let mut parts = vec![RunArgs {
            feeds: feeds.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            fetches: fetches.iter().map(|name| (*name).to_owned()).collect(),
        }];
        for hook in &mut self.hooks {
            parts.push(hook.before_run(&mut run)?);
        }
        let step = Step::new(parts)?;
        let feeds: Vec<(&str, Tensor)> =
            step.feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let names: Vec<&str> = step.fetches.iter().map(String::as_str).collect();
        let ran = live.session.run_step(&feeds, &names, targets, None);
        // A step that fails because a thread failed before it is not the cause.
        let values = ran.map_err(|error| live.coordinator.error().unwrap_or(error))?;
        for (hook, places) in self.hooks.iter_mut().zip(&step.places[1..]) {
            hook.after_run(&mut run, &taken(&values, places))?;
        }
        self.should_stop |= run.is_stopped();
        Ok(taken(&values, &step.places[0]))
    }
}

impl Drop for MonitoredSession {
    fn drop(&mut self) {
        if let Some(live) = self.live.take() {
            live.abandon();
        }
    }
}

impl Live {
    /// Stops the threads, and closes the session.
    fn end(self, grace: Duration) -> Result<(), TrainError> {
        self.coordinator.request_stop();
        self.coordinator.wait_for_threads(QUIET.min(grace));
        // What a thread still waits for in a step is cancelled.
        let closed = self.session.close_session();
        self.coordinator.join(grace)?;
        Ok(closed?)
    }

    /// As [`Live::end`], for a session that is lost, or whose loop failed: errors are of no use.
    fn abandon(self) {
        if let Err(error) = self.end(QUIET) {
            tracing::debug!("a session that was given up: {error}");
        }
    }
}

/// The values in these places.
fn taken(values: &[Tensor], places: &[usize]) -> Vec<Tensor> {
    places.iter().filter_map(|place| values.get(*place).cloned()).collect()
}

/// The name of a tensor without `:0`, so that two names of the same tensor are equal.
fn plain(name: &str) -> &str {
    name.strip_suffix(":0").unwrap_or(name)
}

impl Step {
    fn new(parts: Vec<RunArgs>) -> Result<Step, TrainError> {
        let mut step = Step { feeds: Vec::new(), fetches: Vec::new(), places: Vec::new() };
        let mut fetched: HashMap<String, usize> = HashMap::new();
        for part in parts {
            for (name, value) in part.feeds {
                if step.feeds.iter().any(|(other, _)| plain(other) == plain(&name)) {
                    let found = format!("'{name}' fed by two of the caller and the hooks");
                    return Err(TrainError::argument("a step", "each tensor fed once", found));
                }
                step.feeds.push((name, value));
            }
            let places = part.fetches.into_iter().map(|name| {
                *fetched.entry(plain(&name).to_owned()).or_insert_with(|| {
                    step.fetches.push(name);
                    step.fetches.len() - 1
                })
            });
            let places = places.collect();
            step.places.push(places);
        }
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(feeds: &[&str], fetches: &[&str]) -> RunArgs {
        let value = || Tensor::scalar(1f32).unwrap();
        RunArgs {
            feeds: feeds.iter().map(|name| ((*name).to_owned(), value())).collect(),
            fetches: fetches.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn each_tensor_is_fetched_once() {
        let step = Step::new(vec![args(&[], &["a", "b:1"]), args(&["x"], &["a:0", "c", "b:1"])]);
        let step = step.unwrap();
        assert_eq!(step.fetches, ["a", "b:1", "c"]);
        assert_eq!(step.places, [vec![0, 1], vec![0, 2, 1]]);
    }

    #[test]
    fn a_tensor_that_is_fed_twice_is_an_error() {
        let error = Step::new(vec![args(&["x"], &[]), args(&["x:0"], &[])]).err().unwrap();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
        assert!(error.to_string().contains("'x:0' fed by two"), "{error}");
    }
}
