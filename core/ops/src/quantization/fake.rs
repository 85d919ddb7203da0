//! Simulated quantisation for training: real numbers are moved to the nearest level of a range;
//! with gradients.

use super::check_scalars;
use crate::shape::{input_of_rank, input_of_rank_at_least, same_size, unchanged};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::{KernelError, op::GradientRule};

const MIN: &str = "min: float = -6.0";
const MAX: &str = "max: float = 6.0";
const BITS: &str = "num_bits: int = 8";
const NARROW: &str = "narrow_range: bool = false";

register_op!(
    "FakeQuantWithMinMaxArgs",
    inputs = &["inputs: float"],
    outputs = &["outputs: float"],
    attrs = &[MIN, MAX, BITS, NARROW],
    cases = &[
        "plain; min in {-6.0, 0.0}; max in {1.5, 6.0}; num_bits in {2, 8, 16}; narrow_range in {false, true}; \
         inputs: [a, b] uniform(-8, 8)",
    ],
    shape = unchanged,
    summary = "The nearest level of a range.",
);

register_op!(
    "FakeQuantWithMinMaxArgsGradient",
    inputs = &["gradients: float", "inputs: float"],
    outputs = &["backprops: float"],
    attrs = &[MIN, MAX, BITS, NARROW],
    cases = &[
        "plain; min in {-6.0, 0.0}; max in {1.5, 6.0}; num_bits in {2, 8, 16}; narrow_range in {false, true}; \
         gradients: [a, b]; inputs: [a, b] uniform(-8, 8)",
    ],
    shape = args_gradient,
    gradient = GradientRule::None,
    summary = "The gradient of FakeQuantWithMinMaxArgs: passed on within the range.",
);

register_op!(
    "FakeQuantWithMinMaxVars",
    inputs = &["inputs: float", "min: float", "max: float"],
    outputs = &["outputs: float"],
    attrs = &[BITS, NARROW],
    cases = &[
        "plain; num_bits in {2, 8, 16}; narrow_range in {false, true}; inputs: [a, b] uniform(-8, 8); \
         min: [] values(-5.25); max: [] values(3.5)",
        "nothing; inputs: [n] uniform(-8, 8); min: [] values(0); max: [] values(0)",
    ],
    shape = vars,
    summary = "The nearest level of a range that is an input.",
);

register_op!(
    "FakeQuantWithMinMaxVarsGradient",
    inputs = &["gradients: float", "inputs: float", "min: float", "max: float"],
    outputs = &["backprops_wrt_input: float", "backprop_wrt_min: float", "backprop_wrt_max: float"],
    attrs = &[BITS, NARROW],
    cases = &[
        "plain; num_bits in {2, 8}; narrow_range in {false, true}; gradients: [a, b] uniform(-1, 1); \
         inputs: [a, b] uniform(-8, 8); min: [] values(-5.25); max: [] values(3.5)",
        "nothing; gradients: [n]; inputs: [n] uniform(-8, 8); min: [] values(0); max: [] values(0)",
    ],
    shape = vars_gradient,
    gradient = GradientRule::None,
    summary = "The gradients of FakeQuantWithMinMaxVars: of the inputs, and of the range's ends.",
);

register_op!(
    "FakeQuantWithMinMaxVarsPerChannel",
    inputs = &["inputs: float", "min: float", "max: float"],
    outputs = &["outputs: float"],
    attrs = &[BITS, NARROW],
    cases = &[
        "channels; num_bits in {2, 8, 16}; narrow_range in {false, true}; inputs: [a, c] uniform(-8, 8); \
         min: [c] uniform(-6, -1); max: [c] uniform(1, 6)",
        "vector; inputs: [c] uniform(-8, 8); min: [c] values(-5.25); max: [c] values(3.5)",
    ],
    shape = per_channel,
    summary = "The nearest level of a range for each channel.",
);

register_op!(
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    inputs = &["gradients: float", "inputs: float", "min: float", "max: float"],
    outputs = &["backprops_wrt_input: float", "backprop_wrt_min: float", "backprop_wrt_max: float"],
    attrs = &[BITS, NARROW],
    cases = &[
        "channels; num_bits in {2, 8}; narrow_range in {false, true}; gradients: [a, c] uniform(-1, 1); \
         inputs: [a, c] uniform(-8, 8); min: [c] uniform(-6, -1); max: [c] uniform(1, 6)",
        "vector; gradients: [c]; inputs: [c] uniform(-8, 8); min: [c] values(-5.25); max: [c] values(3.5)",
    ],
    shape = per_channel_gradient,
    summary = "The gradients of FakeQuantWithMinMaxVarsPerChannel: of the inputs, and of the ends of each range.",
);

fn args_gradient(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.merge(c.input(0), c.input(1))?)
}

fn vars(c: &ShapeContext<'_>) -> ShapeResult {
    check_scalars(c, &[(1, "min"), (2, "max")])?;
    unchanged(c)
}

fn vars_gradient(c: &ShapeContext<'_>) -> ShapeResult {
    check_scalars(c, &[(2, "min"), (3, "max")])?;
    args_gradient(c)?;
    c.set_output(1, c.scalar())?;
    c.set_output(2, c.scalar())
}

fn per_channel(c: &ShapeContext<'_>) -> ShapeResult {
    channels(c, 0)?;
    c.set_output(0, c.input(0))
}

fn per_channel_gradient(c: &ShapeContext<'_>) -> ShapeResult {
    let channels = c.make_shape(&[channels(c, 1)?]);
    args_gradient(c)?;
    c.set_output(1, channels)?;
    c.set_output(2, channels)
}

/// Checks that both ends, the two inputs after this one, have one value per channel of this input;
/// the number of channels.
fn channels(c: &ShapeContext<'_>, input: usize) -> Result<Dim, KernelError> {
    let inputs = input_of_rank_at_least(c, input, "inputs", 1)?;
    let min = input_of_rank(c, input + 1, "min", 1)?;
    let max = input_of_rank(c, input + 2, "max", 1)?;
    let mut channels = c.dim(min, 0);
    if let Some(rank) = c.rank(inputs) {
        channels = same_size(c, "the size of min", c.dim(inputs, rank - 1), channels)?;
    }
    same_size(c, "the size of max", channels, c.dim(max, 0))
}
