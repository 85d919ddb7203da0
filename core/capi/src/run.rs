//! Steps.
//!
//! A signature is the feeds, the fetches and the targets of a call, as pointers and numbers. What it stands for is prepared at its
//! first step and found by them later, so that a step reads no names.

use crate::{
    buffer::{TF_Buffer, empty},
    fail::Failure,
    operation::{OpRef, TF_Output, node_of},
    raw::{Array, Out},
    session::{Place, TF_Session, session},
    status::TF_Status,
    tensor::TF_Tensor,
};
use std::{cell::Cell, collections::HashMap, ffi::c_int, sync::Arc, time::Duration};
use tenon_cluster::StepStatsSink;
use tenon_framework::{Code, Tensor};
use tenon_proto::{RunMetadata, RunOptions};
use tenon_runtime::{AnyShapeCallable, CallableOptions};

/// The values of one step: its feeds, and what it fetched.
type Values = (Vec<Tensor>, Vec<Tensor>);

thread_local! {
    /// Room for the values of a step, so that one that is repeated takes none from the system. A step that runs has it.
    static ROOM: Cell<Values> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// The most signatures that a session keeps.
const MOST_PREPARED: usize = 1024;

/// The feeds, the fetches and the targets of a call.
#[derive(Clone, Copy)]
pub(crate) struct Signature<'a> {
    pub(crate) feeds: &'a [TF_Output],
    pub(crate) fetches: &'a [TF_Output],
    pub(crate) targets: &'a [Option<OpRef>],
}

/// A signature that was run.
struct Entry {
    feeds: Vec<TF_Output>,
    fetches: Vec<TF_Output>,
    targets: Vec<Option<OpRef>>,
    step: Arc<Step>,
}

/// What a signature stands for.
pub(crate) struct Step {
    pub(crate) names: CallableOptions,
    /// The prepared step, whose feeds have any shape, as in TensorFlow; `None` where steps run on a server.
    callable: Option<AnyShapeCallable>,
}

/// The signatures that were run, by a hash of them.
#[derive(Default)]
pub(crate) struct Prepared {
    entries: HashMap<u64, Vec<Entry>, std::hash::BuildHasherDefault<Taken>>,
    count: usize,
}

/// A hasher of a key that is a hash already.
#[derive(Default)]
pub(crate) struct Taken(u64);

impl std::hash::Hasher for Taken {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = mixed(self.0, u64::from(byte)));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

fn mixed(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

fn address(oper: Option<OpRef>) -> u64 {
    oper.map_or(0, |oper| std::ptr::from_ref(&*oper) as u64)
}

impl Signature<'_> {
    fn hash(&self) -> u64 {
        let mut hash = mixed(self.feeds.len() as u64, self.fetches.len() as u64);
        for output in self.feeds.iter().chain(self.fetches) {
            hash = mixed(mixed(hash, address(output.oper)), output.index as u64);
        }
        self.targets.iter().fold(hash, |hash, &oper| mixed(hash, address(oper)))
    }

    fn is(&self, entry: &Entry) -> bool {
        entry.feeds == self.feeds && entry.fetches == self.fetches && entry.targets == self.targets
    }

    /// The names of all that the signature lists.
    ///
    /// # Errors
    /// An operation of another graph, or an output that does not exist.
    pub(crate) fn names(&self, of: &TF_Session) -> Result<CallableOptions, Failure> {
        let state = of.graph.lock();
        let outputs = |outputs: &[TF_Output], what: &str| {
            let name = |output: &TF_Output| {
                let found = output.of(&of.graph, what).map_err(|failure| match output.oper {
                    // As in TensorFlow, an output that does not exist is out of range in a step.
                    Some(oper) if oper.is_of(&of.graph) => {
                        Failure { code: Code::OUT_OF_RANGE, ..failure }
                    }
                    _ => failure,
                });
                Ok::<_, Failure>(state.graph.output_name(found?))
            };
            outputs.iter().map(name).collect::<Result<Vec<_>, _>>()
        };
        let target = |&oper: &Option<OpRef>| {
            Ok::<_, Failure>(state.graph.node(node_of(oper, &of.graph, "a target")?).name.clone())
        };
        Ok(CallableOptions {
            feeds: outputs(self.feeds, "a feed")?,
            fetches: outputs(self.fetches, "a fetch")?,
            targets: self.targets.iter().map(target).collect::<Result<_, _>>()?,
            ..CallableOptions::default()
        })
    }
}

