//! Gradients of random numbers by the parameters of their distribution.
//!
//! Source: M. Figurnov and others, "Implicit reparameterization gradients" (2018).

use super::Outcome;
use std::f64::consts::FRAC_1_SQRT_2;
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::DType;

register_gradient!("RandomGamma", |c| {
    let (alpha, samples) = (c.input(1), c.output(0));
    let shape = c.cast(c.input(0), DType::INT32)?;
    // The samples' own dimensions come before those of alpha, which broadcasts with them.
    let count = match c.known_dims(shape).as_deref() {
        Some(&[count]) => c.number(DType::INT32, count as f64)?,
        _ => c.unary("Size", shape)?,
    };
    let slopes = c.binary("RandomGammaGrad", alpha, samples)?;
    let axes = c.op("Range").input(c.int(0)?).input(count).input(c.int(1)?).done()?;
    c.set(1, c.sum(c.mul(c.gradient(0)?, slopes)?, axes, false)?)
});

register_gradient!("StatelessRandomGammaV2", |c| by_alpha(c, 2));
register_gradient!("StatelessRandomGammaV3", |c| by_alpha(c, 4));

/// Sets the gradient by alpha, an input whose shape ends that of the samples.
fn by_alpha(c: &GradientContext<'_>, input: usize) -> Outcome {
    let (alpha, samples) = (c.input(input), c.output(0));
    let slopes = c.binary("RandomGammaGrad", alpha, samples)?;
    let count = c.sub(c.rank_of(samples)?, c.rank_of(alpha)?)?;
    let axes = c.op("Range").input(c.int(0)?).input(count).input(c.int(1)?).done()?;
    c.set(input, c.sum(c.mul(c.gradient(0)?, slopes)?, axes, false)?)
}

// A bound moves a sample by the share of the distribution on the other side of it, times the ratio of the densities.
register_gradient!("StatelessParameterizedTruncatedNormal", |c| {
    let (g, sample) = (c.gradient(0)?, c.output(0));
    let standard = |x| c.div(c.sub(x, c.input(2))?, c.input(3));
    let [s, low, high] = [standard(sample)?, standard(c.input(4))?, standard(c.input(5))?];
    let below = |x| c.scale(c.unary("Erfc", c.scale(x, -FRAC_1_SQRT_2)?)?, 0.5);
    let first = below(low)?;
    let share = c.div(c.sub(below(s)?, first)?, c.sub(below(high)?, first)?)?;
    // Its logarithms are finite.
    let (least, epsilon) = match c.dtype(share) {
        DType::DOUBLE => (f64::MIN_POSITIVE, f64::EPSILON),
        DType::FLOAT => (f32::MIN_POSITIVE.into(), f32::EPSILON.into()),
        _ => (2f64.powi(-14), 2f64.powi(-10)),
    };
    let node = c.op("ClipByValue").input(share).input(c.scalar(share, least)?);
    let share = node.input(c.scalar(share, 1.0 - epsilon)?).done()?;
    let slope = |bound, logarithm| {
        let squares = c.sub(c.unary("Square", s)?, c.unary("Square", bound)?)?;
        c.unary("Exp", c.add(c.scale(squares, 0.5)?, logarithm)?)
    };
    let by_low = slope(low, c.unary("Log1p", c.neg(share)?)?)?;
    let by_high = slope(high, c.unary("Log", share)?)?;
    c.set(2, c.reduce_to(g, c.input(2), sample)?)?;
    for (input, slope) in [(3, s), (4, by_low), (5, by_high)] {
        c.set(input, c.reduce_to(c.mul(g, slope)?, c.input(input), sample)?)?;
    }
    Ok(())
});
