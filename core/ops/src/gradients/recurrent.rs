//! Gradients of recurrent cells. As in TensorFlow, those that are one step long have none: a training graph has
//! the whole sequence in one op, or the cell in standard ops.

use super::Outcome;
use tenon_author::{GradientContext, register_gradient};

register_gradient!("BlockLSTM", |c| by_steps(c, "BlockLSTMGrad"));
// The gradient of either version has the order of gates that its own version has.
register_gradient!("BlockLSTMV2", |c| by_steps(c, "BlockLSTMGradV2"));

fn by_steps(c: &GradientContext<'_>, op: &str) -> Outcome {
    let outputs = (0..7).map(|at| c.output(at));
    let node = c.op(op).inputs(c.inputs()).inputs(outputs);
    let node = node.input(c.gradient(1)?).input(c.gradient(6)?).copy(&["use_peephole"]);
    let grads = node.outputs()?;
    grads.into_iter().enumerate().try_for_each(|(at, grad)| c.set(at + 1, grad))
}
