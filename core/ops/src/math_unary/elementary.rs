//! Elementary functions that all kinds of models use.

use crate::shape::unchanged;
use tenon_author::register_op;
use tenon_framework::op::Refusal;

const FLOATS: &str = "T: {bfloat16, half, float, double, complex64, complex128}";

register_op!(
    "Neg",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs =
        &["T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The negative of each element.",
);

register_op!(
    "Square",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &[
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}"
    ],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The square of each element.",
);

register_op!(
    "Sqrt",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &[FLOATS],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The square root of each element.",
);

register_op!(
    "Rsqrt",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &[FLOATS],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The reciprocal of the square root of each element.",
);

register_op!(
    "Exp",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &[FLOATS],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The exponential of each element.",
);

register_op!(
    "Log",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &[FLOATS],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The natural logarithm of each element.",
);

register_op!(
    "Tanh",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &[FLOATS],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The hyperbolic tangent of each element.",
);

register_op!(
    "Sigmoid",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &[FLOATS],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "1 / (1 + exp(-x)) of each element.",
);

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn the_shape_stays() {
        for op in ["Neg", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Sigmoid"] {
            check(
                op,
                &[],
                &[
                    (&["[]"], "[]"),
                    (&["[2,0]"], "[2,0]"),
                    (&["[n,3]"], "[n,3]"),
                    (&["?"], "?"),
                    (&["[2]", "[2]"], &format!("! op {op}: expected 1 inputs, found 2")),
                ],
            );
        }
    }
}
