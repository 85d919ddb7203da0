//! Comparisons.

use super::broadcast;
use crate::shape::{broadcast_dims, dims_of};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::{GradientRule, Refusal};

register_op!(
    "Equal",
    inputs = &["x: T", "y: T"],
    outputs = &["z: bool"],
    attrs = &["T: type", "incompatible_shape_error: bool = true"],
    commutative = true,
    shape = equal,
    gradient = GradientRule::None,
    summary = "Whether x = y, broadcast.",
);

register_op!(
    "NotEqual",
    inputs = &["x: T", "y: T"],
    outputs = &["z: bool"],
    attrs = &["T: type", "incompatible_shape_error: bool = true"],
    commutative = true,
    shape = equal,
    gradient = GradientRule::None,
    summary = "Whether x and y differ, broadcast.",
);

register_op!(
    "Less",
    inputs = &["x: T", "y: T"],
    outputs = &["z: bool"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
    ],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    gradient = GradientRule::None,
    summary = "Whether x < y, broadcast.",
);

register_op!(
    "LessEqual",
    inputs = &["x: T", "y: T"],
    outputs = &["z: bool"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
    ],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    gradient = GradientRule::None,
    summary = "Whether x <= y, broadcast.",
);

register_op!(
    "Greater",
    inputs = &["x: T", "y: T"],
    outputs = &["z: bool"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
    ],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    gradient = GradientRule::None,
    summary = "Whether x > y, broadcast.",
);

register_op!(
    "GreaterEqual",
    inputs = &["x: T", "y: T"],
    outputs = &["z: bool"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
    ],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    gradient = GradientRule::None,
    summary = "Whether x >= y, broadcast.",
);

register_op!(
    "ApproximateEqual",
    inputs = &["x: T", "y: T"],
    outputs = &["z: bool"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
        "tolerance: float = 9.999999747378752e-06"
    ],
    commutative = true,
    shape = same_shape,
    gradient = GradientRule::None,
    summary = "Whether |x - y| is below a tolerance; the shapes must be equal.",
);

/// Like [`broadcast`]; if the shapes may differ, the output is unknown until they are known.
fn equal(c: &ShapeContext<'_>) -> ShapeResult {
    if c.attr::<bool>("incompatible_shape_error")? {
        return broadcast(c);
    }
    let known = |at: usize| c.dims(c.input(at)).is_some_and(|dims| !dims.contains(&-1));
    if !known(0) || !known(1) {
        return c.set_output(0, c.unknown());
    }
    let shape = broadcast_dims(c, &dims_of(c, c.input(0)), &dims_of(c, c.input(1)));
    // The shapes are certain to differ, so the output is one truth value.
    c.set_output(0, shape.unwrap_or_else(|_| c.scalar()))
}

fn same_shape(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.merge(c.input(0), c.input(1))?)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn comparisons_broadcast() {
        for op in ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"] {
            check(op, &[], &[(&["[2,3]", "[3]"], "[2,3]"), (&["[n,1]", "[1,m]"], "[n,m]")]);
        }
    }

    #[test]
    fn shapes_that_may_differ_leave_the_output_open() {
        let attrs = [("incompatible_shape_error", AttrValue::Bool(false))];
        let shapes: [(&[&str], &str); 4] = [
            (&["[2,3]", "[3]"], "[2,3]"),
            (&["[2,3]", "[4]"], "[]"),
            (&["[n,3]", "[3]"], "?"),
            (&["?", "[3]"], "?"),
        ];
        for op in ["Equal", "NotEqual"] {
            check(op, &attrs, &shapes);
        }
    }

    #[test]
    fn approximate_equality_wants_one_shape() {
        let differ = "! shapes [2] and [1] must be equal: dimension 0: expected 2, found 1: x is [2], y is [1]";
        check("ApproximateEqual", &[], &[(&["[n]", "[4]"], "[4]"), (&["[2]", "[1]"], differ)]);
    }
}
