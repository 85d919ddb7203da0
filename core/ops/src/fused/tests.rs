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
            (&["[2,3]", "[4,4]", "[4]"], "! the inner size of the second matrix must be 3, got 4"),
            (&["[2,3]", "[3,4]", "[4,1]"], "! bias must have 1 dimensions, got 2"),
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
            Tanh, Sigmoid, GeluApproximate, GeluExact, found 'Relu7' as step 0",
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
}

#[test]
fn attention_has_queries_by_values() {
    check(
        "_FusedAttention",
        &[],
        &[
            (&["[b,h,5,8]", "[b,h,7,8]", "[b,h,7,9]"], "[b,h,5,9]"),
            (&["[2,5,8]", "[2,7,8]", "[2,7,9]", "[2,1,7]"], "[2,5,9]"),
            (&["[2,5,8]", "[7,8]", "[2,7,9]"], "! k must have 3 dimensions, got 2"),
            (
                &["[2,5,8]", "[2,7,8]", "[2,7,9]", "[3,2,5,7]"],
                "! shapes [2, 5, 7] and [3, 2, 5, 7] do not broadcast: each pair of dimensions must be equal or hold a 1",
            ),
        ],
    );
    check(
        "_FusedSoftmaxScale",
        &[],
        &[(&["[n,m]"], "[n,m]"), (&["[b,2,5,7]", "[b,1,1,7]"], "[b,2,5,7]")],
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
                "! shapes [2, 3] and [2, 1] do not broadcast: each pair of dimensions must be equal or hold a 1",
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
