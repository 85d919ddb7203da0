//! Gradients of ops that move elements: identities, shapes, joining, repeating.

use super::{Made, Outcome, shape_as};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{DType, KernelError, abi::GraphValue};

// Identities.
register_gradient!("Identity", identity);
register_gradient!("RefIdentity", identity);
register_gradient!("IdentityN", identity);
register_gradient!("PlaceholderWithDefault", identity);
register_gradient!("EnsureShape", identity);
register_gradient!("Print", identity);
register_gradient!("PreventGradient", |c| {
    let reason: &str = c.attr("message")?;
    let message = format!("the gradient is disabled here: {reason}");
    Err(KernelError::new(tenon_framework::Code::FAILED_PRECONDITION, message))
});
register_gradient!("CheckNumerics", |c| {
    let message: &str = c.attr("message")?;
    let message = format!("NaN or infinity in the gradient of: {message}");
    c.set(0, c.op("CheckNumerics").input(c.gradient(0)?).attr("message", message.as_str()).done()?)
});

/// Each output has the gradient of the input of its number.
fn identity(c: &GradientContext<'_>) -> Outcome {
    (0..c.output_count()).try_for_each(|index| c.set_parts(index, c.gradient_parts(index)))
}

// Other shapes of the same elements.
register_gradient!("Reshape", reshaped);
register_gradient!("Squeeze", reshaped);
register_gradient!("ExpandDims", reshaped);

fn reshaped(c: &GradientContext<'_>) -> Outcome {
    c.set(0, c.reshape_like(c.gradient(0)?, c.input(0))?)
}

// Permutations.
register_gradient!("Transpose", |c| transposed(c, "Transpose"));
register_gradient!("ConjugateTranspose", |c| transposed(c, "ConjugateTranspose"));
register_gradient!("ReverseV2", |c| same_again(c, "ReverseV2"));
register_gradient!("Reverse", |c| same_again(c, "Reverse"));
register_gradient!("ReverseSequence", |c| {
    let node = c.op("ReverseSequence").input(c.gradient(0)?).input(c.input(1));
    c.set(0, node.copy(&["seq_dim", "batch_dim"]).done()?)
});
register_gradient!("Roll", |c| {
    let back = c.neg(c.input(1))?;
    c.set(0, c.op("Roll").input(c.gradient(0)?).input(back).input(c.input(2)).done()?)
});

fn transposed(c: &GradientContext<'_>, op: &str) -> Outcome {
    let back = match c.constant_ints(c.input(1)) {
        Some(order) => {
            let mut back = vec![0; order.len()];
            for (at, &from) in order.iter().enumerate() {
                let from = if from < 0 { from + order.len() as i64 } else { from };
                let slot = usize::try_from(from).ok().and_then(|from| back.get_mut(from));
                *slot
                    .ok_or_else(|| KernelError::invalid_argument("a permutation out of range"))? =
                    at as i64;
            }
            c.ints(&back)?
        }
        None => c.unary("InvertPermutation", c.input(1))?,
    };
    c.set(0, c.binary(op, c.gradient(0)?, back)?)
}

/// Of an op that is its own inverse.
fn same_again(c: &GradientContext<'_>, op: &str) -> Outcome {
    c.set(0, c.binary(op, c.gradient(0)?, c.input(1))?)
}

// Blocks.
register_gradient!("SpaceToDepth", |c| blocks(c, "DepthToSpace"));
register_gradient!("DepthToSpace", |c| blocks(c, "SpaceToDepth"));
register_gradient!("SpaceToBatch", |c| batches(c, "BatchToSpace", &["block_size"]));
register_gradient!("BatchToSpace", |c| batches(c, "SpaceToBatch", &["block_size"]));
register_gradient!("SpaceToBatchND", |c| batches(c, "BatchToSpaceND", &[]));
register_gradient!("BatchToSpaceND", |c| batches(c, "SpaceToBatchND", &[]));

fn blocks(c: &GradientContext<'_>, inverse: &str) -> Outcome {
    let node = c.op(inverse).input(c.gradient(0)?);
    c.set(0, node.copy(&["block_size", "data_format"]).done()?)
}

fn batches(c: &GradientContext<'_>, inverse: &str, attrs: &[&str]) -> Outcome {
    let others = (1..c.input_count()).map(|index| c.input(index));
    c.set(0, c.op(inverse).input(c.gradient(0)?).inputs(others).copy(attrs).done()?)
}

// Joining and splitting.
register_gradient!("Concat", |c| split_again(c, c.input(0), 1));
register_gradient!("ConcatV2", |c| split_again(c, c.input(c.input_count() - 1), 0));
register_gradient!("Split", |c| joined_again(c, c.input(0), 1));
register_gradient!("SplitV", |c| joined_again(c, c.input(2), 0));
register_gradient!("Pack", |c| {
    let count = c.input_count();
    let node = c.op("Unpack").input(c.gradient(0)?).attr("num", count as i64);
    let parts = node.copy(&["axis"]).outputs()?;
    (0..count).try_for_each(|index| c.set(index, parts[index]))
});
register_gradient!("Unpack", |c| {
    let parts = all_gradients(c)?;
    c.set(0, c.op("Pack").inputs(parts).copy(&["axis"]).done()?)
});

fn all_gradients(c: &GradientContext<'_>) -> Result<Vec<GraphValue>, KernelError> {
    (0..c.output_count()).map(|index| c.gradient(index)).collect()
}