impl TF_Session {
    /// What a signature stands for, prepared where it was not run yet.
    fn step(&self, signature: Signature<'_>) -> Result<Arc<Step>, Failure> {
        let hash = signature.hash();
        let find = |prepared: &Prepared| {
            let entries = prepared.entries.get(&hash)?;
            entries.iter().find(|entry| signature.is(entry)).map(|entry| Arc::clone(&entry.step))
        };
        if let Some(step) = find(&self.prepared.lock()) {
            return Ok(step);
        }
        let names = signature.names(self)?;
        let callable = match &self.place {
            Place::Here(session) => Some(session.any_shape_callable(names.clone())?),
            Place::Server(_) => None,
        };
        let step = Arc::new(Step { names, callable });
        let mut prepared = self.prepared.lock();
        if let Some(step) = find(&prepared) {
            return Ok(step);
        }
        if prepared.count >= MOST_PREPARED {
            *prepared = Prepared::default();
        }
        prepared.count += 1;
        prepared.entries.entry(hash).or_default().push(Entry {
            feeds: signature.feeds.to_vec(),
            fetches: signature.fetches.to_vec(),
            targets: signature.targets.to_vec(),
            step: Arc::clone(&step),
        });
        Ok(step)
    }

    /// Runs a step with options, and gives what is to be known of it.
    fn run_with(
        &self,
        step: &Step,
        feeds: &[Tensor],
        options: &RunOptions,
        wants_metadata: bool,
    ) -> Result<(Vec<Tensor>, RunMetadata), Failure> {
        let asked = u64::try_from(options.timeout_in_ms).ok().filter(|&number| number > 0);
        let deadline = asked.map(Duration::from_millis).or(self.timeout);
        let mut metadata = RunMetadata::default();
        match (&self.place, &step.callable) {
            (Place::Here(session), Some(callable)) => {
                let stats = if wants_metadata { StepStatsSink::wanted(options) } else { None };
                let options_here = tenon_runtime::RunOptions {
                    deadline,
                    cancel: None,
                    trace: stats.clone().map(|stats| stats as _),
                };
                let mut fetched = Vec::with_capacity(step.names.fetches.len());
                let callable = callable.run(feeds, &mut fetched, Some(&options_here))?;
                if let Some(stats) = stats {
                    metadata.step_stats = Some(stats.finish(&callable.nodes()?));
                }
                if wants_metadata && options.output_partition_graphs {
                    metadata.partition_graphs = session.partitions(&step.names)?;
                }
                Ok((fetched, metadata))
            }
            (Place::Server(session), _) => {
                let names = &step.names;
                let feeds = names.feeds.iter().map(String::as_str).zip(feeds.iter().cloned());
                let own = |names: &'_ [String]| names.to_vec();
                let (fetches, targets) = (own(&names.fetches), own(&names.targets));
                let fetched = session.run_any_shape(
                    &feeds.collect::<Vec<_>>(),
                    &fetches.iter().map(String::as_str).collect::<Vec<_>>(),
                    &targets.iter().map(String::as_str).collect::<Vec<_>>(),
                    deadline,
                )?;
                Ok((fetched, metadata))
            }
            (Place::Here(_), None) => Err(Failure::new(
                Code::INTERNAL,
                "a step in this process was not prepared; please report it",
            )),
        }
    }
}

