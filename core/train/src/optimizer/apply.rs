//! The updates of a rule, as nodes.

use super::{Argument, Decay, Rule, Slices, VariableGradient, deduplicated, dense, values};
use crate::{
    Initial, TrainError, Variable, VariableOptions, Variables,
    nodes::{Scalar, Scope, group},
};
use tenon_framework::{DType, Tensor};
use tenon_gradient::Gradient;
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_proto::SaveSliceInfoDef;

/// A variable and what changes it.
struct Update<'a> {
    variable: &'a Variable,
    gradient: Gradient,
    slots: Vec<Variable>,
}

/// Adds the updates of a rule, and the node that runs them.
pub(super) fn apply(
    rule: &Rule,
    b: &mut GraphBuilder<'_>,
    variables: &mut Variables,
    gradients: &[VariableGradient],
    global_step: Option<&Variable>,
) -> Result<NodeId, TrainError> {
    let given = checked(b, gradients)?;
    let powers = powers(rule, b, variables, &given)?;
    let updates = given.into_iter().map(|(gradient, variable)| {
        let slots = slots(rule, b, variables, variable)?;
        Ok(Update { variable, gradient, slots })
    });
    let updates = updates.collect::<Result<Vec<_>, TrainError>>()?;
    let mut apply = Apply { rule, name: b.unused_name(&rule.name), powers, b };
    let decays = apply.decays(&updates)?;
    let mut done = Vec::with_capacity(updates.len());
    for (at, update) in updates.iter().enumerate() {
        done.push(apply.update(update, decays.get(at).copied().flatten())?);
    }
    apply.finish(&done, global_step)
}

/// The variables that have a gradient, each with a gradient of its type.
fn checked<'a>(
    b: &GraphBuilder<'_>,
    gradients: &'a [VariableGradient],
) -> Result<Vec<(Gradient, &'a Variable)>, TrainError> {
    let mut given = Vec::with_capacity(gradients.len());
    for (gradient, variable) in gradients {
        let Some(gradient) = gradient else { continue };
        let values = values(gradient);
        let graph = b.graph();
        let outputs = graph.shared_nodes().get(values.node.index()).map(|node| node.outputs());
        let found = outputs.and_then(|types| types.get(values.output as usize).copied());
        let is_float = variable.dtype.is_floating() || variable.dtype.is_complex();
        let what = || format!("the gradient of variable '{}'", variable.name);
        match found.map(DType::base) {
            Some(found) if found == variable.dtype && is_float => {}
            Some(found) if found == variable.dtype => {
                let expected = "a variable of a floating-point or complex type";
                return Err(TrainError::argument(what(), expected, found.to_string()));
            }
            Some(found) => {
                let expected = format!("{}, the type of the variable", variable.dtype);
                return Err(TrainError::argument(what(), expected, found.to_string()));
            }
            None => {
                let found = format!("output {} of node {}", values.output, values.node);
                return Err(TrainError::argument(what(), "a tensor of the graph", found));
            }
        }
        given.push((*gradient, variable));
    }
    if given.is_empty() {
        let names: Vec<&str> =
            gradients.iter().map(|(_, variable)| variable.name.as_str()).collect();
        let found = format!("none for any of {names:?}; check that the loss depends on them");
        return Err(TrainError::argument("gradients", "at least one", found));
    }
    Ok(given)
}

/// The slots of a variable.
fn slots(
    rule: &Rule,
    b: &mut GraphBuilder<'_>,
    variables: &mut Variables,
    variable: &Variable,
) -> Result<Vec<Variable>, TrainError> {
    let mut slots = Vec::with_capacity(rule.slots.len());
    for (at, &initial) in rule.slots.iter().enumerate() {
        let key = (rule.identity.clone(), variable.name.clone(), at);
        if let Some(slot) = variables.owned(&key) {
            slots.push(slot.clone());
            continue;
        }
        let name = format!("{}/{}", variable.name, rule.name);
        let name = b.with_name_scope("", |b| b.unused_name(&name));
        let slice = variable.slice.as_ref().map(|slice| SaveSliceInfoDef {
            full_name: format!("{}{}", slice.full_name, &name[variable.name.len()..]),
            ..slice.clone()
        });
        let options =
            VariableOptions { is_trainable: false, device: variable.device.clone(), slice };
        let initial = Initial::Filled(initial);
        let dims = variable.shape.dims();
        let slot = variables.add_with(b, &name, variable.dtype, dims, &initial, options)?;
        variables.own(key, &slot);
        slots.push(slot);
    }
    Ok(slots)
}

