use crate::testing::check;
use tenon_framework::attr::AttrValue;

type Attrs = Vec<(&'static str, AttrValue)>;

fn windows(padding: &str, lists: &[(&'static str, &[i64])]) -> Attrs {
    let mut attrs: Attrs = vec![("padding", padding.into())];
    attrs.extend(lists.iter().map(|&(name, list)| (name, list.to_vec().into())));
    attrs
}

fn with(attrs: &Attrs, more: &[(&'static str, AttrValue)]) -> Attrs {
    [attrs.as_slice(), more].concat()
}

#[test]
fn activations_keep_the_shape() {
    for op in ["Relu", "Relu6"] {
        check(
            op,
            &[],
            &[
                (&["[n,3]"], "[n,3]"),
                (&["?"], "?"),
                (&[], &format!("! op {op}: expected 1 inputs, found 0")),
            ],
        );
    }
    check(
        "Softmax",
        &[],
        &[
            (&["[n,3]"], "[n,3]"),
            (&["?"], "?"),
            (&["[]"], "! logits must have at least 1 dimensions, got 0"),
        ],
    );
}

#[test]
fn a_bias_tells_the_channels() {
    check(
        "BiasAdd",
        &[],
        &[
            (&["[2,3]", "[3]"], "[2,3]"),
            (&["[n,?]", "[3]"], "[n,3]"),
            (&["[n,m]", "[?]"], "[n,m]"),
            (&["[n,5,6,3]", "?"], "[n,5,6,3]"),
            (&["?", "[3]"], "?"),
            (&["[2,3]", "[4]"], "! bias must be 3, got 4"),
            (&["[3]", "[3]"], "! value must have at least 2 dimensions, got 1"),
            (&["[2,3]", "[3,1]"], "! bias must have 1 dimensions, got 2"),
        ],
    );
    check(
        "BiasAdd",
        &[("data_format", "NCHW".into())],
        &[
            (&["[n,?,5,6]", "[3]"], "[n,3,5,6]"),
            (&["[n,4,5,6]", "[3]"], "! bias must be 4, got 3"),
            (&["[2,3]", "[3]"], "[2,3]"),
            (&["[n,?]", "[3]"], "[n,3]"),
            (&["[3]", "[3]"], "! value must have at least 2 dimensions, got 1"),
        ],
    );
}

#[test]
fn convolutions() {
    let same = windows("SAME", &[("strides", &[1, 2, 2, 1])]);
    check(
        "Conv2D",
        &same,
        &[
            (&["[2,5,7,3]", "[3,3,3,8]"], "[2,3,4,8]"),
            (&["[n,?,7,3]", "[3,3,3,m]"], "[n,?,4,m]"),
            (&["?", "[3,3,3,8]"], "[?,?,?,8]"),
            (&["[2,5,7]", "?"], "! input must have 4 dimensions, got 3"),
            (&["?", "[3,3]"], "! filter must have 4 dimensions, got 2"),
            (
                &["[2,5,7,3]", "[3,3,2,8]"],
                "! the depth of the input (3) must be a multiple of the input depth of the filter (2)",
            ),
        ],
    );
    let first =
        with(&windows("VALID", &[("strides", &[1, 1, 1, 1])]), &[("data_format", "NCHW".into())]);
    check("Conv2D", &first, &[(&["[n,3,5,7]", "[3,3,3,8]"], "[n,8,3,5]")]);
    let explicit = windows(
        "EXPLICIT",
        &[
            ("strides", &[1, 1, 1, 1]),
            ("explicit_paddings", &[0, 0, 1, 0, 2, 2, 0, 0]),
            ("dilations", &[1, 2, 1, 1]),
        ],
    );
    check("Conv2D", &explicit, &[(&["[1,9,7,3]", "[3,3,3,8]"], "[1,6,9,8]")]);
    let bad = windows("SAME", &[("strides", &[1, 2, 2])]);
    check("Conv2D", &bad, &[(&["[2,5,7,3]", "[3,3,3,8]"], "! strides must hold 4 values, got 3")]);
}

/// The error of a shape function for a window that is too large over rows or columns.
fn too_large(dim: &str, input: i64, padding: i64, window: i64) -> String {
    format!(
        "! the window is larger than the input over the {dim}: {input} with a padding of {padding} is less than the \
         dilated window's {window}; make the window smaller, or set padding to SAME"
    )
}

#[test]
fn a_filter_larger_than_the_image_is_refused_and_its_dimension_named() {
    let (rows, columns) = (too_large("rows", 3, 0, 4), too_large("columns", 5, 0, 6));
    for op in ["Conv2D", "DepthwiseConv2dNative"] {
        for strides in [&[1, 1, 1, 1], &[1, 3, 3, 1]] {
            let valid = windows("VALID", &[("strides", strides)]);
            check(
                op,
                &valid,
                &[
                    (&["[n,3,5,1]", "[4,1,1,1]"], &rows),
                    (&["[n,3,5,1]", "[1,6,1,1]"], &columns),
                    (&["[0,3,5,1]", "[4,1,1,1]"], &rows),
                ],
            );
        }
        let dilated = windows("VALID", &[("strides", &[1, 1, 1, 1]), ("dilations", &[1, 2, 2, 1])]);
        check(op, &dilated, &[(&["[1,5,4,1]", "[3,3,1,1]"], &too_large("columns", 4, 0, 5))]);
        let explicit = windows(
            "EXPLICIT",
            &[("strides", &[1, 1, 1, 1]), ("explicit_paddings", &[0, 0, 0, 0, 1, 1, 0, 0])],
        );
        check(
            op,
            &explicit,
            &[
                (&["[1,3,3,1]", "[1,6,1,1]"], &too_large("columns", 3, 2, 6)),
                (&["[1,?,3,1]", "[9,5,1,1]"], "[1,?,1,1]"),
            ],
        );
    }
    let valid = windows("VALID", &[("strides", &[1, 1, 1, 1, 1])]);
    check("Conv3D", &valid, &[(&["[1,3,5,5,1]", "[4,1,1,1,1]"], &too_large("planes", 3, 0, 4))]);
}

#[test]
fn a_pooling_window_larger_than_the_image_is_refused_and_its_dimension_named() {
    for op in ["MaxPool", "AvgPool", "MaxPoolWithArgmax"] {
        let attrs = windows("VALID", &[("ksize", &[1, 1, 6, 1]), ("strides", &[1, 3, 3, 1])]);
        check(op, &attrs, &[(&["[n,5,4,1]"], &too_large("columns", 4, 0, 6))]);
    }
    for op in ["MaxPool3D", "AvgPool3D"] {
        let attrs = windows("VALID", &[("ksize", &[1, 1, 4, 1, 1]), ("strides", &[1, 3, 3, 3, 1])]);
        check(op, &attrs, &[(&["[n,5,3,4,1]"], &too_large("rows", 3, 0, 4))]);
    }
}

#[test]
fn depthwise_convolutions() {
    let same = windows("SAME", &[("strides", &[1, 1, 1, 1])]);
    check(
        "DepthwiseConv2dNative",
        &same,
        &[
            (&["[2,5,7,3]", "[3,3,3,2]"], "[2,5,7,6]"),
            (&["[n,5,7,c]", "[3,3,?,1]"], "[n,5,7,c]"),
            (&["[n,5,7,c]", "[3,3,?,2]"], "[n,5,7,?]"),
            (&["?", "?"], "[?,?,?,?]"),
            (&["[2,5,7,3]", "[3,3,3,0]"], "[2,5,7,0]"),
            (&["[2,5,7,0]", "[3,3,0,2]"], "[2,5,7,0]"),
            (&["[2,5,7,3]", "[3,3,4,2]"], "! the depth of input and filter must be 3, got 4"),
            (&["[2,5]", "?"], "! input must have 4 dimensions, got 2"),
        ],
    );
}

#[test]
fn pooling() {
    let attrs = windows("SAME", &[("ksize", &[1, 2, 2, 1]), ("strides", &[1, 2, 2, 1])]);
    for (op, what) in [("MaxPool", "input"), ("AvgPool", "value")] {
        check(
            op,
            &attrs,
            &[
                (&["[2,5,7,3]"], "[2,3,4,3]"),
                (&["[n,?,7,c]"], "[n,?,4,c]"),
                (&["?"], "[?,?,?,?]"),
                (&["[2,5,7]"], &format!("! {what} must have 4 dimensions, got 3")),
            ],
        );
        let batch = windows("SAME", &[("ksize", &[2, 2, 2, 1]), ("strides", &[1, 2, 2, 1])]);
        check(op, &batch, &[(&["[2,5,7,3]"], "! ksize must be 1 in the batch dimension, got 2")]);
    }
    let depth = windows("VALID", &[("ksize", &[1, 1, 1, 3]), ("strides", &[1, 1, 1, 3])]);
    check("MaxPool", &depth, &[(&["[n,5,7,6]"], "[n,5,7,2]"), (&["[n,5,7,c]"], "[n,5,7,?]")]);
    let vectors = with(&attrs, &[("data_format", "NCHW_VECT_C".into())]);
    check(
        "MaxPool",
        &vectors,
        &[(
            &["[2,5,7,3]"],
            "! data_format must be one of NHWC, NCHW, NDHWC, NCDHW, got \"NCHW_VECT_C\"",
        )],
    );
}

#[test]
fn batch_normalisation() {
    let five = |a: &'static str| ["?", a, "?", "[0]", "[0]"];
    let vectors = "; [3]; [3]; [3]; [3]; ?";
    check(
        "FusedBatchNormV3",
        &[],
        &[
            (&["[n,5,7,3]", "[3]", "[3]", "[0]", "[0]"], &format!("[n,5,7,3]{vectors}")),
            (&five("[3]"), &format!("[?,?,?,3]{vectors}")),
            (&["[2,5,7,3]", "[4]", "?", "?", "?"], "! scale must be 3, got 4"),
            (&["[2,5,3]", "?", "?", "?", "?"], "! x must have 4 dimensions, got 3"),
            (&["?", "[3]", "[3,1]", "?", "?"], "! offset must have 1 dimensions, got 2"),
        ],
    );
    let inference = ("is_training", AttrValue::Bool(false));
    check(
        "FusedBatchNormV3",
        &[inference.clone(), ("data_format", "NCHW".into())],
        &[
            (&["[n,?,5,7]", "?", "?", "?", "[3]"], &format!("[n,3,5,7]{vectors}")),
            (&["[n,3,5,7]", "?", "?", "[0]", "?"], "! mean must be 3, got 0"),
        ],
    );
    check(
        "FusedBatchNormV3",
        &[inference, ("data_format", "NDHWC".into())],
        &[
            (&["[n,4,5,7,3]", "?", "?", "?", "?"], &format!("[n,4,5,7,3]{vectors}")),
            (&["[n,5,7,3]", "?", "?", "?", "?"], "! x must have 5 dimensions, got 4"),
        ],
    );
}

#[test]
fn over_three_dimensions() {
    let conv = windows("SAME", &[("strides", &[1, 1, 2, 2, 1])]);
    check(
        "Conv3D",
        &conv,
        &[
            (&["[n,4,5,7,3]", "[2,3,3,3,8]"], "[n,4,3,4,8]"),
            (&["?", "[2,3,3,3,m]"], "[?,?,?,?,m]"),
            (&["[2,5,7,3]", "?"], "! input must have 5 dimensions, got 4"),
        ],
    );
    let pool = windows("VALID", &[("ksize", &[1, 2, 2, 2, 1]), ("strides", &[1, 2, 2, 2, 1])]);
    for op in ["MaxPool3D", "AvgPool3D"] {
        check(op, &pool, &[(&["[n,4,6,8,c]"], "[n,2,3,4,c]"), (&["?"], "[?,?,?,?,?]")]);
        let first = with(&pool, &[("data_format", "NCDHW".into())]);
        check(op, &first, &[(&["[n,4,6,8,c]"], "! ksize must be 1 in the depth dimension, got 2")]);
    }
}

#[test]
fn other_windows() {
    let attrs = windows("SAME", &[]);
    check(
        "MaxPoolV2",
        &attrs,
        &[
            (&["[n,5,7,c]", "= [1,2,2,1]", "= [1,2,2,1]"], "[n,3,4,c]"),
            (&["[n,5,7,c]", "[4]", "= [1,2,2,1]"], "[?,?,?,?]"),
            (&["[n,5,7,c]", "= [1,2,2]", "= [1,2,2,1]"], "! ksize must hold 4 values, got 3"),
        ],
    );
    let attrs = windows("VALID", &[("ksize", &[1, 2, 2, 1]), ("strides", &[1, 2, 2, 1])]);
    check("MaxPoolWithArgmax", &attrs, &[(&["[n,5,7,c]"], "[n,2,3,c]; [n,2,3,c]")]);
    let attrs = windows("SAME", &[("strides", &[1, 2, 2, 1]), ("rates", &[1, 1, 1, 1])]);
    check(
        "Dilation2D",
        &attrs,
        &[
            (&["[n,5,7,3]", "[2,2,?]"], "[n,3,4,3]"),
            (&["[n,5,7,3]", "[2,2,4]"], "! the depth of input and filter must be 3, got 4"),
        ],
    );
}

#[test]
fn losses() {
    check(
        "SoftmaxCrossEntropyWithLogits",
        &[],
        &[
            (&["[n,3]", "[?,3]"], "[?]; [?,3]"),
            (&["[5,1]", "[3]"], "[5]; [5,3]"),
            (&["?", "[5,3]"], "[?]; [?,?]"),
            (&["[3]", "[3]"], "! features and labels must have 2 dimensions, got 1"),
        ],
    );
    check(
        "SparseSoftmaxCrossEntropyWithLogits",
        &[],
        &[
            (&["[n,3]", "[5]"], "[5]; [5,3]"),
            (&["[4,3]", "[5]"], "! the length of labels must be 4, got 5"),
        ],
    );
    check("L2Loss", &[], &[(&["[n,3]"], "[]")]);
    check(
        "LRN",
        &[],
        &[(&["[n,5,7,3]"], "[n,5,7,3]"), (&["[5]"], "! input must have 4 dimensions, got 1")],
    );
}
