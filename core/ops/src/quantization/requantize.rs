//! Conversion of 32-bit codes to 8-bit codes, with a given range or the range of the codes.

use super::{check_scalars, scalar_outputs, unchanged_with_range};
use crate::shape::{input_of_rank, same_size};
use tenon_author::{ShapeContext, ShapeResult, register_op};

const INPUT: &str = "Tinput: quantizedtype";
const OUTPUT: &str = "out_type: quantizedtype";

register_op!(
    "QuantizeDownAndShrinkRange",
    inputs = &["input: Tinput", "input_min: float", "input_max: float"],
    outputs = &["output: out_type", "output_min: float", "output_max: float"],
    attrs = &[INPUT, OUTPUT],
    cases = &[
        "codes; input: [a, b] integers(-300000..300000); input_min: [] values(-512); input_max: [] values(512)",
    ],
    shape = shrink,
    summary = "Codes of fewer bits, in the range that the codes fill.",
);

register_op!(
    "Requantize",
    inputs = &[
        "input: Tinput",
        "input_min: float",
        "input_max: float",
        "requested_output_min: float",
        "requested_output_max: float",
    ],
    outputs = &["output: out_type", "output_min: float", "output_max: float"],
    attrs = &[INPUT, OUTPUT],
    cases = &[
        "codes; input: [a, b] integers(-300000..300000); input_min: [] values(-512); input_max: [] values(512); \
         requested_output_min: [] values(-0.0625); requested_output_max: [] values(0.03125)",
    ],
    shape = requantize,
    summary = "Codes of fewer bits, in a given range.",
);

register_op!(
    "RequantizePerChannel",
    inputs = &[
        "input: T",
        "input_min: float",
        "input_max: float",
        "requested_output_min: float",
        "requested_output_max: float",
    ],
    outputs = &["output: out_type", "output_min: float", "output_max: float"],
    attrs = &["T: quantizedtype = DT_QINT32", "out_type: quantizedtype = DT_QUINT8"],
    cases = &[
        "codes; c in 1..20; input: [1, a, b, c] integers(-300000..300000); input_min: [c] uniform(-512, -256); \
         input_max: [c] uniform(256, 512); requested_output_min: [] values(-0.0625); \
         requested_output_max: [] values(0.0625)",
    ],
    shape = requantize_channels,
    summary = "Codes of fewer bits in a given range, from one range per channel.",
);

register_op!(
    "RequantizationRange",
    inputs = &["input: Tinput", "input_min: float", "input_max: float"],
    outputs = &["output_min: float", "output_max: float"],
    attrs = &[INPUT],
    cases = &[
        "codes; input: [a, b] integers(-300000..300000); input_min: [] values(-512); input_max: [] values(512)",
    ],
    shape = range,
    summary = "The range that codes fill.",
);

register_op!(
    "RequantizationRangePerChannel",
    inputs = &["input: T", "input_min: float", "input_max: float"],
    outputs = &["output_min: float", "output_max: float"],
    attrs = &["T: quantizedtype = DT_QINT32", "clip_value_max: float"],
    cases = &[
        "codes; clip_value_max in {6.0, 0.03125}; c in 1..20; input: [1, 2, 3, c] integers(-300000..300000); \
         input_min: [c] uniform(-512, -256); input_max: [c] uniform(256, 512)",
    ],
    shape = range_of_channels,
    summary = "One range for codes of channels that have a range each.",
);

const RANGE: &[super::Named] = &[(1, "input_min"), (2, "input_max")];
const REQUESTED: &[super::Named] = &[(3, "requested_output_min"), (4, "requested_output_max")];

fn shrink(c: &ShapeContext<'_>) -> ShapeResult {
    unchanged_with_range(c, RANGE)
}

fn requantize(c: &ShapeContext<'_>) -> ShapeResult {
    check_scalars(c, REQUESTED)?;
    unchanged_with_range(c, RANGE)
}

/// Checks that the ends of ranges have equal lengths.
fn check_channels(c: &ShapeContext<'_>) -> ShapeResult {
    let (min, max) = (input_of_rank(c, 1, "input_min", 1)?, input_of_rank(c, 2, "input_max", 1)?);
    same_size(c, "the size of input_max", c.dim(min, 0), c.dim(max, 0)).map(drop)
}

fn requantize_channels(c: &ShapeContext<'_>) -> ShapeResult {
    check_channels(c)?;
    unchanged_with_range(c, REQUESTED)
}

fn range(c: &ShapeContext<'_>) -> ShapeResult {
    check_scalars(c, RANGE)?;
    scalar_outputs(c, 0)
}

fn range_of_channels(c: &ShapeContext<'_>) -> ShapeResult {
    check_channels(c)?;
    scalar_outputs(c, 0)
}
