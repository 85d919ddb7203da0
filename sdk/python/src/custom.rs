//! Ops whose kernels, shape functions and gradients are written in Python.
//!
//! An op of Python's is an op like any other: it is in the registry, graphs name it, and a kernel for the CPU runs it. The entries of
//! all such ops are the same; each finds the Python object of its op by the op's name, so that a new definition of the same signature
//! takes effect at once. A definition with another signature takes the place of the one before, as a new version of a plugin does.

mod gradient;
mod kernel;
mod shape;

use crate::{
    attrs::attr_object,
    blocking::{blocking, calling},
    fail::Fail,
    runtime::runtime,
};
use pyo3::{prelude::*, types::PyDict};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_framework::{
    Code, KernelError,
    abi::AttrKind,
    attr::AttrValue,
    op::{OpDef, SourceInfo},
    registry::{KernelDef, Numerics, PluginId, PluginInfo, RegistryError, Transaction},
};

/// An op of Python's.
pub(crate) struct Custom {
    def: OpDef,
    /// What tells two definitions apart.
    signature: Vec<Vec<String>>,
    /// The plugin that the op is, in the registry.
    plugin: PluginId,
    /// The object of `tenon.custom`, with the methods `_compute`, `_infer` and `_differentiate`.
    object: Py<PyAny>,
}

static CUSTOM: Mutex<BTreeMap<String, Arc<Custom>>> = Mutex::new(BTreeMap::new());

/// The op of this name.
fn find(op: &str) -> Result<Arc<Custom>, KernelError> {
    let all = CUSTOM.lock().unwrap_or_else(PoisonError::into_inner);
    all.get(op).cloned().ok_or_else(|| {
        KernelError::internal(format!("op '{op}' has no definition in Python in this process"))
    })
}

/// The answer of a call into Python; an exception is an error of a canonical code, with the last line of its traceback.
fn answer<T>(op: &str, call: impl FnOnce(Python<'_>) -> Result<T, Fail>) -> Result<T, KernelError> {
    let called = calling(|py| call(py).map_err(|fail| status(py, fail)));
    called.unwrap_or_else(|| {
        let message = format!("op '{op}' is written in Python, whose interpreter has ended");
        Err(KernelError::new(Code::CANCELLED, message))
    })
}

fn status(py: Python<'_>, fail: Fail) -> KernelError {
    let error = match fail {
        Fail::Tenon { code, message, .. } => return KernelError::new(code, message),
        Fail::Python(error) => error,
    };
    let text = error.to_string();
    // It has its traceback, which the value of the error alone does not have before Python 3.12.
    let value = error.into_value(py);
    let told = py
        .import("tenon.custom")
        .and_then(|module| module.getattr("_status")?.call1((value,))?.extract());
    let (code, message): (i32, String) = told.unwrap_or((Code::UNKNOWN.0, text));
    KernelError::new(Code(code), message)
}

/// The attributes of a node, as Python has them.
fn dict<'py, 'a>(
    py: Python<'py>,
    attrs: impl IntoIterator<Item = (&'a str, &'a AttrValue)>,
) -> Result<Bound<'py, PyDict>, Fail> {
    let made = PyDict::new(py);
    for (name, value) in attrs {
        made.set_item(name, attr_object(py, value)?)?;
    }
    Ok(made)
}

/// All attributes of a node that a context of `tenon-author` shows.
macro_rules! read_attrs {
    ($context:expr, $defs:expr) => {{
        let mut read: Vec<(String, AttrValue)> = Vec::new();
        for def in $defs {
            let name = def.name.as_str();
            let value = match (def.ty.kind, def.ty.is_list) {
                (AttrKind::INT, false) => AttrValue::Int($context.attr(name)?),
                (AttrKind::FLOAT, false) => AttrValue::Float($context.attr(name)?),
                (AttrKind::BOOL, false) => AttrValue::Bool($context.attr(name)?),
                (AttrKind::TYPE, false) => AttrValue::Type($context.attr(name)?),
                (AttrKind::SHAPE, false) => AttrValue::Shape($context.attr(name)?),
                (AttrKind::STRING, false) => {
                    AttrValue::String($context.attr::<&[u8]>(name)?.to_vec())
                }
                (AttrKind::INT, true) => AttrValue::List(AttrList::Int($context.attr(name)?)),
                (AttrKind::FLOAT, true) => AttrValue::List(AttrList::Float($context.attr(name)?)),
                (AttrKind::BOOL, true) => AttrValue::List(AttrList::Bool($context.attr(name)?)),
                (AttrKind::TYPE, true) => AttrValue::List(AttrList::Type($context.attr(name)?)),
                (AttrKind::SHAPE, true) => AttrValue::List(AttrList::Shape($context.attr(name)?)),
                (AttrKind::STRING, true) => {
                    let items: Vec<&[u8]> = $context.attr(name)?;
                    AttrValue::List(AttrList::String(items.iter().map(|it| it.to_vec()).collect()))
                }
                // `define_op` refuses others.
                _ => continue,
            };
            read.push((name.to_owned(), value));
        }
        read
    }};
}
use read_attrs;

