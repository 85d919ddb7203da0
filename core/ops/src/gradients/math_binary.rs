//! Gradients of functions of two numbers, sums, choices and conversions.

use super::{Made, Outcome};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::abi::GraphValue;

/// The two inputs, conjugated.
fn operands(
    c: &GradientContext<'_>,
) -> Result<(GraphValue, GraphValue), tenon_framework::KernelError> {
    Ok((c.conj(c.input(0))?, c.conj(c.input(1))?))
}

// Arithmetic.
register_gradient!("Add", sum);
register_gradient!("AddV2", sum);
register_gradient!("Sub", |c| {
    let g = c.gradient(0)?;
    c.set_broadcast(|| Ok(g), || c.neg(g))
});
register_gradient!("Mul", |c| {
    let (g, x, y) = (c.gradient(0)?, c.input(0), c.input(1));
    c.set_broadcast(|| c.mul(g, c.conj(y)?), || c.mul(c.conj(x)?, g))
});
register_gradient!("Div", |c| quotient(c, "Div"));
register_gradient!("RealDiv", |c| quotient(c, "RealDiv"));
register_gradient!("DivNoNan", |c| quotient(c, "DivNoNan"));
register_gradient!("MulNoNan", |c| {
    let (g, x, y) = (c.gradient(0)?, c.input(0), c.input(1));
    c.set_broadcast(|| c.binary("MulNoNan", g, y), || c.binary("MulNoNan", x, g))
});
register_gradient!("FloorMod", |c| {
    let (g, x, y) = (c.gradient(0)?, c.input(0), c.input(1));
    c.set_broadcast(|| Ok(g), || c.mul(g, c.neg(c.binary("FloorDiv", x, y)?)?))
});
register_gradient!("Pow", power);
register_gradient!("SquaredDifference", |c| {
    let (g, x, y) = (c.gradient(0)?, c.input(0), c.input(1));
    let slope = || c.mul(c.scale(g, 2.0)?, c.sub(x, y)?);
    c.set_broadcast(slope, || c.neg(slope()?))
});

fn sum(c: &GradientContext<'_>) -> Outcome {
    let g = c.gradient(0)?;
    c.set_broadcast(|| Ok(g), || Ok(g))
}

/// Of `x / y` by the division `op`.
fn quotient(c: &GradientContext<'_>, op: &str) -> Outcome {
    let g = c.gradient(0)?;
    let (x, y) = operands(c)?;
    let second = || {
        let ratio = c.binary(op, c.binary(op, c.neg(x)?, y)?, y)?;
        c.mul(g, ratio)
    };
    c.set_broadcast(|| c.binary(op, g, y), second)
}

fn power(c: &GradientContext<'_>) -> Outcome {
    let g = c.gradient(0)?;
    let (x, y) = operands(c)?;
    let base = || {
        let lower = c.binary("Pow", x, c.sub(y, c.scalar(y, 1.0)?)?)?;
        c.mul(c.mul(g, y)?, lower)
    };
    let exponent = || {
        // The logarithm counts as 0 where it does not exist.
        let zero = c.scalar(x, 0.0)?;
        let exists = if c.dtype(x).is_complex() { "NotEqual" } else { "Greater" };
        let mask = c.binary(exists, x, zero)?;
        let safe = c.select(mask, x, c.scalar(x, 1.0)?)?;
        let log = c.select(mask, c.unary("Log", safe)?, c.zeros_like(x)?)?;
        c.mul(c.mul(g, c.conj(c.output(0))?)?, log)
    };
    c.set_broadcast(base, exponent)
}

// Extremes: equal operands give the gradient to the first.
register_gradient!("Maximum", |c| extreme(c, "GreaterEqual"));
register_gradient!("Minimum", |c| extreme(c, "LessEqual"));

fn extreme(c: &GradientContext<'_>, comparison: &str) -> Outcome {
    let g = c.gradient(0)?;
    let first = c.binary(comparison, c.input(0), c.input(1))?;
    let zeros = c.zeros_like(g)?;
    c.set_broadcast(|| c.select(first, g, zeros), || c.select(first, zeros, g))
}

// Functions of two numbers.
register_gradient!("Atan2", |c| {
    let (g, y, x) = (c.gradient(0)?, c.input(0), c.input(1));
    let squares = c.add(c.unary("Square", x)?, c.unary("Square", y)?)?;
    let scaled = c.div(g, squares)?;
    c.set_broadcast(|| c.mul(x, scaled), || c.mul(c.neg(y)?, scaled))
});
register_gradient!("Xdivy", |c| {
    let g = c.gradient(0)?;
    let (x, y) = operands(c)?;
    let second = || c.mul(c.binary("Xdivy", c.neg(x)?, c.unary("Square", y)?)?, g);
    c.set_broadcast(|| c.mul(c.binary("Xdivy", is_not_zero(c, x)?, y)?, g), second)
});
register_gradient!("Xlogy", |c| {
    let g = c.gradient(0)?;
    let (x, y) = operands(c)?;
    let second = || c.mul(c.binary("Xdivy", x, y)?, g);
    c.set_broadcast(|| c.mul(c.binary("Xlogy", is_not_zero(c, x)?, y)?, g), second)
});
register_gradient!("Xlog1py", |c| {
    let g = c.gradient(0)?;
    let (x, y) = operands(c)?;
    let second = || {
        let above = c.add(y, c.scalar(y, 1.0)?)?;
        c.mul(c.binary("Xdivy", x, above)?, g)
    };
    c.set_broadcast(|| c.mul(c.binary("Xlog1py", is_not_zero(c, x)?, y)?, g), second)
});
register_gradient!("NextAfter", |c| {
    let g = c.gradient(0)?;
    c.set_broadcast(|| Ok(g), || c.zeros_like(g))
});

