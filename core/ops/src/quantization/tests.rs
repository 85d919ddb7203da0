//! Shapes of the ops on quantised types.

use crate::testing::check;
use tenon_framework::attr::{AttrList, AttrValue};

fn axis(axis: i64) -> [(&'static str, AttrValue); 1] {
    [("axis", AttrValue::Int(axis))]
}

#[test]
fn codes_have_the_shape_of_the_numbers_and_ranges_that_of_their_ends() {
    check(
        "QuantizeV2",
        &[],
        &[
            (&["[n,3]", "[]", "[]"], "[n,3]; []; []"),
            (&["?", "?", "?"], "?; []; []"),
            (&["[n,3]", "[1]", "[]"], "! min_range must have 0 dimensions, got 1"),
            (&["[n,3]", "[]", "[3]"], "! max_range must have 0 dimensions, got 1"),
        ],
    );
    check(
        "QuantizeV2",
        &axis(1),
        &[
            (&["[n,3]", "[?]", "[?]"], "[n,3]; [3]; [3]"),
            (&["[n,c]", "[3]", "?"], "[n,3]; [3]; [3]"),
            (&["?", "?", "[4]"], "?; [4]; [4]"),
            (&["[n,3]", "[2]", "[?]"], "! the size of min_range must be 3, got 2"),
            (&["[n,3]", "[3]", "[4]"], "! the size of max_range must be 3, got 4"),
            (&["[3]", "[3]", "[3]"], "! input must have at least 2 dimensions, got 1"),
            (&["[n,3]", "[]", "[]"], "! min_range must have 1 dimensions, got 0"),
        ],
    );
    let message = "! axis must be at least -1, got -2";
    check("QuantizeV2", &axis(-2), &[(&["?", "?", "?"], message)]);
    let message = "! input must have at least 9223372036854775808 dimensions, got 1";
    check("QuantizeV2", &axis(i64::MAX), &[(&["[3]", "?", "?"], message)]);
}

#[test]
fn numbers_have_the_shape_of_the_codes() {
    check("Dequantize", &[], &[(&["[n,3]", "[]", "[]"], "[n,3]")]);
    check("Dequantize", &axis(0), &[(&["[n,3]", "[4]", "?"], "[4,3]")]);
    check("QuantizeAndDequantizeV2", &axis(0), &[(&["[5,3]", "[5]", "[5]"], "[5,3]")]);
    check(
        "QuantizeAndDequantizeV4",
        &[],
        &[(&["[5,3]", "[5]", "[]"], "! input_min must have 0 dimensions, got 1")],
    );
    check(
        "QuantizeAndDequantizeV3",
        &[],
        &[
            (&["[n]", "[]", "[]", "[]"], "[n]"),
            (&["[n]", "[]", "[]", "[1]"], "! num_bits must have 0 dimensions, got 1"),
        ],
    );
}

#[test]
fn fake_quantisation_keeps_the_shape() {
    check("FakeQuantWithMinMaxArgs", &[], &[(&["[n,3]"], "[n,3]")]);
    check("FakeQuantWithMinMaxArgsGradient", &[], &[(&["[?,3]", "[2,?]"], "[2,3]")]);
    check(
        "FakeQuantWithMinMaxVars",
        &[],
        &[(&["[n]", "[2]", "[]"], "! min must have 0 dimensions, got 1")],
    );
    check("FakeQuantWithMinMaxVarsGradient", &[], &[(&["[n]", "[n]", "[]", "[]"], "[n]; []; []")]);
    check(
        "FakeQuantWithMinMaxVarsPerChannel",
        &[],
        &[
            (&["[n,3]", "[3]", "[?]"], "[n,3]"),
            (&["?", "[3]", "[3]"], "?"),
            (&["[n,3]", "[2]", "[?]"], "! the size of min must be 3, got 2"),
            (&["[n,3]", "[3]", "[2]"], "! the size of max must be 3, got 2"),
            (&["[]", "[3]", "[2]"], "! inputs must have at least 1 dimensions, got 0"),
        ],
    );
}

#[test]
fn requantisation_keeps_the_shape() {
    check("QuantizeDownAndShrinkRange", &[], &[(&["[n]", "[]", "[]"], "[n]; []; []")]);
    check("RequantizationRange", &[], &[(&["[n]", "[]", "[]"], "[]; []")]);
    let message = "! requested_output_max must have 0 dimensions, got 1";
    check("Requantize", &[], &[(&["[n]", "[]", "[]", "[]", "[1]"], message)]);
    check(
        "RequantizePerChannel",
        &[],
        &[
            (&["[n,c]", "[4]", "[?]", "[]", "[]"], "[n,c]; []; []"),
            (&["?", "[4]", "[5]", "[]", "[]"], "! the size of input_max must be 4, got 5"),
        ],
    );
    let clip = [("clip_value_max", AttrValue::Float(6.0))];
    check("RequantizationRangePerChannel", &clip, &[(&["?", "[4]", "[4]"], "[]; []")]);
}

#[test]
fn elements_have_shapes_as_without_codes() {
    check("QuantizedRelu", &[], &[(&["[n]", "[]", "[]"], "[n]; []; []")]);
    let ends = "[]";
    check(
        "QuantizedAdd",
        &[],
        &[
            (&["[n,3]", "[3]", ends, ends, ends, ends], "[n,3]; []; []"),
            (&["[n,3]", "[3]", ends, ends, ends, "[1]"], "! max_y must have 0 dimensions, got 1"),
        ],
    );
    check(
        "QuantizedBiasAdd",
        &[],
        &[
            (&["[n,?]", "[3]", ends, ends, ends, ends], "[n,3]; []; []"),
            (
                &["[3]", "[3]", ends, ends, ends, ends],
                "! input must have at least 2 dimensions, got 1",
            ),
        ],
    );
    check("QuantizedReshape", &[], &[(&["[2,3]", "= [3,-1]", ends, ends], "[3,2]; []; []")]);
}

#[test]
fn joined_codes_have_a_range_for_each_value() {
    let two = [("N", AttrValue::Int(2))];
    check(
        "QuantizedConcat",
        &two,
        &[
            (&["= 1", "[n,3]", "[n,4]", "[]", "[]", "[]", "[]"], "[n,7]; []; []"),
            (&["[]", "[n,3]", "[n,4]", "[]", "[]", "[]", "[]"], "[?,?]; []; []"),
            (
                &["= 1", "[n,3]", "[n,4]", "[]", "[1]", "[]", "[]"],
                "! input_mins must have 0 dimensions, got 1",
            ),
            (
                &["= 1", "[n,3]", "[n,4]", "[]", "[]", "[]", "[1]"],
                "! input_maxes must have 0 dimensions, got 1",
            ),
        ],
    );
}

fn windows(strides: [i64; 4]) -> [(&'static str, AttrValue); 2] {
    [
        ("strides", AttrValue::List(AttrList::Int(strides.to_vec()))),
        ("padding", AttrValue::String(b"SAME".to_vec())),
    ]
}

#[test]
fn products_and_windows_have_shapes_as_without_codes() {
    let ends = "[]";
    let product = |a, b| [a, b, ends, ends, ends, ends];
    check("QuantizedMatMul", &[], &[(&product("[m,3]", "[3,n]"), "[m,n]; []; []")]);
    let strides = windows([1, 2, 2, 1]);
    check(
        "QuantizedConv2D",
        &strides,
        &[(&product("[n,5,7,3]", "[3,3,3,8]"), "[n,3,4,8]; []; []")],
    );
    check(
        "QuantizedDepthwiseConv2D",
        &strides,
        &[(&product("[n,5,7,3]", "[3,3,3,2]"), "[n,3,4,6]; []; []")],
    );
    let [strides, padding] = windows([1, 2, 2, 1]);
    let ksize = ("ksize", AttrValue::List(AttrList::Int(vec![1, 2, 2, 1])));
    let pooling = [strides, padding, ksize];
    check("QuantizedAvgPool", &pooling, &[(&["[n,5,7,c]", "[]", "[]"], "[n,3,4,c]; []; []")]);
    let message = "! min_input must have 0 dimensions, got 1";
    check("QuantizedMaxPool", &pooling, &[(&["[n,5,7,c]", "[1]", "[]"], message)]);
}