fn refused(errors: Vec<RegistryError>) -> Fail {
    let code = errors.first().map_or(Code::INTERNAL, RegistryError::code);
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Fail::new(code, texts.join("; "))
}

fn definition(
    name: &str,
    signature: &[Vec<String>],
    stateful: bool,
    summary: &str,
    description: &str,
) -> Result<OpDef, Fail> {
    let [inputs, outputs, attrs] = signature else { return Err(Fail::invalid("three lists")) };
    let mut def = OpDef::from_spec(name, inputs, outputs, attrs)?;
    for attr in &def.attrs {
        let ty = attr.ty;
        if ty.kind == AttrKind::FUNC || ty.kind == AttrKind::TENSOR {
            return Err(Fail::invalid(format!(
                "op '{name}': attribute '{}' is a {ty}: expected int, float, bool, string, type, shape, or a list of them",
                attr.name
            )));
        }
    }
    def.stateful = stateful;
    (def.summary, def.description) = (summary.to_owned(), description.to_owned());
    def.remote = Some(Arc::new(shape::PythonShape(name.to_owned())));
    def.set_gradient(gradient::entry)?;
    Ok(def)
}

fn transaction(plugin: PluginId, def: &OpDef) -> Transaction {
    let name = format!("python-{}", def.name);
    let info = PluginInfo::linked(plugin, &name, env!("CARGO_PKG_VERSION"), plugin.0);
    let kernel = KernelDef {
        op: def.name.clone(),
        device_type: "CPU".to_owned(),
        label: "python".to_owned(),
        priority: 0,
        on_request: false,
        keeps_denormals: true,
        checks_shapes: false,
        constraints: Vec::new(),
        host_memory: Vec::new(),
        in_place: Vec::new(),
        features: Vec::new(),
        numerics: Numerics::UNSPECIFIED.to_abi(),
        table: kernel::table(),
        remote: None,
        cost: None,
        source: SourceInfo::default(),
        plugin,
        plugin_name: Arc::from(name.as_str()),
        foreign: false,
        order: (0, 0),
    };
    let mut transaction = Transaction::new(info);
    transaction.add_op(def.clone());
    transaction.add_kernel(kernel);
    transaction
}

/// Defines an op. `signature` has the texts of inputs, outputs and attributes, in the grammar of `register_op!`. An op that Python has
/// defined before is defined anew.
#[pyfunction]
#[pyo3(signature = (name, signature, object, *, stateful=false, summary="", description=""))]
pub(crate) fn define_op(
    py: Python<'_>,
    name: &str,
    signature: Vec<Vec<String>>,
    object: Py<PyAny>,
    stateful: bool,
    summary: &str,
    description: &str,
) -> Result<(), Fail> {
    let runtime = runtime(py)?;
    let def = definition(name, &signature, stateful, summary, description)?;
    blocking(py, || {
        // One definition after the other: nobody who holds this lock waits for Python's.
        let mut all = CUSTOM.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = runtime.plugins().handle();
        let fresh = handle.load().next_plugin_id();
        let before = all.get(name).map(|before| (before.plugin, Arc::clone(before)));
        let plugin = match before {
            Some((plugin, before))
                if before.signature == signature && before.def.stateful == stateful =>
            {
                plugin
            }
            Some((plugin, _)) => {
                handle.replace(plugin, transaction(fresh, &def)).map_err(refused)?;
                fresh
            }
            None => {
                handle.commit(vec![transaction(fresh, &def)]).map_err(refused)?;
                fresh
            }
        };
        all.insert(name.to_owned(), Arc::new(Custom { def, signature, plugin, object }));
        Ok(())
    })
}