/// Gives each joined input its part of the gradient. The inputs begin at `first`.
fn split_again(c: &GradientContext<'_>, axis: GraphValue, first: usize) -> Outcome {
    let g = c.gradient(0)?;
    let count = c.input_count() - 1;
    if count == 1 {
        return c.set(first, g);
    }
    let inputs = first..first + count;
    let sizes_known = known_sizes(c, axis, inputs.clone());
    let axis = wrapped(c, axis, c.input(first))?;
    let sizes = match sizes_known {
        Some(sizes) => c.ints(&sizes)?,
        None => {
            let size = |index| {
                let zero = c.int(0)?;
                c.op("GatherV2").input(c.shape_of(c.input(index))?).input(axis).input(zero).done()
            };
            let sizes = inputs.clone().map(size).collect::<Result<Vec<_>, _>>()?;
            c.op("Pack").inputs(sizes).done()?
        }
    };
    let node = c.op("SplitV").input(g).input(sizes).input(axis);
    let parts = node.attr("num_split", count as i64).outputs()?;
    inputs.zip(parts).try_for_each(|(index, part)| c.set(index, part))
}

/// An axis as a scalar of type int32 that is not negative.
fn wrapped(c: &GradientContext<'_>, axis: GraphValue, of: GraphValue) -> Made {
    if let Some([axis]) = c.constant_ints(axis).as_deref() {
        if *axis >= 0 {
            return c.number(DType::INT32, *axis as f64);
        }
        if let Some(rank) = c.rank(of) {
            return c.number(DType::INT32, (*axis + rank as i64) as f64);
        }
    }
    let axis = c.cast(axis, DType::INT32)?;
    c.binary("FloorMod", axis, c.rank_of(of)?)
}

/// The sizes of inputs along an axis, if they are known.
fn known_sizes(
    c: &GradientContext<'_>,
    axis: GraphValue,
    inputs: std::ops::Range<usize>,
) -> Option<Vec<i64>> {
    let axis = *c.constant_ints(axis)?.first()?;
    let size = |index| {
        let dims = c.dims(c.input(index))?;
        let axis = if axis < 0 { axis + dims.len() as i64 } else { axis };
        dims.get(usize::try_from(axis).ok()?).copied().filter(|&size| size >= 0)
    };
    inputs.map(size).collect()
}

fn joined_again(c: &GradientContext<'_>, axis: GraphValue, input: usize) -> Outcome {
    let parts = all_gradients(c)?;
    if let [part] = parts[..] {
        return c.set(input, part);
    }
    c.set(input, c.op("ConcatV2").inputs(parts).input(axis).done()?)
}

// Repeating.
register_gradient!("Fill", |c| {
    let g = c.gradient(0)?;
    let axes = all_axes(c, g)?;
    c.set(1, c.sum(g, axes, false)?)
});
register_gradient!("BroadcastTo", |c| {
    c.set(0, c.reduce_to(c.gradient(0)?, c.input(0), c.output(0))?)
});
register_gradient!("Tile", |c| {
    let (g, x) = (c.gradient(0)?, c.input(0));
    let multiples = c.cast(c.input(1), DType::INT32)?;
    // Pairs of how often an axis is repeated and its size.
    let pairs = c.op("Pack").input(multiples).input(c.shape_of(x)?).attr("axis", 1).done()?;
    let pairs = c.reshape(pairs, c.ints(&[-1])?)?;
    let axes = match c.rank(x) {
        Some(rank) => c.ints(&(0..rank as i64).map(|axis| 2 * axis).collect::<Vec<_>>())?,
        None => {
            let count = c.unary("Size", pairs)?;
            c.op("Range").input(c.int(0)?).input(count).input(c.int(2)?).done()?
        }
    };
    let repeated = c.reshape(g, pairs)?;
    c.set(0, c.reshape_like(c.sum(repeated, axes, false)?, x)?)
});

/// All axes of a value, a vector of type int32.
fn all_axes(c: &GradientContext<'_>, x: GraphValue) -> Made {
    match c.rank(x) {
        Some(rank) => c.ints(&(0..rank as i64).collect::<Vec<_>>()),
        None => c.op("Range").input(c.int(0)?).input(c.unary("Rank", x)?).input(c.int(1)?).done(),
    }
}

// Padding.
register_gradient!("Pad", |c| c.set(0, unpadded(c, c.gradient(0)?)?));
register_gradient!("PadV2", |c| {
    let g = c.gradient(0)?;
    let inside = unpadded(c, g)?;
    c.set(0, inside)?;
    if !c.wants(2) {
        return Ok(());
    }
    let total = |x| c.sum(x, all_axes(c, x)?, false);
    c.set(2, c.sub(total(g)?, total(inside)?)?)
});
register_gradient!("MirrorPad", |c| mirrored(c, "MirrorPadGrad"));
register_gradient!("MirrorPadGrad", |c| mirrored(c, "MirrorPad"));

fn unpadded(c: &GradientContext<'_>, g: GraphValue) -> Made {
    let x = c.input(0);
    let paddings = c.input(1);
    let before = c.op("Unpack").input(paddings).attr("num", 2).attr("axis", 1).outputs()?[0];
    let size = shape_as(c, x, c.dtype(paddings))?;
    c.op("Slice").input(g).input(before).input(size).done()
}

fn mirrored(c: &GradientContext<'_>, op: &str) -> Outcome {
    let node = c.op(op).input(c.gradient(0)?).input(c.input(1));
    c.set(0, node.copy(&["mode"]).done()?)
}
