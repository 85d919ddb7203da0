//! Rounding, predicates, and bit functions.

use crate::shape::unchanged;
use tenon_author::register_op;
use tenon_framework::op::{GradientRule, Refusal};

register_op!(
    "Floor",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The largest integer that is not above each element.",
);

register_op!(
    "Ceil",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The smallest integer that is not below each element.",
);

register_op!(
    "Round",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs =
        &["T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The nearest whole number, with ties to even.",
);

register_op!(
    "Rint",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The nearest whole number, with ties to even.",
);

register_op!(
    "IsNan",
    inputs = &["x: T"],
    outputs = &["y: bool"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "Whether each element is NaN.",
);

register_op!(
    "IsInf",
    inputs = &["x: T"],
    outputs = &["y: bool"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "Whether each element is infinite.",
);

register_op!(
    "IsFinite",
    inputs = &["x: T"],
    outputs = &["y: bool"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "Whether each element is neither NaN nor infinite.",
);

register_op!(
    "LogicalNot",
    inputs = &["x: bool"],
    outputs = &["y: bool"],
    attrs = &[],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The negation of each element.",
);

register_op!(
    "Invert",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "Every bit of each element flipped.",
);

register_op!(
    "PopulationCount",
    inputs = &["x: T"],
    outputs = &["y: uint8"],
    attrs = &["T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"],
    shape = unchanged,
    gradient = GradientRule::None,
    summary = "How many bits of each element are set.",
);

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn the_shape_stays() {
        for op in [
            "Floor",
            "Ceil",
            "Round",
            "Rint",
            "IsNan",
            "IsInf",
            "IsFinite",
            "LogicalNot",
            "Invert",
            "PopulationCount",
        ] {
            let shapes: [(&[&str], &str); 3] =
                [(&["[]"], "[]"), (&["[n,3]"], "[n,3]"), (&["?"], "?")];
            check(op, &[], &shapes);
        }
    }
}
