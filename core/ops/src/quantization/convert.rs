//! Conversion of real numbers to codes, of codes to real numbers, and both in one.

use crate::shape::{input_of_rank, input_of_rank_at_least, same_size};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

const MODE: &str = "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'";
const NARROW: &str = "narrow_range: bool = false";
const AXIS: &str = "axis: int = -1";

register_op!(
    "QuantizeV2",
    inputs = &["input: float", "min_range: float", "max_range: float"],
    outputs = &["output: T", "output_min: float", "output_max: float"],
    attrs = &[
        "T: quantizedtype",
        MODE,
        "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'",
        NARROW,
        AXIS,
        "ensure_minimum_range: float = 0.01",
    ],
    cases = &[
        "one; mode in {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'}; input: [a, b] uniform(-2, 3); \
         min_range: [] values(-1.5); max_range: [] values(2.25)",
        "even; mode = 'SCALED'; round_mode = 'HALF_TO_EVEN'; narrow_range in {false, true}; \
         input: [a, b] uniform(-2, 3); min_range: [] values(-1.5); max_range: [] values(2.25)",
        "channels; mode in {'MIN_COMBINED', 'SCALED'}; axis = 1; c in 2..20; input: [a, c, b] uniform(-2, 3); \
         min_range: [c] values(-1.5); max_range: [c] values(2.25)",
    ],
    shape = quantize,
    summary = "Codes of real numbers, in a range or in one per channel.",
);

register_op!(
    "Dequantize",
    inputs = &["input: T", "min_range: float", "max_range: float"],
    outputs = &["output: dtype"],
    attrs = &["T: quantizedtype", MODE, NARROW, AXIS, "dtype: {bfloat16, float} = DT_FLOAT",],
    cases = &[
        "one; narrow_range in {false, true}; input: [a, b]; min_range: [] values(-1.5); max_range: [] values(2.25)",
        "channels; axis = 1; c in 2..20; input: [a, c, b]; min_range: [c] values(-1.5); max_range: [c] values(2.25)",
    ],
    shape = dequantize,
    summary = "The real numbers that codes represent.",
);

/// Test cases with a given range, and with the range of the values.
macro_rules! round_trip_cases {
    ($bits:literal) => {
        &[
            concat!(
                "given; range_given = true; signed_input in {false, true}; narrow_range in {false, true}; \
                 input: [a, b] uniform(-2, 3); input_min: [] values(-1.5); input_max: [] values(2.25)",
                $bits
            ),
            concat!(
                "found; range_given = false; signed_input in {false, true}; input: [a, b] uniform(-2, 3); \
                 input_min: [] values(0); input_max: [] values(0)",
                $bits
            ),
            concat!(
                "channels; range_given in {false, true}; axis = 1; c in 1..20; input: [a, c, b] uniform(-2, 3); \
                 input_min: [c] values(-1.5); input_max: [c] values(2.25)",
                $bits
            ),
        ]
    };
}

const FLOATS: &str = "T: {bfloat16, half, float, double}";
const SIGNED: &str = "signed_input: bool = true";
const BITS: &str = "num_bits: int = 8";
const GIVEN: &str = "range_given: bool = false";
const ROUND: &str = "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'";

register_op!(
    "QuantizeAndDequantizeV2",
    inputs = &["input: T", "input_min: T", "input_max: T"],
    outputs = &["output: T"],
    attrs = &[SIGNED, BITS, GIVEN, FLOATS, ROUND, NARROW, AXIS],
    cases = round_trip_cases!("; num_bits in {4, 8}; round_mode in {'HALF_TO_EVEN', 'HALF_UP'}"),
    shape = round_trip,
    summary = "What quantising and dequantising makes of real numbers.",
);

register_op!(
    "QuantizeAndDequantizeV3",
    inputs = &["input: T", "input_min: T", "input_max: T", "num_bits: int32"],
    outputs = &["output: T"],
    attrs = &[SIGNED, "range_given: bool = true", FLOATS, NARROW, AXIS],
    cases = round_trip_cases!("; num_bits: [] values(8)"),
    shape = round_trip_of_bits,
    summary = "As QuantizeAndDequantizeV2, with the number of bits as an input.",
);

