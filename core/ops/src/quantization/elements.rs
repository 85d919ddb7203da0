//! Elementwise ops on codes, and joins and reshapes of codes.

use super::{check_scalars, scalar_outputs, unchanged_with_range};
use crate::{
    array::{joined, reshape},
    math_binary::broadcast,
    nn::biased,
    shape::{constant_integer, input_of_rank},
};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::DataFormat;

const LEFT: &str = "T1: quantizedtype";
const RIGHT: &str = "T2: quantizedtype";

macro_rules! activations {
    ($($op:literal, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &["features: Tinput", "min_features: float", "max_features: float"],
            outputs =
                &["activations: out_type", "min_activations: float", "max_activations: float"],
            attrs = &["Tinput: quantizedtype", "out_type: quantizedtype = DT_QUINT8"],
            cases = &[
                "signed; features: [a, b]; min_features: [] values(-9); max_features: [] values(8)",
                "positive; features: [a, b]; min_features: [] values(0.5); max_features: [] values(2)",
            ],
            shape = activation,
            summary = $summary,
        );
    )*};
}

activations! {
    "QuantizedRelu", "The codes, none below that of 0.";
    "QuantizedRelu6", "The codes, none below that of 0 or above that of 6.";
}

register_op!(
    "QuantizedBiasAdd",
    inputs = &[
        "input: T1",
        "bias: T2",
        "min_input: float",
        "max_input: float",
        "min_bias: float",
        "max_bias: float",
    ],
    outputs = &["output: out_type", "min_out: float", "max_out: float"],
    attrs = &[LEFT, RIGHT, "out_type: quantizedtype"],
    cases = &[
        "channels; input: [a, c]; bias: [c]; min_input: [] values(-3); max_input: [] values(4.5); \
         min_bias: [] values(-0.25); max_bias: [] values(0.5)",
    ],
    shape = bias_add,
    summary = "Adds a vector to the channels, in a range that holds the sums.",
);

macro_rules! pairs {
    ($($op:literal, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs =
                &["x: T1", "y: T2", "min_x: float", "max_x: float", "min_y: float", "max_y: float"],
            outputs = &["z: Toutput", "min_z: float", "max_z: float"],
            attrs = &[LEFT, RIGHT, "Toutput: quantizedtype = DT_QINT32"],
            cases = &[
                "same; x: [a, b]; y: [a, b]; min_x: [] values(-3); max_x: [] values(4.5); min_y: [] values(-0.25); \
                 max_y: [] values(0.5)",
                "rows; x: [a, b]; y: [b]; min_x: [] values(-3); max_x: [] values(4.5); min_y: [] values(-0.25); \
                 max_y: [] values(0.5)",
            ],
            shape = pair,
            summary = $summary,
        );
    )*};
}

pairs! {
    "QuantizedAdd", "Sums of what codes stand for.";
    "QuantizedMul", "Products of what codes stand for.";
}

register_op!(
    "QuantizedReshape",
    inputs = &["tensor: T", "shape: Tshape", "input_min: float", "input_max: float"],
    outputs = &["output: T", "output_min: float", "output_max: float"],
    attrs = &["T: type", "Tshape: {int32, int64} = DT_INT32"],
    cases = &[
        "flat; tensor: [a, b]; shape: [1] values(-1); input_min: [] values(-3); input_max: [] values(4.5)",
    ],
    shape = reshaped,
    summary = "The codes under another shape.",
);

register_op!(
    "QuantizedConcat",
    inputs =
        &["concat_dim: int32", "values: N * T", "input_mins: N * float", "input_maxes: N * float"],
    outputs = &["output: T", "output_min: float", "output_max: float"],
    attrs = &["N: int >= 2", "T: type"],
    cases = &[
        "columns; N = 2; concat_dim: [] values(1); values: [a, 3], [a, 2]; input_mins: [] values(-3); \
         input_maxes: [] values(4.5), [] values(2)",
    ],
    shape = concat,
    summary = "Codes joined along an axis, in a range that holds all of theirs.",
);

fn activation(c: &ShapeContext<'_>) -> ShapeResult {
    unchanged_with_range(c, &[(1, "min_features"), (2, "max_features")])
}

fn bias_add(c: &ShapeContext<'_>) -> ShapeResult {
    let range = [(2, "min_input"), (3, "max_input"), (4, "min_bias"), (5, "max_bias")];
    check_scalars(c, &range)?;
    biased(c, "input", DataFormat::Nhwc)?;
    scalar_outputs(c, 1)
}

fn pair(c: &ShapeContext<'_>) -> ShapeResult {
    check_scalars(c, &[(2, "min_x"), (3, "max_x"), (4, "min_y"), (5, "max_y")])?;
    broadcast(c)?;
    scalar_outputs(c, 1)
}

fn reshaped(c: &ShapeContext<'_>) -> ShapeResult {
    check_scalars(c, &[(2, "input_min"), (3, "input_max")])?;
    reshape(c)?;
    scalar_outputs(c, 1)
}

fn concat(c: &ShapeContext<'_>) -> ShapeResult {
    let count = c.input_count() / 3;
    input_of_rank(c, 0, "concat_dim", 0)?;
    for at in 1..=count {
        check_scalars(c, &[(at + count, "input_mins"), (at + 2 * count, "input_maxes")])?;
    }
    joined(c, constant_integer(c, 0, "concat_dim")?, 1..count + 1)?;
    scalar_outputs(c, 1)
}
