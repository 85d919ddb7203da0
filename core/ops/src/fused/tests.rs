use crate::testing::check;
use tenon_framework::attr::{AttrList, AttrValue};

fn steps(names: &[&str]) -> AttrValue {
    AttrValue::List(AttrList::String(names.iter().map(|name| name.as_bytes().to_vec()).collect()))
}

#[test]
fn a_product_keeps_its_shape_through_its_epilogue() {
    check(
        "_FusedMatMul",
        &[("fused_ops", steps(&["BiasAdd", "Relu"]))],
        &[
            (&["[2,3]", "[3,4]", "[4]"], "[2,4]"),
            (&["[n,3]", "[3,?]", "[4]"], "[n,4]"),
            (
                &["[n,3]", "[3,4]"],
                "! args: the steps [BiasAdd, Relu] take 1 further inputs, found 0",
            ),
            (&["[2,3]", "[4,4]", "[4]"], "! the size of b that meets a must be 3, got 4"),
            (
                &["[2,3]", "[3,4]", "[4,1]"],
                "! bias must have 1 dimensions, got 2: a is [2,3], b is [3,4], args[0] is [4,1]",
            ),
        ],
    );
    check(
        "_FusedMatMul",
        &[("fused_ops", steps(&["BiasAdd", "Add"])), ("transpose_b", true.into())],
        &[(&["[n,3]", "[4,3]", "[4]", "[n,4]"], "[n,4]"), (&["?", "?", "[4]", "[7,?]"], "[7,4]")],
    );
    check(
        "_FusedMatMul",
        &[("fused_ops", steps(&["Relu7"]))],
        &[(
            &["[2,3]", "[3,4]"],
            "! fused_ops: expected BiasAdd, FusedBatchNorm, Add, Relu, Relu6, Elu, LeakyRelu, \
            Tanh, Sigmoid, GeluApproximate, GeluExact, ReluGrad, TanhGrad, SigmoidGrad, found 'Relu7' as step 0",
        )],
    );
}

#[test]
fn convolutions_normalise_and_add() {
    let attrs = |names: &[&str]| {
        [
            ("fused_ops", steps(names)),
            ("padding", AttrValue::from("SAME")),
            ("strides", AttrValue::from(vec![1i64, 1, 1, 1])),
        ]
    };
    check(
        "_FusedConv2D",
        &attrs(&["FusedBatchNorm", "Add", "Relu"]),
        &[
            (
                &["[n,8,8,3]", "[3,3,3,?]", "[16]", "[16]", "[16]", "[16]", "[n,8,8,16]"],
                "[n,8,8,16]",
            ),
            (
                &["[n,8,8,3]", "[3,3,3,16]", "[16]"],
                "! args: the steps [FusedBatchNorm, Add, Relu] take 5 further \
                inputs, found 1",
            ),
        ],
    );
    check(
        "_FusedDepthwiseConv2dNative",
        &attrs(&["BiasAdd", "Relu6"]),
        &[(&["[n,8,8,3]", "[3,3,3,1]", "[3]"], "[n,8,8,3]")],
    );
}

#[test]
fn normalisation_takes_vectors_of_the_last_dimension() {
    check(
        "_FusedLayerNorm",
        &[],
        &[
            (&["[n,m,?]", "[64]", "[64]"], "[n,m,64]"),
            (&["?", "[64]", "[64]"], "?"),
            (&["[]", "[64]", "[64]"], "! x must have at least 1 dimensions, got 0"),
        ],
    );
    check("_FusedGelu", &[], &[(&["[n,3]"], "[n,3]")]);
    check("_FusedGeluGrad", &[], &[(&["[n,3]", "[?,3]"], "[n,3]"), (&["?", "[2,3]"], "[2,3]")]);
    check(
        "_FusedLayerNormGrad",
        &[],
        &[
            (&["[n,m,?]", "[n,m,?]", "[64]"], "[n,m,64]; [64]; [64]"),
            (&["?", "?", "[64]"], "?; [64]; [64]"),
            (&["[]", "[]", "[64]"], "! x must have at least 1 dimensions, got 0"),
        ],
    );
}

