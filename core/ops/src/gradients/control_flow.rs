//! Gradients of conditionals that are made of `Switch` and `Merge`. What does not run in the forward graph does not run in
//! the gradient either: the gradient of a branch is dead where the branch was not taken. Loops are `tenon-gradient`'s.

use super::Outcome;
use tenon_author::{GradientContext, register_gradient};

register_gradient!("Switch", switch);
register_gradient!("RefSwitch", switch);
register_gradient!("_SwitchN", switch);
register_gradient!("Merge", merge);
register_gradient!("RefMerge", merge);

/// The gradient of the branch that was taken. A branch without one has zeros, which are dead if it was not taken.
fn switch(c: &GradientContext<'_>) -> Outcome {
    let branch = |index| match c.has_gradient(index) {
        true => c.gradient(index),
        false => c.zeros_like(c.output(index)),
    };
    let branches = (0..c.output_count()).map(branch).collect::<Result<Vec<_>, _>>()?;
    c.set(0, c.op("Merge").inputs(branches).done()?)
}

/// The gradient for the input that was there.
fn merge(c: &GradientContext<'_>) -> Outcome {
    if !c.has_gradient(0) {
        return Ok(());
    }
    let (g, number) = (c.gradient(0)?, c.output(1));
    for index in (0..c.input_count()).filter(|&index| c.wants(index)) {
        let taken = c.binary("Equal", number, c.int(index as i32)?)?;
        let outputs = c.op("Switch").input(g).input(taken).outputs()?;
        c.set(index, outputs[1])?;
    }
    Ok(())
}
