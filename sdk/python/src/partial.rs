//! Steps that are fed and fetched in parts.

use crate::{
    arrays::{Copying, to_array},
    blocking::{blocking, check_fork, end},
    fail::Fail,
    interrupt,
    tensor::{PyTensor, convert},
};
use pyo3::prelude::*;
use tenon_framework::{Code, DType, Tensor};
use tenon_runtime::{PartialRun, RunOptions};

/// A step that is fed and fetched in parts. Dropping it cancels the step.
#[pyclass(frozen, name = "PartialRun", module = "tenon")]
pub(crate) struct PyPartialRun {
    run: Option<PartialRun>,
    feeds: Vec<(String, DType)>,
}

impl PyPartialRun {
    pub fn new(run: PartialRun, names: Vec<String>, dtypes: Vec<DType>) -> PyPartialRun {
        PyPartialRun { run: Some(run), feeds: names.into_iter().zip(dtypes).collect() }
    }
}

#[pymethods]
impl PyPartialRun {
    /// Feeds and fetches a part: names and values of feeds, and names of fetches.
    fn run_part<'py>(
        &self,
        py: Python<'py>,
        feeds: Vec<(String, Bound<'py, PyAny>)>,
        fetches: Vec<String>,
    ) -> Result<Vec<Bound<'py, PyAny>>, Fail> {
        check_fork()?;
        let run =
            self.run.as_ref().ok_or_else(|| Fail::precondition("the partial run has ended"))?;
        let mut given: Vec<(String, Tensor)> = Vec::with_capacity(feeds.len());
        for (name, value) in feeds {
            let dtype = self.feeds.iter().find(|(feed, _)| *feed == name).map(|(_, dtype)| *dtype);
            // The step may write in place what only it refers to.
            given.push((name, convert(&value, dtype, Copying::Always)?.tensor));
        }
        let options = RunOptions { cancel: interrupt::token_here(), ..RunOptions::default() };
        let fetched = blocking(py, || {
            let feeds: Vec<(&str, Tensor)> =
                given.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
            Ok(run.run(&feeds, &fetches, &options)?)
        });
        let fetched = match fetched {
            Err(fail) if fail.code() == Code::CANCELLED => {
                py.check_signals()?;
                return Err(fail);
            }
            fetched => fetched?,
        };
        let array = |value| to_array(&Bound::new(py, PyTensor::of_step(value, true))?);
        fetched.into_iter().map(array).collect()
    }

    /// Cancels the step.
    fn cancel(&self, py: Python<'_>) {
        if let Some(run) = &self.run {
            py.detach(|| run.cancel());
        }
    }

    /// Whether the step has ended.
    #[getter]
    fn done(&self) -> bool {
        self.run.as_ref().is_none_or(PartialRun::is_done)
    }
}

impl Drop for PyPartialRun {
    fn drop(&mut self) {
        end(self.run.take());
    }
}
