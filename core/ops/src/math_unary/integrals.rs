//! Bessel functions, and integrals that are no elementary functions.

use crate::shape::unchanged;
use tenon_author::register_op;

macro_rules! functions {
    ($($op:literal, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &["x: T"],
            outputs = &["y: T"],
            attrs = &["T: {bfloat16, half, float, double}"],
            cases = &["positive; x: [n] uniform(0.1, 9)"],
            shape = unchanged,
            summary = $summary,
        );
    )*};
}

functions! {
    "BesselI0", "The modified Bessel function of the first kind and order 0, of each element.";
    "BesselI0e", "e^-|x| times the modified Bessel function of the first kind and order 0, of each element.";
    "BesselI1", "The modified Bessel function of the first kind and order 1, of each element.";
    "BesselI1e", "e^-|x| times the modified Bessel function of the first kind and order 1, of each element.";
    "BesselK0", "The modified Bessel function of the second kind and order 0, of each element.";
    "BesselK0e", "e^x times the modified Bessel function of the second kind and order 0, of each element.";
    "BesselK1", "The modified Bessel function of the second kind and order 1, of each element.";
    "BesselK1e", "e^x times the modified Bessel function of the second kind and order 1, of each element.";
    "BesselJ0", "The Bessel function of the first kind and order 0, of each element.";
    "BesselJ1", "The Bessel function of the first kind and order 1, of each element.";
    "BesselY0", "The Bessel function of the second kind and order 0, of each element.";
    "BesselY1", "The Bessel function of the second kind and order 1, of each element.";
    "Dawsn", "Dawson's integral: e^-x^2 times the integral of e^t^2 from 0 to x, of each element.";
    "Expint", "The exponential integral: that of e^t / t up to x, of each element.";
    "FresnelCos", "The integral of cos(pi t^2 / 2) from 0 to x, of each element.";
    "FresnelSin", "The integral of sin(pi t^2 / 2) from 0 to x, of each element.";
    "Spence", "The dilogarithm of 1 - x, of each element.";
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn the_shape_stays() {
        for op in ["BesselI0", "BesselK1e", "BesselY1", "Dawsn", "Spence"] {
            check(op, &[], &[(&["[n,3]"], "[n,3]"), (&["?"], "?")]);
        }
    }
}
