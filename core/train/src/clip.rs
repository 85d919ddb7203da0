//! Clipping of gradients. Of slices, the slices are clipped; their norm counts an index twice that is there twice, as
//! TensorFlow's does.

use crate::{
    TrainError,
    nodes::{Scalar, Scope},
    optimizer::{VariableGradient, values, with_values},
};
use tenon_framework::{DType, Tensor};
use tenon_gradient::Gradient;
use tenon_graph::{GraphBuilder, Output};

/// Each element between `min` and `max` (`tf.clip_by_value`).
///
/// # Errors
/// The graph refuses a node.
pub fn by_value(
    b: &mut GraphBuilder<'_>,
    gradient: &Gradient,
    min: impl Into<Scalar>,
    max: impl Into<Scalar>,
) -> Result<Gradient, TrainError> {
    let (x, prefix) = (values(gradient), b.unused_name("clip_by_value"));
    let mut scope = Scope::new(b, &prefix, "");
    let dtype = scope.dtype(x);
    let max = max.into().build(&mut scope, "max", dtype)?;
    let min = min.into().build(&mut scope, "min", dtype)?;
    let below = scope.binary("Minimum", x, max)?;
    let clipped = b.op("Maximum").name(&prefix).input(below).input(min).build()?;
    Ok(with_values(gradient, clipped.into()))
}

/// A gradient that is made shorter where its L2 norm is above `norm` (`tf.clip_by_norm`).
///
/// # Errors
/// The graph refuses a node.
pub fn by_norm(
    b: &mut GraphBuilder<'_>,
    gradient: &Gradient,
    norm: impl Into<Scalar>,
) -> Result<Gradient, TrainError> {
    let (x, prefix) = (values(gradient), b.unused_name("clip_by_norm"));
    let mut scope = Scope::new(b, &prefix, "");
    let dtype = scope.dtype(x);
    let limit = match norm.into() {
        Scalar::Constant(norm) => scope.number("norm", dtype, norm.max(0.0))?,
        norm => {
            let norm = norm.build(&mut scope, "norm", dtype)?;
            let zero = scope.number("zero", dtype, 0.0)?;
            scope.binary("Maximum", norm, zero)?
        }
    };
    let square = scope.binary("Mul", x, x)?;
    let sum = all(&mut scope, "Sum", square)?;
    let length = scope.unary("Sqrt", sum)?;
    let scaled = scope.binary("Mul", x, limit)?;
    let divisor = scope.binary("Maximum", length, limit)?;
    let clipped = b.op("RealDiv").name(&prefix).input(scaled).input(divisor).build()?;
    Ok(with_values(gradient, clipped.into()))
}

/// A gradient that is made shorter where its L2 norm divided by its number of elements is above `norm`
/// (`tf.compat.v1.clip_by_average_norm`).
///
/// # Errors
/// The graph refuses a node.
pub fn by_average_norm(
    b: &mut GraphBuilder<'_>,
    gradient: &Gradient,
    norm: impl Into<Scalar>,
) -> Result<Gradient, TrainError> {
    let (x, prefix) = (values(gradient), b.unused_name("clip_by_average_norm"));
    let mut scope = Scope::new(b, &prefix, "");
    let dtype = scope.dtype(x);
    let limit = norm.into().build(&mut scope, "norm", dtype)?;
    let count = scope.unary("Size", x)?;
    let count = scope.cast(count, dtype)?;
    let square = scope.binary("Mul", x, x)?;
    let sum = all(&mut scope, "Sum", square)?;
    let one_by_length = scope.unary("Rsqrt", sum)?;
    let one = scope.number("one", dtype, 1.0)?;
    let by_limit = scope.binary("RealDiv", one, limit)?;
    let by_norm = scope.binary("Mul", one_by_length, count)?;
    let least = scope.binary("Minimum", by_norm, by_limit)?;
    let scaled = scope.binary("Mul", x, limit)?;
    let clipped = b.op("Mul").name(&prefix).input(scaled).input(least).build()?;
    Ok(with_values(gradient, clipped.into()))
}

/// The L2 norm of all gradients together (`tf.linalg.global_norm`), in the type of the first.
///
/// # Errors
/// There is no gradient, or the graph refuses a node.
pub fn global_norm(
    b: &mut GraphBuilder<'_>,
    gradients: &[VariableGradient],
) -> Result<Output, TrainError> {
    let prefix = b.unused_name("global_norm");
    let mut scope = Scope::new(b, &prefix, "");
    let mut losses = Vec::with_capacity(gradients.len());
    let mut dtype = None;
    for (gradient, _) in gradients {
        let Some(gradient) = gradient else { continue };
        let half = scope.unary("L2Loss", values(gradient))?;
        let dtype = *dtype.get_or_insert_with(|| scope.dtype(half));
        losses.push(scope.cast(half, dtype)?);
    }
    let Some(dtype) = dtype else {
        return Err(TrainError::argument("the global norm", "at least one gradient", "none"));
    };
    let half = scope.node("AddN").inputs(losses).build()?;
    let two = scope.number("two", dtype, 2.0)?;
    let square = scope.binary("Mul", half.into(), two)?;
    Ok(b.op("Sqrt").name(&prefix).input(square).build()?.into())
}

/// Gradients that are made shorter, all by one factor, where their norm together is above `norm`
/// (`tf.clip_by_global_norm`), and that norm. Where it is not finite, all become NaN.
///
/// # Errors
/// As [`global_norm`].
pub fn by_global_norm(
    b: &mut GraphBuilder<'_>,
    gradients: &[VariableGradient],
    norm: impl Into<Scalar>,
) -> Result<(Vec<VariableGradient>, Output), TrainError> {
    let length = global_norm(b, gradients)?;
    let prefix = b.unused_name("clip_by_global_norm");
    let mut scope = Scope::new(b, &prefix, "");
    let dtype = scope.dtype(length);
    let limit = norm.into().build(&mut scope, "norm", dtype)?;
    let one = scope.number("one", dtype, 1.0)?;
    let by_length = scope.binary("RealDiv", one, length)?;
    let by_limit = scope.binary("RealDiv", one, limit)?;
    let least = scope.binary("Minimum", by_length, by_limit)?;
    let scale = scope.binary("Mul", limit, least)?;
    // Zero, or NaN where the norm is not finite.
    let nothing = scope.binary("Sub", length, length)?;
    let scale = scope.binary("AddV2", scale, nothing)?;
    let clip = |(gradient, variable): &VariableGradient| {
        let Some(gradient) = gradient else { return Ok((None, variable.clone())) };
        let x = values(gradient);
        let dtype = scope.dtype(x);
        let scale = scope.cast(scale, dtype)?;
        let clipped = scope.binary("Mul", x, scale)?;
        Ok((Some(with_values(gradient, clipped)), variable.clone()))
    };
    let clipped = gradients.iter().map(clip).collect::<Result<_, TrainError>>()?;
    Ok((clipped, length))
}

/// A reduction over all dimensions.
fn all(scope: &mut Scope<'_, '_>, op: &str, x: Output) -> Result<Output, TrainError> {
    let rank = scope.unary("Rank", x)?;
    let zero = scope.constant("start", Tensor::scalar(0i32)?)?;
    let one = scope.constant("delta", Tensor::scalar(1i32)?)?;
    let axes = scope.node("Range").input(zero).input(rank).input(one);
    let axes = axes.attr("Tidx", DType::INT32).build()?;
    scope.binary(op, x, axes.into())
}