/// 1 where a value is not 0, and 0 elsewhere.
fn is_not_zero(c: &GradientContext<'_>, x: GraphValue) -> Made {
    c.cast(c.binary("NotEqual", x, c.scalar(x, 0.0)?)?, c.dtype(x))
}

// Gamma functions.
register_gradient!("Igamma", |c| {
    let g = c.gradient(0)?;
    c.set_broadcast(|| igamma_shape(c, g), || igamma_argument(c, g))
});
register_gradient!("Igammac", |c| {
    let g = c.neg(c.gradient(0)?)?;
    c.set_broadcast(|| igamma_shape(c, g), || igamma_argument(c, g))
});
register_gradient!("Betainc", |c| {
    // The derivatives by the parameters are no functions of these ops.
    if !c.wants(2) {
        return Ok(());
    }
    let (g, a, b, x) = (c.gradient(0)?, c.input(0), c.input(1), c.input(2));
    let log = |x| c.unary("Lgamma", x);
    let beta = c.sub(c.add(log(a)?, log(b)?)?, log(c.add(a, b)?)?)?;
    let one_less = |x| c.sub(x, c.scalar(x, 1.0)?);
    let rest = c.binary("Xlog1py", one_less(b)?, c.neg(x)?)?;
    let powers = c.add(rest, c.binary("Xlogy", one_less(a)?, x)?)?;
    let slope = c.unary("Exp", c.sub(powers, beta)?)?;
    c.set(2, c.reduce_to(c.mul(slope, g)?, x, a)?)
});
register_gradient!("Zeta", |c| {
    let (g, x, q) = (c.gradient(0)?, c.input(0), c.input(1));
    if !c.wants(1) {
        return Ok(());
    }
    let next = c.binary("Zeta", c.add(x, c.scalar(x, 1.0)?)?, q)?;
    let slope = c.mul(c.neg(x)?, next)?;
    c.set(1, c.reduce_to(c.mul(slope, g)?, q, x)?)
});
register_gradient!("Polygamma", |c| {
    let (g, n, x) = (c.gradient(0)?, c.input(0), c.input(1));
    if !c.wants(1) {
        return Ok(());
    }
    let next = c.binary("Polygamma", c.add(n, c.scalar(n, 1.0)?)?, x)?;
    c.set(1, c.reduce_to(c.mul(next, g)?, x, n)?)
});

fn igamma_shape(c: &GradientContext<'_>, g: GraphValue) -> Made {
    c.mul(c.binary("IgammaGradA", c.input(0), c.input(1))?, g)
}

/// `g * exp(-x + (a - 1) * log(x) - lgamma(a))`.
fn igamma_argument(c: &GradientContext<'_>, g: GraphValue) -> Made {
    let (a, x) = (c.input(0), c.input(1));
    let lower = c.sub(a, c.scalar(a, 1.0)?)?;
    let log = c.add(c.neg(x)?, c.mul(lower, c.unary("Log", x)?)?)?;
    let slope = c.unary("Exp", c.sub(log, c.unary("Lgamma", a)?)?)?;
    c.mul(slope, g)
}

// Sums of many.
register_gradient!("AddN", sum_of_all);
register_gradient!("AccumulateNV2", sum_of_all);

fn sum_of_all(c: &GradientContext<'_>) -> Outcome {
    let g = c.gradient_parts(0);
    (0..c.input_count()).try_for_each(|index| c.set_parts(index, g))
}

// Choices.
register_gradient!("Select", |c| {
    let (g, condition) = (c.gradient(0)?, c.input(0));
    let zeros = c.zeros_like(g)?;
    let chosen = |yes, no| c.op("Select").input(condition).input(yes).input(no).done();
    c.set(1, chosen(g, zeros)?)?;
    c.set(2, chosen(zeros, g)?)
});
register_gradient!("SelectV2", |c| {
    let (g, condition) = (c.gradient(0)?, c.input(0));
    let zero = c.scalar(g, 0.0)?;
    for (index, yes, no) in [(1, g, zero), (2, zero, g)] {
        if c.wants(index) {
            let chosen = c.select(condition, yes, no)?;
            c.set(index, c.reduce_to(chosen, c.input(index), c.output(0))?)?;
        }
    }
    Ok(())
});
register_gradient!("ClipByValue", |c| {
    let (g, x) = (c.gradient(0)?, c.input(0));
    let zeros = c.zeros_like(g)?;
    let below = c.binary("Less", x, c.input(1))?;
    let above = c.binary("Greater", x, c.input(2))?;
    c.set(0, c.select(c.binary("LogicalOr", below, above)?, zeros, g)?)?;
    for (index, outside) in [(1, below), (2, above)] {
        if c.wants(index) {
            let chosen = c.select(outside, g, zeros)?;
            c.set(index, c.reduce_to(chosen, c.input(index), x)?)?;
        }
    }
    Ok(())
});

// Conversions.
register_gradient!("Cast", |c| {
    let (from, to) = (c.dtype(c.input(0)), c.dtype(c.output(0)));
    let differentiable = |dtype: tenon_framework::DType| dtype.is_floating() || dtype.is_complex();
    if !differentiable(from) || !differentiable(to) {
        return Ok(());
    }
    c.set(0, c.cast(c.gradient(0)?, from)?)
});
