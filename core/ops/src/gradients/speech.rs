//! The gradient of the loss of connectionist temporal classification, which the op itself gives.

use super::Outcome;
use tenon_author::{GradientContext, register_gradient};

register_gradient!("CTCLoss", by_inputs);
register_gradient!("CTCLossV2", by_inputs);

fn by_inputs(c: &GradientContext<'_>) -> Outcome {
    // The second output is computed, not differentiated: a second gradient would be wrong without a word.
    let message = "the gradient of a loss of connectionist temporal classification has no gradient";
    let slopes = c.op("PreventGradient").input(c.output(1)).attr("message", message).done()?;
    let losses = c.op("ExpandDims").input(c.gradient(0)?).input(c.int(-1)?).done()?;
    c.set(0, c.mul(losses, slopes)?)
}
