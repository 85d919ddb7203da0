//! Gradients of arrays of tensors. The gradient of an array is an array of its own, which the op `TensorArrayGradV3` finds
//! or makes; a differentiation has one for each array. Writes to it add up. What orders its writes and reads is the
//! gradient of the flow.

use super::Outcome;
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{KernelError, abi::GraphValue};

/// The ops of one generation of arrays.
macro_rules! register_array {
    ($suffix:literal) => {
        register_gradient!(concat!("TensorArrayRead", $suffix), |c| read(c, $suffix));
        register_gradient!(concat!("TensorArrayWrite", $suffix), |c| write(c, $suffix));
        register_gradient!(concat!("TensorArrayGather", $suffix), |c| gather(c, $suffix));
        register_gradient!(concat!("TensorArrayScatter", $suffix), |c| scatter(c, $suffix));
        register_gradient!(concat!("TensorArrayConcat", $suffix), |c| concat(c, $suffix));
        register_gradient!(concat!("TensorArraySplit", $suffix), |c| split(c, $suffix));
    };
}
register_array!("");
register_array!("V2");
register_array!("V3");

/// The array of gradients and its flow, behind `flow`.
fn array(
    c: &GradientContext<'_>,
    suffix: &str,
    flow: GraphValue,
) -> Result<(GraphValue, GraphValue), KernelError> {
    let node = c.op(&format!("TensorArrayGrad{suffix}")).input(c.input(0)).input(flow);
    let array = node.attr("source", c.scope().as_str()).done()?;
    let flow = c.op("Identity").name("gradient_flow").input(flow).after(array).done()?;
    Ok((array, flow))
}

fn read(c: &GradientContext<'_>, suffix: &str) -> Outcome {
    let (array, flow) = array(c, suffix, c.input(2))?;
    let node = c.op(&format!("TensorArrayWrite{suffix}")).input(array).input(c.input(1));
    c.set(2, node.input(c.gradient(0)?).input(flow).done()?)
}

fn write(c: &GradientContext<'_>, suffix: &str) -> Outcome {
    let (array, flow) = array(c, suffix, c.gradient(0)?)?;
    let node = c.op(&format!("TensorArrayRead{suffix}")).input(array).input(c.input(1));
    c.set(2, node.input(flow).copy_type("dtype", c.input(2)).done()?)?;
    c.set(3, flow)
}

fn gather(c: &GradientContext<'_>, suffix: &str) -> Outcome {
    let (array, flow) = array(c, suffix, c.input(2))?;
    let node = c.op(&format!("TensorArrayScatter{suffix}")).input(array).input(c.input(1));
    c.set(2, node.input(c.gradient(0)?).input(flow).done()?)
}

fn scatter(c: &GradientContext<'_>, suffix: &str) -> Outcome {
    let (array, flow) = array(c, suffix, c.gradient(0)?)?;
    let node = c.op(&format!("TensorArrayGather{suffix}")).input(array).input(c.input(1));
    c.set(2, node.input(flow).copy_type("dtype", c.input(2)).done()?)?;
    c.set(3, flow)
}

fn concat(c: &GradientContext<'_>, suffix: &str) -> Outcome {
    let (array, flow) = array(c, suffix, c.input(1))?;
    let node = c.op(&format!("TensorArraySplit{suffix}")).input(array).input(c.gradient(0)?);
    c.set(1, node.input(c.output(1)).input(flow).done()?)
}

fn split(c: &GradientContext<'_>, suffix: &str) -> Outcome {
    let (array, flow) = array(c, suffix, c.gradient(0)?)?;
    let node = c.op(&format!("TensorArrayConcat{suffix}")).input(array).input(flow);
    c.set(1, node.copy_type("dtype", c.input(1)).done()?)?;
    c.set(3, flow)
}
