//! Savers and training loops.

use crate::{
    arrays::{Copying, to_array},
    blocking::{blocking, check_fork, end},
    callable::duration,
    fail::Fail,
    graph::PyGraph,
    hooks::{HookSpec, Raised},
    runtime::runtime,
    session::PySession,
    tensor::{PyTensor, convert},
};
use pyo3::prelude::*;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError},
};
use tenon_framework::Tensor;
use tenon_proto::GraphDef;
use tenon_runtime::{AnySession, SessionError, SessionOptions};
use tenon_training::{
    LocalTarget, LoopOptions, MonitoredSession, Saver, SaverOptions, Scaffold, Target,
};

/// Saves and restores variables. `tenon.train.Saver` is the class for programs.
#[pyclass(frozen, name = "Saver", module = "tenon._native")]
pub(crate) struct PySaver {
    saver: Saver,
}

#[pymethods]
impl PySaver {
    #[new]
    #[pyo3(signature = (graph, names=None, max_to_keep=5, sharded=false))]
    fn new(
        py: Python<'_>,
        graph: &PyGraph,
        names: Option<Vec<String>>,
        max_to_keep: usize,
        sharded: bool,
    ) -> Result<PySaver, Fail> {
        let registry = runtime(py)?.registry();
        let options = SaverOptions { max_to_keep, sharded, ..SaverOptions::default() };
        let saver = py.detach(|| {
            graph.lock()?.build(&registry, |b, variables| {
                let chosen: Vec<_> = match &names {
                    None => variables.all().to_vec(),
                    Some(names) => {
                        let all = variables.all().iter();
                        all.filter(|variable| names.contains(&variable.name)).cloned().collect()
                    }
                };
                if chosen.is_empty() {
                    return Err(Fail::invalid("a saver needs at least one variable, found none"));
                }
                Ok(Saver::build(b, &chosen, options)?)
            })
        })?;
        Ok(PySaver { saver })
    }

    /// Writes a checkpoint, and returns its prefix.
    #[pyo3(signature = (session, prefix, step=None))]
    fn save(
        &self,
        py: Python<'_>,
        session: &PySession,
        prefix: PathBuf,
        step: Option<i64>,
    ) -> Result<PathBuf, Fail> {
        let place = session.follow(py)?;
        blocking(py, || Ok(self.saver.save(&*place.any(), prefix, step)?))
    }

    /// Restores all variables.
    fn restore(
        &self,
        py: Python<'_>,
        session: &PySession,
        checkpoint: PathBuf,
    ) -> Result<(), Fail> {
        let place = session.follow(py)?;
        blocking(py, || Ok(self.saver.restore(&*place.any(), checkpoint)?))
    }

    /// The checkpoints that are kept, the newest last.
    fn checkpoints(&self) -> Vec<PathBuf> {
        self.saver.checkpoints()
    }
}

/// The newest complete checkpoint of a folder.
#[pyfunction]
pub(crate) fn latest_checkpoint(py: Python<'_>, folder: PathBuf) -> Result<Option<PathBuf>, Fail> {
    py.detach(|| Ok(tenon_training::latest_checkpoint(folder)?))
}

/// A training loop that keeps going. `tenon.train.MonitoredSession` is the class for programs.
#[pyclass(frozen, name = "MonitoredSession", module = "tenon._native")]
pub(crate) struct PyMonitored {
    looped: Mutex<Option<MonitoredSession>>,
    raised: Raised,
}

/// A target that opens sessions on a server.
fn server(target: String) -> impl Target {
    move |graph: &GraphDef| {
        let opened = tenon_cluster::Session::connect(&target, graph.clone())?;
        Ok::<_, SessionError>(Arc::new(opened) as Arc<dyn AnySession>)
    }
}

