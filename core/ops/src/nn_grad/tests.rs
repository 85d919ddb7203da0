use crate::testing::check;
use tenon_framework::attr::AttrValue;

fn windows(lists: &[(&'static str, &[i64])]) -> Vec<(&'static str, AttrValue)> {
    let mut attrs = vec![("padding", "SAME".into())];
    attrs.extend(lists.iter().map(|&(name, list)| (name, list.to_vec().into())));
    attrs
}

#[test]
fn gradients_of_elements_keep_the_shape() {
    for op in ["ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "LeakyReluGrad", "SoftplusGrad"] {
        let second = if matches!(op, "EluGrad" | "SeluGrad") { "outputs" } else { "features" };
        let refused = |rest: &str, dims: &str| {
            format!(
                "! the shape of the second input must {rest}: gradients is [2,3], {second} is {dims}"
            )
        };
        check(
            op,
            &[],
            &[
                (&["[n,?]", "[m,3]"], "[n,3]"),
                (&["?", "[3]"], "[3]"),
                (&["[2,3]", "[3]"], &refused("have 2 dimensions, got 1", "[3]")),
                (&["[2,3]", "[2,4]"], &refused("be 3, got 4", "[2,4]")),
            ],
        );
    }
    for op in ["SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"] {
        check(op, &[], &[(&["[n,3]", "?"], "[n,3]"), (&["?", "[2]"], "?")]);
    }
}

#[test]
fn gradients_per_channel() {
    check(
        "BiasAddGrad",
        &[],
        &[
            (&["[n,5,3]"], "[3]"),
            (&["?"], "[?]"),
            (&["[3]"], "! out_backprop must have at least 2 dimensions, got 1"),
        ],
    );
    let first = [("data_format", "NCHW".into())];
    check("BiasAddGrad", &first, &[(&["[n,c,5,3]"], "[c]"), (&["[n,c]"], "[c]")]);
    let five = |last: &'static str| ["[n,5,7,3]", "[2,?,?,?]", "[3]", "?", last];
    check(
        "FusedBatchNormGrad",
        &[],
        &[
            (&five("[3]"), "[2,5,7,3]; [3]; [3]; [0]; [0]"),
            (&five("[4]"), "! reserve_space_2 must be 3, got 4"),
            (&["[1,5,7,3]", "[2,5,7,3]", "?", "?", "?"], "! x must be 1, got 2"),
        ],
    );
    check(
        "LRNGrad",
        &[],
        &[
            (&["[n,5,7,3]", "[2,?,?,?]", "?"], "[2,5,7,3]"),
            (&["?", "[5,7,3]", "?"], "! input_image must have 4 dimensions, got 3"),
        ],
    );
}

#[test]
fn gradients_of_windows() {
    let pool = windows(&[("ksize", &[1, 2, 2, 1]), ("strides", &[1, 2, 2, 1])]);
    check(
        "MaxPoolGrad",
        &pool,
        &[
            (&["[n,6,8,3]", "[n,3,4,3]", "?"], "[n,6,8,3]"),
            (&["?", "[1,3,4,3]", "[2,3,4,3]"], "! grad must be 1, got 2"),
        ],
    );
    check("MaxPoolGradWithArgmax", &pool, &[(&["[n,6,8,3]", "?", "?"], "[n,6,8,3]")]);
    check(
        "AvgPoolGrad",
        &pool,
        &[
            (&["= [1,6,8,3]", "[1,3,4,3]"], "[1,6,8,3]"),
            (&["[4]", "?"], "[?,?,?,?]"),
            (&["?", "[3,4,3]"], "! grad must have 4 dimensions, got 3"),
        ],
    );
}

#[test]
fn gradients_of_windows_over_three_dimensions_and_of_dilation() {
    let pool = windows(&[("ksize", &[1, 2, 2, 2, 1]), ("strides", &[1, 2, 2, 2, 1])]);
    let small = "[n,3,3,4,c]";
    check("MaxPool3DGrad", &pool, &[(&["[n,6,6,8,c]", small, "?"], "[n,6,6,8,c]")]);
    check(
        "AvgPool3DGrad",
        &pool,
        &[
            (&["= [1,6,6,8,3]", "?"], "[1,6,6,8,3]"),
            (
                &["= [1,6,8,3]", "?"],
                "! expected a shape of rank 5, found [1,6,8,3] of rank 4: orig_input_shape is [4], grad is <unknown>",
            ),
        ],
    );
    let dilation = windows(&[("strides", &[1, 1, 1, 1]), ("rates", &[1, 1, 1, 1])]);
    let inputs = &["[n,6,8,c]", "[2,3,c]", "?"];
    check("Dilation2DBackpropInput", &dilation, &[(inputs, "[n,6,8,c]")]);
    check("Dilation2DBackpropFilter", &dilation, &[(inputs, "[2,3,c]")]);
}

#[test]
fn second_gradients_have_the_shape_of_the_windows_outputs() {
    let pool = windows(&[("ksize", &[1, 2, 2, 1]), ("strides", &[1, 2, 2, 1])]);
    check(
        "MaxPoolGradGrad",
        &pool,
        &[
            (&["[n,6,8,3]", "[n,3,4,3]", "?"], "[n,3,4,3]"),
            (&["[1,6,8,3]", "?", "[1,6,7,3]"], "! grad must be 8, got 7"),
        ],
    );
    check("MaxPoolGradGradWithArgmax", &pool, &[(&["?", "?", "[n,3,4,3]"], "[n,3,4,3]")]);
    let lists = [("padding", AttrValue::from("SAME"))];
    let windows = "! ksize must hold 4 values, got 3";
    for (op, output) in [("MaxPoolGradV2", "[n,6,8,3]"), ("MaxPoolGradGradV2", "[n,3,4,3]")] {
        check(
            op,
            &lists,
            &[
                (&["[n,6,8,3]", "[n,3,4,3]", "?", "[4]", "[4]"], output),
                (&["?", "?", "?", "[3]", "[4]"], windows),
            ],
        );
    }
}

#[test]
fn gradients_of_convolutions_are_shaped_by_an_input() {
    let two = windows(&[("strides", &[1, 1, 1, 1])]);
    for op in ["Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput"] {
        check(
            op,
            &two,
            &[
                (&["= [2,5,7,3]", "?", "?"], "[2,5,7,3]"),
                (&["= [5,7]", "[3,3,c,4]", "[n,5,7,4]"], "[n,5,7,c]"),
                (&["[4]", "?", "?"], "[?,?,?,?]"),
                (&["= [5,7,3]", "?", "?"], "! input_sizes must hold 4 values, got 3"),
                (&["?", "[3,3]", "?"], "! filter must have 4 dimensions, got 2"),
            ],
        );
    }
    for op in ["Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"] {
        check(
            op,
            &two,
            &[
                (&["?", "= [3,3,2,4]", "?"], "[3,3,2,4]"),
                (&["?", "?", "[5,7]"], "! out_backprop must have 4 dimensions, got 2"),
                (&["?", "= [3,3,2]", "?"], "! filter_sizes must hold 4 values, got 3"),
            ],
        );
    }
    let three = windows(&[("strides", &[1, 1, 1, 1, 1])]);
    check("Conv3DBackpropInputV2", &three, &[(&["= [2,4,5,7,3]", "?", "?"], "[2,4,5,7,3]")]);
    check("Conv3DBackpropFilterV2", &three, &[(&["?", "= [2,3,3,1,4]", "?"], "[2,3,3,1,4]")]);
}
