//! Gradients of functions of one number.

use super::{Made, Outcome, times};
use std::f64::consts::{FRAC_2_SQRT_PI, PI};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::abi::GraphValue;

/// The first input, conjugated.
fn x(c: &GradientContext<'_>) -> Made {
    c.conj(c.input(0))
}

/// The first output, conjugated.
fn y(c: &GradientContext<'_>) -> Made {
    c.conj(c.output(0))
}

/// `a * x * x + b`.
fn square_plus(c: &GradientContext<'_>, x: GraphValue, a: f64, b: f64) -> Made {
    let square = c.unary("Square", x)?;
    let square = if a == 1.0 { square } else { c.scale(square, a)? };
    c.add(square, c.scalar(x, b)?)
}

/// The gradient by an op that takes the output and its gradient, and conjugates the output itself.
fn from_output(c: &GradientContext<'_>, op: &str) -> Outcome {
    c.set(0, c.binary(op, c.output(0), c.gradient(0)?)?)
}

// Parts of complex numbers.
register_gradient!("Real", |c| {
    let g = c.gradient(0)?;
    c.set(0, c.op("Complex").input(g).input(c.zeros_like(g)?).copy_type("Tout", c.input(0)).done()?)
});
register_gradient!("Imag", |c| {
    let g = c.gradient(0)?;
    c.set(0, c.op("Complex").input(c.zeros_like(g)?).input(g).copy_type("Tout", c.input(0)).done()?)
});
register_gradient!("Conj", |c| c.set(0, c.unary("Conj", c.gradient(0)?)?));
register_gradient!("ComplexAbs", |c| {
    let (g, x, y) = (c.gradient(0)?, c.input(0), c.output(0));
    let ratio = c.binary("DivNoNan", complex(c, g)?, complex(c, y)?)?;
    c.set(0, c.mul(ratio, x)?)
});
register_gradient!("Angle", |c| {
    let part = |op: &str| c.op(op).input(c.input(0)).copy_type("Tout", c.output(0)).done();
    let (re, im) = (part("Real")?, part("Imag")?);
    let z = c.op("Complex").input(im).input(re).copy_type("Tout", c.input(0)).done()?;
    let g = complex(c, c.gradient(0)?)?;
    c.set(0, c.mul(c.neg(g)?, c.unary("Reciprocal", z)?)?)
});
register_gradient!("Complex", |c| {
    let g = c.gradient(0)?;
    let part = |op: &str| c.op(op).input(g).copy_type("Tout", c.input(0)).done();
    c.set_broadcast(|| part("Real"), || part("Imag"))
});

/// A real value as a complex one of the type of the first input.
fn complex(c: &GradientContext<'_>, real: GraphValue) -> Made {
    let zeros = c.zeros_like(real)?;
    c.op("Complex").input(real).input(zeros).copy_type("Tout", c.input(0)).done()
}

// Powers and exponentials.
register_gradient!("Neg", |c| c.set(0, c.neg(c.gradient(0)?)?));
register_gradient!("Square", |c| times(c, c.scale(x(c)?, 2.0)?));
register_gradient!("Sqrt", |c| from_output(c, "SqrtGrad"));
register_gradient!("Rsqrt", |c| from_output(c, "RsqrtGrad"));
register_gradient!("Reciprocal", |c| from_output(c, "ReciprocalGrad"));
register_gradient!("Inv", |c| from_output(c, "InvGrad"));
register_gradient!("Exp", |c| times(c, y(c)?));
register_gradient!("Expm1", |c| times(c, c.unary("Exp", x(c)?)?));
register_gradient!("Log", |c| times(c, c.unary("Reciprocal", x(c)?)?));
register_gradient!("Log1p", |c| {
    let x = x(c)?;
    times(c, c.unary("Reciprocal", c.add(c.scalar(x, 1.0)?, x)?)?)
});
register_gradient!("Abs", |c| times(c, c.unary("Sign", c.input(0))?));
register_gradient!("Sign", |c| c.set(0, c.zeros_like(c.input(0))?));

// Sigmoids.
register_gradient!("Sigmoid", |c| c.set(0, c.binary("SigmoidGrad", y(c)?, c.gradient(0)?)?));
register_gradient!("Tanh", |c| c.set(0, c.binary("TanhGrad", y(c)?, c.gradient(0)?)?));

// Trigonometry.
register_gradient!("Sin", |c| times(c, c.unary("Cos", x(c)?)?));
register_gradient!("Cos", |c| {
    let sine = c.unary("Sin", x(c)?)?;
    c.set(0, c.mul(c.neg(c.gradient(0)?)?, sine)?)
});
register_gradient!("Tan", |c| {
    let secant = c.unary("Reciprocal", c.unary("Cos", x(c)?)?)?;
    times(c, c.unary("Square", secant)?)
});
register_gradient!("Asin", |c| times(c, inverse_root(c)?));
register_gradient!("Acos", |c| c.set(0, c.mul(c.neg(c.gradient(0)?)?, inverse_root(c)?)?));
register_gradient!("Atan", |c| {
    times(c, c.unary("Reciprocal", square_plus(c, x(c)?, 1.0, 1.0)?)?)
});
register_gradient!("Sinh", |c| times(c, c.unary("Cosh", x(c)?)?));
register_gradient!("Cosh", |c| times(c, c.unary("Sinh", x(c)?)?));
register_gradient!("Asinh", |c| c.set(0, c.div(c.gradient(0)?, c.unary("Cosh", y(c)?)?)?));
register_gradient!("Acosh", |c| c.set(0, c.div(c.gradient(0)?, c.unary("Sinh", y(c)?)?)?));
register_gradient!("Atanh", |c| {
    times(c, c.unary("Reciprocal", square_plus(c, x(c)?, -1.0, 1.0)?)?)
});

