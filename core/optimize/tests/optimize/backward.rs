//! The gradient of GELU, node by node, and nodes that are nearly so. The forms that differentiation
//! gives it, and those of layer normalisation, are tested with real kernels.

use crate::{
    bench::{Case, text},
    remapping::{B, op, remapped, scalar},
};
use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
use tenon_framework::{DType, PartialShape};
use tenon_graph::Output;

/// GELU of x, whose gradient is dy: y, the gradient, and a value inside the gradient. With `AddN`
/// the gradient is added to another value.
fn gelu(b: &mut B, density: f32, sum: &str) -> [Output; 3] {
    let shape = PartialShape::new(&[-1, 4]).unwrap();
    let x = b.placeholder("x", DType::FLOAT, shape).unwrap();
    // Of the shape of x, as a gradient is.
    let outer = op(b, "outer", "Sigmoid", &[x]);
    let dy = op(b, "dy", "Rsqrt", &[outer]);
    let (half, one) = (scalar(b, "half", 0.5), scalar(b, "one", 1.0));
    let root = scalar(b, "root", FRAC_1_SQRT_2);
    let inner = op(b, "inner", "Mul", &[x, root]);
    let erf = op(b, "erf", "Erf", &[inner]);
    let plus = op(b, "plus", "AddV2", &[erf, one]);
    let halved = op(b, "halved", "Mul", &[half, x]);
    let y = op(b, "y", "Mul", &[halved, plus]);
    // The gradients of both factors.
    let of_halved = op(b, "of_halved", "Mul", &[dy, plus]);
    let of_plus = op(b, "of_plus", "Mul", &[halved, dy]);
    let square = op(b, "square", "Square", &[inner]);
    let negative = op(b, "negative", "Neg", &[square]);
    let bell = op(b, "bell", "Exp", &[negative]);
    let density = scalar(b, "density", density);
    let scaled = op(b, "scaled", "Mul", &[density, of_plus]);
    let of_inner = op(b, "of_inner", "Mul", &[scaled, bell]);
    let first = op(b, "first", "Mul", &[of_inner, root]);
    let second = op(b, "second", "Mul", &[half, of_halved]);
    let mut terms = vec![first, second];
    if sum == "AddN" {
        terms.insert(1, outer);
    }
    let dx = b.op(sum).name("dx").inputs(terms).build().unwrap();
    [y, dx.into(), of_inner]
}

fn optimised(density: f32, sum: &str, fetched: usize) -> String {
    let case = Case::new(|b| gelu(b, density, sum)[..fetched].to_vec());
    text(&remapped(&case))
}

#[test]
fn the_gradient_of_gelu_is_fused_and_then_gelu() {
    let expected =
        "dx = _FusedGeluGrad(dy, x)\ndy = Rsqrt(outer)\nouter = Sigmoid(x)\ny = _FusedGelu(x)";
    assert_eq!(optimised(FRAC_2_SQRT_PI, "AddV2", 2), expected);
    assert_eq!(optimised(FRAC_2_SQRT_PI, "Add", 2), expected);
}

#[test]
fn what_is_no_gradient_of_gelu_stays() {
    for found in [
        optimised(FRAC_2_SQRT_PI.next_up() + 1e-5, "AddV2", 2),
        optimised(-FRAC_2_SQRT_PI, "AddV2", 2),
        optimised(FRAC_2_SQRT_PI, "Sub", 2),
        optimised(FRAC_2_SQRT_PI, "Mul", 2),
    ] {
        assert!(!found.contains("_Fused"), "{found}");
    }
}

#[test]
fn a_gradient_that_is_read_inside_stays() {
    let found = optimised(FRAC_2_SQRT_PI, "AddV2", 3);
    assert!(!found.contains("_Fused") && found.contains("dx = AddV2(first, second)"), "{found}");
}

#[test]
fn what_is_added_to_the_gradient_is_added_to_the_fused_one() {
    let found = optimised(FRAC_2_SQRT_PI, "AddN", 2);
    assert!(found.contains("dx = AddV2(dx/fused, outer)"), "{found}");
    assert!(found.contains("dx/fused = _FusedGeluGrad(dy, x)"), "{found}");
    assert!(found.contains("y = _FusedGelu(x)"), "{found}");
}
