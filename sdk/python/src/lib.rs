//! `tenon._native`: the native part of the Python package `tenon`.
//!
//! What it is: tensors that share memory with NumPy and DLPack, graphs, sessions and training loops as classes of Python's. The
//! package around it (`sdk/python/python/tenon`) adds operators, names and structure in Python; a prepared step
//! (`Session.callable`) goes through this module alone.
//!
//! What it is not: ops, kernels, placement (the runtime's crates and the plugins).
//!
//! # Invariants
//! - Whatever may wait, or takes a lock of the runtime, runs without Python's lock (`blocking`).
//! - Importing the module starts nothing: the first graph, session or list of devices starts the runtime.
//! - Every error is a class of `tenon.errors` with TensorFlow's canonical code; a panic is an `InternalError`.

mod arrays;
mod attrs;
mod blocking;
mod callable;
mod cancel;
mod custom;
mod dlpack;
mod dtypes;
mod fail;
mod functions;
mod graph;
mod hooks;
mod interrupt;
mod lend;
mod locked;
mod logs;
mod partial;
mod profile;
mod runtime;
mod safetensors;
mod saved_model;
mod serve;
mod session;
mod tensor;
mod training;
mod variables;

use pyo3::prelude::*;

/// The native part of the package.
#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<graph::PyGraph>()?;
    module.add_class::<session::PySession>()?;
    module.add_class::<callable::PyCallable>()?;
    module.add_class::<cancel::PyCancelToken>()?;
    module.add_class::<partial::PyPartialRun>()?;
    module.add_class::<saved_model::PySavedModel>()?;
    module.add_class::<serve::PyServer>()?;
    module.add_class::<variables::PyOptimizer>()?;
    module.add_class::<training::PySaver>()?;
    module.add_class::<training::PyMonitored>()?;
    module.add_function(wrap_pyfunction!(tensor::from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::empty, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::tensor_from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::tensor_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::configure, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::load_plugin, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::devices, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::plugins, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::op_names, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::op_def, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::kernel_count, module)?)?;
    module.add_function(wrap_pyfunction!(custom::define_op, module)?)?;
    module.add_function(wrap_pyfunction!(functions::define_function, module)?)?;
    module.add_function(wrap_pyfunction!(functions::function_names, module)?)?;
    module.add_function(wrap_pyfunction!(functions::function_def, module)?)?;
    module.add_function(wrap_pyfunction!(functions::function_signature, module)?)?;
    module.add_function(wrap_pyfunction!(functions::add_functions, module)?)?;
    module.add_function(wrap_pyfunction!(safetensors::read_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(safetensors::write_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(profile::begin_trace, module)?)?;
    module.add_function(wrap_pyfunction!(profile::end_trace, module)?)?;
    module.add_function(wrap_pyfunction!(logs::set_log_level, module)?)?;
    module.add_function(wrap_pyfunction!(logs::flush_logs, module)?)?;
    module.add_function(wrap_pyfunction!(variables::variable, module)?)?;
    module.add_function(wrap_pyfunction!(variables::variables, module)?)?;
    module.add_function(wrap_pyfunction!(variables::initializer, module)?)?;
    module.add_function(wrap_pyfunction!(variables::global_step, module)?)?;
    module.add_function(wrap_pyfunction!(training::latest_checkpoint, module)?)?;
    Ok(())
}
