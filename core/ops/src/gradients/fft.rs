//! Gradients of Fourier transforms.
//!
//! The adjoint of a transform is its inverse times the number of elements. A transform of real numbers gives half of the
//! coefficients; the others are conjugates of these, so that the gradients of all but the first, and of an even
//! length the middle one, count twice.

use super::{Made, Outcome};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{DType, KernelError, abi::GraphValue};

register_gradient!("FFT", |c| scaled(c, "IFFT", 1, true));
register_gradient!("FFT2D", |c| scaled(c, "IFFT2D", 2, true));
register_gradient!("FFT3D", |c| scaled(c, "IFFT3D", 3, true));
register_gradient!("IFFT", |c| scaled(c, "FFT", 1, false));
register_gradient!("IFFT2D", |c| scaled(c, "FFT2D", 2, false));
register_gradient!("IFFT3D", |c| scaled(c, "FFT3D", 3, false));

/// The other transform of the gradient, times the number of elements, or divided by it.
fn scaled(c: &GradientContext<'_>, op: &str, rank: usize, multiplies: bool) -> Outcome {
    let (g, size) = (c.gradient(0)?, size(c, c.output(0), rank)?);
    let transformed = c.unary(op, g)?;
    c.set(0, if multiplies { c.mul(transformed, size)? } else { c.div(transformed, size)? })
}

/// The number of elements in the last dimensions of a value, in the value's type.
fn size(c: &GradientContext<'_>, x: GraphValue, rank: usize) -> Made {
    let dims = c.dims(x).filter(|dims| dims.len() >= rank);
    if let Some(last) = dims.as_ref().map(|dims| &dims[dims.len() - rank..])
        && last.iter().all(|&dim| dim >= 0)
    {
        return c.scalar(x, last.iter().map(|&dim| dim as f64).product());
    }
    let last = super::part_of_shape(c, c.shape_of(x)?, Some(-(rank as i64)), None)?;
    let count = c.op("Prod").input(last).input(c.int(0)?).done()?;
    c.cast(count, c.dtype(x))
}

register_gradient!("RFFT", |c| of_real(c, ["IRFFT", "FFT"], 1));
register_gradient!("RFFT2D", |c| of_real(c, ["IRFFT2D", "FFT2D"], 2));
register_gradient!("IRFFT", |c| to_real(c, "RFFT", 1));
register_gradient!("IRFFT2D", |c| to_real(c, "RFFT2D", 2));

/// The length of the transform along the last dimension, a scalar.
fn last_length(c: &GradientContext<'_>, rank: usize) -> Made {
    let at = c.int(rank as i32 - 1)?;
    c.op("GatherV2").input(c.input(1)).input(at).input(c.int(0)?).done()
}

/// The items `from..to` of the last axis.
fn last_items(c: &GradientContext<'_>, x: GraphValue, from: i64, to: Option<i64>) -> Made {
    let node = c.op("StridedSlice").input(x).input(c.ints(&[0, from])?);
    let node = node.input(c.ints(&[0, to.unwrap_or(0)])?).input(c.ints(&[1, 1])?);
    let node = node.attr("ellipsis_mask", 1i64);
    node.attr("end_mask", if to.is_none() { 2i64 } else { 0 }).done()
}

/// A value cut off, or followed by zeros, so that it has the shape of the input.
fn fit(c: &GradientContext<'_>, value: GraphValue) -> Made {
    let like = c.input(0);
    if c.same_shape(value, like) {
        return Ok(value);
    }
    let shape = c.shape_of(like)?;
    let missing = c.binary("Maximum", c.sub(shape, c.shape_of(value)?)?, c.int(0)?)?;
    let zeros = c.zeros_like(missing)?;
    let pads = c.op("Pack").input(zeros).input(missing).attr("axis", 1i64).done()?;
    let padded = c.binary("Pad", value, pads)?;
    c.op("Slice").input(padded).input(zeros).input(shape).done()
}

fn of_real(c: &GradientContext<'_>, [inverse, transform]: [&str; 2], rank: usize) -> Outcome {
    let (g, length) = (c.gradient(0)?, last_length(c, rank)?);
    let dtype = c.dtype(g);
    let real = c.dtype(c.input(0));
    let node = c.op(inverse).input(g).input(c.input(1)).attr("Treal", real);
    let folded = node.done()?;
    // The first and the middle coefficients have no conjugate beside them: half of what is missing.
    let along = |column: GraphValue| match rank {
        1 => Ok(column),
        _ => c.unary(transform, c.conj(column)?),
    };
    let first = along(last_items(c, g, 0, Some(1))?)?;
    let middle = along(last_items(c, g, -1, None)?)?;
    let odd = c.binary("FloorMod", length, c.int(2)?)?;
    let is_even = c.cast(c.sub(c.int(1)?, odd)?, dtype)?;
    let numbers = c.op("Range").input(c.int(0)?).input(length).input(c.int(1)?).done()?;
    let parity = c.binary("FloorMod", numbers, c.int(2)?)?;
    let signs = c.cast(c.sub(c.int(1)?, c.add(parity, parity)?)?, dtype)?;
    let extra = c.add(first, c.mul(c.mul(is_even, middle)?, signs)?)?;
    let extra = c.op("Real").input(extra).attr("Tout", real).done()?;
    let whole = c.mul(folded, size(c, folded, rank)?)?;
    c.set(0, fit(c, c.scale(c.add(whole, extra)?, 0.5)?)?)
}

fn to_real(c: &GradientContext<'_>, transform: &str, rank: usize) -> Outcome {
    let (g, length) = (c.gradient(0)?, last_length(c, rank)?);
    let complex = c.dtype(c.input(0));
    let node = c.op(transform).input(g).input(c.input(1)).attr("Tcomplex", complex);
    let coefficients = node.done()?;
    let factors = conjugates(c, length)?;
    let factors = c.div(c.cast(factors, c.dtype(g))?, size(c, g, rank)?)?;
    c.set(0, fit(c, c.mul(coefficients, c.cast(factors, complex)?)?)?)
}

/// How many of the coefficients of a transform of this length each of the first half stands for.
fn conjugates(c: &GradientContext<'_>, length: GraphValue) -> Result<GraphValue, KernelError> {
    let two = c.int(2)?;
    let half = c.add(c.binary("FloorDiv", length, two)?, c.int(1)?)?;
    let numbers = c.op("Range").input(c.int(0)?).input(half).input(c.int(1)?).done()?;
    let is_first = c.binary("Equal", numbers, c.int(0)?)?;
    let is_middle = c.binary("Equal", c.add(numbers, numbers)?, length)?;
    let alone = c.binary("LogicalOr", is_first, is_middle)?;
    c.sub(two, c.cast(alone, DType::INT32)?)
}
