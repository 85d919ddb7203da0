//! Division, powers, and special functions of two numbers.

use super::broadcast;
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::{GradientRule, Refusal, Symmetry};

register_op!(
    "Div",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}"
    ],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Divisors,
    summary = "x / y, broadcast; quotients of integers are truncated.",
);

register_op!(
    "FloorDiv",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}"
    ],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Divisors,
    gradient = GradientRule::None,
    summary = "floor(x / y), broadcast.",
);

register_op!(
    "TruncateDiv",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}"
    ],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Divisors,
    gradient = GradientRule::None,
    summary = "x / y without the fraction, broadcast.",
);

register_op!(
    "FloorMod",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[
        "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}"
    ],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Divisors,
    summary = "The remainder of floor(x / y), which has the sign of y, broadcast.",
);

register_op!(
    "Mod",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {int32, int64, half, half, bfloat16, float, double}"],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Divisors,
    summary = "The remainder of the truncated quotient, which has the sign of x, broadcast.",
);

register_op!(
    "TruncateMod",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {int32, int64, bfloat16, half, float, double}"],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Divisors,
    summary = "The remainder of the truncated quotient, which has the sign of x, broadcast.",
);

register_op!(
    "Pow",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs =
        &["T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}"],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Integers,
    summary = "x to the power of y, broadcast.",
);

register_op!(
    "SquaredDifference",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"],
    commutative = true,
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Values,
    summary = "(x - y)^2, broadcast; of complex numbers the squared modulus.",
);

register_op!(
    "Atan2",
    inputs = &["y: T", "x: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    summary = "The angle of the point (x, y), broadcast.",
);

register_op!(
    "Xdivy",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {half, bfloat16, float, double, complex64, complex128}"],
    shape = broadcast,
    summary = "x / y, and 0 where x is 0, broadcast.",
);

register_op!(
    "Xlogy",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {half, bfloat16, float, double, complex64, complex128}"],
    shape = broadcast,
    summary = "x * log(y), and 0 where x is 0, broadcast.",
);

register_op!(
    "Xlog1py",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {half, bfloat16, float, double, complex64, complex128}"],
    shape = broadcast,
    summary = "x * log(1 + y), and 0 where x is 0, broadcast.",
);

register_op!(
    "MulNoNan",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    summary = "x * y, and 0 where y is 0, broadcast.",
);

register_op!(
    "DivNoNan",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {half, float, bfloat16, double, complex64, complex128}"],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    summary = "x / y, and 0 where y is 0, broadcast.",
);

register_op!(
    "NextAfter",
    inputs = &["x1: T", "x2: T"],
    outputs = &["output: T"],
    attrs = &["T: {double, float} = DT_FLOAT"],
    shape = broadcast,
    summary = "The number next to x1 in the direction of x2, broadcast.",
);

register_op!(
    "Igamma",
    inputs = &["a: T", "x: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = broadcast,
    summary = "The lower regularised incomplete gamma function P(a, x), broadcast.",
);

register_op!(
    "Igammac",
    inputs = &["a: T", "x: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = broadcast,
    summary = "The upper regularised incomplete gamma function Q(a, x), broadcast.",
);

register_op!(
    "IgammaGradA",
    inputs = &["a: T", "x: T"],
    outputs = &["z: T"],
    attrs = &["T: {float, double}"],
    cases = &["positive; a: [m, n] uniform(0.1, 9); x: [n] uniform(0.1, 9)"],
    shape = broadcast,
    summary = "The derivative of Igamma by a, broadcast.",
);

register_op!(
    "Betainc",
    inputs = &["a: T", "b: T", "x: T"],
    outputs = &["z: T"],
    attrs = &["T: {float, double}"],
    cases = &["alike; a: [n] uniform(0.1, 9); b: [n] uniform(0.1, 9); x: [n] uniform(0, 1)"],
    shape = alike_or_scalars,
    summary = "The regularised incomplete beta function I_x(a, b); an input may be a scalar.",
);

register_op!(
    "Zeta",
    inputs = &["x: T", "q: T"],
    outputs = &["z: T"],
    attrs = &["T: {float, double}"],
    shape = broadcast,
    summary = "The Hurwitz zeta function of x and q, broadcast.",
);

register_op!(
    "Polygamma",
    inputs = &["a: T", "x: T"],
    outputs = &["z: T"],
    attrs = &["T: {float, double}"],
    shape = broadcast,
    summary = "The derivative of order a of the digamma function at x, broadcast.",
);

/// The shape that all inputs have but for scalars.
fn alike_or_scalars(c: &ShapeContext<'_>) -> ShapeResult {
    let mut shape = c.scalar();
    for input in 0..c.input_count() {
        match c.rank(c.input(input)) {
            None => return c.set_output(0, c.unknown()),
            Some(0) => {}
            Some(_) if c.rank(shape) == Some(0) => shape = c.input(input),
            Some(_) => shape = c.merge(shape, c.input(input))?,
        }
    }
    c.set_output(0, shape)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn two_shapes_broadcast() {
        for op in [
            "Div",
            "FloorDiv",
            "TruncateDiv",
            "FloorMod",
            "Mod",
            "TruncateMod",
            "Pow",
            "SquaredDifference",
            "Atan2",
            "Xdivy",
            "Xlogy",
            "Xlog1py",
            "MulNoNan",
            "DivNoNan",
            "NextAfter",
            "Igamma",
            "Igammac",
            "IgammaGradA",
            "RandomGammaGrad",
            "Zeta",
            "Polygamma",
        ] {
            let shapes: [(&[&str], &str); 3] = [
                (&["[2,3]", "[3]"], "[2,3]"),
                (&["[n,1]", "[1,m]"], "[n,m]"),
                (&["?", "[4]"], "?"),
            ];
            check(op, &[], &shapes);
        }
    }
}