impl PyMonitored {
    /// The loop, which one thread uses at a time: another call waits for nothing.
    fn locked(&self) -> Result<MutexGuard<'_, Option<MonitoredSession>>, Fail> {
        match self.looped.try_lock() {
            Ok(looped) => Ok(looped),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Fail::precondition(
                "the training loop runs a step: use it from one thread; a hook ends the training by returning True from \
                 after_run",
            )),
        }
    }

    /// Runs something with the loop. An exception of a Python hook comes before the error that it caused.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut MonitoredSession) -> Result<T, Fail> + Send,
    ) -> Result<T, Fail> {
        let result = blocking(py, || {
            let mut looped = self.locked()?;
            let looped = looped.as_mut();
            call(looped.ok_or_else(|| Fail::precondition("the training loop is closed"))?)
        });
        self.raised.first(result)
    }
}

#[pymethods]
impl PyMonitored {
    #[new]
    #[pyo3(signature = (graph, target, folder, hooks, recovery=600.0, step_deadline=None))]
    fn new(
        py: Python<'_>,
        graph: &PyGraph,
        target: Option<String>,
        folder: Option<PathBuf>,
        hooks: Vec<HookSpec>,
        recovery: f64,
        step_deadline: Option<f64>,
    ) -> Result<PyMonitored, Fail> {
        let runtime = runtime(py)?;
        let registry = runtime.registry();
        let raised = Raised::default();
        let hooks =
            hooks.into_iter().map(|hook| hook.build(&raised)).collect::<Result<_, Fail>>()?;
        let mut options = LoopOptions {
            recovery: duration(recovery)?,
            step_deadline: step_deadline.map(duration).transpose()?,
            ..LoopOptions::default()
        };
        options.manager.checkpoint_folder = folder;
        let opened = blocking(py, || {
            let scaffold = graph.lock()?.build(&registry, |b, variables| {
                Ok(Scaffold::build(b, variables, SaverOptions::default())?)
            })?;
            let target: Arc<dyn Target> = match target {
                Some(target) => Arc::new(server(target)),
                None => Arc::new(LocalTarget::new(runtime, SessionOptions::default())),
            };
            Ok(MonitoredSession::open(target, scaffold, hooks, options)?)
        });
        let opened = raised.first(opened)?;
        Ok(PyMonitored { looped: Mutex::new(Some(opened)), raised })
    }

    /// Runs a step with the hooks.
    fn run<'py>(
        &self,
        py: Python<'py>,
        feeds: Vec<(String, Bound<'py, PyAny>)>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<Vec<Bound<'py, PyAny>>, Fail> {
        // A training step keeps what it is fed with, for all that is known here.
        let given: Vec<(String, Tensor)> = feeds
            .into_iter()
            .map(|(name, value)| Ok((name, convert(&value, None, Copying::Always)?.tensor)))
            .collect::<Result<_, Fail>>()?;
        let values = self.with(py, |looped| {
            let feeds: Vec<(&str, Tensor)> =
                given.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
            let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
            Ok(looped.run(&feeds, &fetches, &targets)?)
        })?;
        py.check_signals()?;
        let array = |value| to_array(&Bound::new(py, PyTensor::of_step(value, true))?);
        values.into_iter().map(array).collect()
    }

    /// Whether a hook has ended the training, or there is no more input.
    fn should_stop(&self, py: Python<'_>) -> Result<bool, Fail> {
        self.with(py, |looped| Ok(looped.should_stop()))
    }

    /// Ends the training after the current step.
    fn request_stop(&self, py: Python<'_>) -> Result<(), Fail> {
        self.with(py, |looped| {
            looped.request_stop();
            Ok(())
        })
    }

    /// Ends the training. `abandon` leaves out what hooks do at the end, as after an error.
    #[pyo3(signature = (abandon=false))]
    fn close(&self, py: Python<'_>, abandon: bool) -> Result<(), Fail> {
        check_fork()?;
        let looped = self.locked()?.take();
        let Some(looped) = looped else { return Ok(()) };
        let closed = blocking(py, || match abandon {
            true => {
                drop(looped);
                Ok(())
            }
            false => Ok(looped.close()?),
        });
        self.raised.first(closed)
    }
}

impl Drop for PyMonitored {
    fn drop(&mut self) {
        end(self.looped.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}
