//! Data parallelism within one graph: towers, which compute the gradients of parts of a batch on devices of their own.
//!
//! Variables are added before, on devices that hold parameters. [`towers`] then builds the model once for each device, in
//! the name scopes `tower_0`, `tower_1` and so on, with a number behind them if the graph has such names. From there:
//! - [`Towers::synchronous`] updates variables by the mean of all gradients, in one step of one session.
//! - [`Towers::asynchronous`] gives a training op for each tower; threads run them as fast as they can.
//! - [`SyncReplicas`](crate::SyncReplicas) lets threads, or processes, run at their own pace and waits for enough gradients.

use crate::{
    TrainError, Variable, Variables,
    nodes::Scope,
    optimizer::{Optimizer, VariableGradient, dense, values},
};
use tenon_framework::{DType, Tensor};
use tenon_gradient::Gradient;
use tenon_graph::{GraphBuilder, NodeId, Output};

/// A model on one device.
#[derive(Debug, Clone)]
pub struct Tower {
    /// The device.
    pub device: String,
    /// The loss.
    pub loss: Output,
    /// The gradients of the loss.
    pub gradients: Vec<VariableGradient>,
}

/// The same model on several devices.
#[derive(Debug, Clone)]
pub struct Towers {
    /// One for each device.
    pub towers: Vec<Tower>,
    /// The device that adds up what towers give, where a variable has none of its own.
    pub parameter_device: String,
}

/// Builds a model on each of `devices`: `build` gets the device and its number, and gives the loss and the gradients of all
/// variables, in the same order each time. Its nodes run on the device where they request no other one.
///
/// # Errors
/// There is no device, the name of one is malformed, `build` has an error, or the towers have different variables.
pub fn towers<'r>(
    b: &mut GraphBuilder<'r>,
    devices: &[&str],
    parameter_device: &str,
    mut build: impl FnMut(
        &mut GraphBuilder<'r>,
        &str,
        usize,
    ) -> Result<(Output, Vec<VariableGradient>), TrainError>,
) -> Result<Towers, TrainError> {
    let mut towers: Vec<Tower> = Vec::with_capacity(devices.len());
    for (at, &device) in devices.iter().enumerate() {
        let scope = unused_scope(b, &format!("tower_{at}"));
        let (loss, gradients) =
            b.with_name_scope(&scope, |b| b.with_device(device, |b| build(b, device, at)))??;
        if let Some(first) = towers.first() {
            let (expected, found) = (names(&first.gradients), names(&gradients));
            if expected != found {
                let what = format!("the variables of tower {at}");
                let expected = format!("{expected:?}, as in tower 0");
                return Err(TrainError::argument(what, expected, format!("{found:?}")));
            }
        }
        towers.push(Tower { device: device.to_owned(), loss, gradients });
    }
    if towers.is_empty() {
        return Err(TrainError::argument("devices of towers", "at least one", "none"));
    }
    Ok(Towers { towers, parameter_device: parameter_device.to_owned() })
}

