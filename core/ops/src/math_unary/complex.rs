//! Parts of complex numbers.

use crate::{
    math_binary::broadcast,
    shape::{passed_on, unchanged},
};
use tenon_author::register_op;
use tenon_framework::op::Refusal;

register_op!(
    "Real",
    inputs = &["input: T"],
    outputs = &["output: Tout"],
    attrs = &["T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The real part of each element.",
);

register_op!(
    "Imag",
    inputs = &["input: T"],
    outputs = &["output: Tout"],
    attrs = &["T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The imaginary part of each element.",
);

register_op!(
    "Conj",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &["T: {complex64, complex128, variant} = DT_COMPLEX64"],
    shape = passed_on,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The complex conjugate of each element.",
);

register_op!(
    "ComplexAbs",
    inputs = &["x: T"],
    outputs = &["y: Tout"],
    attrs = &["T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT"],
    shape = unchanged,
    summary = "The modulus of each element.",
);

register_op!(
    "Angle",
    inputs = &["input: T"],
    outputs = &["output: Tout"],
    attrs = &["T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT"],
    shape = unchanged,
    summary = "The argument of each element, in radians.",
);

register_op!(
    "Complex",
    inputs = &["real: T", "imag: T"],
    outputs = &["out: Tout"],
    attrs = &["T: {float, double} = DT_FLOAT", "Tout: {complex64, complex128} = DT_COMPLEX64"],
    shape = broadcast,
    elementwise = true,
    refuses = Refusal::Shapes,
    summary = "Complex numbers of real and imaginary parts, broadcast.",
);

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn the_shape_stays() {
        for op in ["Real", "Imag", "Conj", "ComplexAbs", "Angle"] {
            let shapes: [(&[&str], &str); 3] =
                [(&["[]"], "[]"), (&["[n,3]"], "[n,3]"), (&["?"], "?")];
            check(op, &[], &shapes);
        }
        check("Complex", &[], &[(&["[2,1]", "[3]"], "[2,3]"), (&["?", "[]"], "?")]);
    }
}
