//! Constants that patterns treat as numbers: replacing them must lose neither shape nor value.

use crate::{
    bench::{Case, text},
    remapping::{B, op, remapped},
};
use tenon_framework::{DType, PartialShape, Tensor, element::Number};
use tenon_graph::Output;

fn fed(b: &mut B, name: &str, dtype: DType, dims: Option<&[i64]>) -> Output {
    let shape = dims.map_or(PartialShape::UNKNOWN, |dims| PartialShape::new(dims).unwrap());
    b.placeholder(name, dtype, shape).unwrap()
}

fn number<T: Number>(b: &mut B, name: &str, dims: &[i64], value: f64) -> Output {
    let count = dims.iter().product::<i64>() as usize;
    let values = vec![T::from_f64(value); count];
    b.constant(name, Tensor::from_slice(dims, &values).unwrap()).unwrap()
}

/// GELU of x, with these shapes of its constants, and this one for sqrt(1/2).
fn gelu<T: Number>(x_dims: Option<&[i64]>, shapes: [&[i64]; 3], root: f64) -> String {
    let case = Case::new(|b| {
        let x = fed(b, "x", T::DTYPE, x_dims);
        let half = number::<T>(b, "half", shapes[0], 0.5);
        let one = number::<T>(b, "one", shapes[1], 1.0);
        let root = number::<T>(b, "root", shapes[2], root);
        let inner = op(b, "inner", "Mul", &[x, root]);
        let erf = op(b, "erf", "Erf", &[inner]);
        let plus = op(b, "plus", "AddV2", &[erf, one]);
        let halved = op(b, "halved", "Mul", &[half, x]);
        vec![op(b, "y", "Mul", &[halved, plus])]
    });
    text(&remapped(&case))
}

/// GELU of x by the complementary error function, of which the factor of x is `factor`.
fn gelu_by_complement(x_dims: Option<&[i64]>, root_dims: &[i64], factor: &str) -> String {
    let case = Case::new(|b| {
        let x = fed(b, "x", DType::FLOAT, x_dims);
        let half = number::<f32>(b, "half", &[], 0.5);
        let root = number::<f32>(b, "root", root_dims, ROOT);
        let turned = op(b, "turned", factor, &[x]);
        let inner = op(b, "inner", "Mul", &[turned, root]);
        let erfc = op(b, "erfc", "Erfc", &[inner]);
        let halved = op(b, "halved", "Mul", &[half, x]);
        vec![op(b, "y", "Mul", &[halved, erfc])]
    });
    text(&remapped(&case))
}

#[test]
fn gelu_by_the_complementary_error_function_is_fused() {
    assert_eq!(gelu_by_complement(None, &[], "Neg"), FUSED);
    assert_eq!(gelu_by_complement(Some(&[-1, 4]), &[4], "Neg"), FUSED);
    for found in [
        gelu_by_complement(None, &[4], "Neg"),
        gelu_by_complement(Some(&[4]), &[1, 4], "Neg"),
        gelu_by_complement(None, &[], "Abs"),
    ] {
        assert!(found.contains("y = Mul(halved, erfc)"), "{found}");
    }
}