/// The powers, beside the first variable in the order of names.
fn powers(
    rule: &Rule,
    b: &mut GraphBuilder<'_>,
    variables: &mut Variables,
    given: &[(Gradient, &Variable)],
) -> Result<Vec<Variable>, TrainError> {
    let first = given.iter().map(|(_, variable)| *variable).min_by_key(|variable| &variable.name);
    let device = first.map(|variable| variable.device.clone()).unwrap_or_default();
    let is_double = |(_, variable): &(Gradient, &Variable)| {
        matches!(variable.dtype, DType::DOUBLE | DType::COMPLEX128)
    };
    let dtype = if given.iter().any(is_double) { DType::DOUBLE } else { DType::FLOAT };
    let mut powers = Vec::with_capacity(rule.powers.len());
    for (at, power) in rule.powers.iter().enumerate() {
        let key = (rule.identity.clone(), String::new(), at);
        if let Some(power) = variables.owned(&key) {
            powers.push(power.clone());
            continue;
        }
        let name = b.with_name_scope("", |b| b.unused_name(power.name));
        let options = VariableOptions { is_trainable: false, device: device.clone(), slice: None };
        let initial = Initial::Value(Tensor::number(dtype, power.base)?);
        let variable = variables.add_with(b, &name, dtype, &[], &initial, options)?;
        variables.own(key, &variable);
        powers.push(variable);
    }
    Ok(powers)
}

/// One application of a rule.
struct Apply<'s, 'r> {
    rule: &'s Rule,
    /// The name of the node that runs everything, below which the others are.
    name: String,
    powers: Vec<Variable>,
    b: &'s mut GraphBuilder<'r>,
}

