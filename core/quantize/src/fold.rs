//! Combines the ops after a product into one factor and one shift per channel:
//! `factor * x + shift`.

use super::step::Step;
use tenon_framework::attr::AttrValue;
use tenon_graph::{NodeId, Output};

/// A factor and a shift of each channel, in double precision.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fold {
    pub factors: Vec<f64>,
    /// The shifts; `None` if no op shifts.
    pub shifts: Option<Vec<f64>>,
}

impl Fold {
    /// The identity: factors of 1, without shifts.
    pub fn new(channels: usize) -> Fold {
        Fold { factors: vec![1.0; channels], shifts: None }
    }

    fn channels(&self) -> usize {
        self.factors.len()
    }

    /// Folds a node that reads `tensor`; returns whether that is possible.
    pub fn take(&mut self, step: Step<'_>, id: NodeId, tensor: Output) -> bool {
        let rank = |tensor| step.dims(tensor).map(|dims| dims.len());
        if !step.is_channels_last(id) || rank(id.into()).is_none_or(|own| rank(tensor) != Some(own))
        {
            return false;
        }
        let taken = match step.op(id) {
            "BiasAdd" | "BiasAddV1" | "Add" | "AddV2" => self.take_sum(step, id, tensor, 1.0),
            "Sub" if step.node(id).inputs[0] == tensor => self.take_sum(step, id, tensor, -1.0),
            "Mul" => self.take_product(step, id, tensor),
            "FusedBatchNorm" | "FusedBatchNormV2" | "FusedBatchNormV3" => self.take_norm(step, id),
            _ => None,
        };
        taken.is_some()
    }

    fn take_sum(&mut self, step: Step<'_>, id: NodeId, tensor: Output, sign: f64) -> Option<()> {
        let values = self.vector(step, other(step, id, tensor)?)?;
        self.apply(|_| 1.0, |channel| sign * values[channel]);
        Some(())
    }

    fn take_product(&mut self, step: Step<'_>, id: NodeId, tensor: Output) -> Option<()> {
        let values = self.vector(step, other(step, id, tensor)?)?;
        for (factor, value) in self.factors.iter_mut().zip(&values) {
            *factor *= value;
        }
        let shifts = self.shifts.iter_mut().flatten().zip(&values);
        shifts.for_each(|(shift, value)| *shift *= value);
        Some(())
    }

    /// Folds `scale * (x - mean) / sqrt(variance + epsilon) + offset`, with constant statistics.
    fn take_norm(&mut self, step: Step<'_>, id: NodeId) -> Option<()> {
        let Some(&AttrValue::Float(epsilon)) = step.node(id).attrs.get("epsilon") else {
            return None;
        };
        if step.flag(id, "is_training") {
            return None;
        }
        let inputs = &step.node(id).inputs;
        let vector = |at: usize| self.vector(step, inputs[at]);
        let (scale, offset, mean, variance) = (vector(1)?, vector(2)?, vector(3)?, vector(4)?);
        let factor = |at: usize| scale[at] / (variance[at] + f64::from(epsilon)).sqrt();
        if !(0..scale.len()).all(|at| factor(at).is_finite()) {
            return None;
        }
        self.apply(factor, |at| offset[at] - factor(at) * mean[at]);
        Some(())
    }

    /// Whether the shifts, and weights of these magnitudes times the factors, are finite floats. If
    /// they are not, the ops after the product stay separate.
    pub fn keeps_finite(&self, greatest: &[f32]) -> bool {
        let is_float = |value: f64| (value as f32).is_finite();
        let factors = self.factors.iter().zip(greatest);
        factors.map(|(factor, most)| factor * f64::from(*most)).all(is_float)
            && self.factors.iter().chain(self.shifts.iter().flatten()).copied().all(is_float)
    }

    fn apply(&mut self, factor: impl Fn(usize) -> f64, shift: impl Fn(usize) -> f64) {
        let channels = self.channels();
        let shifts = self.shifts.get_or_insert_with(|| vec![0.0; channels]);
        for (at, (by, to)) in self.factors.iter_mut().zip(shifts).enumerate() {
            *by *= factor(at);
            *to = *to * factor(at) + shift(at);
        }
    }

    /// The constant with one value per channel, or one for all; `None` if a value is NaN or
    /// infinite.
    fn vector(&self, step: Step<'_>, tensor: Output) -> Option<Vec<f64>> {
        let (values, dims) = (step.floats(tensor)?, step.dims(tensor)?);
        let (last, before) = dims.split_last().unwrap_or((&1, &[]));
        let spreads = before.iter().all(|dim| *dim == 1);
        if !spreads || *last as usize != values.len() || !values.iter().all(|x| x.is_finite()) {
            return None;
        }
        match *values {
            [value] => Some(vec![value.into(); self.channels()]),
            _ if values.len() == self.channels() => {
                Some(values.iter().map(|&x| x.into()).collect())
            }
            _ => None,
        }
    }
}

/// The other input of a node with two inputs.
fn other(step: Step<'_>, id: NodeId, tensor: Output) -> Option<Output> {
    match step.node(id).inputs[..] {
        [a, b] if a == tensor => Some(b),
        [a, b] if b == tensor => Some(a),
        _ => None,
    }
}
