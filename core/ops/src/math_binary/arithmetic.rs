//! Sums, products, extremes, sums of several tensors, and conversion.

use super::broadcast;
use crate::shape::unchanged;
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::{Refusal, Symmetry, ValueRule};

const ORDERED: &str =
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}";
const PRODUCTS: &str = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}";

register_op!(
    "Add",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[
        "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}"
    ],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Bits,
    summary = "x + y, broadcast; strings are joined.",
);

register_op!(
    "AddV2",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[
        "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, complex128}"
    ],
    shape = broadcast,
    commutative = true,
    aggregate = true,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Bits,
    summary = "x + y, broadcast.",
);

register_op!(
    "Sub",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, uint32, uint64}"
    ],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    summary = "x - y, broadcast.",
);

register_op!(
    "Mul",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[PRODUCTS],
    shape = broadcast,
    commutative = true,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Bits,
    summary = "x * y, broadcast.",
);

register_op!(
    "RealDiv",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[PRODUCTS],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Divisors,
    summary = "x / y for real numbers, broadcast.",
);

register_op!(
    "Maximum",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[ORDERED],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Values,
    summary = "The greater of x and y, broadcast.",
);

register_op!(
    "Minimum",
    inputs = &["x: T", "y: T"],
    outputs = &["z: T"],
    attrs = &[ORDERED],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    symmetry = Symmetry::Values,
    summary = "The lesser of x and y, broadcast.",
);

register_op!(
    "AddN",
    inputs = &["inputs: N * T"],
    outputs = &["sum: T"],
    attrs = &["N: int >= 1", "T: {numbertype, variant}"],
    shape = add_n,
    commutative = true,
    aggregate = true,
    refuses = Refusal::UnequalShapes,
    summary = "The sum of tensors of one shape.",
);

register_op!(
    "Cast",
    inputs = &["x: SrcT"],
    outputs = &["y: DstT"],
    attrs = &["SrcT: type", "DstT: type", "Truncate: bool = false"],
    shape = unchanged,
    elementwise = true,
    value = ValueRule::Cast,
    refuses = Refusal::Nothing,
    summary = "The elements as another type.",
);

fn add_n(c: &ShapeContext<'_>) -> ShapeResult {
    let mut sum = c.input(0);
    for at in 1..c.input_count() {
        sum = c.merge(sum, c.input(at))?;
    }
    c.set_output(0, sum)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn two_shapes_broadcast() {
        let incompatible = "! shapes [2, 3] and [2] do not broadcast: each pair of dimensions must be equal or hold a 1: x is [2,3], y is [2]";
        for op in ["Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum"] {
            check(
                op,
                &[],
                &[
                    (&["[2,3]", "[3]"], "[2,3]"),
                    (&["[]", "[2,0]"], "[2,0]"),
                    (&["[n,1]", "[1,m]"], "[n,m]"),
                    (&["[n,3]", "[n,1]"], "[n,3]"),
                    (&["[n,3]", "[3]"], "[n,3]"),
                    (&["[n]", "[m]"], "[?]"),
                    (&["[n]", "[4]"], "[4]"),
                    (&["?", "[4]"], "?"),
                    (&["[2,3]", "[2]"], incompatible),
                ],
            );
        }
    }

    #[test]
    fn a_sum_of_many_wants_one_shape() {
        check(
            "AddN",
            &[],
            &[
                (&["[2,3]"], "[2,3]"),
                (&["[n,3]", "[2,?]", "?"], "[2,3]"),
                (&["[n]", "[m]", "[n]"], "[n]"),
                (&["?", "?"], "?"),
                (
                    &["[2]", "[?]", "[3]"],
                    "! shapes [2] and [3] must be equal: dimension 0: expected 2, found 3: inputs[0] is [2], inputs[1] is [?], inputs[2] is [3]",
                ),
                (
                    &["[2]", "[2,1]"],
                    "! shapes [2] and [2,1] must be equal: expected rank 1, found 2: inputs[0] is [2], inputs[1] is [2,1]",
                ),
            ],
        );
    }

    #[test]
    fn a_conversion_keeps_the_shape() {
        check(
            "Cast",
            &[],
            &[
                (&["[n,3]"], "[n,3]"),
                (&["?"], "?"),
                (&["[]", "[]"], "! op Cast: expected 1 inputs, found 2"),
            ],
        );
    }
}
