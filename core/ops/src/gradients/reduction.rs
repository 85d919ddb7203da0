//! Gradients of reductions over axes, of sums and products along an axis, and of selections of the largest.

use super::{Made, Outcome};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{DType, KernelError, abi::GraphValue};

register_gradient!("Sum", |c| c.set(0, spread(c, c.gradient(0)?)?));
register_gradient!("Mean", |c| {
    let g = spread(c, c.gradient(0)?)?;
    c.set(0, c.div(g, group_size(c, c.dtype(g))?)?)
});
register_gradient!("Max", extreme);
register_gradient!("Min", extreme);
register_gradient!("Prod", product);
register_gradient!("EuclideanNorm", |c| {
    let ratio = c.div(kept(c, c.output(0))?, kept(c, c.gradient(0)?)?)?;
    c.set(0, c.div(c.input(0), ratio)?)
});

/// A value of the shape of the output, with the reduced axes as axes of size 1.
fn kept(c: &GradientContext<'_>, value: GraphValue) -> Made {
    if c.attr::<bool>("keep_dims")? {
        return Ok(value);
    }
    let (x, axes) = (c.input(0), c.input(1));
    if let (Some(mut dims), Some(axes)) = (c.known_dims(x), c.constant_ints(axes)) {
        let rank = dims.len() as i64;
        for axis in axes {
            let axis = usize::try_from(if axis < 0 { axis + rank } else { axis });
            // The reduction itself refuses an axis out of range.
            if let Some(dim) = axis.ok().and_then(|axis| dims.get_mut(axis)) {
                *dim = 1;
            }
        }
        return c.reshape(value, c.ints(&dims)?);
    }
    let axes = flat_axes(c)?;
    let ones = c.unary("OnesLike", axes)?;
    let places = c.reshape(axes, c.ints(&[-1, 1])?)?;
    let node = c.op("TensorScatterUpdate").input(c.shape_of(x)?).input(places).input(ones);
    c.reshape(value, node.done()?)
}

/// The reduced axes as a vector of type int32 without negative ones.
fn flat_axes(c: &GradientContext<'_>) -> Made {
    let axes = c.reshape(c.cast(c.input(1), DType::INT32)?, c.ints(&[-1])?)?;
    c.binary("FloorMod", axes, c.rank_of(c.input(0))?)
}

/// A value of the shape of the output, repeated along the reduced axes.
fn spread(c: &GradientContext<'_>, value: GraphValue) -> Made {
    c.binary("BroadcastTo", kept(c, value)?, c.shape_of(c.input(0))?)
}

/// How many elements each element of the output was made of.
fn group_size(c: &GradientContext<'_>, dtype: DType) -> Made {
    let sizes = |x| c.known_dims(x).map(|dims| dims.iter().product::<i64>());
    if let (Some(whole), Some(groups)) = (sizes(c.input(0)), sizes(c.output(0))) {
        return c.number(dtype, (whole / groups.max(1)) as f64);
    }
    let groups = c.binary("Maximum", c.unary("Size", c.output(0))?, c.int(1)?)?;
    c.cast(c.binary("FloorDiv", c.unary("Size", c.input(0))?, groups)?, dtype)
}

/// Divides the gradient equally among the elements that equal the extreme.
fn extreme(c: &GradientContext<'_>) -> Outcome {
    let g = kept(c, c.gradient(0)?)?;
    let equal = c.binary("Equal", kept(c, c.output(0))?, c.input(0))?;
    let chosen = c.cast(equal, c.dtype(g))?;
    let count = c.sum(chosen, c.input(1), true)?;
    c.set(0, c.mul(c.div(chosen, count)?, g)?)
}

/// The product of all other elements, from both sides, so that zeros count.
fn product(c: &GradientContext<'_>) -> Outcome {
    let (x, g) = (c.input(0), spread(c, c.gradient(0)?)?);
    let reduced = flat_axes(c)?;
    let all = c.op("Range").input(c.int(0)?).input(c.rank_of(x)?).input(c.int(1)?).done()?;
    let others = c.op("ListDiff").input(all).input(reduced).done()?;
    let axis = c.int(0)?;
    let order = c.op("ConcatV2").input(reduced).input(others).input(axis).done()?;
    let sizes = |axes| {
        let dims = c.op("GatherV2").input(c.shape_of(x)?).input(axes).input(axis).done()?;
        c.op("Prod").input(dims).input(axis).done()
    };
    let matrix = c.op("Pack").input(sizes(reduced)?).input(sizes(others)?).done()?;
    let turned = c.binary("Transpose", x, order)?;
    let columns = c.reshape(turned, matrix)?;
    let others = |reverse: bool| {
        let node = c.op("Cumprod").input(columns).input(axis).attr("exclusive", true);
        c.conj(node.attr("reverse", reverse).done()?)
    };
    let slopes = c.reshape_like(c.mul(others(false)?, others(true)?)?, turned)?;
    let slopes = c.binary("Transpose", slopes, c.unary("InvertPermutation", order)?)?;
    c.set(0, c.reshape_like(c.mul(g, slopes)?, x)?)
}