/// Writes the fetched values, as new tensors. Where one of them has no form in C, none is written.
pub(crate) fn write(
    fetched: &[Tensor],
    values: &Out<'_, Option<Box<TF_Tensor>>>,
) -> Result<(), Failure> {
    if let [one] = fetched {
        values.set(Some(Box::new(TF_Tensor::of(one)?)));
        return Ok(());
    }
    let made = fetched.iter().map(|value| Ok(Box::new(TF_Tensor::of(value)?)));
    let made = made.collect::<Result<Vec<_>, Failure>>()?;
    made.into_iter().enumerate().for_each(|(at, value)| values.set_at(at, Some(value)));
    Ok(())
}

/// The values of feeds.
pub(crate) fn read(
    values: Array<'_, Option<&TF_Tensor>>,
    count: c_int,
) -> Result<Vec<Tensor>, Failure> {
    let mut read = Vec::new();
    read_into(&mut read, values, count)?;
    Ok(read)
}

fn read_into(
    read: &mut Vec<Tensor>,
    values: Array<'_, Option<&TF_Tensor>>,
    count: c_int,
) -> Result<(), Failure> {
    for value in values.checked(count, "the values of the feeds")? {
        read.push(value.ok_or_else(|| Failure::null("the value of a feed"))?.value()?);
    }
    Ok(())
}

/// Sets all results to null.
pub(crate) fn forget(values: &Out<'_, Option<Box<TF_Tensor>>>, count: usize) {
    (0..count).for_each(|at| values.set_at(at, None));
}

/// Runs a prepared step in the room that the thread keeps.
fn run_prepared(
    callable: &AnyShapeCallable,
    input_values: Array<'_, Option<&TF_Tensor>>,
    count: c_int,
    values: &Out<'_, Option<Box<TF_Tensor>>>,
) -> Result<(), Failure> {
    let (mut feeds, mut fetched) = ROOM.take();
    let outcome = read_into(&mut feeds, input_values, count).and_then(|()| {
        callable.run(&feeds, &mut fetched, None)?;
        write(&fetched, values)
    });
    feeds.clear();
    fetched.clear();
    ROOM.set((feeds, fetched));
    outcome
}

/// The options of a call, where it has any.
fn options(buffer: Option<&TF_Buffer>) -> Result<Option<RunOptions>, Failure> {
    buffer.map(TF_Buffer::message).transpose()
}

api! {
    /// Runs a step: feeds `inputs` with `input_values`, runs what `outputs` and `targets` need, and writes the values of `outputs` as new
    /// tensors, which the caller deletes. `run_options` is a `RunOptions` or null; `run_metadata` is null or empty, and then gets
    /// a `RunMetadata`.
    fn TF_SessionRun(
        found: Option<&TF_Session>,
        run_options: Option<&TF_Buffer>,
        inputs: Array<'_, TF_Output>,
        input_values: Array<'_, Option<&TF_Tensor>>,
        input_count: c_int,
        outputs: Array<'_, TF_Output>,
        output_values: Out<'_, Option<Box<TF_Tensor>>>,
        output_count: c_int,
        targets: Array<'_, Option<OpRef>>,
        target_count: c_int,
        run_metadata: Option<&mut TF_Buffer>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let values = output_values;
        let found = session(found)?;
        let signature = Signature {
            feeds: inputs.checked(input_count, "the feeds")?,
            fetches: outputs.checked(output_count, "the fetches")?,
            targets: targets.checked(target_count, "the targets")?,
        };
        if values.is_null() && !signature.fetches.is_empty() {
            return Err(Failure::null("the array of results"));
        }
        forget(&values, signature.fetches.len());
        found.follow()?;
        let metadata = run_metadata.map(|buffer| empty(Some(buffer))).transpose()?;
        let step = found.step(signature)?;
        if let (None, None, None, Some(callable)) =
            (run_options, &metadata, found.timeout, &step.callable)
        {
            return run_prepared(callable, input_values, input_count, &values);
        }
        let feeds = read(input_values, input_count)?;
        let options = options(run_options)?.unwrap_or_default();
        let (fetched, told) = found.run_with(&step, &feeds, &options, metadata.is_some())?;
        write(&fetched, &values)?;
        if let Some(buffer) = metadata {
            *buffer = TF_Buffer::of_message(&told)?;
        }
        Ok(())
    }
}
