//! Weight decay, as a part of the loss or beside the updates.

use super::{Decay, Optimizer, Rule};
use crate::{TrainError, Variable, nodes::Scope};
use tenon_graph::{GraphBuilder, Output};

/// Any optimiser, with a decay of variables beside its updates (Loshchilov and Hutter 2019): before an update, each
/// variable loses `learning rate * rate` of itself. The decay follows the computation of all gradients.
#[derive(Debug, Clone)]
pub struct DecoupledWeightDecay<O> {
    /// The optimiser.
    pub optimizer: O,
    /// The decay.
    pub decay: Decay,
}

impl<O: Optimizer> DecoupledWeightDecay<O> {
    /// This optimiser, with a decay of all variables.
    pub fn new(optimizer: O, rate: f64) -> DecoupledWeightDecay<O> {
        DecoupledWeightDecay { optimizer, decay: Decay { rate, exclude: Vec::new() } }
    }
}

impl<O: Optimizer> Optimizer for DecoupledWeightDecay<O> {
    fn rule(&self) -> Result<Rule, TrainError> {
        Ok(Rule { decay: Some(self.decay.clone()), ..self.optimizer.rule()? })
    }
}

/// Adds `scale * sum of L2Loss(w)` over variables `w` of one type, where `L2Loss` is half the sum of squares: what is
/// added to a loss, so that its gradient draws the variables to zero.
///
/// # Errors
/// There are no variables, or their types differ.
pub fn weight_decay_loss(
    b: &mut GraphBuilder<'_>,
    scale: f64,
    variables: &[Variable],
) -> Result<Output, TrainError> {
    let Some(first) = variables.first() else {
        return Err(TrainError::argument("weight decay", "at least one variable", "none"));
    };
    let prefix = b.unused_name("weight_decay");
    let mut losses = Vec::with_capacity(variables.len());
    for variable in variables {
        let mut scope = Scope::new(b, &prefix, &variable.device);
        losses.push(scope.unary("L2Loss", variable.value)?);
    }
    let mut scope = Scope::new(b, &prefix, "");
    let sum = scope.node("AddN").inputs(losses).build()?;
    let scale = scope.number("scale", first.dtype, scale)?;
    Ok(b.op("Mul").name(&prefix).input(sum).input(scale).build()?.into())
}