/// This name, or one that begins with it and below which no node is.
fn unused_scope(b: &GraphBuilder<'_>, name: &str) -> String {
    let is_free = |scope: &String| {
        let prefix = format!("{}/", b.full_name(scope));
        b.graph().nodes().all(|(_, node)| !node.name.starts_with(&prefix))
    };
    let numbered = (1..).map(|number: u64| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(is_free).unwrap_or_else(|| name.to_owned())
}

fn names(gradients: &[VariableGradient]) -> Vec<&str> {
    gradients.iter().map(|(_, variable)| variable.name.as_str()).collect()
}

impl Towers {
    /// Adds the mean of the losses, and the mean of the gradients of each variable: sums of tensors, and slices one after the
    /// other. A tower without a gradient of a variable counts as zero.
    ///
    /// # Errors
    /// The graph refuses a node.
    pub fn mean(
        &self,
        b: &mut GraphBuilder<'_>,
    ) -> Result<(Output, Vec<VariableGradient>), TrainError> {
        let prefix = b.unused_name("towers");
        let losses: Vec<Output> = self.towers.iter().map(|tower| tower.loss).collect();
        let mut scope = Scope::new(b, &format!("{prefix}/loss"), &self.parameter_device);
        let loss = self.divided(&mut scope, &losses)?;
        let first = self.towers.first().map_or(&[][..], |tower| &tower.gradients);
        let mut means = Vec::with_capacity(first.len());
        for (at, (_, variable)) in first.iter().enumerate() {
            let of_towers = self.towers.iter().filter_map(|tower| tower.gradients.get(at)?.0);
            let of_towers: Vec<Gradient> = of_towers.collect();
            let device = self.device_of(variable);
            let mut scope = Scope::new(b, &format!("{prefix}/{}", variable.name), device);
            let mean = match of_towers.is_empty() {
                true => None,
                false => Some(self.mean_of(&mut scope, variable, &of_towers)?),
            };
            means.push((mean, variable.clone()));
        }
        Ok((loss, means))
    }

    /// Adds one update by the mean of the gradients. Returns it, and the mean of the losses.
    ///
    /// # Errors
    /// As [`Optimizer::apply`].
    pub fn synchronous(
        &self,
        b: &mut GraphBuilder<'_>,
        variables: &mut Variables,
        optimizer: &dyn Optimizer,
        global_step: Option<&Variable>,
    ) -> Result<(NodeId, Output), TrainError> {
        let (loss, gradients) = self.mean(b)?;
        Ok((optimizer.apply(b, variables, &gradients, global_step)?, loss))
    }

    /// Adds an update for each tower, by its own gradients. They share the slots of the optimiser, and may run at the same
    /// time: then a tower may read variables that another one has updated in part.
    ///
    /// # Errors
    /// As [`Optimizer::apply`].
    pub fn asynchronous(
        &self,
        b: &mut GraphBuilder<'_>,
        variables: &mut Variables,
        optimizer: &dyn Optimizer,
        global_step: Option<&Variable>,
    ) -> Result<Vec<NodeId>, TrainError> {
        let towers = self.towers.iter();
        towers.map(|tower| optimizer.apply(b, variables, &tower.gradients, global_step)).collect()
    }

    /// The device for what is computed for a variable.
    pub(crate) fn device_of<'a>(&'a self, variable: &'a Variable) -> &'a str {
        if variable.device.is_empty() { &self.parameter_device } else { &variable.device }
    }

    fn divided(&self, scope: &mut Scope<'_, '_>, values: &[Output]) -> Result<Output, TrainError> {
        let sum = match values {
            [value] => *value,
            values => scope.node("AddN").inputs(values.iter().copied()).build()?.into(),
        };
        self.scaled(scope, sum)
    }

    fn scaled(&self, scope: &mut Scope<'_, '_>, sum: Output) -> Result<Output, TrainError> {
        if self.towers.len() == 1 {
            return Ok(sum);
        }
        let count = scope.number("towers", scope.dtype(sum), self.towers.len() as f64)?;
        scope.binary("RealDiv", sum, count)
    }

    fn mean_of(
        &self,
        scope: &mut Scope<'_, '_>,
        variable: &Variable,
        of_towers: &[Gradient],
    ) -> Result<Gradient, TrainError> {
        let slices = of_towers.iter().map(|gradient| match *gradient {
            Gradient::Slices { indices, .. } => Some(indices),
            Gradient::Dense(_) => None,
        });
        if let (Some(indices), Some(first)) =
            (slices.collect::<Option<Vec<_>>>(), of_towers.first())
        {
            let slices = joined(scope, &of_towers.iter().map(values).collect::<Vec<_>>())?;
            let scaled = self.scaled(scope, slices)?;
            let indices = indices.into_iter().map(|indices| scope.cast(indices, DType::INT64));
            let indices = indices.collect::<Result<Vec<_>, _>>()?;
            let indices = joined(scope, &indices)?;
            let dense_shape = match *first {
                Gradient::Slices { dense_shape, .. } => dense_shape,
                Gradient::Dense(_) => None,
            };
            return Ok(Gradient::Slices { values: scaled, indices, dense_shape });
        }
        let tensors = of_towers.iter().map(|gradient| match *gradient {
            Gradient::Dense(value) => Ok(value),
            Gradient::Slices { values, indices, .. } => dense(scope, variable, values, indices),
        });
        let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
        let sum = self.divided(scope, &tensors)?;
        Ok(Gradient::Dense(sum))
    }
}

/// Tensors, one after the other along the first dimension.
fn joined(scope: &mut Scope<'_, '_>, values: &[Output]) -> Result<Output, TrainError> {
    if let [value] = values {
        return Ok(*value);
    }
    let axis = scope.constant("axis", Tensor::scalar(0i32)?)?;
    Ok(scope.node("ConcatV2").inputs(values.iter().copied()).input(axis).build()?.into())
}