impl<'r> Apply<'_, 'r> {
    /// The nodes of the update of a variable.
    fn scope(&mut self, variable: &Variable) -> Scope<'_, 'r> {
        let prefix = format!("{}/update_{}", self.name, variable.name);
        Scope::new(self.b, &prefix, &variable.device)
    }

    /// For each update the node that decays its variable, once all gradients are computed.
    fn decays(&mut self, updates: &[Update<'_>]) -> Result<Vec<Option<NodeId>>, TrainError> {
        let Some(Decay { rate, exclude }) = &self.rule.decay else { return Ok(Vec::new()) };
        let before: Vec<NodeId> =
            updates.iter().map(|update| values(&update.gradient).node).collect();
        let gradients = group(self.b, &format!("{}/gradients", self.name), "", &before)?;
        let learning_rate = self.rule.learning_rate;
        let mut decays = Vec::with_capacity(updates.len());
        for Update { variable, .. } in updates {
            if exclude.iter().any(|part| variable.name.contains(part)) {
                decays.push(None);
                continue;
            }
            let mut scope = self.scope(variable);
            let read = scope.node("ReadVariableOp").input(variable.handle).control(gradients);
            let value = read.attr("dtype", variable.dtype).build()?.into();
            let rate = scope.number("decay", variable.dtype, *rate)?;
            let lost = scope.binary("Mul", value, rate)?;
            let rate = learning_rate.build(&mut scope, "learning_rate", variable.dtype)?;
            let lost = scope.binary("Mul", lost, rate)?;
            let decay = scope.node("AssignSubVariableOp").input(variable.handle).input(lost);
            decays.push(Some(decay.build()?));
        }
        Ok(decays)
    }

    /// Adds the update of a variable, after the node `before`.
    fn update(
        &mut self,
        update: &Update<'_>,
        before: Option<NodeId>,
    ) -> Result<NodeId, TrainError> {
        let Rule { op, slices, .. } = self.rule;
        let (gradient, dtype) = (update.gradient, update.variable.dtype);
        let learning_rate = self.rule.learning_rate;
        let mut scope = self.scope(update.variable);
        let (op, gradient) = match gradient {
            Gradient::Dense(values) => (format!("ResourceApply{op}"), vec![values]),
            Gradient::Slices { values, indices, .. } => match slices {
                Slices::Rows => {
                    let (values, indices) = deduplicated(&mut scope, values, indices)?;
                    (format!("ResourceSparseApply{op}"), vec![values, indices])
                }
                Slices::Dense => {
                    let values = dense(&mut scope, update.variable, values, indices)?;
                    (format!("ResourceApply{op}"), vec![values])
                }
                Slices::Scatter => {
                    let rate = learning_rate.build(&mut scope, "learning_rate", dtype)?;
                    let step = scope.binary("Mul", values, rate)?;
                    let node = scope.node("ResourceScatterSub").input(update.variable.handle);
                    let node = before.into_iter().fold(node, |node, before| node.control(before));
                    return Ok(node.input(indices).input(step).attr("dtype", dtype).build()?);
                }
            },
        };
        let inputs = self.inputs(update, &gradient)?;
        let flags = self.rule.flags.iter();
        let mut scope = self.scope(update.variable);
        let node = scope.node(&op).input(update.variable.handle).inputs(inputs).attr("T", dtype);
        let node = flags.fold(node, |node, &(name, flag)| node.attr(name, flag));
        let node = before.into_iter().fold(node, |node, before| node.control(before));
        Ok(node.build()?)
    }

    /// The inputs of an update op behind the variable.
    fn inputs(
        &mut self,
        update: &Update<'_>,
        gradient: &[Output],
    ) -> Result<Vec<Output>, TrainError> {
        let rule = self.rule;
        let powers: Vec<Output> = self.powers.iter().map(|power| power.value).collect();
        let dtype = update.variable.dtype;
        let mut scope = self.scope(update.variable);
        let mut inputs = Vec::with_capacity(rule.arguments.len() + 1);
        for &argument in &rule.arguments {
            inputs.push(match argument {
                Argument::Slot(at) => of_rule(&update.slots, at, "slot", rule)?.handle,
                Argument::Power(at) => scope.cast(*of_rule(&powers, at, "power", rule)?, dtype)?,
                Argument::LearningRate => {
                    rule.learning_rate.build(&mut scope, "learning_rate", dtype)?
                }
                Argument::Number(name, value) => scope.number(name, dtype, value)?,
                Argument::OverRate { name, base, numerator } => {
                    over_rate(&mut scope, rule.learning_rate, name, dtype, (base, numerator))?
                }
                Argument::Gradient => {
                    inputs.extend(gradient);
                    continue;
                }
            });
        }
        Ok(inputs)
    }

    /// Multiplies the powers after the updates, and adds the node that runs everything.
    fn finish(
        self,
        updates: &[NodeId],
        global_step: Option<&Variable>,
    ) -> Result<NodeId, TrainError> {
        let Apply { rule, name, powers, b } = self;
        let mut done = updates.to_vec();
        for (power, variable) in rule.powers.iter().zip(&powers) {
            let mut scope = Scope::new(b, &name, &variable.device);
            let base = scope.number("base", variable.dtype, power.base)?;
            let product = scope.binary("Mul", variable.value, base)?;
            let assign = scope.node("AssignVariableOp").input(variable.handle).input(product);
            let assign = updates.iter().fold(assign, |node, &update| node.control(update));
            done.push(assign.build()?);
        }
        let Some(step) = global_step else { return group(b, &name, "", &done) };
        let updated = group(b, &format!("{name}/update"), "", &done)?;
        let one = Scope::new(b, &name, "").number("value", step.dtype, 1.0)?;
        let count = b.op("AssignAddVariableOp").name(&name).device(&step.device);
        Ok(count.input(step.handle).input(one).control(updated).build()?)
    }
}

fn of_rule<'a, T>(of: &'a [T], at: usize, what: &str, rule: &Rule) -> Result<&'a T, TrainError> {
    of.get(at).ok_or_else(|| {
        let expected = format!("a number below {}", of.len());
        TrainError::argument(format!("{what} of rule '{}'", rule.name), expected, at.to_string())
    })
}

/// `base + numerator / learning rate`. A rate that is nearly zero counts as 1e-36, as in TensorFlow.
fn over_rate(
    scope: &mut Scope<'_, '_>,
    rate: Scalar,
    name: &str,
    dtype: DType,
    (base, numerator): (f64, f64),
) -> Result<Output, TrainError> {
    if let Scalar::Constant(rate) = rate {
        return scope.number(name, dtype, base + numerator / rate.max(1e-36));
    }
    let rate = rate.build(scope, "learning_rate", dtype)?;
    let least = scope.number("least", dtype, 1e-36)?;
    let rate = scope.binary("Maximum", rate, least)?;
    let numerator = scope.number("beta", dtype, numerator)?;
    let quotient = scope.binary("RealDiv", numerator, rate)?;
    let base = scope.number("base", dtype, base)?;
    Ok(scope.named(name, "AddV2").input(quotient).input(base).build()?.into())
}