/// `1 / sqrt(1 - x * x)`.
fn inverse_root(c: &GradientContext<'_>) -> Made {
    let root = c.unary("Sqrt", square_plus(c, x(c)?, -1.0, 1.0)?)?;
    c.unary("Reciprocal", root)
}

// Special functions.
register_gradient!("Erf", |c| c.set(0, gauss(c, FRAC_2_SQRT_PI)?));
register_gradient!("Erfc", |c| c.set(0, gauss(c, -FRAC_2_SQRT_PI)?));
register_gradient!("Erfinv", |c| {
    let bell = c.unary("Exp", c.unary("Square", c.output(0))?)?;
    times(c, c.scale(bell, PI.sqrt() / 2.0)?)
});
register_gradient!("Ndtri", |c| {
    let half = c.scale(c.unary("Square", c.output(0))?, 0.5)?;
    times(c, c.scale(c.unary("Exp", half)?, (2.0 * PI).sqrt())?)
});
register_gradient!("Lgamma", |c| times(c, c.unary("Digamma", x(c)?)?));
register_gradient!("Digamma", |c| {
    let x = x(c)?;
    times(c, c.binary("Polygamma", c.scalar(x, 1.0)?, x)?)
});

/// `factor * exp(-x * x)` times the gradient of the output.
fn gauss(c: &GradientContext<'_>, factor: f64) -> Made {
    let bell = c.unary("Exp", c.neg(c.unary("Square", x(c)?)?)?)?;
    c.mul(c.scale(c.gradient(0)?, factor)?, bell)
}

// Bessel functions: the derivative of each is made of both orders.
register_gradient!("BesselI0", |c| times(c, c.unary("BesselI1", c.input(0))?));
register_gradient!("BesselI0e", |c| {
    let signed = c.mul(c.unary("Sign", c.input(0))?, c.output(0))?;
    times(c, c.sub(c.unary("BesselI1e", c.input(0))?, signed)?)
});
register_gradient!("BesselI1", |c| {
    let other = c.unary("BesselI0", c.input(0))?;
    times(c, unless_zero(c, c.sub(other, c.div(c.output(0), c.input(0))?)?)?)
});
register_gradient!("BesselI1e", |c| {
    let (x, y) = (c.input(0), c.output(0));
    let both = c.add(c.unary("Sign", x)?, c.unary("Reciprocal", x)?)?;
    let slope = c.sub(c.unary("BesselI0e", x)?, c.mul(y, both)?)?;
    times(c, unless_zero(c, slope)?)
});
register_gradient!("BesselK0", |c| times(c, c.neg(c.unary("BesselK1", c.input(0))?)?));
register_gradient!("BesselK0e", |c| {
    times(c, c.sub(c.output(0), c.unary("BesselK1e", c.input(0))?)?)
});
register_gradient!("BesselK1", |c| {
    let quotient = c.div(c.output(0), c.input(0))?;
    times(c, c.sub(c.neg(c.unary("BesselK0", c.input(0))?)?, quotient)?)
});
register_gradient!("BesselK1e", |c| {
    let (x, y) = (c.input(0), c.output(0));
    let factor = c.sub(c.scalar(x, 1.0)?, c.unary("Reciprocal", x)?)?;
    times(c, c.sub(c.mul(y, factor)?, c.unary("BesselK0e", x)?)?)
});
register_gradient!("BesselJ0", |c| times(c, c.neg(c.unary("BesselJ1", c.input(0))?)?));
register_gradient!("BesselJ1", |c| {
    let other = c.unary("BesselJ0", c.input(0))?;
    times(c, unless_zero(c, c.sub(other, c.div(c.output(0), c.input(0))?)?)?)
});
register_gradient!("BesselY0", |c| times(c, c.neg(c.unary("BesselY1", c.input(0))?)?));
register_gradient!("BesselY1", |c| {
    let quotient = c.div(c.output(0), c.input(0))?;
    times(c, c.sub(c.unary("BesselY0", c.input(0))?, quotient)?)
});

/// The slope, and a half where the input is 0.
fn unless_zero(c: &GradientContext<'_>, slope: GraphValue) -> Made {
    let x = c.input(0);
    let is_zero = c.binary("Equal", x, c.scalar(x, 0.0)?)?;
    let half = c.add(c.zeros_like(x)?, c.scalar(x, 0.5)?)?;
    c.select(is_zero, half, slope)
}

// Integrals: the derivative is what is integrated.
register_gradient!("Dawsn", |c| {
    let product = c.scale(c.mul(c.input(0), c.output(0))?, 2.0)?;
    times(c, c.sub(c.scalar(c.input(0), 1.0)?, product)?)
});
register_gradient!("Expint", |c| { times(c, c.div(c.unary("Exp", c.input(0))?, c.input(0))?) });
register_gradient!("FresnelCos", |c| times(c, wave(c, "Cos")?));
register_gradient!("FresnelSin", |c| times(c, wave(c, "Sin")?));

fn wave(c: &GradientContext<'_>, op: &str) -> Made {
    c.unary(op, c.scale(c.unary("Square", c.input(0))?, PI / 2.0)?)
}

register_gradient!("Spence", |c| {
    let x = c.input(0);
    let one = c.scalar(x, 1.0)?;
    let slope = c.div(c.unary("Log", x)?, c.sub(one, x)?)?;
    let limit = c.neg(c.unary("OnesLike", x)?)?;
    times(c, c.select(c.binary("Equal", x, one)?, limit, slope)?)
});
