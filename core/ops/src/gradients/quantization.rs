//! Gradients of simulated quantisation: numbers within the range pass them on.

use super::Outcome;
use tenon_author::{GradientContext, register_gradient};

register_gradient!("FakeQuantWithMinMaxArgs", |c| {
    let node = c.op("FakeQuantWithMinMaxArgsGradient").input(c.gradient(0)?).input(c.input(0));
    c.set(0, node.copy(&["min", "max", "num_bits", "narrow_range"]).done()?)
});
register_gradient!("FakeQuantWithMinMaxVars", |c| {
    of_range(c, "FakeQuantWithMinMaxVarsGradient", &["num_bits", "narrow_range"])
});
register_gradient!("FakeQuantWithMinMaxVarsPerChannel", |c| {
    of_range(c, "FakeQuantWithMinMaxVarsPerChannelGradient", &["num_bits", "narrow_range"])
});
register_gradient!("QuantizeAndDequantizeV4", |c| {
    of_range(c, "QuantizeAndDequantizeV4Grad", &["axis"])
});
register_gradient!("QuantizeAndDequantizeV2", |c| c.set(0, c.gradient(0)?));
register_gradient!("QuantizeAndDequantizeV3", |c| c.set(0, c.gradient(0)?));

/// Of an op whose inputs are numbers and the ends of their range.
fn of_range(c: &GradientContext<'_>, op: &str, attrs: &[&str]) -> Outcome {
    let node = c.op(op).input(c.gradient(0)?).input(c.input(0)).input(c.input(1));
    let parts = node.input(c.input(2)).copy(attrs).outputs()?;
    (0..3).try_for_each(|index| c.set(index, parts[index]))
}
