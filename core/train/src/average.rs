//! Moving averages of variables.

use crate::{
    Initial, TrainError, Variable, VariableOptions, Variables,
    nodes::{Scalar, Scope, group},
};
use std::collections::BTreeMap;
use tenon_framework::{DType, Shape};
use tenon_graph::{GraphBuilder, NodeId, Output};

/// Averages in which a value counts by a factor of `decay` less with each update (`tf.train.ExponentialMovingAverage`):
/// `average -= (1 - decay) * (average - value)`.
///
/// The average of a variable `w` is the variable `w/ExponentialMovingAverage`, which begins with the value of `w`. That of a
/// tensor begins with zero.
#[derive(Debug, Clone)]
pub struct ExponentialMovingAverage {
    /// What is left of an average after an update.
    pub decay: Scalar,
    /// The variable that counts updates, such as the global step: with its value `n`, `min(decay, (1 + n) / (10 + n))` is in
    /// the place of `decay`, so that averages follow faster at first.
    pub num_updates: Option<Variable>,
    /// Whether averages of tensors are divided by `1 - decay^n` after `n` updates, as they begin with zero.
    pub zero_debias: bool,
    /// The end of the names of averages.
    pub name: String,
}

/// What is averaged.
#[derive(Debug, Clone)]
pub enum Averaged {
    /// A variable.
    Variable(Variable),
    /// A tensor of this shape.
    Tensor(Output, Shape),
}

impl ExponentialMovingAverage {
    /// Averages with this decay.
    pub fn new(decay: impl Into<Scalar>) -> ExponentialMovingAverage {
        ExponentialMovingAverage {
            decay: decay.into(),
            num_updates: None,
            zero_debias: false,
            name: "ExponentialMovingAverage".to_owned(),
        }
    }

    /// Adds averages, and the node that updates them by the values that variables and tensors have then. Run it after the
    /// updates of the variables: `after` runs before.
    ///
    /// # Errors
    /// A type is not half, bfloat16, float or double, or the graph refuses a node.
    pub fn apply(
        &self,
        b: &mut GraphBuilder<'_>,
        variables: &mut Variables,
        of: &[Averaged],
        after: &[NodeId],
    ) -> Result<NodeId, TrainError> {
        let mut averages = Vec::with_capacity(of.len());
        for averaged in of {
            averages.push(self.average(b, variables, averaged)?);
        }
        let name = b.unused_name(&self.name);
        let decay = self.decay(b, &name, after)?;
        let mut updates = Vec::with_capacity(of.len());
        for (averaged, average) in of.iter().zip(&averages) {
            let prefix = format!("{name}/AssignMovingAvg");
            let mut scope = Scope::new(b, &prefix, &average.device);
            let value = match averaged {
                Averaged::Tensor(value, _) => *value,
                Averaged::Variable(variable) => read(&mut scope, variable, after)?,
            };
            let rest = scope.cast(decay, average.dtype)?;
            updates.push(match averaged {
                Averaged::Tensor(..) if self.zero_debias => {
                    debiased(b, variables, &prefix, average, value, rest)?
                }
                _ => moved(&mut scope, average, value, rest)?,
            });
        }
        group(b, &name, "", &updates)
    }

    /// The name of the average of a variable.
    pub fn average_name(&self, variable: &Variable) -> String {
        format!("{}/{}", variable.name, self.name)
    }

    /// For each variable the name under which to restore it (TensorFlow's function of this name): that of its average for a
    /// trainable variable or one that has an average, its own name for another. Averages of variables are left out.
    pub fn variables_to_restore(&self, variables: &Variables) -> BTreeMap<String, Variable> {
        let is_averaged = |variable: &&Variable| {
            variable.is_trainable || variables.find(&self.average_name(variable)).is_some()
        };
        let (averaged, others): (Vec<_>, Vec<_>) = variables.all().iter().partition(is_averaged);
        let averaged = averaged.into_iter().map(|variable| (self.average_name(variable), variable));
        let mut named: BTreeMap<String, Variable> =
            averaged.map(|(name, variable)| (name, variable.clone())).collect();
        for variable in others {
            named.entry(variable.name.clone()).or_insert_with(|| variable.clone());
        }
        named
    }

    /// `1 - decay`, a float as in TensorFlow.
    fn decay(
        &self,
        b: &mut GraphBuilder<'_>,
        name: &str,
        after: &[NodeId],
    ) -> Result<Output, TrainError> {
        let mut scope = Scope::new(b, name, "");
        let mut decay = self.decay.build(&mut scope, "decay", DType::FLOAT)?;
        let one = scope.number("one", DType::FLOAT, 1.0)?;
        if let Some(updates) = &self.num_updates {
            let updates = read(&mut scope, updates, after)?;
            let updates = scope.cast(updates, DType::FLOAT)?;
            let ten = scope.number("ten", DType::FLOAT, 10.0)?;
            let above = scope.binary("AddV2", one, updates)?;
            let below = scope.binary("AddV2", ten, updates)?;
            let early = scope.binary("RealDiv", above, below)?;
            decay = scope.binary("Minimum", decay, early)?;
        }
        scope.binary("Sub", one, decay)
    }

