//! Steps that are fed and fetched in parts.
//!
//! The step runs on a thread of its own. What its caller feeds and fetches meets it at a rendezvous, as values of another
//! process would: each feed is a `Recv` from the client, each fetch a `Send` to it.
//!
//! # States
//! *Running* from the start on. *Done* once everything was fed and fetched and the nodes have run, or when the step failed;
//! what is asked of it then is refused, with the step's error where it has one. Dropping it cancels the step.

use super::{
    Inner, Session,
    executable::Executable,
    progress::{PartialProgress, Taken, invalid},
};
use crate::{
    error::{RuntimeError, StepError},
    feeds::FeedSpecs,
    options::{CallableOptions, CancelToken, RunOptions},
    rendezvous::{EdgeName, Key, LocalRendezvous, Parcel, Rendezvous},
    run_limits::RunLimits,
    step_graph::{self, Named},
    worker::{CallerOptions, StepCall, register},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};
use tenon_framework::{
    Code, DType, PartialShape, Tensor,
    device::DeviceName,
    sync::{Condvar, Mutex},
};
use tenon_graph::{Memory, PartKind, Partitioned, Transfer};
use tenon_host::fpu::FpGuard;

/// How the step ended.
#[derive(Default)]
struct End {
    result: Mutex<Option<Result<(), RuntimeError>>>,
    changed: Condvar,
}

/// A step that is fed and fetched in parts: TensorFlow's partial run. Dropping it cancels the step.
pub struct PartialRun {
    progress: PartialProgress,
    /// Where each feed goes; `None` where no node takes it.
    feeds: Vec<Option<Key>>,
    fetches: Vec<Key>,
    rendezvous: Arc<dyn Rendezvous>,
    token: CancelToken,
    end: Arc<End>,
}

impl Session {
    /// Begins a step whose feeds and fetches come in parts. Its nodes run as far as what was fed lets them.
    ///
    /// # Errors
    /// As [`Session::callable`]; a tensor that is both fed and fetched, or is fetched twice.
    pub fn partial_run(&self, options: &CallableOptions) -> Result<PartialRun, RuntimeError> {
        PartialRun::begin(&self.inner, options)
    }
}

/// The device of a caller: none of a worker.
fn client() -> DeviceName {
    DeviceName { job: Some("client".to_owned()), ..DeviceName::local("CPU", 0) }
}

impl PartialRun {
    fn begin(session: &Arc<Inner>, options: &CallableOptions) -> Result<PartialRun, RuntimeError> {
        session.check_open()?;
        let begin = Instant::now();
        let current = session.current.lock().clone();
        let limits = RunLimits::default();
        let named = Named::find(&current.graph, options)?;
        PartialProgress::check(&current.graph, &named)?;
        let mut graph = step_graph::build(session.context(&current), options, &limits)?;
        let ends = Ends::meet_client(&mut graph.partitioned);
        let specs = std::mem::replace(&mut graph.feeds, FeedSpecs(Vec::new())).0;
        graph.fetches = 0;
        let registered = register(&session.worker, &graph, false, &limits)?;
        let edges = session.worker.runtime().edges();
        let key = |transfer: &Transfer| Key::of(edges.intern(EdgeName::of(transfer)));
        let progress = PartialProgress::new(&current.graph, &named, specs, &options.fetches)?;
        let feeds = (0..named.feeds.len()).map(|at| ends.feeds.get(&at).map(key)).collect();
        let fetches = (0..named.fetches.len()).map(|at| key(&ends.fetches[&at])).collect();
        let compile_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let executable = Executable { registered, feeds: FeedSpecs(Vec::new()), compile_ns };
        let run = PartialRun {
            progress,
            feeds,
            fetches,
            rendezvous: Arc::new(LocalRendezvous::default()),
            token: CancelToken::new(),
            end: Arc::default(),
        };
        run.start(session, session.plans.note(executable))?;
        Ok(run)
    }

    /// Runs the step on a thread.
    fn start(&self, session: &Arc<Inner>, step: Arc<Executable>) -> Result<(), RuntimeError> {
        let (session, end) = (Arc::clone(session), Arc::clone(&self.end));
        let (rendezvous, token) = (Arc::clone(&self.rendezvous), self.token.clone());
        let run = move || {
            let options = RunOptions { cancel: Some(token), ..RunOptions::default() };
            let limits = RunLimits::from_now(Some(&options));
            let _denormals = FpGuard::for_kernels(session.options.keep_denormals);
            let call = StepCall {
                id: session.worker.runtime().next_step(),
                rendezvous: Some(&rendezvous),
                caller: Some(CallerOptions { options: &options, run_limits: &limits }),
            };
            let enter = || session.gate.enter();
            let result = step.registered.run(&session.worker, call, &[], &mut Vec::new(), enter);
            if let Err(error) = &result {
                let error = StepError::step(error.code(), error.to_string());
                rendezvous.abort(error);
            }
            *end.result.lock() = Some(result);
            end.changed.notify_all();
        };
        let thread = thread::Builder::new().name("tenon-partial-run".to_owned());
        thread.spawn(run).map(drop).map_err(|error| {
            let message = format!("no thread for a partial run: {error}");
            StepError::step(Code::RESOURCE_EXHAUSTED, message).into()
        })
    }

