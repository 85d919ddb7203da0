//! Bitwise and logical functions.

use super::broadcast;
use tenon_author::register_op;
use tenon_framework::op::{GradientRule, Refusal, Symmetry};

register_op!(
    "BitwiseAnd",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"],
    commutative = true,
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Bits,
    gradient = GradientRule::None,
    summary = "The bits set in both x and y, broadcast.",
);

register_op!(
    "BitwiseOr",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"],
    commutative = true,
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Bits,
    gradient = GradientRule::None,
    summary = "The bits set in x or y, broadcast.",
);

register_op!(
    "BitwiseXor",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"],
    commutative = true,
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Bits,
    gradient = GradientRule::None,
    summary = "The bits set in one of x and y, broadcast.",
);

register_op!(
    "LeftShift",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    gradient = GradientRule::None,
    summary = "x shifted left by y bits, at most all but one, broadcast.",
);

register_op!(
    "RightShift",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &["T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    gradient = GradientRule::None,
    summary = "x shifted right by y bits, at most all but one, broadcast; the sign is kept.",
);

register_op!(
    "LogicalAnd",
    inputs = &["x: bool", "y: bool"],
    outputs = &["z: bool"],
    attrs = &[],
    commutative = true,
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Bits,
    gradient = GradientRule::None,
    summary = "x and y, broadcast.",
);

register_op!(
    "LogicalOr",
    inputs = &["x: bool", "y: bool"],
    outputs = &["z: bool"],
    attrs = &[],
    commutative = true,
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Bits,
    gradient = GradientRule::None,
    summary = "x or y, broadcast.",
);

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn two_shapes_broadcast() {
        for op in [
            "BitwiseAnd",
            "BitwiseOr",
            "BitwiseXor",
            "LeftShift",
            "RightShift",
            "LogicalAnd",
            "LogicalOr",
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