// Along an axis.
register_gradient!("Cumsum", |c| c.set(0, back_along(c, "Cumsum", c.gradient(0)?)?));
register_gradient!("Cumprod", |c| {
    let sums = back_along(c, "Cumsum", c.mul(c.output(0), c.gradient(0)?)?)?;
    c.set(0, c.binary("DivNoNan", sums, c.input(0))?)
});
register_gradient!("CumulativeLogsumexp", |c| {
    let g = c.gradient(0)?;
    // Logarithms of the gradient's positive and negative part.
    let part = |g: GraphValue| {
        let zero = c.scalar(g, 0.0)?;
        let log = c.unary("Log", g)?;
        let log = c.select(c.binary("Greater", g, zero)?, log, lowest(c, g)?)?;
        let sums = back_along(c, "CumulativeLogsumexp", c.sub(log, c.output(0))?)?;
        c.unary("Exp", c.add(sums, c.input(0))?)
    };
    c.set(0, c.sub(part(g)?, part(c.neg(g)?)?)?)
});

/// The accumulation `op` of a value in the direction opposite to that of the node.
fn back_along(c: &GradientContext<'_>, op: &str, value: GraphValue) -> Made {
    let reverse = !c.attr::<bool>("reverse")?;
    let node = c.op(op).input(value).input(c.input(1)).copy(&["exclusive"]);
    node.attr("reverse", reverse).done()
}

/// The lowest finite number of the type of a value.
fn lowest(c: &GradientContext<'_>, like: GraphValue) -> Made {
    let lowest = match c.dtype(like) {
        DType::DOUBLE => f64::MIN,
        DType::HALF => -65504.0,
        // The highest exponent, and all bits of the mantissa.
        DType::BFLOAT16 => f64::from(f32::from_bits(0xff7f_0000)),
        _ => f64::from(f32::MIN),
    };
    c.scalar(like, lowest)
}

// The largest.
register_gradient!("TopK", largest);
register_gradient!("TopKV2", largest);
register_gradient!("ApproxTopK", |c| {
    let axis = c.attr::<i64>("reduction_dimension")?;
    let is_last = |rank: usize| axis + 1 == rank as i64;
    if axis != -1 && !c.rank(c.input(0)).is_some_and(is_last) {
        return Err(KernelError::unimplemented(format!(
            "the gradient of ApproxTopK is known along the last dimension, found reduction_dimension {axis}: transpose its input"
        )));
    }
    largest(c)
});
register_gradient!("IsotonicRegression", |c| {
    let (x, width) = (c.input(0), last_dim(c, c.input(0))?);
    // Numbers of parts that no two rows share.
    let rows = c.op("Pack").input(c.int(-1)?).input(width).done()?;
    let size = c.unary("Size", x)?;
    let firsts = c.op("Range").input(c.int(0)?).input(size).input(width).done()?;
    let firsts = c.reshape(firsts, c.ints(&[-1, 1])?)?;
    let parts = c.add(c.reshape(c.output(1), rows)?, firsts)?;
    let parts = c.reshape(parts, c.ints(&[-1])?)?;
    let flat = c.reshape(c.gradient(0)?, c.ints(&[-1])?)?;
    let total = |of| c.op("UnsortedSegmentSum").input(of).input(parts).input(size).done();
    let means = c.binary("DivNoNan", total(flat)?, total(c.unary("OnesLike", flat)?)?)?;
    let each = c.op("GatherV2").input(means).input(parts).input(c.int(0)?).done()?;
    c.set(0, c.cast(c.reshape_like(each, x)?, c.dtype(x))?)
});
register_gradient!("NthElement", |c| {
    let last = c.int(-1)?;
    let wide = |value| c.binary("ExpandDims", value, last);
    let g = wide(c.gradient(0)?)?;
    let chosen = c.cast(c.binary("Equal", wide(c.output(0))?, c.input(0))?, c.dtype(g))?;
    let count = c.sum(chosen, last, true)?;
    c.set(0, c.mul(c.div(chosen, count)?, g)?)
});

/// Puts the gradients where the largest elements were found, by their places among all elements.
fn largest(c: &GradientContext<'_>) -> Outcome {
    let x = c.input(0);
    let indices = c.cast(c.output(1), DType::INT32)?;
    let (picked, width) = (last_dim(c, indices)?, last_dim(c, x)?);
    let rows = c.op("Pack").input(c.int(-1)?).input(picked).done()?;
    let rows = c.reshape(indices, rows)?;
    let size = c.unary("Size", x)?;
    let firsts = c.op("Range").input(c.int(0)?).input(size).input(width).done()?;
    let firsts = c.reshape(firsts, c.ints(&[-1, 1])?)?;
    let places = c.reshape(c.add(rows, firsts)?, c.ints(&[-1, 1])?)?;
    let parts = c.reshape(c.gradient(0)?, c.ints(&[-1])?)?;
    let size = c.reshape(size, c.ints(&[1])?)?;
    let flat = c.op("ScatterNd").input(places).input(parts).input(size).done()?;
    c.set(0, c.reshape(flat, c.shape_of(x)?)?)
}

/// The last dimension of a value, a scalar of type int32.
fn last_dim(c: &GradientContext<'_>, x: GraphValue) -> Made {
    let known = c.dims(x).and_then(|dims| dims.last().copied()).filter(|&dim| dim >= 0);
    if let Some(dim) = known {
        return c.number(DType::INT32, dim as f64);
    }
    let last = c.sub(c.rank_of(x)?, c.int(1)?)?;
    c.op("GatherV2").input(c.shape_of(x)?).input(last).input(c.int(0)?).done()
}