    /// The average of a value.
    fn average(
        &self,
        b: &mut GraphBuilder<'_>,
        variables: &mut Variables,
        of: &Averaged,
    ) -> Result<Variable, TrainError> {
        let (name, dtype, shape, device) = match of {
            Averaged::Variable(v) => (v.name.clone(), v.dtype, &v.shape, v.device.clone()),
            Averaged::Tensor(value, shape) => {
                let node = b.graph().node(value.node);
                (node.name.clone(), b.graph().dtype(*value), shape, String::new())
            }
        };
        if !matches!(dtype, DType::HALF | DType::BFLOAT16 | DType::FLOAT | DType::DOUBLE) {
            let expected = "half, bfloat16, float or double";
            let what = format!("the type of '{name}', which is averaged");
            return Err(TrainError::argument(what, expected, dtype.to_string()));
        }
        let name = format!("{name}/{}", self.name);
        if let Some(average) = variables.find(&name) {
            return Ok(average.clone());
        }
        let initial = match of {
            Averaged::Variable(variable) => Initial::Output(value_so_far(b, variable)?),
            Averaged::Tensor(..) => Initial::Zeros,
        };
        let options = VariableOptions { is_trainable: false, device, slice: None };
        variables.add_with(b, &name, dtype, shape.dims(), &initial, options)
    }
}

/// The value of a variable after these nodes.
fn read(
    scope: &mut Scope<'_, '_>,
    variable: &Variable,
    after: &[NodeId],
) -> Result<Output, TrainError> {
    let read = scope.node("ReadVariableOp").input(variable.handle).device(&variable.device);
    let read = after.iter().fold(read, |read, &node| read.control(node));
    Ok(read.attr("dtype", variable.dtype).build()?.into())
}

/// The value of a variable if it has one, else its initial value.
fn value_so_far(b: &mut GraphBuilder<'_>, variable: &Variable) -> Result<Output, TrainError> {
    let prefix = b.unused_name(&format!("{}/initialized_value", variable.name));
    let mut scope = Scope::new(b, &prefix, &variable.device);
    let has_value = scope.node("VarIsInitializedOp").input(variable.handle).build()?.into();
    let handle = scope.node("Switch").input(variable.handle).input(has_value).build()?;
    let read = scope.node("ReadVariableOp").input(Output::new(handle, 1));
    let read = read.attr("dtype", variable.dtype).build()?.into();
    let initial = scope.binary("Switch", variable.initial_value, has_value)?;
    Ok(scope.node("Merge").inputs([initial, read]).build()?.into())
}

/// `average -= (average - value) * rest`.
fn moved(
    scope: &mut Scope<'_, '_>,
    average: &Variable,
    value: Output,
    rest: Output,
) -> Result<NodeId, TrainError> {
    let before = read(scope, average, &[])?;
    let change = scope.binary("Sub", before, value)?;
    let change = scope.binary("Mul", change, rest)?;
    Ok(scope.node("AssignSubVariableOp").input(average.handle).input(change).build()?)
}

/// Moves a biased average, and sets the average to it divided by `1 - decay^n`.
fn debiased(
    b: &mut GraphBuilder<'_>,
    variables: &mut Variables,
    prefix: &str,
    average: &Variable,
    value: Output,
    rest: Output,
) -> Result<NodeId, TrainError> {
    let mut beside = |b: &mut GraphBuilder<'_>, name: &str, dims: &[i64]| {
        let name = format!("{}/{name}", average.name);
        if let Some(found) = variables.find(&name) {
            return Ok(found.clone());
        }
        let device = average.device.clone();
        let options = VariableOptions { is_trainable: false, device, slice: None };
        variables.add_with(b, &name, average.dtype, dims, &Initial::Zeros, options)
    };
    let biased = beside(b, "biased", average.shape.dims())?;
    let steps = beside(b, "local_step", &[])?;
    let mut scope = Scope::new(b, prefix, &average.device);
    let one = scope.number("one", average.dtype, 1.0)?;
    let counted = scope.node("AssignAddVariableOp").input(steps.handle).input(one).build()?;
    let moved = moved(&mut scope, &biased, value, rest)?;
    let steps = read(&mut scope, &steps, &[counted])?;
    let biased = read(&mut scope, &biased, &[moved])?;
    let decay = scope.binary("Sub", one, rest)?;
    let bias = scope.binary("Pow", decay, steps)?;
    let factor = scope.binary("Sub", one, bias)?;
    let unbiased = scope.binary("RealDiv", biased, factor)?;
    let assign = scope.node("AssignVariableOp").input(average.handle).input(unbiased);
    Ok(assign.build()?)
}