    /// Feeds and fetches a part. Each tensor that was named at the start is fed once, and fetched once; the call that
    /// completes both waits until the whole step is done.
    ///
    /// # Errors
    /// A tensor that was not named at the start, or comes twice; a fetch that needs a feed which is not there yet
    /// (`INVALID_ARGUMENT`, naming it); what the step fails with; the deadline or the token of the options.
    pub fn run(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        options: &RunOptions,
    ) -> Result<Vec<Tensor>, RuntimeError> {
        let limits = RunLimits::from_now(Some(options));
        let Taken { feeds: given, fetches: wanted, completes } =
            self.progress.take(feeds, fetches)?;
        for (at, tensor) in given {
            let Some(key) = &self.feeds[at] else { continue };
            let parcel = Parcel { tensor: Some(tensor), is_dead: false };
            self.rendezvous.send(key, parcel).map_err(|error| self.why(error))?;
        }
        let waiting: Vec<_> = wanted.iter().map(|&at| self.ask(at)).collect();
        let mut fetched = Vec::with_capacity(wanted.len());
        for (&at, answer) in wanted.iter().zip(waiting) {
            fetched.push(self.wait_for(at, &answer, &limits)?);
        }
        if completes {
            self.wait_for_end(&limits)?;
        }
        Ok(fetched)
    }

    /// Asks the step for a fetch.
    fn ask(&self, at: usize) -> mpsc::Receiver<Result<Parcel, StepError>> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let take = Box::new(move |parcel| {
            // A caller that gave up does not take it.
            let _ = sender.send(parcel);
        });
        self.rendezvous.recv(&self.fetches[at], take);
        receiver
    }

    fn wait_for(
        &self,
        at: usize,
        answer: &mpsc::Receiver<Result<Parcel, StepError>>,
        limits: &RunLimits,
    ) -> Result<Tensor, RuntimeError> {
        let parcel = loop {
            let slice = limits.slice().unwrap_or(LONG);
            match answer.recv_timeout(slice) {
                Ok(parcel) => break parcel.map_err(|error| self.why(error))?,
                Err(mpsc::RecvTimeoutError::Timeout) => self.give_up(limits)?,
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(self.ended_without(at)),
            }
        };
        let name = self.progress.fetch(at);
        parcel.tensor.filter(|_| !parcel.is_dead).ok_or_else(|| {
            invalid(format!("fetch '{name}' has no value: it is of a branch that was not taken"))
        })
    }

    fn wait_for_end(&self, limits: &RunLimits) -> Result<(), RuntimeError> {
        let mut result = self.end.result.lock();
        loop {
            if let Some(result) = &*result {
                return result.clone();
            }
            result = self.end.changed.wait_timeout(result, limits.slice().unwrap_or(LONG));
            if result.is_none() {
                self.give_up(limits)?;
            }
        }
    }

    /// Cancels the step when its caller waits no longer.
    fn give_up(&self, limits: &RunLimits) -> Result<(), RuntimeError> {
        limits.check().inspect_err(|_| self.cancel())
    }

    /// Why the step failed, where it did; else what its rendezvous says.
    fn why(&self, error: StepError) -> RuntimeError {
        match &*self.end.result.lock() {
            Some(Err(first)) => first.clone(),
            _ => error.into(),
        }
    }

    fn ended_without(&self, at: usize) -> RuntimeError {
        let name = self.progress.fetch(at);
        self.why(StepError::step(Code::INTERNAL, format!("the step ended without fetch '{name}'")))
    }

    /// Whether the step has ended: everything was fed and fetched and its nodes have run, or it failed.
    pub fn is_done(&self) -> bool {
        let ended = self.end.result.lock().as_ref().map(Result::is_ok);
        ended.is_some_and(|is_ok| !is_ok || self.progress.is_complete())
    }

    /// Cancels the step.
    pub fn cancel(&self) {
        self.token.cancel();
    }
}

/// How long a caller without a deadline waits before it looks again.
const LONG: Duration = Duration::from_secs(3600);

impl Drop for PartialRun {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// A value on its way between the caller and a device, in host memory on both sides.
fn transfer(tensor: String, sender: DeviceName, receiver: DeviceName, dtype: DType) -> Transfer {
    Transfer {
        id: 0,
        sender,
        incarnation: 0,
        receiver,
        tensor,
        source_memory: Memory::Host,
        destination_memory: Memory::Host,
        dtype,
        shape: PartialShape::UNKNOWN,
    }
}

/// Where a step meets its caller, by positions of feeds and fetches. A feed that no node takes has no end.
#[derive(Default)]
struct Ends {
    feeds: BTreeMap<usize, Transfer>,
    fetches: BTreeMap<usize, Transfer>,
}

impl Ends {
    /// Makes each feed a `Recv` from the client, and each fetch a `Send` to it.
    fn meet_client(graph: &mut Partitioned) -> Ends {
        let mut ends = Ends::default();
        for partition in &mut graph.partitions {
            for node in &mut partition.nodes {
                let device = partition.device.clone();
                let id = graph.transfers;
                match node.kind {
                    PartKind::Feed { index } => {
                        let dtype = node.signature.outputs[0].base();
                        let made = transfer(format!("feed {index}"), client(), device, dtype);
                        node.kind = PartKind::Recv(Transfer { id, ..made.clone() });
                        ends.feeds.insert(index, made);
                    }
                    PartKind::Fetch { index } => {
                        let dtype = node.signature.inputs[0].base();
                        let made = transfer(format!("fetch {index}"), device, client(), dtype);
                        node.kind = PartKind::Send(Transfer { id, ..made.clone() });
                        ends.fetches.insert(index, made);
                    }
                    _ => continue,
                }
                graph.transfers += 1;
            }
        }
        ends
    }
}
