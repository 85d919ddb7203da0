//! Variables of a graph, and optimisers.

use crate::{
    arrays::Copying,
    attrs::shape_object,
    dtypes::{DTypeArg, dtype_object},
    fail::Fail,
    graph::{Pair, PyGraph, output, pair},
    runtime::runtime,
    tensor::convert,
};
use pyo3::{prelude::*, types::PyDict};
use std::collections::BTreeMap;
use tenon_framework::{DType, PartialShape};
use tenon_gradient::Gradient;
use tenon_training::{
    Initial, Scalar, Variable, VariableOptions, Variables,
    optimizer::{
        Adadelta, Adagrad, Adam, AdamW, Adamax, Ftrl, Gate, GradientDescent, MinimizeOptions,
        Momentum, Optimizer, RmsProp,
    },
};

/// A variable as Python has it.
fn described<'py>(py: Python<'py>, variable: &Variable) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    made.set_item("name", &variable.name)?;
    made.set_item("dtype", dtype_object(py, variable.dtype)?)?;
    let shape = PartialShape::new(variable.shape.dims()).ok();
    made.set_item("shape", shape.and_then(|shape| shape_object(&shape)))?;
    made.set_item("handle", pair(variable.handle))?;
    made.set_item("value", pair(variable.value))?;
    made.set_item("initializer", variable.initializer.0)?;
    made.set_item("is_initialized", pair(variable.is_initialized))?;
    made.set_item("trainable", variable.is_trainable)?;
    Ok(made)
}

/// What a variable begins with: a name of a kind with its number and seed, an output, or a value.
fn initial(
    kind: &str,
    value: Option<&Bound<'_, PyAny>>,
    seed: (i64, i64),
    dtype: DType,
) -> Result<Initial, Fail> {
    let value =
        || value.ok_or_else(|| Fail::invalid(format!("initial value '{kind}' needs a value")));
    Ok(match kind {
        "zeros" => Initial::Zeros,
        "ones" => Initial::Ones,
        "filled" => Initial::Filled(value()?.extract()?),
        "truncated_normal" => Initial::TruncatedNormal { stddev: value()?.extract()?, seed },
        "glorot_uniform" => Initial::GlorotUniform { seed },
        "output" => Initial::Output(output(value()?.extract()?)),
        "value" => Initial::Value(convert(value()?, Some(dtype), Copying::Always)?.tensor),
        other => {
            return Err(Fail::invalid(format!(
                "initial value: expected zeros, ones, filled, truncated_normal, glorot_uniform, output or value, found \
                 '{other}'"
            )));
        }
    })
}

/// Adds a variable.
#[pyfunction]
#[pyo3(signature = (graph, name, dtype, dims, kind, value=None, seed=(0, 0), trainable=true, device=""))]
#[allow(clippy::too_many_arguments, reason = "the parts of a variable")]
pub(crate) fn variable<'py>(
    py: Python<'py>,
    graph: &PyGraph,
    name: &str,
    dtype: DTypeArg,
    dims: Vec<i64>,
    kind: &str,
    value: Option<&Bound<'py, PyAny>>,
    seed: (i64, i64),
    trainable: bool,
    device: &str,
) -> Result<Bound<'py, PyDict>, Fail> {
    let registry = runtime(py)?.registry();
    let initial = initial(kind, value, seed, dtype.0)?;
    let options =
        VariableOptions { is_trainable: trainable, device: device.to_owned(), slice: None };
    let made = py.detach(|| {
        graph.lock()?.build(&registry, |b, variables| {
            Ok(variables.add_with(b, name, dtype.0, &dims, &initial, options)?)
        })
    })?;
    Ok(described(py, &made)?)
}

/// The variables of a graph.
#[pyfunction]
pub(crate) fn variables<'py>(
    py: Python<'py>,
    graph: &PyGraph,
) -> Result<Vec<Bound<'py, PyDict>>, Fail> {
    let all = graph.lock()?.variables.all().to_vec();
    Ok(all.iter().map(|variable| described(py, variable)).collect::<PyResult<_>>()?)
}

/// Adds a node that runs the initialisers of all variables.
#[pyfunction]
pub(crate) fn initializer(py: Python<'_>, graph: &PyGraph, name: &str) -> Result<u32, Fail> {
    let registry = runtime(py)?.registry();
    graph.lock()?.build(&registry, |b, variables| {
        let name = b.unused_name(name);
        Ok(variables.initializer(b, &name)?.0)
    })
}

/// The variable that counts steps, which is added if it is not there yet.
#[pyfunction]
pub(crate) fn global_step<'py>(
    py: Python<'py>,
    graph: &PyGraph,
) -> Result<Bound<'py, PyDict>, Fail> {
    let registry = runtime(py)?.registry();
    let step = graph
        .lock()?
        .build(&registry, |b, variables| Ok(tenon_training::global_step(b, variables)?))?;
    Ok(described(py, &step)?)
}

/// Hyperparameters by name, each of which is taken once.
struct Hyper(BTreeMap<String, f64>);

impl Hyper {
    fn set(&mut self, name: &str, field: &mut f64) {
        if let Some(value) = self.0.remove(name) {
            *field = value;
        }
    }

    fn flag(&mut self, name: &str, field: &mut bool) {
        if let Some(value) = self.0.remove(name) {
            *field = value != 0.0;
        }
    }
}

type AnyOptimizer = Box<dyn Optimizer + Send + Sync>;

