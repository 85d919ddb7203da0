//! TensorFlow's SavedModel: a model in a session, and its signatures as functions.

use crate::{
    arrays::{Copying, to_array},
    attrs::shape_object,
    blocking::{blocking, check_fork, end},
    callable::duration,
    dtypes::dtype_object,
    fail::Fail,
    interrupt,
    runtime::runtime,
    tensor::{PyTensor, convert},
};
use pyo3::{prelude::*, types::PyDict};
use std::path::PathBuf;
use tenon_framework::{Code, Tensor};
use tenon_import::{Argument, LoadOptions, LoadedModel, SavedModel};
use tenon_runtime::RunOptions;

/// A model that is ready to run. `tenon.saved_model` has the class for programs.
#[pyclass(frozen, name = "SavedModel", module = "tenon._native")]
pub(crate) struct PySavedModel {
    model: Option<LoadedModel>,
}

impl PySavedModel {
    fn model(&self) -> Result<&LoadedModel, Fail> {
        check_fork()?;
        self.model.as_ref().ok_or_else(|| Fail::precondition("the model is closed"))
    }
}

/// The arguments of a signature: name, type, shape and whether there is a default.
fn arguments<'py>(
    py: Python<'py>,
    arguments: &[Argument],
) -> Result<Vec<Bound<'py, PyDict>>, Fail> {
    let one = |argument: &Argument| {
        let made = PyDict::new(py);
        made.set_item("name", &argument.name)?;
        made.set_item("tensor", &argument.tensor)?;
        let dtype = argument.dtype.map(|dtype| dtype_object(py, dtype)).transpose()?;
        made.set_item("dtype", dtype)?;
        made.set_item("shape", shape_object(&argument.shape))?;
        made.set_item("has_default", argument.default.is_some())?;
        Ok(made)
    };
    arguments.iter().map(one).collect()
}

#[pymethods]
impl PySavedModel {
    /// Loads a model: restores its variables and runs its initial op.
    #[new]
    #[pyo3(signature = (path, tags, deadline=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        tags: Vec<String>,
        deadline: Option<f64>,
    ) -> Result<PySavedModel, Fail> {
        let runtime = runtime(py)?;
        let deadline = deadline.map(duration).transpose()?;
        let model = blocking(py, || {
            let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
            let options = LoadOptions { deadline, ..LoadOptions::default() };
            Ok(SavedModel::open(&path)?.load(runtime, &tags, &options)?)
        })?;
        Ok(PySavedModel { model: Some(model) })
    }

    /// The signatures: key, inputs and outputs of each.
    fn signatures<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyDict>>, Fail> {
        let one = |info: &tenon_import::SignatureInfo| {
            let made = PyDict::new(py);
            made.set_item("key", &info.key)?;
            made.set_item("inputs", arguments(py, &info.inputs)?)?;
            made.set_item("outputs", arguments(py, &info.outputs)?)?;
            Ok(made)
        };
        self.model()?.signatures().map(one).collect()
    }

    /// Runs a signature with inputs by name; gives the results by name.
    #[pyo3(signature = (key, inputs, deadline=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        inputs: Vec<(String, Bound<'py, PyAny>)>,
        deadline: Option<f64>,
    ) -> Result<Bound<'py, PyDict>, Fail> {
        let model = self.model()?;
        let info = model.info(key)?;
        let mut given: Vec<(String, Tensor)> = Vec::with_capacity(inputs.len());
        for (name, value) in inputs {
            let dtype = info.input(&name)?.dtype;
            // A signature may keep what it is given, in a variable.
            let made = convert(&value, dtype, Copying::Always).map_err(|fail| match fail {
                Fail::Tenon { code, message, place } => {
                    Fail::Tenon { code, message: format!("input '{name}': {message}"), place }
                }
                other => other,
            });
            given.push((name, made?.tensor));
        }
        let deadline = deadline.map(duration).transpose()?;
        let options =
            RunOptions { deadline, cancel: interrupt::token_here(), ..RunOptions::default() };
        let ran = blocking(py, || {
            let given: Vec<(&str, Tensor)> =
                given.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            Ok(model.signature(key)?.run_with(&given, &options)?)
        });
        let results = match ran {
            Err(fail) if fail.code() == Code::CANCELLED => {
                py.check_signals()?;
                return Err(fail);
            }
            ran => ran?,
        };
        let made = PyDict::new(py);
        for (name, value) in results {
            made.set_item(name, to_array(&Bound::new(py, PyTensor::of_step(value, true))?)?)?;
        }
        Ok(made)
    }
}

impl Drop for PySavedModel {
    fn drop(&mut self) {
        end(self.model.take());
    }
}
