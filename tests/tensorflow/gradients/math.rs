//! Gradients of functions of one and of two numbers.

use super::numeric::{Input, any, bools, check, positive};
use tenon_tests::session::runtime;

#[test]
fn functions_of_one_number() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let small = Input::Uniform(&[2, 3], -0.8, 0.8);
    let above_one = Input::Uniform(&[2, 3], 1.2, 3.0);
    let unit = Input::Uniform(&[2, 3], 0.1, 0.9);
    for op in [
        "Identity", "Neg", "Square", "Exp", "Expm1", "Tanh", "Sigmoid", "Sin", "Cos", "Sinh",
        "Cosh", "Asinh", "Atan", "Erf", "Erfc",
    ] {
        check(&runtime, op, &[any(&[2, 3])]);
    }
    for op in
        ["Sqrt", "Rsqrt", "Reciprocal", "Inv", "Log", "Log1p", "Abs", "Sign", "Lgamma", "Digamma"]
    {
        check(&runtime, op, &[positive(&[2, 3])]);
    }
    for op in ["Asin", "Acos", "Atanh", "Erfinv", "Tan"] {
        check(&runtime, op, std::slice::from_ref(&small));
    }
    check(&runtime, "Acosh", &[above_one]);
    check(&runtime, "Ndtri", &[unit]);
}

#[test]
fn functions_of_two_numbers() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let shapes: [[&'static [i64]; 2]; 5] =
        [[&[2, 3], &[2, 3]], [&[2, 3], &[3]], [&[], &[2, 3]], [&[2, 1], &[1, 3]], [&[1], &[]]];
    for [x, y] in shapes {
        for op in ["Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference"] {
            check(&runtime, op, &[any(x), any(y)]);
        }
        for op in
            ["Div", "RealDiv", "DivNoNan", "MulNoNan", "Pow", "Atan2", "Xdivy", "Xlogy", "Xlog1py"]
        {
            check(&runtime, op, &[positive(x), positive(y)]);
        }
        check(&runtime, "FloorMod", &[Input::Uniform(x, 2.1, 2.9), Input::Uniform(y, 1.0, 1.04)]);
    }
}

#[test]
fn sums_and_choices() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let condition = bools(&[2, 2], &[true, false, false, true]);
    check(&runtime, "AddN", &[any(&[2, 2]), any(&[2, 2]), any(&[2, 2])]);
    check(&runtime, "Select", &[condition.clone(), any(&[2, 2]), any(&[2, 2])]);
    check(&runtime, "SelectV2", &[condition.clone(), any(&[2]), any(&[3, 1, 1])]);
    check(&runtime, "SelectV2", &[condition, any(&[]), any(&[2, 2])]);
    let bounds = (Input::Doubles(&[], &[-0.7]), Input::Doubles(&[], &[0.9]));
    check(&runtime, "ClipByValue", &[any(&[3, 3]), bounds.0, bounds.1]);
}