register_op!(
    "QuantizeAndDequantizeV4",
    inputs = &["input: T", "input_min: T", "input_max: T"],
    outputs = &["output: T"],
    attrs = &[SIGNED, BITS, GIVEN, FLOATS, ROUND, NARROW, AXIS],
    cases = round_trip_cases!("; num_bits in {4, 8}; round_mode in {'HALF_TO_EVEN', 'HALF_UP'}"),
    shape = round_trip,
    summary = "Like QuantizeAndDequantizeV2, with a gradient that passes within the range.",
);

register_op!(
    "QuantizeAndDequantizeV4Grad",
    inputs = &["gradients: T", "input: T", "input_min: T", "input_max: T"],
    outputs = &["input_backprop: T", "input_min_backprop: T", "input_max_backprop: T"],
    attrs = &[FLOATS, AXIS],
    cases = &[
        "one; gradients: [a, b]; input: [a, b] uniform(-4, 4); input_min: [] values(-2); input_max: [] values(3)",
        "channels; axis = 1; gradients: [a, c, b]; input: [a, c, b] uniform(-4, 4); input_min: [c] values(-2); \
         input_max: [c] values(3)",
    ],
    shape = round_trip_grad,
    summary =
        "The gradients of QuantizeAndDequantizeV4: passed on within the range, and 0 for its ends.",
);

/// An end of a range: the name of the argument, and the name of its size.
type End = [&'static str; 2];

const RANGE: [End; 2] =
    [["min_range", "the size of min_range"], ["max_range", "the size of max_range"]];
const INPUT_RANGE: [End; 2] =
    [["input_min", "the size of input_min"], ["input_max", "the size of input_max"]];

/// The input, and the shape of its range ends (inputs 1 and 2): scalars, or one value per channel
/// if attribute `axis` names a dimension.
fn ranged(c: &ShapeContext<'_>, ends: [End; 2]) -> Result<[ShapeHandle; 2], KernelError> {
    ranged_from(c, 0, ends)
}

/// As [`ranged`], where the input is that of this number and the ends follow it.
fn ranged_from(
    c: &ShapeContext<'_>,
    at: usize,
    [low, high]: [End; 2],
) -> Result<[ShapeHandle; 2], KernelError> {
    let axis: i64 = c.attr("axis")?;
    if axis < -1 {
        return Err(GeometryError::TooSmall { what: "axis", least: -1, found: axis }.into());
    }
    let Ok(axis) = usize::try_from(axis) else {
        let range = input_of_rank(c, at + 1, low[0], 0)?;
        input_of_rank(c, at + 2, high[0], 0)?;
        return Ok([c.input(at), range]);
    };
    let input = input_of_rank_at_least(c, at, "input", axis.saturating_add(1))?;
    let (lows, highs) =
        (input_of_rank(c, at + 1, low[0], 1)?, input_of_rank(c, at + 2, high[0], 1)?);
    let mut size = c.dim(lows, 0);
    if c.rank(input).is_some() {
        size = same_size(c, low[1], c.dim(input, axis), size)?;
    }
    let size = same_size(c, high[1], size, c.dim(highs, 0))?;
    Ok([input, c.make_shape(&[size])])
}

fn quantize(c: &ShapeContext<'_>) -> ShapeResult {
    let [input, range] = ranged(c, RANGE)?;
    c.set_output(0, input)?;
    c.set_output(1, range)?;
    c.set_output(2, range)
}

fn dequantize(c: &ShapeContext<'_>) -> ShapeResult {
    let [input, _] = ranged(c, RANGE)?;
    c.set_output(0, input)
}

fn round_trip(c: &ShapeContext<'_>) -> ShapeResult {
    let [input, _] = ranged(c, INPUT_RANGE)?;
    c.set_output(0, input)
}

fn round_trip_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let [input, range] = ranged_from(c, 1, INPUT_RANGE)?;
    c.set_output(0, c.merge(c.input(0), input)?)?;
    c.set_output(1, range)?;
    c.set_output(2, range)
}

fn round_trip_of_bits(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 3, "num_bits", 0)?;
    round_trip(c)
}
