//! Signs, reciprocals, and the rest of the elementary functions.

use crate::shape::unchanged;
use tenon_author::register_op;
use tenon_framework::op::Refusal;

register_op!(
    "Abs",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, int8, int16, int32, int64}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The absolute value of each element; that of the least integer is itself.",
);

register_op!(
    "Sign",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs =
        &["T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "-1, 0 or 1 as each element is below, at or above zero; z / |z| of complex numbers.",
);

register_op!(
    "Reciprocal",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs =
        &["T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "1 / x of each element.",
);

register_op!(
    "Inv",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs =
        &["T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "1 / x of each element; the older name of Reciprocal.",
);

register_op!(
    "Expm1",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "exp(x) - 1 of each element, without cancellation near zero.",
);

register_op!(
    "Log1p",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "log(1 + x) of each element, without cancellation near zero.",
);

register_op!(
    "Sin",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The sine of each element, an angle in radians.",
);

register_op!(
    "Cos",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The cosine of each element, an angle in radians.",
);

register_op!(
    "Tan",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The tangent of each element, an angle in radians.",
);

register_op!(
    "Asin",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The arc sine of each element.",
);

register_op!(
    "Acos",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The arc cosine of each element.",
);

register_op!(
    "Atan",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The arc tangent of each element.",
);

register_op!(
    "Sinh",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The hyperbolic sine of each element.",
);

register_op!(
    "Cosh",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The hyperbolic cosine of each element.",
);

register_op!(
    "Asinh",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The inverse hyperbolic sine of each element.",
);

register_op!(
    "Acosh",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The inverse hyperbolic cosine of each element.",
);

register_op!(
    "Atanh",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The inverse hyperbolic tangent of each element.",
);

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn the_shape_stays() {
        for op in [
            "Abs",
            "Sign",
            "Reciprocal",
            "Inv",
            "Expm1",
            "Log1p",
            "Sin",
            "Cos",
            "Tan",
            "Asin",
            "Acos",
            "Atan",
            "Sinh",
            "Cosh",
            "Asinh",
            "Acosh",
            "Atanh",
        ] {
            let shapes: [(&[&str], &str); 3] =
                [(&["[]"], "[]"), (&["[n,3]"], "[n,3]"), (&["?"], "?")];
            check(op, &[], &shapes);
        }
    }
}
