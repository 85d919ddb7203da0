//! Gradients of ops that read or replace a part of a tensor.

use super::{Made, Outcome, part_of_shape, shape_as};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{DType, abi::GraphValue, gradient::Gradient};

/// The masks of a strided slice.
const MASKS: &[&str] =
    &["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];

// Slices.
register_gradient!("Slice", |c| {
    let (g, x, begin) = (c.gradient(0)?, c.input(0), c.input(1));
    let dtype = c.dtype(begin);
    let (whole, size) = (shape_as(c, x, dtype)?, shape_as(c, c.output(0), dtype)?);
    let after = c.sub(c.sub(whole, size)?, begin)?;
    let paddings = c.op("Pack").input(begin).input(after).attr("axis", 1).done()?;
    c.set(0, c.binary("Pad", g, paddings)?)
});
register_gradient!("StridedSlice", |c| {
    let shape = shape_as(c, c.input(0), c.dtype(c.input(1)))?;
    let node = c.op("StridedSliceGrad").input(shape).inputs(c.inputs().into_iter().skip(1));
    c.set(0, node.input(c.gradient(0)?).copy(MASKS).done()?)
});
register_gradient!("StridedSliceGrad", |c| {
    let bounds = c.inputs().into_iter().skip(1).take(3);
    c.set(4, c.op("StridedSlice").input(c.gradient(0)?).inputs(bounds).copy(MASKS).done()?)
});
register_gradient!("TensorStridedSliceUpdate", |c| {
    let g = c.gradient(0)?;
    let bounds = || c.inputs().into_iter().skip(1).take(3);
    let value = c.input(4);
    let kept = c.op("TensorStridedSliceUpdate").input(g).inputs(bounds());
    c.set(0, kept.input(c.zeros_like(value)?).copy(MASKS).done()?)?;
    if !c.wants(4) {
        return Ok(());
    }
    // The value may have been repeated to the shape of the slice.
    let part = c.op("StridedSlice").input(g).inputs(bounds()).copy(MASKS).done()?;
    c.set(4, c.reduce_to(part, value, part)?)
});

// Gathers.
register_gradient!("Gather", rows);
register_gradient!("GatherV2", |c| {
    let batch_dims: i64 = c.attr("batch_dims")?;
    if batch_dims == 0 && c.constant_ints(c.input(2)).as_deref() == Some(&[0]) {
        return rows(c);
    }
    gathered(c, batch_dims)
});
register_gradient!("GatherNd", |c| {
    let (g, indices) = (c.gradient(0)?, c.input(1));
    let shape = shape_as(c, c.input(0), c.dtype(indices))?;
    c.set_parts(0, Some(scattered(c, g, indices, shape)?))
});

/// Of rows that were gathered: slices.
fn rows(c: &GradientContext<'_>) -> Outcome {
    let (x, indices) = (c.input(0), c.input(1));
    let shape = c.shape_of(x)?;
    let (values, indices) = flat_rows(c, c.gradient(0)?, indices, shape)?;
    c.set_slices(0, values, indices, shape)
}

/// Gathered rows one after the other, and their numbers; `shape` is that of the whole.
pub(super) fn flat_rows(
    c: &GradientContext<'_>,
    g: GraphValue,
    indices: GraphValue,
    shape: GraphValue,
) -> Result<(GraphValue, GraphValue), tenon_framework::KernelError> {
    if c.rank(indices) == Some(1) {
        return Ok((g, indices));
    }
    let all = c.ints(&[-1])?;
    let flat = c.reshape(indices, all)?;
    let count = c.reshape(c.op("Size").input(indices).done()?, c.ints(&[1])?)?;
    let row = part_of_shape(c, shape, Some(1), None)?;
    let count = c.cast(count, c.dtype(row))?;
    let rows = c.op("ConcatV2").input(count).input(row).input(c.int(0)?).done()?;
    Ok((c.reshape(g, rows)?, flat))
}

/// The gradient of what `GatherNd` reads: slices of single rows, otherwise a tensor.
pub(super) fn scattered(
    c: &GradientContext<'_>,
    g: GraphValue,
    indices: GraphValue,
    shape: GraphValue,
) -> Result<Gradient<GraphValue>, tenon_framework::KernelError> {
    let dims = c.dims(indices);
    if dims.is_some_and(|dims| dims.len() == 2 && dims[1] == 1) {
        let indices = c.reshape(indices, c.ints(&[-1])?)?;
        return Ok(Gradient::Slices { values: g, indices, dense_shape: Some(shape) });
    }
    Ok(Gradient::Dense(c.op("ScatterNd").input(indices).input(g).input(shape).done()?))
}

/// Of a gather along any axis. With B, O and I the sizes before `batch_dims`, from there to the axis and after it, P the
/// size of the axis, and N the number of indices of a batch: the gradient, of shape [B, O, N, I], is moved to
/// [B * N, O, I], summed by index to [B * P, O, I], and moved back.
fn gathered(c: &GradientContext<'_>, batch_dims: i64) -> Outcome {
    let (g, x) = (c.gradient(0)?, c.input(0));
    let shape = c.shape_of(x)?;
    let indices = c.cast(c.input(1), DType::INT32)?;
    let batch_dims = if batch_dims >= 0 {
        c.int(batch_dims as i32)?
    } else {
        c.add(c.rank_of(indices)?, c.int(batch_dims as i32)?)?
    };
    let axis = c.binary("FloorMod", c.cast(c.input(2), DType::INT32)?, c.rank_of(x)?)?;
    let (one, zero) = (c.int(1)?, c.int(0)?);
    let product = |from: GraphValue, to: GraphValue| -> Made {
        let vector = c.ints(&[1])?;
        let (begin, end) = (c.reshape(from, vector)?, c.reshape(to, vector)?);
        let strides = c.ints(&[1])?;
        let part =
            c.op("StridedSlice").input(shape).input(begin).input(end).input(strides).done()?;
        c.op("Prod").input(part).input(zero).done()
    };
    let after = c.add(axis, one)?;
    let batches = product(zero, batch_dims)?;
    let outer = product(batch_dims, axis)?;
    let size = product(axis, after)?;
    let inner = product(after, c.rank_of(x)?)?;
    let pack = |parts: &[GraphValue]| c.op("Pack").inputs(parts.iter().copied()).done();
    let all = c.int(-1)?;
    let indices = c.reshape(indices, pack(&[batches, all])?)?;
    let numbers = c.op("Range").input(zero).input(batches).input(one).done()?;
    let first = c.mul(c.reshape(numbers, c.ints(&[-1, 1])?)?, size)?;
    let ids = c.reshape(c.add(indices, first)?, c.ints(&[-1])?)?;
    // The number of indices of a batch may be 0, and then -1 could stand for any size.
    let total = c.unary("Size", indices)?;
    let count = c.binary("FloorDiv", total, c.binary("Maximum", batches, one)?)?;
    let swap = c.ints(&[0, 2, 1, 3])?;
    let whole = c.reshape(g, pack(&[batches, outer, count, inner])?)?;
    let rows = c.binary("Transpose", whole, swap)?;
    let rows = c.reshape(rows, pack(&[total, outer, inner])?)?;
    let segments = c.mul(batches, size)?;
    let summed = c.op("UnsortedSegmentSum").input(rows).input(ids).input(segments).done()?;
    let summed = c.reshape(summed, pack(&[batches, size, outer, inner])?)?;
    c.set(0, c.reshape(c.binary("Transpose", summed, swap)?, shape)?)
}

// Scatters.
register_gradient!("ScatterNd", |c| c.set(1, c.binary("GatherNd", c.gradient(0)?, c.input(0))?));
register_gradient!("TensorScatterUpdate", |c| {
    let (g, indices) = (c.gradient(0)?, c.input(1));
    let zeros = c.zeros_like(c.input(2))?;
    c.set(0, c.op("TensorScatterUpdate").input(g).input(indices).input(zeros).done()?)?;
    c.set(2, c.binary("GatherNd", g, indices)?)
});
register_gradient!("TensorScatterAdd", added);
register_gradient!("ScatterNdNonAliasingAdd", added);
register_gradient!("TensorScatterSub", |c| {
    let g = c.gradient(0)?;
    c.set(0, g)?;
    c.set(2, c.neg(c.binary("GatherNd", g, c.input(1))?)?)
});
register_gradient!("TensorScatterMax", scattered_extreme);
register_gradient!("TensorScatterMin", scattered_extreme);

fn added(c: &GradientContext<'_>) -> Outcome {
    let g = c.gradient(0)?;
    c.set(0, g)?;
    c.set(2, c.binary("GatherNd", g, c.input(1))?)
}

/// The gradient is divided equally among all values that gave the extreme.
fn scattered_extreme(c: &GradientContext<'_>) -> Outcome {
    let (g, x, indices, updates) = (c.gradient(0)?, c.input(0), c.input(1), c.input(2));
    let (y, dtype) = (c.output(0), c.dtype(c.input(0)));
    let own = c.cast(c.binary("Equal", x, y)?, dtype)?;
    let at_updates = c.binary("GatherNd", y, indices)?;
    let theirs = c.cast(c.binary("Equal", updates, at_updates)?, dtype)?;
    let shape = shape_as(c, x, c.dtype(indices))?;
    let counted = c.op("ScatterNd").input(indices).input(theirs).input(shape).done()?;
    let share = c.div(g, c.add(own, counted)?)?;
    c.set(0, c.mul(share, own)?)?;
    c.set(2, c.mul(c.binary("GatherNd", share, indices)?, theirs)?)
}

// Slices that are distributed and joined: each gradient is the other op.
register_gradient!("DynamicPartition", |c| {
    let partitions = c.input(1);
    let count = c.unary("Size", partitions)?;
    let numbers = c.op("Range").input(c.int(0)?).input(count).input(c.int(1)?).done()?;
    let numbers = c.reshape_like(numbers, partitions)?;
    let places = c.op("DynamicPartition").input(numbers).input(partitions);
    let places = places.copy(&["num_partitions"]).outputs()?;
    let gradients = (0..c.output_count()).map(|output| c.gradient(output));
    let gradients = gradients.collect::<Result<Vec<_>, _>>()?;
    let joined = c.op("ParallelDynamicStitch").inputs(places).inputs(gradients).done()?;
    c.set(0, c.reshape_like(joined, c.input(0))?)
});
register_gradient!("DynamicStitch", stitched);
register_gradient!("ParallelDynamicStitch", stitched);

/// Each index reads its slice of the gradient, also one whose own slice another one replaced, as in TensorFlow.
fn stitched(c: &GradientContext<'_>) -> Outcome {
    let (g, count) = (c.gradient(0)?, c.input_count() / 2);
    for at in 0..count {
        if c.wants(count + at) {
            let rows = c.op("GatherV2").input(g).input(c.input(at)).input(c.int(0)?).done()?;
            c.set(count + at, rows)?;
        }
    }
    Ok(())
}

// Patches: each element of a patch is a pixel, whose number an image of numbers tells.
register_gradient!("ExtractImagePatches", |c| patches(
    c,
    2,
    &["ksizes", "strides", "rates", "padding"]
));
register_gradient!("ExtractVolumePatches", |c| patches(c, 3, &["ksizes", "strides", "padding"]));

/// The gradient of patches over so many dimensions of space.
fn patches(c: &GradientContext<'_>, space: usize, attrs: &[&str]) -> Outcome {
    let (g, x) = (c.gradient(0)?, c.input(0));
    let shape = c.shape_of(x)?;
    let dim = |index: usize| -> Made {
        let index = index as i64;
        c.reshape(part_of_shape(c, shape, Some(index), Some(index + 1))?, c.ints(&[])?)
    };
    let (batch, depth, one, all) = (dim(0)?, dim(space + 1)?, c.int(1)?, c.int(-1)?);
    let sizes = (1..=space).map(dim).collect::<Result<Vec<_>, _>>()?;
    let pixels = sizes[1..].iter().try_fold(sizes[0], |pixels, &size| c.mul(pixels, size))?;
    let pack = |parts: &[GraphValue]| c.op("Pack").inputs(parts.iter().copied()).done();
    let within = |first, last| pack(&[&[first][..], &sizes, &[last]].concat());
    let numbers = c.op("Range").input(one).input(c.add(pixels, one)?).input(one).done()?;
    let image = c.reshape(numbers, within(one, one)?)?;
    let patches = c.op(&c.node_op()).input(image).copy(attrs).done()?;
    // Padding has number 0, which becomes -1 and so belongs to no segment.
    let ids = c.sub(c.reshape(patches, c.ints(&[-1])?)?, one)?;
    let values = c.reshape(g, pack(&[batch, c.unary("Size", ids)?, depth])?)?;
    let values = c.binary("Transpose", values, c.ints(&[1, 0, 2])?)?;
    let summed = c.op("UnsortedSegmentSum").input(values).input(ids).input(pixels).done()?;
    let summed = c.binary("Transpose", summed, c.ints(&[1, 0, 2])?)?;
    c.set(0, c.reshape_like(c.reshape(summed, within(batch, all)?)?, x)?)
}
