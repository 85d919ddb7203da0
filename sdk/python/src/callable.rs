//! Prepared steps: the fast path.
//!
//! # Memory of feeds
//! A feed may be in the memory of an array. A step that may keep a feed beyond its end, in a variable or a queue, gets copies: later
//! changes of the array do not reach what it keeps, and updates of it do not reach the array. [`Prepared::keeps`] says which
//! steps these are: those with a stateful node that takes plain values.

use crate::{
    arrays::{Copying, copy_into, to_array},
    blocking::{blocking, check_fork, end},
    cancel::PyCancelToken,
    fail::Fail,
    interrupt, profile,
    session::{Place, PySession},
    tensor::{PyTensor, convert},
};
use pyo3::{
    prelude::*,
    types::{PyList, PyTuple},
};
use std::{collections::HashSet, sync::Arc, time::Duration};
use tenon_framework::{Code, DType, Tensor};
use tenon_host::call::TraceSink;
use tenon_runtime::{Callable, CallableOptions, NodeReport, RunOptions};

/// A prepared step, here or on a server.
pub(crate) struct Prepared {
    names: CallableOptions,
    how: How,
    /// Whether the step may keep its feeds.
    keeps: bool,
}

enum How {
    Here(Callable),
    Server(Arc<tenon_cluster::Session>),
}

/// Whether a node may keep the values that it takes.
fn may_keep(node: &NodeReport, stateful: &HashSet<&str>) -> bool {
    let takes_values = node.inputs.iter().any(|(dtype, _)| dtype.base() != DType::RESOURCE);
    takes_values && stateful.contains(node.op.as_str())
}

impl Prepared {
    /// Prepares a step.
    ///
    /// # Errors
    /// As compiling the step.
    pub fn new(place: &Place, names: CallableOptions) -> Result<Prepared, Fail> {
        match place {
            Place::Here(session) => {
                let callable = session.callable(names.clone())?;
                let nodes = callable.nodes()?;
                let graph = session.graph();
                // An op that passes made is none of the graph's, and has no state of its own.
                let stateful: HashSet<&str> = graph
                    .nodes()
                    .filter(|(_, node)| node.op.stateful)
                    .map(|(_, node)| node.op.name.as_str())
                    .collect();
                let keeps = nodes.iter().any(|node| may_keep(node, &stateful))
                    || graph.library().is_some_and(|library| !library.function.is_empty());
                Ok(Prepared { names, how: How::Here(callable), keeps })
            }
            Place::Server(session) => {
                let how = How::Server(Arc::clone(session));
                Ok(Prepared { names, how, keeps: false })
            }
        }
    }

    fn run(
        &self,
        feeds: &[Tensor],
        fetched: &mut Vec<Tensor>,
        options: Option<&RunOptions>,
    ) -> Result<(), Fail> {
        if let (How::Here(callable), Some(trace)) = (&self.how, profile::current()) {
            let traced = RunOptions {
                trace: Some(trace.clone() as Arc<dyn TraceSink>),
                ..options.cloned().unwrap_or_default()
            };
            trace.describe(&callable.nodes()?);
            return Ok(callable.run_with(feeds, fetched, &traced)?);
        }
        match (&self.how, options) {
            (How::Here(callable), None) => Ok(callable.run(feeds, fetched)?),
            (How::Here(callable), Some(options)) => Ok(callable.run_with(feeds, fetched, options)?),
            (How::Server(session), options) => {
                let names = self.names.feeds.iter().map(String::as_str);
                let feeds: Vec<(&str, Tensor)> = names.zip(feeds.iter().cloned()).collect();
                let fetches: Vec<&str> = self.names.fetches.iter().map(String::as_str).collect();
                let targets: Vec<&str> = self.names.targets.iter().map(String::as_str).collect();
                let deadline = options.and_then(|options| options.deadline);
                *fetched = session.run(&feeds, &fetches, &targets, deadline)?;
                Ok(())
            }
        }
    }
}

/// A step with its feeds and fetches resolved. Call it with the values of the feeds, in order.
#[pyclass(frozen, name = "Callable", module = "tenon")]
pub(crate) struct PyCallable {
    prepared: Option<Prepared>,
    dtypes: Vec<DType>,
    /// It stays open as long as it has steps to run.
    session: Py<PySession>,
    single: bool,
    raw: bool,
}

impl PyCallable {
    pub fn new(
        prepared: Prepared,
        dtypes: Vec<DType>,
        session: Py<PySession>,
        single: bool,
        raw: bool,
    ) -> PyCallable {
        PyCallable { prepared: Some(prepared), dtypes, session, single, raw }
    }