const FUSED: &str = "y = _FusedGelu(x)";
const ROOT: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// The shape of x, and those of the constants.
type Shapes<'a> = (Option<&'a [i64]>, [&'a [i64]; 3]);

#[test]
fn a_number_whose_shape_may_broadcast_is_no_number() {
    let left: &[Shapes<'_>] = &[
        (None, [&[4], &[], &[]]),
        (None, [&[], &[1], &[]]),
        (None, [&[], &[], &[1, 1]]),
        (Some(&[-1]), [&[4], &[], &[]]),
        (Some(&[-1]), [&[], &[1, 1], &[]]),
        (Some(&[1, 4]), [&[3, 1], &[], &[]]),
        (Some(&[4]), [&[], &[], &[1, 4]]),
    ];
    for &(x, shapes) in left {
        let found = gelu::<f32>(x, shapes, ROOT);
        assert!(found.contains("y = Mul(halved, plus)"), "{x:?} {shapes:?}: {found}");
    }
    let taken: &[Shapes<'_>] = &[
        (None, [&[], &[], &[]]),
        (Some(&[-1]), [&[1], &[], &[1]]),
        (Some(&[-1, 4]), [&[4], &[1, 1], &[1, 4]]),
        (Some(&[3, 4]), [&[3, 4], &[3, 1], &[4]]),
    ];
    for &(x, shapes) in taken {
        assert_eq!(gelu::<f32>(x, shapes, ROOT), FUSED, "{x:?} {shapes:?}");
    }
}

#[test]
#[allow(clippy::approx_constant, reason = "graphs have the number with few digits")]
fn a_number_is_the_nearest_of_its_type() {
    let none: [&[i64]; 3] = [&[], &[], &[]];
    let eight_digits = 0.707_106_78;
    assert_eq!(gelu::<f32>(None, none, eight_digits), FUSED);
    assert_eq!(gelu::<f32>(None, none, ROOT), FUSED);
    assert_eq!(gelu::<f64>(None, none, ROOT), FUSED);
    for (found, why) in [
        (gelu::<f64>(None, none, eight_digits), "eight digits in double precision"),
        (gelu::<f32>(None, none, 0.707_106), "six digits in single precision"),
    ] {
        assert!(found.contains("y = Mul(halved, plus)"), "{why}: {found}");
    }
}

#[test]
fn zeros_that_may_give_a_softmax_another_batch_are_no_number() {
    let attention = |zero: &[i64]| {
        let case = Case::new(|b| {
            let [q, k, v] =
                ["q", "k", "v"].map(|name| fed(b, name, DType::FLOAT, Some(&[-1, 2, 5, 8])));
            let keep = fed(b, "keep", DType::BOOL, Some(&[-1, 1, 1, 5]));
            let (low, zero) =
                (number::<f32>(b, "low", &[], -1e9), number::<f32>(b, "zero", zero, 0.0));
            let scores = b.op("BatchMatMulV2").name("scores").input(q).input(k);
            let scores = scores.attr("adj_y", true).build().unwrap().into();
            let kept = op(b, "kept", "SelectV2", &[keep, scores, low]);
            let weights = op(b, "weights", "Softmax", &[kept]);
            let again = op(b, "again", "SelectV2", &[keep, weights, zero]);
            vec![op(b, "y", "BatchMatMulV2", &[again, v])]
        });
        text(&remapped(&case))
    };
    let found = attention(&[4, 1, 1, 5]);
    assert!(found.contains("again = SelectV2(keep, weights, zero)"), "{found}");
    for zero in [&[][..], &[1], &[1, 1, 1, 5]] {
        assert_eq!(attention(zero), "y = _FusedAttention(q, k, v, keep)", "{zero:?}");
    }
}

#[test]
fn an_epsilon_that_adds_a_dimension_is_no_number() {
    let norm = |epsilon: &[i64]| {
        let case = Case::new(|b| {
            let x = fed(b, "x", DType::FLOAT, Some(&[-1, 4]));
            let axes = b.constant("axes", Tensor::from_slice(&[1], &[-1i32]).unwrap()).unwrap();
            let [scale, offset] = ["scale", "offset"].map(|name| number::<f32>(b, name, &[4], 2.0));
            let epsilon = number::<f32>(b, "epsilon", epsilon, 0.25);
            let mean = |b: &mut B, name: &str, x: Output| -> Output {
                let mean = b.op("Mean").name(name).input(x).input(axes).attr("keep_dims", true);
                mean.build().unwrap().into()
            };
            let center = mean(b, "center", x);
            let apart = op(b, "apart", "Sub", &[x, center]);
            let squares = op(b, "squares", "Square", &[apart]);
            let variance = mean(b, "variance", squares);
            let safe = op(b, "safe", "AddV2", &[variance, epsilon]);
            let root = op(b, "root", "Rsqrt", &[safe]);
            let scaled = op(b, "scaled", "Mul", &[apart, root]);
            let scaled = op(b, "product", "Mul", &[scaled, scale]);
            vec![op(b, "y", "AddV2", &[scaled, offset])]
        });
        text(&remapped(&case))
    };
    let found = norm(&[1, 1, 1]);
    assert!(found.contains("safe = AddV2(variance, epsilon)"), "{found}");
    for epsilon in [&[][..], &[1], &[1, 1]] {
        assert!(norm(epsilon).contains("y = _FusedLayerNorm(x, scale, offset)"), "{epsilon:?}");
    }
}
