//! The runtime of the process: started by the first call that needs ops or devices.

use crate::{
    attrs::attr_object,
    blocking::{at_exit, blocking, check_fork, watch_forks},
    fail::Fail,
    interrupt, logs,
};
use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList},
};
use std::{
    path::PathBuf,
    sync::{Mutex, OnceLock, PoisonError},
};
use tenon_framework::{
    Code, DType,
    device::base::DeviceBase,
    op::{Allowed, ArgDef, ArgType, AttrDef, OpDef},
    registry::PluginInfo,
};
use tenon_host::search::is_plugin_name;
use tenon_runtime::{Runtime, RuntimeOptions};

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// What `configure` was given, before the runtime starts.
#[derive(Default)]
struct Configured {
    threads: Option<usize>,
    plugins: Vec<PathBuf>,
    isolate: Vec<PathBuf>,
    settings: Vec<(String, String)>,
}

static CONFIGURED: Mutex<Option<Configured>> = Mutex::new(None);

/// The plugins beside the package.
fn packaged(py: Python<'_>) -> Result<Vec<PathBuf>, Fail> {
    let folder: PathBuf = py.import("tenon._paths")?.getattr("PLUGINS")?.extract()?;
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_plugin = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(is_plugin_name)
    };
    let mut files: Vec<PathBuf> = files.filter(is_plugin).collect();
    files.sort();
    Ok(files)
}

/// The runtime of the process. The first call starts it: it loads the plugins of the package and those that are found as the
/// command finds them, and opens their devices.
///
/// # Errors
/// A setting in the environment is invalid; the process was forked after the start.
pub(crate) fn runtime(py: Python<'_>) -> Result<&'static Runtime, Fail> {
    check_fork()?;
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let packaged = packaged(py)?;
    // What is registered first is called last: logs are passed on before.
    end_with(py)?;
    py.import("tenon._logs")?.getattr("follow")?.call0()?;
    logs::start();
    interrupt::start(py);
    watch_forks();
    blocking(py, || {
        let mut given = CONFIGURED.lock().unwrap_or_else(PoisonError::into_inner);
        if RUNTIME.get().is_none() {
            let Configured { threads, mut plugins, isolate, settings } =
                given.take().unwrap_or_default();
            plugins.extend(packaged);
            let mut options =
                RuntimeOptions { threads, plugins, isolate, ..RuntimeOptions::default() };
            options.settings.options.extend(settings);
            // Refused files are logged; a missing kernel is an error of the step that needs it.
            let (runtime, report) = Runtime::new(options)?;
            for refused in &report.rejected {
                tracing::warn!("a plugin was refused: {}", refused.error);
            }
            let _ = RUNTIME.set(runtime);
        }
        Ok(())
    })?;
    RUNTIME.get().ok_or_else(|| Fail::new(Code::INTERNAL, "the runtime did not start"))
}

/// Lets the interpreter call [`at_exit`] when it ends.
fn end_with(py: Python<'_>) -> PyResult<()> {
    static REGISTERED: PyOnceLock<()> = PyOnceLock::new();
    REGISTERED.get_or_try_init(py, || {
        let hook = wrap_pyfunction!(at_exit, py)?;
        py.import("atexit")?.call_method1("register", (hook,)).map(drop)
    })?;
    Ok(())
}

/// Options of the runtime, before it starts.
#[pyfunction]
#[pyo3(signature = (*, threads=None, plugins=vec![], isolate=vec![], knobs=vec![]))]
pub(crate) fn configure(
    threads: Option<usize>,
    plugins: Vec<PathBuf>,
    isolate: Vec<PathBuf>,
    knobs: Vec<(String, String)>,
) -> Result<(), Fail> {
    let mut given = CONFIGURED.lock().unwrap_or_else(PoisonError::into_inner);
    if RUNTIME.get().is_some() {
        return Err(Fail::precondition(
            "the runtime has started: call tenon.configure before the first graph, session or list of devices",
        ));
    }
    if threads == Some(0) {
        return Err(Fail::invalid("threads: expected 1 or more, found 0"));
    }
    *given = Some(Configured { threads, plugins, isolate, settings: knobs });
    Ok(())
}

fn plugin<'py>(py: Python<'py>, info: &PluginInfo) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    made.set_item("name", &info.name)?;
    made.set_item("version", &info.version)?;
    made.set_item("path", info.path.as_ref().map(|path| path.display().to_string()))?;
    made.set_item("isolated", info.isolated)?;
    made.set_item("retired", info.retired)?;
    Ok(made)
}