/// An optimiser with its name and its hyperparameters set.
macro_rules! optimiser {
    ($of:ident, $rate:expr, $name:expr, $hyper:expr, [$($field:ident),*], [$($flag:ident),*]) => {{
        let mut made = $of::new($rate);
        $($hyper.set(stringify!($field), &mut made.$field);)*
        $($hyper.flag(stringify!($flag), &mut made.$flag);)*
        $hyper.flag("use_locking", &mut made.use_locking);
        if let Some(name) = $name {
            made.name = name;
        }
        Box::new(made) as AnyOptimizer
    }};
}

fn optimiser(
    kind: &str,
    rate: Scalar,
    name: Option<String>,
    hyper: BTreeMap<String, f64>,
) -> Result<AnyOptimizer, Fail> {
    let mut h = Hyper(hyper);
    let made = match kind {
        "GradientDescent" => optimiser!(GradientDescent, rate, name, h, [], []),
        "Momentum" => optimiser!(Momentum, rate, name, h, [momentum], [use_nesterov]),
        "Adagrad" => optimiser!(Adagrad, rate, name, h, [initial_accumulator_value], []),
        "RMSProp" => optimiser!(RmsProp, rate, name, h, [decay, momentum, epsilon], [centered]),
        "Adam" => optimiser!(Adam, rate, name, h, [beta1, beta2, epsilon], [amsgrad]),
        "AdamW" => {
            optimiser!(AdamW, rate, name, h, [weight_decay, beta1, beta2, epsilon], [amsgrad])
        }
        "Adamax" => optimiser!(Adamax, rate, name, h, [beta1, beta2, epsilon], []),
        "Adadelta" => optimiser!(Adadelta, rate, name, h, [rho, epsilon], []),
        "Ftrl" => optimiser!(
            Ftrl,
            rate,
            name,
            h,
            [
                learning_rate_power,
                initial_accumulator_value,
                l1_regularization_strength,
                l2_regularization_strength,
                l2_shrinkage_regularization_strength,
                beta
            ],
            []
        ),
        other => return Err(Fail::invalid(format!("there is no optimiser '{other}'"))),
    };
    match h.0.keys().next() {
        None => Ok(made),
        Some(unknown) => {
            Err(Fail::wrong_type(format!("optimiser '{kind}' has no hyperparameter '{unknown}'")))
        }
    }
}

/// An optimiser. `tenon.train` has the classes for programs.
#[pyclass(frozen, name = "Optimizer", module = "tenon._native")]
pub(crate) struct PyOptimizer {
    optimizer: AnyOptimizer,
}

/// The variables of these names.
fn named(variables: &Variables, names: Vec<String>) -> Result<Vec<Variable>, Fail> {
    let find = |name: &String| {
        variables.find(name).cloned().ok_or_else(|| {
            Fail::new(
                tenon_framework::Code::NOT_FOUND,
                format!("the graph has no variable '{name}': add it by tenon.train.variable"),
            )
        })
    };
    names.iter().map(find).collect()
}

#[pymethods]
impl PyOptimizer {
    #[new]
    #[pyo3(signature = (kind, rate, rate_output=None, name=None, hyper=BTreeMap::new()))]
    fn new(
        kind: &str,
        rate: f64,
        rate_output: Option<Pair>,
        name: Option<String>,
        hyper: BTreeMap<String, f64>,
    ) -> Result<PyOptimizer, Fail> {
        let rate = rate_output.map_or(Scalar::Constant(rate), |pair| Scalar::Output(output(pair)));
        Ok(PyOptimizer { optimizer: optimiser(kind, rate, name, hyper)? })
    }

    /// Adds gradients of a loss and the updates of variables by them; returns the node that runs all updates.
    #[pyo3(signature = (graph, loss, names=None, counts=false, gate_graph=false))]
    fn minimize(
        &self,
        py: Python<'_>,
        graph: &PyGraph,
        loss: Pair,
        names: Option<Vec<String>>,
        counts: bool,
        gate_graph: bool,
    ) -> Result<u32, Fail> {
        let registry = runtime(py)?.registry();
        py.detach(|| {
            graph.lock()?.build(&registry, |b, variables| {
                let chosen = names.map(|names| named(variables, names)).transpose()?;
                let step = counts.then(|| tenon_training::global_step(b, variables)).transpose()?;
                let options = MinimizeOptions {
                    variables: chosen,
                    global_step: step,
                    gate: if gate_graph { Gate::Graph } else { Gate::Op },
                    ..MinimizeOptions::default()
                };
                Ok(self.optimizer.minimize(b, variables, output(loss), &options)?.0)
            })
        })
    }

    /// Adds updates of variables by gradients.
    #[pyo3(signature = (graph, gradients, counts=false))]
    fn apply(
        &self,
        py: Python<'_>,
        graph: &PyGraph,
        gradients: Vec<(Option<Pair>, String)>,
        counts: bool,
    ) -> Result<u32, Fail> {
        let registry = runtime(py)?.registry();
        py.detach(|| {
            graph.lock()?.build(&registry, |b, variables| {
                let (pairs, names): (Vec<_>, Vec<_>) = gradients.into_iter().unzip();
                let chosen = named(variables, names)?;
                let dense = pairs.into_iter().map(|pair| Some(Gradient::Dense(output(pair?))));
                let given: Vec<_> = dense.zip(chosen).collect();
                let step = counts.then(|| tenon_training::global_step(b, variables)).transpose()?;
                Ok(self.optimizer.apply(b, variables, &given, step.as_ref())?.0)
            })
        })
    }
}
