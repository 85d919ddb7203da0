//! Gradients of ragged tensors by their values.

use super::{Made, Outcome, part_of_shape};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{KernelError, abi::GraphValue};

/// The rows of a value, whose first dimensions are one here, at which a vector of truth values is true.
fn masked(c: &GradientContext<'_>, rows: GraphValue, places: GraphValue) -> Made {
    c.op("GatherV2").input(rows).input(places).input(c.int(0)?).done()
}

/// The numbers of the elements that are true.
fn places(c: &GradientContext<'_>, mask: GraphValue) -> Made {
    c.op("Squeeze").input(c.unary("Where", mask)?).attr("squeeze_dims", vec![1i64]).done()
}

register_gradient!("RaggedTensorToTensor", |c| {
    let (values, default, g) = (c.input(1), c.input(2), c.gradient(0)?);
    let kinds: Vec<&[u8]> = c.attr("row_partition_types")?;
    let ragged = kinds.iter().filter(|&&kind| kind != b"FIRST_DIM_SIZE").count() as i64;
    let sizes = c.shape_of(values)?;
    let outer = part_of_shape(c, c.shape_of(g)?, None, Some(1 + ragged))?;
    // For each row of the result, the value that it is, -1 where it is the default.
    let first = part_of_shape(c, sizes, None, Some(1))?;
    let count = c.reshape(first, c.ints(&[])?)?;
    let numbers = c.op("Range").input(c.int(0)?).input(count).input(c.int(1)?).done()?;
    let node = c.op("RaggedTensorToTensor").input(outer).input(numbers).input(c.int(-1)?);
    let node = node.inputs(c.inputs().into_iter().skip(3));
    let from = node.copy(&["row_partition_types"]).done()?;
    let from = c.reshape(from, c.ints(&[-1])?)?;
    let inner = part_of_shape(c, sizes, Some(1), None)?;
    let shape = c.op("ConcatV2").input(c.ints(&[-1])?).input(inner).input(c.int(0)?).done()?;
    let rows = c.reshape(g, shape)?;
    let is_value = c.binary("NotEqual", from, c.int(-1)?)?;
    if c.wants(1) {
        let taken = places(c, is_value)?;
        c.set_slices(1, masked(c, rows, taken)?, masked(c, from, taken)?, sizes)?;
    }
    if c.wants(2) {
        let left = masked(c, rows, places(c, c.unary("LogicalNot", is_value)?)?)?;
        c.set(2, by_default(c, left, default)?)?;
    }
    Ok(())
});

/// The sum of rows over the dimensions in which the default broadcasts to them.
fn by_default(c: &GradientContext<'_>, rows: GraphValue, default: GraphValue) -> Made {
    let shapes = c.op("BroadcastGradientArgs").input(c.shape_of(rows)?);
    let axes = shapes.input(c.shape_of(default)?).outputs()?;
    c.reshape_like(c.sum(rows, axes[1], false)?, default)
}

register_gradient!("RaggedTensorToSparse", |c| {
    let values = c.input_count() - 1;
    c.set(values, c.reshape_like(c.gradient(1)?, c.input(values))?)
});

register_gradient!("RaggedGather", |c| {
    let (values, indices) = (c.input_count() - 2, c.input_count() - 1);
    let pick = |of: GraphValue, at: GraphValue| {
        c.op("GatherV2").input(of).input(at).input(c.int(0)?).done()
    };
    // The number of the first value of each outermost row, and that of all.
    let mut splits = c.input(0);
    for level in 1..values {
        splits = pick(c.input(level), splits)?;
    }
    let flat = c.reshape(c.input(indices), c.ints(&[-1])?)?;
    let ends = part_of_shape(c, splits, Some(1), None)?;
    let step = c.number(c.dtype(splits), 1.0)?;
    let node = c.op("RaggedRange").input(pick(splits, flat)?).input(pick(ends, flat)?).input(step);
    let rows = node.outputs()?[1];
    let g = c.gradient(c.output_count() - 1)?;
    c.set_slices(values, g, rows, c.shape_of(c.input(values))?)
});

register_gradient!("RaggedFillEmptyRows", by_rows);

fn by_rows(c: &GradientContext<'_>) -> Outcome {
    let node = c.op("RaggedFillEmptyRowsGrad").input(c.output(3)).input(c.gradient(1)?);
    let grads = node.outputs()?;
    c.set(1, grads[0])?;
    c.set(3, grads[1])
}

register_gradient!("RaggedTensorToVariant", |c| {
    let values = c.input_count() - 1;
    let splits = if values == 0 { c.int(0)? } else { c.input(0) };
    let shape = c.shape_of(c.input(values))?;
    let node = c.op("RaggedTensorToVariantGradient").input(c.gradient(0)?).input(splits);
    c.set(values, node.input(shape).copy_type("Tvalues", c.input(values)).done()?)
});

register_gradient!("RaggedTensorFromVariant", |c| {
    let values = c.output_count() - 1;
    let by_row = match c.rank(c.input(0)) {
        Some(rank @ 0..=1) => rank == 1,
        None => values > 0,
        Some(rank) => {
            return Err(KernelError::unimplemented(format!(
                "the gradient of RaggedTensorFromVariant is known for a scalar or a vector of variants, found {rank} dimensions"
            )));
        }
    };
    let node = c.op("RaggedTensorToVariant").inputs((0..values).map(|at| c.output(at)));
    c.set(0, node.input(c.gradient(values)?).attr("batched_input", by_row).done()?)
});
