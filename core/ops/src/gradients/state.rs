//! Gradients of reads of variables. The gradient of a variable's handle is that of its value.

use super::{Outcome, part::flat_rows, part::scattered};
use tenon_author::{GradientContext, register_gradient};

register_gradient!("ReadVariableOp", |c| c.set_parts(0, c.gradient_parts(0)));
register_gradient!("ResourceGather", |c| {
    let shape = c.unary("VariableShape", c.input(0))?;
    let (values, indices) = flat_rows(c, c.gradient(0)?, c.input(1), shape)?;
    c.set_slices(0, values, indices, shape)
});
register_gradient!("ResourceGatherNd", rows_by_position);

fn rows_by_position(c: &GradientContext<'_>) -> Outcome {
    let (g, indices) = (c.gradient(0)?, c.input(1));
    let shape = c.op("VariableShape").input(c.input(0)).copy_type("out_type", indices).done()?;
    c.set_parts(0, Some(scattered(c, g, indices, shape)?))
}