fn masks(masks: i64, keeps: i64, layout: &str) -> [(&'static str, AttrValue); 3] {
    [("num_mask", masks.into()), ("num_keep", keeps.into()), ("layout", layout.into())]
}

#[test]
fn attention_has_queries_by_values() {
    check(
        "_FusedAttention",
        &masks(0, 0, "HEADS_FIRST"),
        &[
            (&["[b,h,5,8]", "[b,h,7,8]", "[b,h,7,9]"], "[b,h,5,9]"),
            (&["[2,1,5,8]", "[3,7,8]", "[7,9]"], "[2,3,5,9]"),
            (&["?", "[2,7,8]", "[2,7,9]"], "?"),
            (&["[8]", "[7,8]", "[7,9]"], "! q must have at least 2 dimensions, got 1"),
        ],
    );
    check(
        "_FusedAttention",
        &masks(1, 0, "HEADS_FIRST"),
        &[
            (&["[2,5,8]", "[2,7,8]", "[2,7,9]", "[2,1,7]"], "[2,5,9]"),
            // A mask extends a dimension of size 1.
            (&["[2,5,8]", "[2,7,8]", "[2,7,9]", "[3,2,5,7]"], "[3,2,5,9]"),
            (&["[b,4,12,8]", "[c,4,12,8]", "[d,4,12,8]", "[e,1,1,12]"], "[?,4,12,8]"),
            (&["[2,5,8]", "[2,7,8]", "[2,7,9]", "?"], "?"),
            (
                &["[2,5,8]", "[2,7,8]", "[2,7,9]", "[3,1,7]"],
                "! shapes [2, 5, 7] and [3, 1, 7] do not broadcast: each pair of dimensions must be equal or hold a 1: q is [2,5,8], k is [2,7,8], v is [2,7,9], mask[0] is [3,1,7]",
            ),
        ],
    );
    check(
        "_FusedAttention",
        &masks(2, 0, "HEADS_FIRST"),
        &[(&["[5,8]", "[7,8]", "[7,9]", "[7]", "[7]"], "! mask must hold 1 values, got 2")],
    );
    check(
        "_FusedSoftmaxScale",
        &[],
        &[
            (&["[n,m]"], "[n,m]"),
            (&["[b,2,5,7]", "[b,1,1,7]"], "[b,2,5,7]"),
            (&["[5,1]", "[2,1,7]"], "[2,5,7]"),
            (&["[]", "[7]"], "[7]"),
            (&["[]"], "! logits must have at least 1 dimensions, got 0"),
            (&["[]", "[]"], "! logits must have at least 1 dimensions, got 0"),
        ],
    );
}

#[test]
fn attention_with_heads_inside_has_equal_heads() {
    check(
        "_FusedAttention",
        &masks(0, 0, "HEADS_INSIDE"),
        &[
            (&["[b,5,4,8]", "[b,7,4,8]", "[b,7,4,9]"], "[b,5,4,9]"),
            (&["[2,5,8]", "[2,7,8]", "[2,7,9]"], "! q must have 4 dimensions, got 3"),
        ],
    );
    check(
        "_FusedAttention",
        &masks(0, 1, "HEADS_INSIDE"),
        &[
            (&["[?,5,4,8]", "[2,7,?,8]", "[2,7,4,9]", "[1,1,5,7]"], "[2,5,4,9]"),
            (&["[2,5,4,8]", "[2,7,4,8]", "[2,7,4,9]", "?"], "[2,?,4,9]"),
            (
                &["[2,5,4,8]", "[2,7,4,8]", "[2,7,4,9]", "[3,1,1,7]"],
                "! shapes [2, 4, 5, 7] and [3, 1, 1, 7] do not broadcast: each pair of dimensions must be equal or hold a 1: q is [2,5,4,8], k is [2,7,4,8], v is [2,7,4,9], keep[0] is [3,1,1,7]",
            ),
            (
                &["[2,5,4,8]", "[2,7,4,8]", "[2,7,4,9]", "[3,1,1,1,7]"],
                "! the mask must have 4 dimensions, got 5",
            ),
        ],
    );
}

#[test]
fn programs_join_shapes() {
    let program = |text: &str| [("program", AttrValue::from(text))];
    check(
        "_FusedElementwise",
        &program("Mul i0 i1; AddV2 %0 i2"),
        &[
            (&["[n,3]", "[3]", "[]"], "[n,3]"),
            (&["[3]", "[n,3]", "[]"], "[n,3]"),
            (&["?", "[3]", "[]"], "?"),
            (
                &["[2,3]", "[2,1]", "[]"],
                "! shapes [2, 3] and [2, 1] do not broadcast: each pair of dimensions must be equal or hold a 1: inputs[0] is [2,3], inputs[1] is [2,1], inputs[2] is []",
            ),
        ],
    );
    check(
        "_FusedElementwise",
        &program("Relu i1"),
        &[(
            &["[3]"],
            "! program: instruction 0 is 'Relu i1': expected i0 to i0 or results before %0",
        )],
    );
}

#[test]
fn quantised_products_have_scales_for_all_columns_or_for_each() {
    let scalars = |a: &'static str, b: &'static str, scale: &'static str, zero: &'static str| {
        [a, b, "[]", "[]", scale, zero, "[]", "[]"]
    };
    check(
        "_QuantizedFusedMatMul",
        &[],
        &[
            (&scalars("[n,3]", "[3,4]", "[]", "[]"), "[n,4]"),
            (&scalars("[n,3]", "[3,?]", "[]", "[4]"), "[n,4]"),
            (&scalars("?", "?", "[4]", "?"), "[?,4]"),
            (
                &scalars("[2,3]", "[4,4]", "[]", "[]"),
                "! the size of b that meets a must be 3, got 4",
            ),
            (&scalars("[2,3]", "[3,4]", "[4,1]", "[]"), "! b_scale must have 1 dimensions, got 2"),
            (
                &["[2,3]", "[3,4]", "[1]", "[]", "[]", "[]", "[]", "[]"],
                "! a_scale must have 0 dimensions, got 1",
            ),
        ],
    );
    let with_bias =
        |bias: &[&'static str]| [&scalars("[2,3]", "[3,?]", "[]", "[]")[..], bias].concat();
    check(
        "_QuantizedFusedMatMul",
        &[],
        &[
            (&with_bias(&["[4]"]), "[2,4]"),
            (&with_bias(&["[4]", "[4]"]), "! bias must hold 1 values, got 2"),
        ],
    );
}

#[test]
fn quantised_convolutions_have_windows_and_parameters() {
    let attrs =
        [("padding", AttrValue::from("SAME")), ("strides", AttrValue::from(vec![1i64, 2, 2, 1]))];
    let scalars = |input: &'static str, filter: &'static str, scale: &'static str| {
        [input, filter, "[]", "[]", scale, "[]", "[]", "[]"]
    };
    check(
        "_QuantizedFusedConv2D",
        &attrs,
        &[
            (&scalars("[n,7,8,3]", "[3,3,3,16]", "[]"), "[n,4,4,16]"),
            (&scalars("[n,?,8,?]", "[3,3,3,?]", "[16]"), "[n,?,4,16]"),
            (&scalars("?", "?", "[16]"), "[?,?,?,16]"),
            (
                &scalars("[n,7,8,4]", "[3,3,3,16]", "[]"),
                "! the depth of the input (4) must be a multiple of the input depth of the filter (3)",
            ),
            (
                &scalars("[n,7,8,3]", "[3,3,3,16]", "[1,16]"),
                "! filter_scale must have 1 dimensions, got 2",
            ),
            (&scalars("[7,8,3]", "[3,3,3,16]", "[]"), "! input must have 4 dimensions, got 3"),
        ],
    );
    check(
        "_QuantizedFusedDepthwiseConv2dNative",
        &attrs,
        &[
            (&scalars("[n,7,8,3]", "[3,3,3,2]", "[6]"), "[n,4,4,6]"),
            (&scalars("[n,7,8,c]", "[3,3,c,1]", "[]"), "[n,4,4,c]"),
            (&scalars("[n,7,8,?]", "[3,3,?,2]", "[6]"), "[n,4,4,6]"),
        ],
    );
    let bias =
        |bias: &'static str| [&scalars("[n,4,4,3]", "[1,1,3,?]", "[]")[..], &[bias]].concat();
    check(
        "_QuantizedFusedConv2D",
        &attrs,
        &[(&bias("[5]"), "[n,2,2,5]"), (&bias("[]"), "! bias must have 1 dimensions, got 0")],
    );
}

#[test]
fn what_stands_between_quantised_products_keeps_or_reduces_shapes() {
    for op in ["_AffineQuantize", "_AffineDequantize"] {
        check(
            op,
            &[],
            &[
                (&["[n,3]", "[]", "[]"], "[n,3]"),
                (&["?", "[]", "[]"], "?"),
                (&["[2]", "[2]", "[]"], "! scale must have 0 dimensions, got 1"),
            ],
        );
    }
    check("_AffineRange", &[], &[(&["[n,3]"], "[]; []")]);
    check(
        "_QuantizedLookup",
        &[],
        &[
            (&["[n,3]", "[256]"], "[n,3]"),
            (&["[n,3]", "?"], "[n,3]"),
            (&["[3]", "[255]"], "! the size of table must be 256, got 255"),
        ],
    );
    let scalars = |a: &'static str, b: &'static str| [a, b, "[]", "[]", "[]", "[]", "[]", "[]"];
    check(
        "_QuantizedFusedAdd",
        &[],
        &[
            (&scalars("[n,3]", "[3]"), "[n,3]"),
            (
                &scalars("[2,3]", "[2]"),
                "! shapes [2, 3] and [2] do not broadcast: each pair of dimensions must be equal or hold a 1: \
                 a is [2,3], b is [2], a_scale is [], a_zero_point is [], b_scale is [], b_zero_point is [], \
                 and 2 more",
            ),
        ],
    );
    check(
        "_QuantizedFusedMean",
        &[],
        &[(&["[n,7,7,c]", "= [1,2]", "[]", "[]", "[]", "[]"], "[n,c]")],
    );
    let windows = [
        ("ksize", AttrValue::from(vec![1i64, 2, 2, 1])),
        ("strides", AttrValue::from(vec![1i64, 2, 2, 1])),
        ("padding", AttrValue::from("SAME")),
    ];
    check(
        "_QuantizedFusedAvgPool",
        &windows,
        &[
            (&["[n,7,8,c]", "[]", "[]", "[]", "[]"], "[n,4,4,c]"),
            (&["[7,8,3]", "[]", "[]", "[]", "[]"], "! input must have 4 dimensions, got 3"),
        ],
    );
}