/// Loads a plugin, and returns what is known of it.
#[pyfunction]
#[pyo3(signature = (path, *, isolated=false))]
pub(crate) fn load_plugin<'py>(
    py: Python<'py>,
    path: PathBuf,
    isolated: bool,
) -> Result<Bound<'py, PyList>, Fail> {
    let runtime = runtime(py)?;
    let loaded = blocking(py, || {
        let report = match isolated {
            false => runtime.load([path]),
            true => runtime.load_isolated([path]),
        };
        Ok(report.into_result()?)
    })?;
    let loaded: Vec<_> = loaded.iter().map(|info| plugin(py, info)).collect::<PyResult<_>>()?;
    Ok(PyList::new(py, loaded)?)
}

/// The devices: name, type and description of each.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> Result<Vec<(String, String, String)>, Fail> {
    let runtime = runtime(py)?;
    blocking(py, || {
        let devices = runtime.devices().devices();
        let described = devices.iter().map(|device| {
            let name = device.full_name().to_owned();
            let kind = name.rsplit("device:").next().and_then(|rest| rest.split(':').next());
            let kind = kind.unwrap_or_default().to_owned();
            (name, kind, device.info().description.clone())
        });
        Ok(described.collect())
    })
}

/// The plugins.
#[pyfunction]
pub(crate) fn plugins(py: Python<'_>) -> Result<Bound<'_, PyList>, Fail> {
    let registry = runtime(py)?.registry();
    let all: Vec<_> = registry.plugins().map(|info| plugin(py, info)).collect::<PyResult<_>>()?;
    Ok(PyList::new(py, all)?)
}

/// The names of all ops.
#[pyfunction]
pub(crate) fn op_names(py: Python<'_>) -> Result<Vec<String>, Fail> {
    Ok(runtime(py)?.registry().ops().map(|op| op.name.clone()).collect())
}

/// The number of kernels.
#[pyfunction]
pub(crate) fn kernel_count(py: Python<'_>) -> Result<usize, Fail> {
    Ok(runtime(py)?.registry().kernels().count())
}

fn argument<'py>(py: Python<'py>, arg: &ArgDef) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    made.set_item("name", &arg.name)?;
    let (fixed, attr, is_list) = match &arg.ty {
        ArgType::Fixed(dtype) => (Some(dtype.0), None, false),
        ArgType::Attr(name) => (None, Some(name), false),
        ArgType::ListAttr(name) => (None, Some(name), true),
    };
    made.set_item("dtype", fixed)?;
    made.set_item("type_attr", attr)?;
    made.set_item("number_attr", arg.number_attr.as_ref())?;
    made.set_item("is_list", is_list || arg.number_attr.is_some())?;
    made.set_item("is_ref", arg.is_ref)?;
    Ok(made)
}

fn attribute<'py>(py: Python<'py>, attr: &AttrDef) -> Result<Bound<'py, PyDict>, Fail> {
    let made = PyDict::new(py);
    made.set_item("name", &attr.name)?;
    made.set_item("type", attr.ty.to_string())?;
    made.set_item("has_default", attr.default.is_some())?;
    let default = attr.default.as_ref().map(|value| attr_object(py, value)).transpose()?;
    made.set_item("default", default)?;
    let allowed: Option<Vec<String>> = attr.allowed.as_ref().map(|allowed| match allowed {
        Allowed::Types(types) => types.iter().map(DType::to_string).collect(),
        Allowed::Strings(texts) => texts.clone(),
    });
    made.set_item("allowed", allowed)?;
    Ok(made)
}

fn described<'py>(py: Python<'py>, op: &OpDef) -> Result<Bound<'py, PyDict>, Fail> {
    let made = PyDict::new(py);
    made.set_item("name", &op.name)?;
    made.set_item("summary", &op.summary)?;
    made.set_item("description", &op.description)?;
    made.set_item("stateful", op.stateful)?;
    let arguments =
        |args: &[ArgDef]| args.iter().map(|arg| argument(py, arg)).collect::<PyResult<Vec<_>>>();
    made.set_item("inputs", arguments(&op.inputs)?)?;
    made.set_item("outputs", arguments(&op.outputs)?)?;
    let attrs: Vec<_> =
        op.attrs.iter().map(|attr| attribute(py, attr)).collect::<Result<_, Fail>>()?;
    made.set_item("attrs", attrs)?;
    Ok(made)
}

/// The definition of an op; `None` if there is no such op.
#[pyfunction]
pub(crate) fn op_def<'py>(py: Python<'py>, name: &str) -> Result<Option<Bound<'py, PyDict>>, Fail> {
    let registry = runtime(py)?.registry();
    registry.op(name).map(|op| described(py, op)).transpose()
}
