//! Hooks of training loops: those of `tenon-training`, and objects of Python's.

use crate::{
    arrays::{Copying, to_array},
    blocking::calling,
    callable::duration,
    fail::Fail,
    tensor::{PyTensor, convert},
};
use pyo3::prelude::*;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_framework::{Code, Tensor};
use tenon_runtime::{AnySession, SessionError};
use tenon_training::{
    CheckpointSaver, Every, Hook, LoggingTensor, NanTensor, RunArgs, RunContext, StepCounter,
    StopAtStep, TrainError,
};

/// The first exception of a Python hook, which the caller gets in the place of the error that it caused.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn note(&self, error: PyErr) -> TrainError {
        let message = format!("a hook raised: {error}");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        TrainError::Session(SessionError::new(Code::UNKNOWN, message))
    }

    /// The result, or the exception that a hook raised.
    pub fn first<T>(&self, result: Result<T, Fail>) -> Result<T, Fail> {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (raised, result) {
            (Some(error), Err(_)) => Err(Fail::Python(error)),
            (_, result) => result,
        }
    }
}

/// A hook as Python describes it: an object, or the kind and the options of one of `tenon-training`'s.
#[derive(FromPyObject)]
pub(crate) enum HookSpec {
    /// The kind, the tensors or the folder that it is about, and its numbers.
    Own((String, Vec<String>, BTreeMap<String, f64>)),
    /// An object with methods of a hook.
    Object(Py<PyAny>),
}

fn every(options: &BTreeMap<String, f64>) -> Result<Every, Fail> {
    match (options.get("steps"), options.get("seconds")) {
        (Some(steps), None) => Ok(Every::Steps(*steps as i64)),
        (None, Some(seconds)) => Ok(Every::Time(duration(*seconds)?)),
        _ => Err(Fail::invalid("expected either every_steps or every_seconds")),
    }
}

impl HookSpec {
    /// The hook.
    ///
    /// # Errors
    /// An option is missing or wrong.
    pub fn build(self, raised: &Raised) -> Result<Box<dyn Hook>, Fail> {
        let (kind, texts, options) = match self {
            HookSpec::Object(object) => {
                return Ok(Box::new(PythonHook { object, raised: raised.clone() }));
            }
            HookSpec::Own(own) => own,
        };
        let tensors: Vec<&str> = texts.iter().map(String::as_str).collect();
        let folder = || PathBuf::from(texts.first().map_or("", String::as_str));
        Ok(match kind.as_str() {
            "stop_at" => match (options.get("last"), options.get("after")) {
                (Some(last), None) => Box::new(StopAtStep::last(*last as i64)),
                (None, Some(after)) => Box::new(StopAtStep::after(*after as i64)),
                _ => {
                    return Err(Fail::invalid(
                        "StopAtStep: expected either last_step or num_steps",
                    ));
                }
            },
            "checkpoint" => Box::new(CheckpointSaver::new(folder(), every(&options)?)),
            "counter" => Box::new(StepCounter::new(every(&options)?)),
            "logging" => Box::new(LoggingTensor::new(&tensors, every(&options)?)),
            "nan" => {
                let hook = NanTensor::new(&tensors);
                let stops = options.get("stops").is_some_and(|stops| *stops != 0.0);
                Box::new(if stops { hook.stops() } else { hook })
            }
            other => return Err(Fail::invalid(format!("there is no hook '{other}'"))),
        })
    }
}

/// An object with any of the methods `begin`, `after_create_session`, `before_run`, `after_run` and `end`.
struct PythonHook {
    object: Py<PyAny>,
    raised: Raised,
}

impl PythonHook {
    /// Calls a method, if the object has it.
    fn call<T>(
        &self,
        method: &str,
        call: impl FnOnce(&Bound<'_, PyAny>) -> Result<T, Fail>,
    ) -> Result<Option<T>, TrainError> {
        let called = calling(|py| {
            let Some(method) = self.object.bind(py).getattr_opt(method)? else { return Ok(None) };
            call(&method).map(Some)
        });
        match called {
            Some(Ok(value)) => Ok(value),
            Some(Err(fail)) => Err(self.raised.note(fail.into())),
            None => Ok(None),
        }
    }
}

impl Hook for PythonHook {
    fn begin(&mut self, _: &tenon_training::Scaffold) -> Result<(), TrainError> {
        self.call("begin", |method| Ok(method.call0().map(drop)?)).map(drop)
    }

    fn after_create_session(&mut self, _: &mut RunContext<'_>) -> Result<(), TrainError> {
        self.call("after_create_session", |method| Ok(method.call0().map(drop)?)).map(drop)
    }

    fn before_run(&mut self, _: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        let asked = self.call("before_run", |method| {
            let asked = method.call0()?;
            if asked.is_none() {
                return Ok(RunArgs::default());
            }
            let (feeds, fetches): (Vec<(String, Bound<'_, PyAny>)>, Vec<String>) =
                asked.extract()?;
            let feeds = feeds
                .into_iter()
                .map(|(name, value)| Ok((name, convert(&value, None, Copying::Always)?.tensor)));
            Ok(RunArgs { feeds: feeds.collect::<Result<_, Fail>>()?, fetches })
        })?;
        Ok(asked.unwrap_or_default())
    }

    fn after_run(&mut self, run: &mut RunContext<'_>, values: &[Tensor]) -> Result<(), TrainError> {
        let stops = self.call("after_run", |method| {
            let py = method.py();
            let array = |value: &Tensor| {
                to_array(&Bound::new(py, PyTensor::of_step(value.clone(), false))?)
            };
            let arrays: Vec<_> = values.iter().map(array).collect::<Result<_, Fail>>()?;
            Ok(method.call1((arrays,))?.is_truthy()?)
        })?;
        if stops == Some(true) {
            run.request_stop();
        }
        Ok(())
    }

    fn end(&mut self, _: &dyn AnySession) -> Result<(), TrainError> {
        self.call("end", |method| Ok(method.call0().map(drop)?)).map(drop)
    }
}