    fn prepared(&self) -> Result<&Prepared, Fail> {
        check_fork()?;
        match &self.prepared {
            Some(prepared) if !self.session.get().closed() => Ok(prepared),
            _ => Err(Fail::precondition("the session is closed: open another one")),
        }
    }

    fn feeds(&self, prepared: &Prepared, args: &Bound<'_, PyTuple>) -> Result<Vec<Tensor>, Fail> {
        if args.len() != self.dtypes.len() {
            return Err(Fail::invalid(format!(
                "the callable takes {} feeds ({}), found {}",
                self.dtypes.len(),
                prepared.names.feeds.join(", "),
                args.len()
            )));
        }
        let copying = if prepared.keeps { Copying::Always } else { Copying::IfNeeded };
        let mut feeds = Vec::with_capacity(args.len());
        for (at, (value, &dtype)) in args.iter_borrowed().zip(&self.dtypes).enumerate() {
            let made = convert(&value, Some(dtype), copying).map_err(|fail| match fail {
                Fail::Tenon { code, message, place } => {
                    let name = &prepared.names.feeds[at];
                    Fail::Tenon { code, message: format!("feed '{name}': {message}"), place }
                }
                Fail::Python(error) => {
                    let note = format!("feed '{}'", prepared.names.feeds[at]);
                    // An exception that takes no notes is raised without one.
                    let _ = error.value(value.py()).call_method1("add_note", (note,));
                    Fail::Python(error)
                }
            });
            feeds.push(made?.tensor);
        }
        Ok(feeds)
    }
}

/// A value as the caller gets it.
fn result<'py>(
    py: Python<'py>,
    value: Tensor,
    feeds: &[Tensor],
    raw: bool,
) -> Result<Bound<'py, PyAny>, Fail> {
    let data = value.buffer().data();
    let is_feed = feeds.iter().any(|feed| feed.buffer().data() == data);
    let opaque = matches!(value.dtype().base(), DType::RESOURCE | DType::VARIANT);
    let tensor = Bound::new(py, PyTensor::of_step(value, !is_feed))?;
    match raw || opaque {
        true => Ok(tensor.into_any()),
        false => to_array(&tensor),
    }
}

#[pymethods]
impl PyCallable {
    /// The names of the feeds.
    #[getter]
    fn feeds_names(&self) -> Result<Vec<String>, Fail> {
        Ok(self.prepared()?.names.feeds.clone())
    }

    /// The names of the fetches.
    #[getter]
    fn fetches_names(&self) -> Result<Vec<String>, Fail> {
        Ok(self.prepared()?.names.fetches.clone())
    }

    #[pyo3(signature = (*args, out=None, deadline=None, token=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<Vec<Bound<'py, PyAny>>>,
        deadline: Option<f64>,
        token: Option<&PyCancelToken>,
    ) -> Result<Bound<'py, PyAny>, Fail> {
        let prepared = self.prepared()?;
        let feeds = self.feeds(prepared, args)?;
        let mut fetched = Vec::with_capacity(prepared.names.fetches.len());
        let deadline = deadline.map(duration).transpose()?;
        let cancel = match token {
            Some(token) => Some(token.token.clone()),
            None => interrupt::token_here(),
        };
        let options = (deadline.is_some() || cancel.is_some()).then(|| RunOptions {
            deadline,
            cancel,
            ..RunOptions::default()
        });
        let ran = blocking(py, || prepared.run(&feeds, &mut fetched, options.as_ref()));
        if let Err(fail) = ran {
            if fail.code() == Code::CANCELLED {
                // Ctrl-C: Python raises `KeyboardInterrupt`.
                py.check_signals()?;
            }
            return Err(fail);
        }
        if let Some(out) = out {
            if out.len() != fetched.len() {
                return Err(Fail::invalid(format!(
                    "out: expected {} arrays, found {}",
                    fetched.len(),
                    out.len()
                )));
            }
            for (at, (value, array)) in fetched.iter().zip(&out).enumerate() {
                copy_into(value, array, &format!("out[{at}]"))?;
            }
            let single = if self.single { out.first().cloned() } else { None };
            return match single {
                Some(array) => Ok(array),
                None => Ok(PyList::new(py, out)?.into_any()),
            };
        }
        let mut values = fetched.into_iter();
        if self.single
            && let Some(value) = values.next()
        {
            return result(py, value, &feeds, self.raw);
        }
        let made: Vec<_> =
            values.map(|value| result(py, value, &feeds, self.raw)).collect::<Result<_, _>>()?;
        Ok(PyList::new(py, made)?.into_any())
    }
}

/// A time in seconds.
pub(crate) fn duration(seconds: f64) -> Result<Duration, Fail> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Fail::invalid(format!("expected a number of seconds, found {seconds}")))
}

impl Drop for PyCallable {
    fn drop(&mut self) {
        end(self.prepared.take());
    }
}
