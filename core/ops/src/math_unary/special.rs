//! Special functions.

use crate::shape::unchanged;
use tenon_author::register_op;
use tenon_framework::op::Refusal;

register_op!(
    "Erf",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The error function of each element.",
);

register_op!(
    "Erfc",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "1 - erf(x) of each element, without cancellation.",
);

register_op!(
    "Erfinv",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    summary = "The inverse of the error function.",
);

register_op!(
    "Ndtri",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    summary = "The quantile of the standard normal distribution.",
);

register_op!(
    "Lgamma",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The logarithm of the absolute value of the gamma function.",
);

register_op!(
    "Digamma",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {bfloat16, half, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The derivative of the logarithm of the gamma function.",
);

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn the_shape_stays() {
        for op in ["Erf", "Erfc", "Erfinv", "Ndtri", "Lgamma", "Digamma"] {
            let shapes: [(&[&str], &str); 3] =
                [(&["[]"], "[]"), (&["[n,3]"], "[n,3]"), (&["?"], "?")];
            check(op, &[], &shapes);
        }
    }
}
