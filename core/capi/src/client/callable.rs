//! Prepared steps.

use crate::{
    client::{
        handle::Handle,
        runtime::texts,
        session::Session,
        status::Status,
        step::{Asked, RunOptions, forget, write},
        tensor::Tensor,
        versioned::Options,
    },
    fail::Failure,
    raw::{Array, Out, Text},
    session::Place,
};
use std::{cell::Cell, ffi::c_int, ptr, sync::Arc};
use tenon_framework::{
    Code, Tensor as Value,
    sync::{Mutex, rank},
};
use tenon_runtime::CallableOptions;

thread_local! {
    /// Room for the values of a step, so that one that is repeated takes none from the system. A step that runs has it.
    static ROOM: Cell<(Vec<Value>, Vec<Value>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// A prepared step.
pub struct Callable {
    session: Arc<Session>,
    names: CallableOptions,
    /// The compiled step; `None` where steps run on a server.
    compiled: Option<tenon_runtime::Callable>,
    bound: Mutex<Bound>,
}

/// What is bound, by number.
struct Bound {
    inputs: Vec<Option<Arc<Tensor>>>,
    outputs: Vec<Option<Arc<Tensor>>>,
}

kept! { Callable => "a callable" }

impl Callable {
    fn new(session: Arc<Session>, names: CallableOptions) -> Result<Callable, Failure> {
        session.ready()?;
        let compiled = match &session.inner.place {
            Place::Here(here) => Some(here.callable(names.clone())?),
            Place::Server(_) => None,
        };
        let bound = Bound {
            inputs: vec![None; names.feeds.len()],
            outputs: vec![None; names.fetches.len()],
        };
        Ok(Callable { session, names, compiled, bound: Mutex::ranked(rank::SESSION, bound) })
    }

    /// Runs the step with what is in `feeds`.
    fn run(&self, asked: &Asked, feeds: &[Value], fetched: &mut Vec<Value>) -> Result<(), Failure> {
        self.session.check_open()?;
        match (&self.compiled, &self.session.inner.place) {
            (Some(compiled), _) if asked.is_plain() => Ok(compiled.run(feeds, fetched)?),
            (Some(compiled), _) => {
                compiled.run_with(feeds, fetched, &asked.run)?;
                asked.tell(&compiled.nodes()?)
            }
            (None, Place::Server(server)) => {
                asked.check_for_server()?;
                let names = &self.names;
                let fetches = names.fetches.iter().map(String::as_str).collect::<Vec<_>>();
                let feeds = names.feeds.iter().map(String::as_str).zip(feeds.iter().cloned());
                let feeds: Vec<(&str, Value)> = feeds.collect();
                let targets = names.targets.iter().map(String::as_str).collect::<Vec<_>>();
                *fetched = server.run(&feeds, &fetches, &targets, asked.run.deadline)?;
                Ok(())
            }
            (None, Place::Here(_)) => Err(Failure::new(
                Code::INTERNAL,
                "a step in this process was not prepared; please report it",
            )),
        }
    }

    /// Runs the step in the room that the thread keeps; `take` gets the fetched values.
    fn run_in_room(
        &self,
        asked: &Asked,
        fill: impl FnOnce(&mut Vec<Value>) -> Result<(), Failure>,
        take: impl FnOnce(&mut Vec<Value>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (mut feeds, mut fetched) = ROOM.take();
        let outcome = fill(&mut feeds).and_then(|()| {
            self.run(asked, &feeds, &mut fetched)?;
            // The feeds' memory is the callers' again.
            feeds.clear();
            take(&mut fetched)
        });
        feeds.clear();
        fetched.clear();
        ROOM.set((feeds, fetched));
        outcome
    }

    fn check_count(&self, what: &str, expected: usize, found: usize) -> Result<(), Failure> {
        match expected == found {
            true => Ok(()),
            false => {
                Err(Failure::invalid(format!("the callable has {expected} {what}, found {found}")))
            }
        }
    }
}

/// Copies a value into the memory of a tensor of the same type and shape.
fn copy_into(value: &Value, to: &Tensor, name: &str) -> Result<(), Failure> {
    let to = &to.value;
    if to.dtype() != value.dtype().base() || to.shape() != value.shape() {
        return Err(Failure::invalid(format!(
            "output '{name}': the tensor that is bound is of {} and shape {}, the value of {} and shape {}",
            to.dtype(),
            to.shape(),
            value.dtype().base(),
            value.shape()
        )));
    }
    let bytes = value.as_bytes()?;
    // SAFETY: the bound tensor has plain elements, as `bind_output` made sure, and as many bytes. Its owner uses it in no other
    // way while the callable runs, as the header says. A value in the same memory is copied onto itself.
    unsafe { ptr::copy(bytes.as_ptr(), to.buffer().data().cast::<u8>(), bytes.len()) };
    Ok(())
}

/// The place number `index` of what is bound.
fn place<'b>(
    places: &'b mut [Option<Arc<Tensor>>],
    index: c_int,
    what: &str,
) -> Result<&'b mut Option<Arc<Tensor>>, Failure> {
    let count = places.len();
    let found = usize::try_from(index).ok().and_then(|index| places.get_mut(index));
    found.ok_or_else(|| {
        Failure::invalid(format!("the callable has {count} {what}, asked for number {index}"))
    })
}

fn run_bound(callable: &Callable, asked: &Asked) -> Result<(), Failure> {
    let (inputs, outputs) = {
        let bound = callable.bound.lock();
        (bound.inputs.clone(), bound.outputs.clone())
    };
    let lacks = |name: &String| {
        Failure::new(
            Code::FAILED_PRECONDITION,
            format!(
                "'{name}' is not bound: bind it by tn_callable_bind_input or tn_callable_bind_output"
            ),
        )
    };
    let fill = |feeds: &mut Vec<Value>| {
        for (input, name) in inputs.iter().zip(&callable.names.feeds) {
            feeds.push(input.as_ref().ok_or_else(|| lacks(name))?.value.clone());
        }
        if let Some(at) = outputs.iter().position(Option::is_none) {
            return Err(lacks(&callable.names.fetches[at]));
        }
        Ok(())
    };
    callable.run_in_room(asked, fill, |fetched| {
        for ((value, output), name) in fetched.iter().zip(&outputs).zip(&callable.names.fetches) {
            if let Some(output) = output {
                copy_into(value, output, name)?;
            }
        }
        Ok(())
    })
}

api! {
    /// Prepares a step: its names are found, and it is compiled, once. The caller deletes the callable.
    fn tn_callable_new(
        session: Handle<Session>,
        feeds: Array<'_, Text<'_>>,
        feed_count: usize,
        fetches: Array<'_, Text<'_>>,
        fetch_count: usize,
        targets: Array<'_, Text<'_>>,
        target_count: usize,
        status: Option<&mut Status>,
    ) -> Handle<Callable> [status] {
        let session = session.get()?;
        let own = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let names = CallableOptions {
            feeds: own(texts(feeds, feed_count, "a feed")?),
            fetches: own(texts(fetches, fetch_count, "a fetch")?),
            targets: own(texts(targets, target_count, "a target")?),
            ..CallableOptions::default()
        };
        Callable::new(session, names).map(Handle::new)
    }

    /// Runs a prepared step with the values of its feeds, in order, and writes the values of its fetches as new tensors, which the
    /// caller deletes. "options" may be null. On failure all results are null.
    fn tn_callable_run(
        callable: Handle<Callable>,
        options: Options<'_, RunOptions>,
        values: Array<'_, Handle<Tensor>>,
        value_count: usize,
        results: Out<'_, Handle<Tensor>>,
        result_count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        forget(&results, result_count)?;
        let callable = callable.get()?;
        callable.check_count("feeds", callable.names.feeds.len(), value_count)?;
        callable.check_count("fetches", callable.names.fetches.len(), result_count)?;
        let asked = Asked::read(&options, callable.session.inner.timeout)?;
        let values = values.required(value_count, "the values of the feeds")?;
        let fill = |feeds: &mut Vec<Value>| {
            for value in values {
                feeds.push(value.get()?.value.clone());
            }
            Ok(())
        };
        callable.run_in_room(&asked, fill, |fetched| write(&results, std::mem::take(fetched)))?;
        Ok(true)
    }

    /// Binds feed number "index" to a tensor, which tn_callable_run_bound reads. The tensor may be deleted; its memory stays until
    /// another one is bound, or the callable is deleted. Its elements may change between steps.
    fn tn_callable_bind_input(
        callable: Handle<Callable>,
        index: c_int,
        value: Handle<Tensor>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (callable, value) = (callable.get()?, value.get()?);
        *place(&mut callable.bound.lock().inputs, index, "feeds")? = Some(value);
        Ok(true)
    }

    /// Binds fetch number "index" to a tensor of the type and the shape of its values, into whose memory tn_callable_run_bound copies
    /// them. The tensor may be deleted; its memory stays until another one is bound, or the callable is deleted.
    fn tn_callable_bind_output(
        callable: Handle<Callable>,
        index: c_int,
        value: Handle<Tensor>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (callable, value) = (callable.get()?, value.get()?);
        value.value.as_bytes()?;
        *place(&mut callable.bound.lock().outputs, index, "fetches")? = Some(value);
        Ok(true)
    }

    /// Runs a prepared step with what is bound. "options" may be null. If it fails, the memory of bound outputs may have changed.
    /// Threads: one call at a time for a callable, since its steps share the memory of what is bound.
    fn tn_callable_run_bound(
        callable: Handle<Callable>,
        options: Options<'_, RunOptions>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let callable = callable.get()?;
        let asked = Asked::read(&options, callable.session.inner.timeout)?;
        run_bound(&callable, &asked)?;
        Ok(true)
    }

    /// Deletes a callable.
    fn tn_callable_delete(callable: Handle<Callable>) -> c_int { callable.delete() }
}
